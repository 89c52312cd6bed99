"""The queues of a cluster, closed to new jobs and opened, and the jobs that are in their way."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from math import inf
from pathlib import Path
from typing import Final

from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.slurm import ACTIVE, SlurmState, slurm_state
from scripts.core.clock import Changes, Clock, with_retries
from scripts.core.errors import OperationError
from scripts.core.figures import counted, duration
from scripts.core.terminal import Say

PROGRAM: Final = Path(__file__).with_name("set_queues.sh")
UP: Final = "up"
DRAIN: Final = "drain"
DOWN: Final = "down"
"""States of a queue: it takes jobs; it takes no new jobs and runs those that it has; jobs wait.

Another is ``inactive`` (ParallelCluster has stopped the fleet, or protects the queue).
https://slurm.schedmd.com/sinfo.html
"""
SECONDS_BETWEEN_POLLS: Final = 60.0
LISTED: Final = 10
"""Jobs and nodes that a message names."""
REQUEUE: Final = (
    "Batch jobs are requeued and start again once the fleet is started, unless they were submitted with --no-requeue; "
    "those and interactive ones end."
)
"""Of jobs whose nodes are terminated: JobRequeue is 1 by default, and ParallelCluster's slurm.conf does not change it.

https://slurm.schedmd.com/slurm.conf.html#OPT_JobRequeue,
https://github.com/aws/aws-parallelcluster-cookbook/blob/develop/cookbooks/aws-parallelcluster-slurm/templates/default/slurm/slurm.conf.erb
"""


def unfinished(state: SlurmState) -> int:
    """Return how many jobs have nodes or wait for some."""
    return state.active_jobs + state.waiting_jobs


def listed(state: SlurmState, *, waiting: bool) -> str:
    """Return the jobs that have nodes, and those that wait for some if wanted, a line each; of many the first."""
    wanted = [job for job in state.jobs if waiting or job.state in ACTIVE]
    lines = [
        f"  {job.id}  {job.user}  {job.queue}  {job.state}  {nodes(job.nodes)}  {job.name}" for job in wanted[:LISTED]
    ]
    more = (unfinished(state) if waiting else state.active_jobs) - len(lines)
    return "\n".join([*lines, *([f"  and {more:,} more"] if more > 0 else [])])


def nodes(count: int) -> str:
    """Return a number of nodes for people."""
    return counted(count, "nodes")


def close_queues(head_node: HeadNode, say: Say) -> None:
    """Let no queue take new jobs; those that it has run and wait on."""
    if names := _update(head_node, (UP,), DRAIN):
        say(f"Closed to new jobs: {', '.join(names)}")


def open_queues(head_node: HeadNode, say: Say, but: Collection[str] = ()) -> None:
    """Let queues take jobs again that `close_queues` or a person closed; or the guard of the budget, but for some."""
    if names := _update(head_node, (DRAIN, DOWN), UP, but):
        say(f"Open to new jobs again: {', '.join(names)}")


def wait_for_end(head_node: HeadNode, clock: Clock, say: Say, limit: float | None) -> None:
    """Wait until no job has nodes or waits for some, `limit` seconds at most; None: as long as the jobs take.

    Raises:
        OperationError: Some are left, or Slurm cannot be asked.
    """
    report = Changes(say)
    left = "not known: Slurm does not answer"

    def ended() -> bool:
        nonlocal left
        state = slurm_state(head_node)
        reasons = sorted({job.reason for job in state.jobs if job.state == "PENDING"})
        why = f" ({', '.join(reasons)})" if reasons else ""
        report(f"Jobs with nodes: {state.active_jobs}, waiting: {state.waiting_jobs}{why}")
        left = listed(state, waiting=True)
        return not unfinished(state)

    condition = with_retries(ended, clock, report)
    if not clock.until(condition, every=SECONDS_BETWEEN_POLLS, limit=inf if limit is None else limit):
        within = "" if limit is None else f" within {duration(limit)}"
        raise OperationError(f"Jobs have not ended{within}:\n{left}")


def _update(head_node: HeadNode, before: Collection[str], after: str, but: Collection[str] = ()) -> list[str]:
    """Set the state of all queues in some states to another, but for some, and return their names.

    Raises:
        HeadNodeError: It could not be asked.
        OperationError: Slurm refused.
    """
    availability = slurm_state(head_node).availability
    names = [queue for queue, state in availability.items() if state in before and queue not in but]
    if names:
        answer = head_node.run(shlex.join(program.of_file(PROGRAM, after.upper(), *names)))
        if answer.code:
            raise OperationError(f"Slurm did not set {', '.join(names)} to {after.upper()}: {answer.errors}")
    return names
