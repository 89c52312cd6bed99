"""Known causes of failures: the table in causes.yaml, and how a text is told to be of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scripts.diagnose.evidence import Evidence

TABLE = Path(__file__).with_name("causes.yaml")
SEEN = {
    "event": "events of the stacks",
    "provider": "the provider's log",
    "instance": "the head node's state",
    "boot": "start-up logs of nodes",
    "system": "syslog of nodes",
    "daemon": "logs of ParallelCluster's daemons",
    "slurm": "Slurm's logs",
}
"""Where causes show, by what the table calls it."""


@dataclass(frozen=True)
class Cause:
    """One row of the table, which says at its top what the columns mean.

    Attributes:
        id: Its name.
        title: What it is, in a few words.
        seen: The kinds of evidence it shows in, keys of `SEEN`.
        pattern: What such evidence looks like.
        why: The cause in one sentence, with placeholders.
        do: What helps, with placeholders; commands begin with ``$ ``.
        source: Where this is from.
        logs: Of a symptom the kinds of logs where the cause of it shows; None: it is no symptom.
    """

    id: str
    title: str
    seen: tuple[str, ...]
    pattern: re.Pattern[str]
    why: str
    do: tuple[str, ...]
    source: str
    logs: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Finding:
    """A cause that was found.

    Attributes:
        cause: The row of the table.
        why: The cause in one sentence.
        do: What helps; commands begin with ``$ ``.
        evidence: Why it is believed.
    """

    cause: Cause
    why: str
    do: tuple[str, ...]
    evidence: tuple[Evidence, ...]


class _Names(dict[str, str]):
    """Names for placeholders; one that is not known is shown as ``<name>``."""

    def __missing__(self, name: str) -> str:
        return f"<{name}>"


@cache
def table() -> tuple[Cause, ...]:
    """Return all causes, in the order in which they are tried."""
    import yaml

    rows = yaml.load(TABLE.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe ones
    return tuple(
        Cause(
            **{
                **row,
                "seen": tuple(row["seen"]),
                "pattern": re.compile(row["pattern"]),
                "do": tuple(row["do"]),
                "logs": None if "logs" not in row else tuple(row["logs"]),
            }
        )
        for row in rows
    )


def find(evidence: Evidence, names: Mapping[str, str]) -> Finding | None:
    """Return the cause that evidence shows; None: no known one.

    Args:
        evidence: An event, or a line of a log.
        names: Values for the placeholders that do not come from the evidence.
    """
    for cause in table():
        matches = list(cause.pattern.finditer(evidence.text)) if evidence.kind in cause.seen else []
        if matches:
            told = {name: value for match in matches for name, value in match.groupdict().items() if value}
            known = _Names({**names, **told})
            do = tuple(line.format_map(known) for line in cause.do)
            return Finding(cause, cause.why.format_map(known), do, (evidence,))
    return None
