"""What a check is, and what it may find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from scripts.deployment import Deployment

SECONDS = 20
"""How long a check may take, unless it says otherwise."""


class Status(StrEnum):
    """What came of a check."""

    PASS = "PASS"  # noqa: S105 - no password
    WARN = "WARN"
    """The deployment will probably work, but somebody should look."""
    FAIL = "FAIL"
    """The deployment would fail, or spend money in vain."""
    SKIP = "SKIP"
    """There is nothing to check in this deployment, or not yet."""
    UNKNOWN = "UNKNOWN"
    """Nobody could look: a right is missing, or AWS did not answer."""


@dataclass(frozen=True)
class Finding:
    """One answer of a check.

    Attributes:
        status: What came of it.
        sentence: What was found, with the values.
        hint: What mends it; empty where nothing is to be mended.
        command: AWS CLI command that shows the same; empty where there is none.
        subject: What it is about, where a check has several answers: a reservation, a bucket.
    """

    status: Status
    sentence: str
    hint: str = ""
    command: str = ""
    subject: str = ""


class Permission(NamedTuple):
    """A right that a check needs: an IAM action, and the resources that it is used on."""

    action: str
    resource: str = "*"


@dataclass(frozen=True)
class Check:
    """Something to find out.

    Attributes:
        id: Its name on the command line and in documents.
        title: What it looks at, in a few words.
        prevents: What would happen later without it, in one sentence.
        permissions: All that it calls; none: it asks no AWS API, and needs no credentials.
        look: Finds it out. It may raise whatever botocore raises.
        seconds: How long it may take.
    """

    id: str
    title: str
    prevents: str
    permissions: tuple[Permission, ...]
    look: Callable[[Deployment], Iterable[Finding]]
    seconds: float


def check(
    check_id: str, title: str, *, prevents: str, calls: Iterable[str | Permission] = (), seconds: float = SECONDS
) -> Callable[[Callable[[Deployment], Iterable[Finding]]], Check]:
    """Make a check of a function, whose findings are its answers.

    Args:
        check_id: Its name on the command line and in documents.
        title: What it looks at, in a few words.
        prevents: What would happen later without it, in one sentence.
        calls: The IAM actions that it needs, such as ``ec2:DescribeVpcs``.
        seconds: How long it may take.
    """
    permissions = tuple(call if isinstance(call, Permission) else Permission(call) for call in calls)
    return lambda look: Check(check_id, title, prevents, permissions, look, seconds)
