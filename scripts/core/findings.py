"""What checks and plans find: a finding, and its status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


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

    @property
    def text(self) -> str:
        """What was found, and of what."""
        return ": ".join(filter(None, (self.subject, self.sentence)))

    def of(self, subject: str, command: str = "") -> Finding:
        """Return the same finding about a subject."""
        return replace(self, subject=subject, command=command)
