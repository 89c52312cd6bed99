"""What a check is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from scripts.core.findings import Finding

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

CREDENTIALS = "credentials"
"""Id of the check without which no other can call AWS."""

SECONDS = 20
"""How long a check may take, unless it says otherwise."""


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
