"""Known causes of failures: the table in causes.yaml, and how evidence is matched with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from pathlib import Path
from string import Formatter

from pydantic import Field

from scripts.core.document import Document
from scripts.core.report import Block, Command, Line, Title, Toned

_SHOWN = 500
"""Characters of evidence that are shown."""
TABLE = Path(__file__).with_name("causes.yaml")
SEEN = {
    "event": "events of the stacks",
    "provider": "the provider's log",
    "instance": "the head node's state",
    "boot": "start-up logs of nodes",
    "system": "syslog of nodes",
    "daemon": "logs of ParallelCluster's daemons",
    "slurm": "Slurm's logs",
    "job": "reasons why jobs wait",
    "answer": "what Slurm answers now",
    "disk": "the head node's disks now",
    "fleet": "the compute fleet and its queues now",
    "accounting": "whether accounting answers now",
    "node": "nodes that take no jobs now",
}
"""Where causes are seen, by the kind of evidence in the table."""


class Evidence(Document):
    """One thing that AWS recorded."""

    kind: str = Field(description=f"One of {', '.join(SEEN)}.")
    source: str = Field(description="The stack, the cluster of an instance, or log group and stream.")
    time: datetime = Field(description="When it was recorded.")
    text: str = Field(description="The line; of an event: status, type and logical id of the resource, and the reason.")
    names: Mapping[str, str] = Field(default={}, exclude=True)
    """What else an event tells, by the placeholders in causes.yaml."""


class State(StrEnum):
    """Whether a cause holds, in the order in which causes are shown."""

    NOW = "now"
    SEEN = "seen"
    ENDED = "ended"


class FoundCause(Document):
    """A cause that was found."""

    id: str = Field(description="Name of the cause, as in scripts/account/causes.yaml.")
    title: str = Field(description="What it is, in a few words.")
    why: str = Field(description="The cause in a sentence or two.")
    to_do: tuple[str, ...] = Field(description='What to do, in this order; commands begin with "$ ".')
    source: str = Field(description="Where this is from.")
    evidence: tuple[Evidence, ...] = Field(description="Why it is believed, in order of the reasoning.")
    state: State = Field(
        default=State.SEEN,
        description="`now`: it holds; `seen`: it was recorded, and whether it holds is not known; `ended`: it is over.",
    )
    ended: str = Field(default="", description="Why it is believed to be over; empty: it is not.")
    count: int = Field(default=1, description="How often it was recorded in what was read.")
    first: datetime | None = Field(default=None, description="When the first time was; null: as its evidence.")
    last: datetime | None = Field(default=None, description="When the last time was; null: as its evidence.")
    names: Mapping[str, str] = Field(default={}, exclude=True)
    """What fills placeholders."""
    logs: tuple[str, ...] | None = Field(default=None, exclude=True)
    """Of a symptom the kinds of logs where its cause is seen; None: it is no symptom."""
    behind: tuple[str, ...] = Field(default=(), exclude=True)
    """Ids of the first failures that it explains; empty: it explains anything."""

    def blocks(self) -> Iterator[Block]:
        """Yield it for people, with its evidence and what to do."""
        yield Line(Toned(self.title, "bad"))
        yield Line(self.why)
        if self.when:
            yield Line(self.when)
        yield Title("Why this is believed")
        yield from evidence_lines(self.evidence)
        yield Title("What to do")
        yield from self.steps()
        yield Line(Toned(f"See {self.source}", "dim"))

    @property
    def when(self) -> str:
        """Whether it holds, and when it was recorded, in a sentence; empty: it was not judged."""
        if self.last is None or self.first is None:
            return ""
        times = f"{self.last:%H:%M:%S} UTC"
        times = times if self.count == 1 else f"{times}, {self.count:,} times since {self.first:%H:%M:%S}"
        match self.state:
            case State.NOW:
                return f"It holds now; recorded at {times}."
            case State.SEEN:
                return f"Recorded at {times}; whether it still holds is not known."
        return f"It is over: {self.ended}. Recorded at {times}."

    def steps(self) -> Iterator[Block]:
        """Yield what to do."""
        for each in self.to_do:
            is_command = each.startswith(COMMAND)
            yield Command(each.removeprefix(COMMAND)) if is_command else Line(each, item=True)


def evidence_lines(evidence: Iterable[Evidence]) -> Iterator[Line]:
    """Yield evidence for people, as it was recorded."""
    for each in evidence:
        yield Line(Toned(f"{each.time:%Y-%m-%d %H:%M:%S} UTC, {each.source}", "source"))
        text = each.text if len(each.text) <= _SHOWN else f"{each.text[:_SHOWN]} ..."
        for line in text.splitlines() or [""]:  # GitHub's runners obey lines that start like `::add-mask::`
            yield Line(f"| {line}")


@dataclass(frozen=True)
class Cause:
    """A row of the table, which explains its columns at its top."""

    id: str
    title: str
    seen: tuple[str, ...]
    pattern: re.Pattern[str]
    why: str
    do: tuple[str, ...]
    source: str
    logs: tuple[str, ...] | None = None
    behind: tuple[str, ...] = ()
    lasts: int | None = None
    healed: str = ""


_WORD = re.compile(r"[A-Za-z0-9_/][A-Za-z0-9_.,:/@=+\[\]-]*")
"""Such as a node, several of them, an ARN or a path; no option."""
COMMAND = "$ "
"""What a line of what to do starts with that is a command."""


class _Names(dict[str, str]):
    """Names for placeholders; one that is not known is shown as ``<name>``."""

    def __missing__(self, name: str) -> str:
        return f"<{name}>"


@cache
def table() -> tuple[Cause, ...]:
    """Return all causes, in the order in which they are tried."""
    import yaml
    from pydantic import TypeAdapter

    rows = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe ones
    return TypeAdapter(tuple[Cause, ...]).validate_python(rows)


def filled(line: str, known: Mapping[str, str]) -> str:
    """Return a line of what to do, with names in its placeholders; empty: a command lacks one.

    In a command stand only names that no shell interprets: who may submit a job can write lines into Slurm's logs, and
    administrators type what stands here.
    """
    if line.startswith(COMMAND):
        known = {name: value for name, value in known.items() if _WORD.fullmatch(value)}
        if not known.keys() >= {name for _, name, _, _ in Formatter().parse(line) if name}:
            return ""
    return line.format_map(_Names(known))


def find(evidence: Evidence, names: Mapping[str, str]) -> FoundCause | None:
    """Return the cause that evidence shows; None: no known one. `names` fill placeholders that evidence does not."""
    for cause in table():
        matches = list(cause.pattern.finditer(evidence.text)) if evidence.kind in cause.seen else []
        if matches:
            matched = {name: value for match in matches for name, value in match.groupdict().items() if value}
            known = {**names, **matched}
            return FoundCause(
                id=cause.id,
                title=cause.title,
                why=cause.why.format_map(_Names(known)),
                to_do=tuple(filter(None, (filled(line, known) for line in cause.do))),
                source=cause.source,
                evidence=(evidence,),
                logs=cause.logs,
                behind=cause.behind,
                names=known,
            )
    return None
