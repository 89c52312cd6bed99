"""What the head node answers of Slurm; tests/end_to_end/slurm/test_slurm_state.py compares it with a real one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

Row = Sequence[int | str]


def answer(
    queues: Mapping[str, str] | None = None,
    nodes: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None,
    problems: Sequence[Row] = (),
    counts: Sequence[Row] = (),
    jobs: Sequence[Row] = (),
    *,
    wanted: Mapping[str, int] | None = None,
    seconds: float = 0.1,
    accounting: str | None = None,
) -> str:
    """Return an answer: nodes by queue, kind and state; counts as count, queues, state.

    Problems without a queue are of the first one.
    """
    queue = next(iter(queues or {}), "trn1")
    states, of_queues = Counter[str](), dict[str, Counter[str]]()
    for count, names, job_state in counts:
        states[str(job_state)] += int(count)
        for queue in str(names).split(","):
            of_queues.setdefault(queue, Counter())[str(job_state)] += int(count)
    state = {
        "queues": queues or {}, "nodes": nodes or {}, "counts": states,
        "problems": [each if len(each) > 5 else (*each, queue) for each in problems],
        "queue_counts": of_queues, "jobs": jobs, "wanted": wanted or {}, "waits": _waits(jobs), "seconds": seconds,
        "accounting": accounting,
    }  # fmt: skip
    return f"{json.dumps({'state': state}, separators=(',', ':'))}\n"


def _waits(jobs: Sequence[Row]) -> list[list[int | str]]:
    waiting = [row for row in jobs if row[3] == "PENDING"]
    reasons = Counter(str(row[6]) for row in waiting)
    return [
        [reason, n, next(str(row[0]) for row in waiting if row[6] == reason)] for reason, n in reasons.most_common()
    ]


RECORDED = Path(__file__).with_name("slurm_state.json").read_text(encoding="utf-8")
"""All states of nodes and jobs: reasons and names with awkward characters, a queue that is closed."""
IDLE = answer({"trn1": "up"}, {"trn1": {"dy-trn1-32xl": {"idle+powered_down": 1873}, "st-trn1-32xl": {"idle": 2}}})
"""An idle cluster of 1,875 nodes, two of them static."""


def shell(printed: str) -> str:
    """Return a shell program for the emulated head node that prints this, whatever it is asked to run."""
    return f"cat >/dev/null; cat <<'END-OF-OUTPUT'\n{printed}END-OF-OUTPUT\n"
