"""The results of a run of checks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import Field, computed_field

from scripts.core.document import DeploymentName, Document, Result
from scripts.core.findings import CheckStatus, Finding
from scripts.core.report import TONES, Block, Conclusion, Facts, Gap, Line, Toned

FailOn = Literal["fail", "unknown", "warn"]
FAILURES: Mapping[FailOn, tuple[CheckStatus, ...]] = {
    "fail": (CheckStatus.FAIL,),
    "unknown": (CheckStatus.FAIL, CheckStatus.UNKNOWN),
    "warn": (CheckStatus.FAIL, CheckStatus.WARN, CheckStatus.UNKNOWN),
}
"""Statuses that make a run fail, by --fail-on."""


class CheckResult(Document):
    """A finding, with the check that made it and the seconds that this took."""

    check: str
    subject: str
    status: CheckStatus
    sentence: str
    hint: str
    command: str
    seconds: float

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """The check and its subject: ``capacity-reservation[cr-...]``."""
        return f"{self.check}[{self.subject}]" if self.subject else self.check


class PreflightReport(Result):
    """The results of a run.

    Attributes:
        account: The account that was asked; None: not known.
        results: In the order of the checks.
        endpoint: What was called instead of AWS's own endpoints; None: nothing.
        elapsed: Seconds that the run took.
    """

    deployment: DeploymentName
    account: str | None
    results: tuple[CheckResult, ...]
    fail_on: FailOn = Field(default="unknown", exclude=True)
    endpoint: str | None = Field(default=None, exclude=True)
    elapsed: float = Field(0, exclude=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def counts(self) -> dict[CheckStatus, int]:
        """How many results there are of each status."""
        counter = Counter(result.status for result in self.results)
        return {status: counter[status] for status in CheckStatus}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ok(self) -> bool:
        """Whether nothing makes the run fail."""
        return not any(self.counts[status] for status in FAILURES[self.fail_on])

    @property
    def verdict(self) -> str:
        """The conclusion, in a sentence."""
        if not self.ok:
            return "Not ready to deploy."
        if unknown := self.counts[CheckStatus.UNKNOWN]:
            return f"Ready, but {unknown} could not be judged."
        return "Ready to deploy."

    def blocks(self) -> Iterator[Block]:
        """Yield it for people, by check."""
        yield from _findings(self.results)
        yield self._summary()

    def page(self) -> Iterator[Block]:
        """Yield the worst first, and of what is right the ids alone."""
        yield self._summary()
        wrong = (CheckStatus.FAIL, CheckStatus.UNKNOWN, CheckStatus.WARN, CheckStatus.SKIP)
        yield from _findings(each for status in wrong for each in self.results if each.status is status)
        if right := [each.id for each in self.results if each.status is CheckStatus.PASS]:
            yield Finding(CheckStatus.PASS, ", ".join(right))

    def _summary(self) -> Conclusion:
        summary: list[str] = []
        for status, count in self.counts.items():
            if count:
                summary += [", " if summary else "", Toned(f"{count} {status}", TONES[status])]
        endpoint = f" (endpoint {self.endpoint})" if self.endpoint else ""
        took = f"{self.deployment}{endpoint}: {len(self.results)} answers in {self.elapsed:.1f} s: "
        return Conclusion([Gap(), Line([took, *summary, ". ", Toned(self.verdict, "strong")])])


def _findings(results: Iterable[CheckResult]) -> Iterator[Finding]:
    """Yield results; those that were skipped for one reason together, at the end."""
    skipped: dict[str, list[str]] = defaultdict(list)
    for each in results:
        if each.status is CheckStatus.SKIP and not each.hint:
            skipped[each.sentence].append(each.id)
        elif each.status is CheckStatus.PASS:
            yield Finding(each.status, each.sentence, subject=each.id)
        else:
            yield Finding(each.status, each.sentence, each.hint, each.command, each.id)
    for reason, ids in skipped.items():
        yield Finding(CheckStatus.SKIP, f"{reason}: {', '.join(ids)}")


class ListedCheck(Document):
    """A check that --only and --skip can name."""

    id: str = Field(description="Its id.")
    title: str = Field(description="What it checks.")


class CheckList(Result):
    """What ``preflight --list --output json`` prints."""

    checks: tuple[ListedCheck, ...] = Field(description="The selected checks, in their order.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Facts([(each.id, each.title) for each in self.checks])
