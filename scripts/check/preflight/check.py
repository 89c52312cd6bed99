"""What a check is, and what it may find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

CREDENTIALS = "credentials"
"""Id of the check without which no other can call AWS."""

SECONDS = 20
"""How long a check may take, unless it says otherwise."""


class CheckStatus(StrEnum):
    """The result of a check."""

    PASS = "PASS"  # noqa: S105 - no password
    WARN = "WARN"
    """The deployment will probably work, but somebody should look at this."""
    FAIL = "FAIL"
    """The deployment would fail, or spend money for nothing."""
    SKIP = "SKIP"
    """There is nothing to check in this deployment, or not yet."""
    UNKNOWN = "UNKNOWN"
    """The check could not be made: a permission is missing, or AWS did not answer."""


PASS, WARN, FAIL, SKIP, UNKNOWN = CheckStatus


@dataclass(frozen=True)
class Finding:
    """One answer of a check.

    Attributes:
        status: Its result.
        sentence: What was found, with the values.
        hint: How to fix it; empty where there is nothing to fix.
        command: AWS CLI command that shows the same; empty where there is none.
        subject: What it is about, where a check has several answers: a reservation, a bucket.
        path: The key of ParallelCluster's configuration that it is about; empty: none.
    """

    status: CheckStatus
    sentence: str
    hint: str = ""
    command: str = ""
    subject: str = ""
    path: str = ""

    def of(self, subject: str, command: str = "") -> Finding:
        """Return the same finding about a subject."""
        return replace(self, subject=subject, command=command)


class Permission(NamedTuple):
    """An IAM action that a check calls, and the resources that it calls it on."""

    action: str
    resource: str = "*"


Findings = Iterable[Finding] | Finding | None
"""What a check finds; None: there is nothing of its kind in the settings."""


@dataclass(frozen=True)
class Check:
    """A question to the account, or to this machine.

    Attributes:
        prevents: What would happen later without it, in one sentence.
        permissions: All that it calls; none: it calls no AWS API, and needs no credentials.
        evaluate: Answers it. It may raise whatever botocore raises.
        seconds: How long it may take.
    """

    id: str
    title: str
    prevents: str
    permissions: tuple[Permission, ...]
    evaluate: Callable[[Deployment], Findings]
    seconds: float


def check(
    check_id: str, title: str, *, calls: Iterable[str | Permission] = (), seconds: float = SECONDS
) -> Callable[[Callable[[Deployment], Findings]], Check]:
    """Make a check of a function, whose docstring starts with what would happen without the check."""
    permissions = tuple(call if isinstance(call, Permission) else Permission(call) for call in calls)

    def made(evaluate: Callable[[Deployment], Findings]) -> Check:
        prevents = (evaluate.__doc__ or "").partition("\n")[0]
        return Check(check_id, title, prevents, permissions, evaluate, seconds)

    return made
