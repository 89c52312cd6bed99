"""What the policies of identities and of resources say of a request, on plain values.

Within one account. The rules: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
and its pages; those of keys: https://docs.aws.amazon.com/kms/latest/developerguide/key-policies.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import eq
from typing import Any, Final

UNKNOWN: Final = "*"
"""The resource of a request, where it is not found out: what a policy says of certain ones holds."""
ROOT: Final = "arn:aws:iam::{}:root"

Document = Mapping[str, Any]
"""A policy, or a statement of one."""
Known = Callable[[str], tuple[bool, str | None]]
"""What tells whether a key of conditions is known here, and which value it has; None: the request has none."""


@dataclass(frozen=True)
class Caller:
    """Who makes a request.

    Attributes:
        arn: Of the user, or of the session of a role.
        principal_arn: Of the user, or of the role with its path: what the key aws:PrincipalArn is.
    """

    arn: str
    principal_arn: str

    @property
    def account(self) -> str:
        """Number of the account."""
        return self.arn.split(":")[4]

    @property
    def keys(self) -> dict[str, str]:
        """What is known of conditions, in lower case.

        https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html; of aws:SecureTransport:
        AWS's own addresses are HTTPS where the emulated ones are HTTP.
        """
        return {
            "aws:principalarn": self.principal_arn,
            "aws:principalaccount": self.account,
            "aws:securetransport": "true",
            "kms:calleraccount": self.account,
        }


class Verdict(Enum):
    """What comes of all policies."""

    ALLOWED = "allowed"
    DENIED = "denied"
    DENIED_BY_BOUNDARY = "with an explicit deny in a permissions boundary"
    OUTSIDE_BOUNDARY = "because no permissions boundary allows the {} action"


class Named(Enum):
    """As what the policy of a resource names a caller, and so what its Allow means; the first that fits counts.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic_policy-eval-denyallow.html
    """

    ITSELF = "as a user, a session or anybody, whom neither missing permissions nor a boundary limits"
    ROLE = "as the role of a session, which the role's boundary limits"
    ACCOUNT = "as one of the account, whose own policies have to allow it"


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    action: str
    resource: str
    known: Known
    caller: Caller


def judge(
    request: Request,
    identity: Iterable[Document],
    *,
    boundary: Iterable[Document] | None = None,
    of_resource: Document | None = None,
    of_key: bool = False,
) -> Verdict:
    """Return what all policies together say of a request.

    Args:
        request: The request.
        identity: Policies of the user or the role.
        boundary: Those that bound it: none of them allows anything where there are none; None: it has no boundary.
        of_resource: The policy of what the request is about.
        of_key: It is the policy of a KMS key: policies of identities count only as far as it lets the account decide.
    """
    own = [_says(statement, request) for policy in identity for statement in _statements(policy)]
    bounds = None if boundary is None else [_says(each, request) for policy in boundary for each in _statements(policy)]
    named = {
        (effect, as_what)
        for statement in _statements(of_resource or {})
        if (as_what := named_as(statement, request.caller)) and (effect := _says(statement, request, of_resource=True))
    }
    if "Deny" in own or any(effect == "Deny" for effect, _ in named):
        return Verdict.DENIED
    if bounds is not None and "Deny" in bounds:
        return Verdict.DENIED_BY_BOUNDARY
    if ("Allow", Named.ITSELF) in named:
        return Verdict.ALLOWED
    delegated = not of_key or ("Allow", Named.ACCOUNT) in named
    if ("Allow", Named.ROLE) not in named and not ("Allow" in own and delegated):
        return Verdict.DENIED
    return Verdict.ALLOWED if bounds is None or "Allow" in bounds else Verdict.OUTSIDE_BOUNDARY


def named_as(statement: Document, caller: Caller) -> Named | None:
    """Tell as what a statement in the policy of a resource names a caller; None: as nothing.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html
    """
    if "NotPrincipal" in statement:
        excepted = named_as({"Principal": statement["NotPrincipal"]}, caller)
        return None if excepted else Named.ITSELF
    principal = statement.get("Principal")
    named = set(listed(principal.get("AWS", []))) if isinstance(principal, dict) else {principal}
    if not named.isdisjoint({"*", caller.arn}):
        return Named.ITSELF
    if caller.principal_arn in named:
        return Named.ROLE
    return Named.ACCOUNT if not named.isdisjoint({caller.account, ROOT.format(caller.account)}) else None


def _says(statement: Document, request: Request, *, of_resource: bool = False) -> str | None:
    """Return the effect of a statement on a request; None: it says nothing of it.

    A condition that cannot be told here counts as met in policies of identities: what they deny under a condition is
    denied. A statement of a resource with such a condition is passed over, or the usual "deny without this header"
    would lock everybody out.
    """
    concerns = takes_in(statement, "Action", request.action) and takes_in(statement, "Resource", request.resource)
    met = holds(statement.get("Condition", {}), request.known) if concerns else False
    return str(statement["Effect"]) if met or (met is None and not of_resource) else None


def takes_in(statement: Document, element: str, value: str) -> bool:
    """Tell whether an element, or its opposite, takes in a value. Case counts in resources alone."""
    if value == UNKNOWN:
        return True
    flags = re.IGNORECASE if element == "Action" else re.NOFLAG
    if negated := statement.get(f"Not{element}"):
        return not any(_fits(pattern, value, flags) for pattern in listed(negated))
    return element not in statement or any(_fits(pattern, value, flags) for pattern in listed(statement[element]))


def holds(condition: Mapping[str, Mapping[str, str | list[str]]], known: Known) -> bool | None:
    """Tell whether a Condition is met; None: it is as far as it can be told here, and the rest cannot."""
    met = [
        _met(operator, key, listed(value), known) for operator, keys in condition.items() for key, value in keys.items()
    ]
    return False if False in met else None if None in met else True


def _arn_fits(pattern: str, arn: str) -> bool:
    """Tell whether an ARN fits a pattern part by part, of which it has six."""
    parts, of_pattern = arn.split(":", 5), pattern.split(":", 5)
    return len(parts) == len(of_pattern) and all(map(_fits, of_pattern, parts))


def _fits(pattern: str, value: str, flags: re.RegexFlag = re.NOFLAG) -> bool:
    """Tell whether a value fits a pattern, in which only * and ? are special."""
    return bool(re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), value, flags | re.DOTALL))


def _same_in_any_case(expected: str, value: str) -> bool:
    return expected.casefold() == value.casefold()


_COMPARISONS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "ArnEquals": _arn_fits,
    "ArnLike": _arn_fits,
    "Bool": _same_in_any_case,
    "StringEquals": eq,
    "StringEqualsIgnoreCase": _same_in_any_case,
    "StringLike": _fits,
}


def _met(operator: str, key: str, expected: list[str], known: Known) -> bool | None:
    """Tell whether a request meets one key of a condition; None: operator, key or value is not known here.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html and, for sets,
    reference_policies_condition-single-vs-multi-valued-context-keys.html beside it
    """
    is_known, value = known(key)
    if not is_known or any("${" in each for each in expected):
        return None
    if operator == "Null":
        return (value is None) == (expected[0].lower() == "true")
    quantifier, _, plain = operator.rpartition(":")
    negated, if_exists = "Not" in plain, plain.endswith("IfExists")
    compare = _COMPARISONS.get(plain.removesuffix("IfExists").replace("Not", ""))
    if compare is None:
        return None
    if value is None:
        return if_exists or quantifier == "ForAllValues" or (negated and not quantifier)
    return negated != any(compare(each, value) for each in expected)


def _statements(policy: Document) -> list[Document]:
    found = policy.get("Statement", [])
    return [found] if isinstance(found, dict) else list(found)


def listed(value: str | list[str]) -> list[str]:
    """Return what an element has, of which one is not in a list."""
    return [value] if isinstance(value, str) else value
