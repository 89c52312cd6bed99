"""One job of Slurm: what the controller knows of it, or accounting once it has ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import cast

from pydantic import Field

from scripts.account.causes import filled
from scripts.account.job_reasons import Explanation, explain_end, explain_reason
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.values import Address, FilePath, JobNumber, Line, Name, State, User
from scripts.account.slurm import ACTIVE, FAILED, WAITING
from scripts.core.document import Document

MOST_NODES = 32
"""Nodes of a job whose logs are shown: those of a large job say the same."""


class KnownJob(Document):
    """A job that Slurm or its accounting knows, or an array of jobs."""

    number: JobNumber = Field(description="As `jobs logs` takes it: 12, or 12_3 of an array.")
    id: Line = Field(default="", description="The same, and 12_[4-9] of tasks that wait.")
    job_id: int | None = Field(default=None, description="Its own number, which tasks of an array have, too.")
    array: int | None = Field(default=None, description="The number of its array; null: it is in none.")
    tasks: Line = Field(default="", description="Its number in the array.")
    of_array: dict[State, Line] = Field(default={}, description="Of an array: its tasks, such as 1-3,7, by state.")
    state: State = Field(description="As Slurm has it, such as RUNNING.")
    reason: Line = Field(default="", description="Why it waits, in Slurm's words, or who cancelled it.")
    exit_code: Line = Field(default="", description="Exit code and signal, such as 1:0; empty: it has not ended.")
    user: User = Field(description="Whose job it is.")
    name: Line = Field(default="", description="Its name.")
    queue: Line = Field(default="", description="Its queue; several with commas.")
    account: Line = Field(default="", description="Its account; empty: there is no accounting.")
    qos: Line = Field(default="", description="Its QoS.")
    node_count: int = Field(default=0, description="How many nodes it has, had or wants.")
    node_list: Line = Field(default="", description="Its nodes, such as trn1-dy-trn1-32xl-[1-3].")
    features: Line = Field(default="", description="What its nodes must be (--constraint).")
    dependency: Line = Field(default="", description="What it waits for (--dependency).")
    time_limit: Line = Field(default="", description="How long it may run, as squeue has it.")
    elapsed: Line = Field(default="", description="How long it has run.")
    submitted: datetime | None = Field(default=None, description="When it was submitted.")
    started: datetime | None = Field(default=None, description="When it got its nodes; null: it has none yet.")
    expected: datetime | None = Field(
        default=None, description="When Slurm expects to start it; null: it has not said."
    )
    ended: datetime | None = Field(default=None, description="When it ended.")
    restarts: int = Field(default=0, description="How often it was requeued, as far as the controller knows it.")
    output: FilePath = Field(description="Its output file on the cluster; empty: it has none.")
    directory: Line = Field(default="", description="Where it was submitted, or what --chdir says.")
    command: Line = Field(default="", description="Its script, or the line that submitted it.")
    comment: Line = Field(default="", description="Its comment.")
    source: Name = Field(default="controller", description="Who knows it: `controller` or `accounting`.")
    nodes: dict[Name, Address] = Field(default={}, exclude=True)
    """Addresses of its nodes, `MOST_NODES` at most; none: it waits, or they are others' by now."""

    @property
    def waits(self) -> bool:
        """Whether it waits for nodes."""
        return self.state in WAITING

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self.state not in WAITING | ACTIVE

    @property
    def said(self) -> str:
        """Its state, and what Slurm says beside it."""
        beside = [f"exit code {self.exit_code}"] if self.exit_code and self.has_ended else []
        beside += [self.reason] if self.reason not in ("", "None") and not self.state_is_running else []
        return ", ".join([self.state, *beside])

    @property
    def state_is_running(self) -> bool:
        """Whether it has nodes, so that a reason is that of its time before."""
        return self.state in ACTIVE

    def explanations(self, names: Mapping[str, str]) -> Iterator[Explanation]:
        """Yield what its state means; `names` fill placeholders."""
        job = self.number if self.of_array else self.id.partition("%")[0] or self.number
        is_waiting = self.waits or any(state in WAITING for state in self.of_array)
        found = explain_reason(self.reason or "None", job, names) if is_waiting else None
        if self.has_ended and not is_waiting and not self.of_array:
            found = explain_end(self.state, self.exit_code, self.number, names, self.reason)
        if found is not None:
            yield found
        yield from (self._failed_tasks(state, names) for state in self.of_array if state in FAILED)

    def _failed_tasks(self, state: str, names: Mapping[str, str]) -> Explanation:
        """Return what to do about tasks of an array that have failed."""
        tasks = self.of_array[state]
        known = {**names, "array": self.number, "task": f"{self.number}_{re.split('[-,]', tasks)[0]}"}
        to_do = ["$ ./ultracluster jobs show {deployment} {task}", "$ ./ultracluster jobs logs {deployment} {task}"]
        if (WAITING | ACTIVE) & self.of_array.keys():
            to_do += ["If the others would fail, too, cancel what is left of it."]
            to_do += ["$ ./ultracluster jobs cancel {deployment} {array} --array"]
        return Explanation(
            words=f"{state} {of_array(self.number, tasks)}",
            why="These tasks have failed; how the first of them ended, and its output:",
            to_do=tuple(filter(None, (filled(each, known) for each in to_do))),
        )


def of_array(number: str, tasks: str) -> str:
    """Return what tasks of an array are called, such as 12_3 or 12_[4-9]."""
    return f"{number}_{tasks if tasks.isdigit() else f'[{tasks}]'}"


def find(head_node: HeadNode, job: str, *, most_nodes: int = MOST_NODES) -> KnownJob | None:
    """Ask the head node for a job, by number or name; None: neither Slurm nor its accounting knows it.

    Slurm forgets ended jobs after five minutes (https://slurm.schedmd.com/slurm.conf.html#OPT_MinJobAge).

    Raises:
        HeadNodeError: It could not be asked.
    """
    command = program.words("jobs", "job", job, str(most_nodes))
    return program.ask(head_node, command, "job", cast("type[KnownJob | None]", KnownJob | None))
