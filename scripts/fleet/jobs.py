"""The jobs of a cluster: who has nodes or waits for some, and how they come to their end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from math import inf
from typing import Final

from scripts.clock import Clock
from scripts.command import OperationError, Say
from scripts.fleet import queues
from scripts.remote.head_node import HeadNode, HeadNodeError, ask_slurm
from scripts.slurm import ACTIVE, SCRIPT, SlurmState, parse

SECONDS_BETWEEN_LOOKS: Final = 60.0
SECONDS_OF_SILENCE: Final = 600.0
"""How long AWS or a head node may give no answer before a wait for what it says is given up."""
LISTED: Final = 10
"""Jobs and nodes that a message names."""


class Changes:
    """Says what differs from what was said last."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = ""

    def __call__(self, sentence: str) -> None:
        """Say a sentence, unless it was the last one."""
        if sentence != self._last:
            self._say(sentence)
        self._last = sentence


def patiently(holds: Callable[[], bool], clock: Clock, told: Changes) -> Callable[[], bool]:
    """Return a look that takes no answer for "not yet", for `SECONDS_OF_SILENCE` on end.

    Whatever it raises after that, and at once if the credentials are no longer good or lack a right, is what the last
    look raised.

    Args:
        holds: Looks, by asking AWS or the head node.
        clock: Time.
        told: Told that there was no answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from scripts.aws_errors import credentials_hint, is_denied

    silent_since: datetime | None = None

    def look() -> bool:
        nonlocal silent_since
        try:
            found = holds()
        except (BotoCoreError, ClientError, HeadNodeError) as error:
            silent_since = silent_since or clock.now()
            gives_up = (clock.now() - silent_since).total_seconds() >= SECONDS_OF_SILENCE
            is_final = is_denied(error) or credentials_hint(error)
            if gives_up or is_final:
                raise
            told(f"No answer, which is asked for again: {error}")
            return False
        silent_since = None
        return found

    return look


def slurm_state(head_node: HeadNode) -> SlurmState:
    """Ask the head node for nodes and jobs.

    Raises:
        HeadNodeError: It could not be asked, or Slurm did not answer.
    """
    return ask_slurm(head_node, SCRIPT, parse)


def unfinished(state: SlurmState) -> int:
    """Return how many jobs have nodes or wait for some."""
    return state.active_jobs + state.waiting_jobs


def listed(state: SlurmState, *, waiting: bool) -> str:
    """Return the jobs that have nodes, and those that wait for some if wanted, a line each; of many the first."""
    wanted = [job for job in state.jobs if waiting or job.state in ACTIVE]
    lines = [
        f"  {job.number}  {job.user}  {job.queue}  {job.state}  {nodes(job.nodes)}  {job.name}"
        for job in wanted[:LISTED]
    ]
    more = (unfinished(state) if waiting else state.active_jobs) - len(lines)
    return "\n".join([*lines, *([f"  and {more:,} more"] if more > 0 else [])])


def nodes(count: int) -> str:
    """Return a number of nodes for people."""
    return f"{count:,} node{'' if count == 1 else 's'}"


def close_queues(head_node: HeadNode, say: Say) -> None:
    """Let no queue take new jobs; those that it has run and wait on."""
    _move(head_node, queues.UP, queues.DRAIN, lambda names: say(f"Closed to new jobs: {names}"))


def open_queues(head_node: HeadNode, say: Say) -> None:
    """Let the queues that `close_queues` closed take jobs again."""
    _move(head_node, queues.DRAIN, queues.UP, lambda names: say(f"Open to new jobs again: {names}"))


def wait_for_end(head_node: HeadNode, clock: Clock, say: Say, limit: float | None) -> None:
    """Wait until no job has nodes or waits for some.

    Args:
        head_node: Where to ask.
        clock: Time.
        say: Told how many are left.
        limit: Seconds to wait at most; None: as long as the jobs take.

    Raises:
        OperationError: Some are left, or Slurm cannot be asked for `SECONDS_OF_SILENCE`.
    """
    told = Changes(say)
    left = "not known: Slurm does not answer"

    def ended() -> bool:
        nonlocal left
        state = slurm_state(head_node)
        told(_described(state))
        left = listed(state, waiting=True)
        return not unfinished(state)

    look = patiently(ended, clock, told)
    if not clock.until(look, every=SECONDS_BETWEEN_LOOKS, limit=inf if limit is None else limit):
        raise OperationError(f"Jobs have not come to their end:\n{left}")


def _move(head_node: HeadNode, before: str, after: str, say: Say) -> None:
    names = [queue for queue, state in queues.ask(head_node).states.items() if state == before]
    if names:
        queues.set_state(head_node, names, after)
        say(", ".join(names))


def _described(state: SlurmState) -> str:
    reasons = sorted({job.reason for job in state.jobs if job.state == "PENDING"})
    why = f" ({', '.join(reasons)})" if reasons else ""
    return f"{state.active_jobs} jobs have nodes, {state.waiting_jobs} wait{why}"
