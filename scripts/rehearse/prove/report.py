"""The report of a walk: what was expected, what was seen, and what it cost at most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, Literal

from pydantic import Field, computed_field

from scripts.core.document import DeploymentName, Document, Result
from scripts.core.figures import Dollars, dollars, duration
from scripts.core.report import Block, Conclusion, Facts, Gap, Line, Table, Title, Tone, Toned, columns
from scripts.rehearse.prove.assumptions import NO_RUNG, Assumption, assumptions
from scripts.rehearse.prove.ladder import RUNGS
from scripts.rehearse.prove.money import Span, spent

VERSION: Final = 1
Outcome = Literal["as expected", "differs", "not looked at"]
RungState = Literal["running", "done", "failed", "stopped", "refused", "declined"]
_TONES: Final[Mapping[str, Tone]] = {"as expected": "good", "differs": "bad", "not looked at": "dim"}


class Observation(Document):
    """What was seen of one assumption."""

    id: str = Field(description="Its name, as in docs/reference/assumptions.md.")
    rung: str = Field(description="The rung that shows it; `none`: there is no such rung yet.")
    expected: str = Field(description="What is expected, in Markdown.")
    outcome: Outcome = Field(description="What the look says.")
    seen: str = Field(description="What was seen, or why nobody looked.")
    logs: tuple[str, ...] = Field(default=(), description="Files of the folder with more, by their relative paths.")
    time: datetime | None = Field(default=None, description="When; null: nobody looked.")


class RungRecord(Document):
    """What happened in a rung."""

    name: str = Field(description="Its name.")
    state: RungState = Field(
        description="done: it came to its end; failed: it did not, and why; stopped: by its time limit or a signal; "
        "refused: the cost limit had no room for it; declined: the answer was no."
    )
    reason: str = Field(default="", description="Why it is not done.")
    worst_usd: Dollars = Field(description="What it was allowed to cost, with the destruction after it.")
    started: datetime | None = Field(default=None, description="When it started; null: it did not.")
    ended: datetime | None = Field(default=None, description="When it ended; null: it has not.")


class Proof(Result):
    """The report of a walk. Another walk of the same folder continues it."""

    version: Literal[1] = Field(default=VERSION, description="Version of this document.")
    deployment: DeploymentName
    region: str = Field(description="Region of the stacks.")
    zone_id: str = Field(description="Zone of the nodes.")
    cloud: Literal["aws", "emulated"] = Field(
        description="emulated: nothing here says anything about AWS, and nothing was spent."
    )
    versions: Mapping[str, str] = Field(description="What ran: versions of this project and of what it pins.")
    limit_usd: Dollars = Field(description="The cost limit.")
    prices: str = Field(default="", description="Where the prices are from, and of which day; empty: not needed yet.")
    spans: tuple[Span, ...] = Field(default=(), description="What is counted as spent, from when on.")
    rungs: tuple[RungRecord, ...] = Field(default=(), description="The rungs that were reached, in their order.")
    observations: tuple[Observation, ...] = Field(default=(), description="One for each assumption.")
    time: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When this was written.")

    @computed_field(  # type: ignore[prop-decorator]
        description="US dollars that were spent at most, by list prices, until `time`."
    )
    @property
    def spent_usd(self) -> Dollars:
        """What was spent at most."""
        return spent(self.spans, self.time)

    @property
    def is_standing(self) -> bool:
        """Whether something that costs may exist."""
        return bool(self.spans) and self.spans[-1].usd_per_hour > 0

    def rung(self, name: str) -> RungRecord | None:
        """Return the record of a rung; None: it was not reached."""
        return next((each for each in self.rungs if each.name == name), None)

    def with_rung(self, record: RungRecord) -> Proof:
        """Return it with a record of a rung, in place of an earlier one."""
        names = [each.name for each in RUNGS]
        others = [each for each in self.rungs if each.name != record.name]
        ordered = sorted([*others, record], key=lambda each: names.index(each.name))
        return self.model_copy(update={"rungs": tuple(ordered)})

    def with_observation(self, observation: Observation) -> Proof:
        """Return it with an observation, in place of an earlier one."""
        kept = (observation if each.id == observation.id else each for each in self.observations)
        return self.model_copy(update={"observations": tuple(kept)})

    def redacted(self, redact: Callable[[str], str]) -> Proof:
        """Return it with texts that others may read; names of rungs and assumptions are ours, and stay."""
        rungs = tuple(each.model_copy(update={"reason": redact(each.reason)}) for each in self.rungs)
        seen = tuple(each.model_copy(update={"seen": redact(each.seen)}) for each in self.observations)
        return self.model_copy(update={"rungs": rungs, "observations": seen})

    @property
    def ok(self) -> bool:
        """Whether all rungs that were reached are done, and nothing differs."""
        return self.counts["differs"] == 0 and all(each.state == "done" for each in self.rungs)

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many observations there are of each outcome."""
        outcomes = [each.outcome for each in self.observations]
        return {name: outcomes.count(name) for name in ("as expected", "differs", "not looked at")}

    def blocks(self) -> Iterator[Block]:
        """Yield it for people: a table for each rung, of what was looked at."""
        return self._blocks([each for each in self.observations if each.outcome != "not looked at"])

    def page(self) -> Iterator[Block]:
        """Yield all of it."""
        return self._blocks(self.observations)

    def _blocks(self, shown: Sequence[Observation]) -> Iterator[Block]:
        yield Facts(list(self._facts()))
        titles = {each.name: each.title for each in RUNGS} | {NO_RUNG: "No rung yet"}
        for name, title in titles.items():
            rows = [_row(each) for each in shown if each.rung == name]
            if not (rows or self.rung(name)):
                continue
            yield Gap()
            yield Title(title)
            if record := self.rung(name):
                yield Line(_of_record(record))
            yield Table("", columns("Assumption", "Outcome", "Expected", "Seen"), rows)
        yield Conclusion([Line(self.verdict)])

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "where", f"{self.region}, {self.zone_id}" + (", an emulated AWS" if self.cloud == "emulated" else "")
        yield "spent at most", f"{dollars(self.spent_usd)} of {dollars(self.limit_usd)}, by the {self.prices}"
        yield "written", f"{self.time:%Y-%m-%d %H:%M} UTC"
        yield from self.versions.items()

    @property
    def verdict(self) -> str:
        """The result in a sentence."""
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items())
        about = " An emulated AWS settles nothing about AWS." if self.cloud == "emulated" else ""
        return f"{len(self.observations)} assumptions: {counts}.{about}"


def unseen(cloud: Literal["aws", "emulated"]) -> tuple[Observation, ...]:
    """Return an observation for each assumption, before anybody looked."""
    return tuple(
        Observation(
            id=each.id, rung=each.rung, expected=each.expected, outcome="not looked at", seen=_why_not(each, cloud)
        )
        for each in assumptions()
    )


def _why_not(assumption: Assumption, cloud: Literal["aws", "emulated"]) -> str:
    if assumption.rung == NO_RUNG:
        return f"no rung yet: needs {assumption.without}"
    if cloud == "emulated" and not assumption.emulated:
        return "an emulated AWS cannot show it"
    if assumption.by == "person":
        return f"by you: look at {assumption.check}"
    return "not reached"


def _row(observation: Observation) -> tuple[str, str, str, str]:
    tone = _TONES[observation.outcome]
    logs = f" ({', '.join(observation.logs)})" if observation.logs else ""
    return observation.id, Toned(observation.outcome, tone), observation.expected, f"{observation.seen}{logs}"


def _of_record(record: RungRecord) -> str:
    took = f" after {duration(record.ended - record.started)}" if record.started and record.ended else ""
    reason = f": {record.reason}" if record.reason else ""
    return f"{record.state.capitalize()}{took}{reason}. Allowed: {dollars(record.worst_usd or Decimal(0))}."
