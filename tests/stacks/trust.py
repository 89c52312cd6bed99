"""Whether a role's trust policy lets a token of GitHub's in, as STS decides it.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ISSUER = "token.actions.githubusercontent.com"


def trusts(role: Mapping[str, Any], claims: Mapping[str, str]) -> bool:
    """Return whether a role lets a token with these claims in; a claim that is absent matches nothing."""
    statements = role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert {(each["Effect"], each["Action"]) for each in statements} == {("Allow", "sts:AssumeRoleWithWebIdentity")}
    assert all(each["Principal"].keys() == {"Federated"} for each in statements)
    return any(_matches(each["Condition"], claims) for each in statements)


def _matches(condition: Mapping[str, Mapping[str, Any]], claims: Mapping[str, str]) -> bool:
    known = {f"{ISSUER}:{name}": value for name, value in claims.items()}
    return all(
        key in known and any(_OPERATORS[operator](value, known[key]) for value in _listed(values))
        for operator, keys in condition.items()
        for key, values in keys.items()
    )


def _like(pattern: str, value: str) -> bool:
    parts = ({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in pattern)
    return re.fullmatch("".join(parts), value, re.DOTALL) is not None


_OPERATORS = {"StringEquals": str.__eq__, "StringLike": _like}


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]
