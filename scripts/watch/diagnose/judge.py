"""What blocks now, what may, and what is over: the order in which causes are shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from scripts.account.causes import Cause, Evidence, FoundCause, State, table
from scripts.core.figures import counted
from scripts.watch.diagnose.present import SCOPES, Present

SUSPICIOUS_SHOWN = 5
MINUTES_OF_NOW = 5
"""What ends so many minutes after its last line, or sooner, holds until then."""
_INSTANCE = re.compile(r"\.(i-[0-9a-f]+)\.")
_STAMP = re.compile(r"^\S*\d{4}-\d\d-\d\d[T ][\d:.,+Z\]]*|^\w{3} +\d+ [\d:]+")
_CHANGING = re.compile(r"\d+")
_SEVERE = (
    re.compile(r"fatal|panic|CRITICAL|Traceback|LBUG|segfault|emergency", re.IGNORECASE),
    re.compile(r"error|\bE!", re.IGNORECASE),
    re.compile(r""),
)
"""Words of lines, those of the worst first."""
HARMLESS = re.compile(
    # The driver and EFA clean up in no order when a process ends (aws-neuron-sdk, nrt-troubleshoot.rst, "benign").
    r"Failed to process command DEREG_MR"
    # slurmctld before 25.11 counts its own slow minutes (ping_nodes.c).
    r"|Node ping apparently hung"
    # Who connects and says nothing, such as a port scan (slurm_errno.c).
    r"|Zero Bytes were transmitted or received"
    # At each start: settings of this stack that replace ParallelCluster's (parse_config.c), and a head node that sends
    # no mail and whose /var/log is root's (controller.c).
    r"|specified more than once, latest value used|Configured MailProg is invalid|chdir\(/var/log\)"
)
"""What is written without anything being wrong."""
_FINE = re.compile(r"\b(INFO|DEBUG|SUCCESS)\b")
_KINDS = ("slurm", "daemon", "system", "boot")
"""Kinds of logs, that of which most lines mean something first: every start of a node writes errors of no meaning."""


def judged(found: Iterable[FoundCause], present: Present, lines: Sequence[Evidence], now: datetime) -> list[FoundCause]:
    """Return causes, each once, in the order in which they are to be shown: what holds now, what may, what is over.

    Args:
        found: What the present shows and, the newest first, what logs show.
        present: The cluster as it is.
        lines: All lines that were read, also those that show no cause.
        now: The time.
    """
    rows = {row.id: row for row in table()}
    found = list(found)
    now_ids = {each.id for each in found if each.evidence[-1].kind in SCOPES}
    by_id: dict[str, list[FoundCause]] = {}
    for each in found:
        if each.evidence[-1].kind in SCOPES or each.id in now_ids:
            state, why = State.NOW, ""
        else:
            state, why = state_of(each, rows[each.id], present, lines, now)
        by_id.setdefault(each.id, []).append(each.model_copy(update={"state": state, "ended": why}))
    return ordered(map(_merged, by_id.values()), rows)


def state_of(
    finding: FoundCause, row: Cause, present: Present, lines: Sequence[Evidence], now: datetime
) -> tuple[State, str]:
    """Return whether what a line of a log shows holds, and if it is over, why that is believed."""
    line = finding.evidence[-1]
    match = _INSTANCE.search(line.source)
    instance = match[1] if match else ""
    if instance and line.kind != "boot" and present.instances is not None and instance not in present.instances:
        return State.ENDED, f"the instance that wrote it, {instance}, is gone"
    decisive = present.known & set(row.seen) - ({"node"} if row.lasts else set())  # nodes are freed between two tries
    if instance == present.head_node and decisive:
        return State.ENDED, "it is not so any more"
    if row.healed:
        healed = re.compile(row.healed.format_map({key: re.escape(value) for key, value in finding.names.items()}))
        later = next((each for each in lines if each.time >= line.time and healed.search(each.text)), None)
        if later:
            return State.ENDED, f"{later.time:%H:%M:%S} UTC: {later.text}"
    if row.lasts is None:
        return State.SEEN, ""
    age = (now - line.time) // timedelta(minutes=1)
    if age > row.lasts:
        return State.ENDED, f"no such line for {counted(age, 'minutes')}"
    return (State.NOW if row.lasts <= MINUTES_OF_NOW else State.SEEN), ""


def _merged(same: Sequence[FoundCause]) -> FoundCause:
    """Return findings of one cause as one: the newest of those that hold most, with the newest line of a log."""
    first = min(same, key=lambda each: list(State).index(each.state))
    logged = next((each.evidence for each in same if each.evidence[-1].kind not in SCOPES), ())
    evidence = (*logged, *first.evidence) if first.evidence[-1].kind in SCOPES else first.evidence
    times = [each.evidence[-1].time for each in same]
    update = {"evidence": evidence, "count": len(same), "first": min(times), "last": max(times)}
    return first.model_copy(update=update)


def ordered(found: Iterable[FoundCause], rows: Mapping[str, Cause]) -> list[FoundCause]:
    """Return causes in the order in which they are to be shown.

    Before a symptom that holds stands what can be behind it, and is not over. What ends by itself, such as a lack of
    capacity, is behind nothing that concerns more than nodes.
    """
    found = list(found)
    holding = [each for each in found if each.state is State.NOW]
    may_hold = [each for each in found if each.state is State.SEEN]
    causes = [each for each in may_hold if each.logs is None]
    placed: dict[str, FoundCause] = {}
    for each in sorted(holding, key=lambda each: (_scope(rows[each.id]), each.logs is not None)):
        behind = [
            other
            for other in causes
            if other.evidence[-1].kind in (each.logs or ())
            and (rows[other.id].lasts is None or _scope(rows[each.id]) == SCOPES.index("node"))
        ]
        for one in (*behind, each):
            placed.setdefault(one.id, one)
    symptoms = [each for each in may_hold if each.logs is not None]
    for each in (*causes, *symptoms, *(each for each in found if each.state is State.ENDED)):
        placed.setdefault(each.id, each)
    return list(placed.values())


def _scope(row: Cause) -> int:
    return min((SCOPES.index(kind) for kind in row.seen if kind in SCOPES), default=len(SCOPES) - 1)


def suspicious(lines: Sequence[Evidence], explained: Iterable[Evidence]) -> tuple[Evidence, ...]:
    """Return the most suspicious lines that no cause explains, of each kind of line the newest.

    Those with words of the worst come first, of these those of Slurm and of daemons, of these the newest.
    """
    known = {(each.source, each.time, each.text) for each in explained}
    newest: dict[str, Evidence] = {}
    for each in reversed(lines):
        if (
            (each.source, each.time, each.text) not in known
            and not HARMLESS.search(each.text)
            and not _FINE.search(each.text)
        ):
            newest.setdefault(_shape(each.text), each)
    ranked = sorted(
        newest.values(), key=lambda each: (_severity(each.text), _KINDS.index(each.kind), -each.time.timestamp())
    )
    return tuple(ranked[:SUSPICIOUS_SHOWN])


def _severity(text: str) -> int:
    return next(number for number, words in enumerate(_SEVERE) if words.search(text))


def _shape(text: str) -> str:
    return _CHANGING.sub("#", _STAMP.sub("", text))
