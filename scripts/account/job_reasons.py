"""Why jobs wait and how they have ended, in Slurm's words: the table in job_reasons.yaml, and what it says of a job."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from pydantic import Field

from scripts.account.causes import COMMAND, Evidence, filled, find
from scripts.core.document import Document
from scripts.core.report import Block, Command, Line

TABLE = Path(__file__).with_name("job_reasons.yaml")


class Explanation(Document):
    """What Slurm's words of a job mean."""

    words: str = Field(description="Slurm's words: the reason, or the state and the exit code.")
    why: str = Field(description="What they mean.")
    to_do: tuple[str, ...] = Field(description='What helps, in this order; commands begin with "$ ".')

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Line(f"{self.words}: {self.why}")
        for each in self.to_do:
            is_command = each.startswith(COMMAND)
            yield Command(each.removeprefix(COMMAND)) if is_command else Line(each, item=True)


@dataclass(frozen=True)
class Row:
    """A row of the table, which explains its columns at its top."""

    why: str
    reason: re.Pattern[str] | None = None
    ended: re.Pattern[str] | None = None
    passes: bool = False
    do: tuple[str, ...] = ()


@cache
def table() -> tuple[Row, ...]:
    """Return all rows, in the order in which they are tried."""
    import yaml
    from pydantic import TypeAdapter

    rows = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe ones
    return TypeAdapter(tuple[Row, ...]).validate_python(rows)


def explain_reason(reason: str, job: str, names: Mapping[str, str]) -> Explanation | None:
    """Return why a job waits; None: Slurm has said nothing, or what nobody has heard of.

    Args:
        reason: As squeue has it; scontrol writes underscores for spaces.
        job: The job, as Slurm's commands take it.
        names: What fills the other placeholders.
    """
    found = find(Evidence(kind="job", source=f"job {job}", time=datetime.now(UTC), text=reason), names)
    if found is not None:
        return Explanation(words=reason, why=found.why, to_do=found.to_do)
    row = _of_reason(reason)
    return None if row is None else _filled(row, reason, job, names)


def passes(reason: str) -> bool:
    """Tell whether a wait ends without anybody, or is about queues or nodes; what nobody has heard of may not."""
    row = _of_reason(reason)
    return row is not None and row.passes


def _of_reason(reason: str) -> Row | None:
    spoken = reason.replace("_", " ")
    return next(
        (each for each in table() if each.reason and (each.reason.fullmatch(reason) or each.reason.fullmatch(spoken))),
        None,
    )


def explain_end(state: str, exit_code: str, job: str, names: Mapping[str, str], reason: str = "") -> Explanation | None:
    """Return how a job has ended, by its state, exit code and reason; None: it has not."""
    words = f"{state} {exit_code}"
    said = (words, f"{words} {reason}")
    return next(
        (_filled(each, words, job, names) for each in table() if each.ended and any(map(each.ended.fullmatch, said))),
        None,
    )


def _filled(row: Row, words: str, job: str, names: Mapping[str, str]) -> Explanation:
    lines = (filled(line.replace("{job}", shlex.quote(job)), names) for line in row.do)
    return Explanation(words=words, why=row.why, to_do=tuple(filter(None, lines)))
