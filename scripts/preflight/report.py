"""What came of a run of checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scripts.preflight.check import Status

if TYPE_CHECKING:
    from scripts.preflight.runner import Result

FAULTS: Mapping[str, tuple[Status, ...]] = {
    "fail": (Status.FAIL,),
    "unknown": (Status.FAIL, Status.UNKNOWN),
    "warn": (Status.FAIL, Status.WARN, Status.UNKNOWN),
}
"""What counts as a fault, by the least that is to be one."""


@dataclass(frozen=True)
class Report:
    """What came of a run.

    Attributes:
        environment: The configuration.
        endpoint: What was asked instead of AWS's own endpoints; None: nothing.
        account: The account that was asked; None: it is not known.
        results: In the order of the checks.
        fail_on: Key of `FAULTS`.
        seconds: How long it all took.
    """

    environment: str
    endpoint: str | None
    account: str | None
    results: Sequence[Result]
    fail_on: str
    seconds: float

    @property
    def counts(self) -> dict[Status, int]:
        """How many results there are of each status."""
        counter = Counter(result.finding.status for result in self.results)
        return {status: counter[status] for status in Status}

    @property
    def ok(self) -> bool:
        """Whether there is no fault."""
        return not any(self.counts[status] for status in FAULTS[self.fail_on])

    @property
    def verdict(self) -> str:
        """What it comes to, in a sentence."""
        if not self.ok:
            return "Not ready to deploy."
        if unknown := self.counts[Status.UNKNOWN]:
            return f"Ready, but {unknown} could not be judged."
        return "Ready to deploy."

    def document(self) -> dict[str, Any]:
        """Return it for programs, as docs/preflight.md describes it."""
        return {
            "environment": self.environment,
            "account": self.account,
            "results": [_as_json(result) for result in self.results],
            "counts": self.counts,
            "ok": self.ok,
        }


def _as_json(result: Result) -> dict[str, Any]:
    finding = result.finding
    return {
        "id": result.id,
        "check": result.check.id,
        "subject": finding.subject,
        "status": finding.status,
        "sentence": finding.sentence,
        "hint": finding.hint,
        "command": finding.command,
        "seconds": round(result.seconds, 2),
    }
