"""The training runs on a cluster's file system, listed on the head node."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pydantic import Field

from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.values import JobNumber, Line
from scripts.core import report
from scripts.core.document import Document, Result
from scripts.core.figures import counted
from scripts.core.report import Block, Table, columns

LISTED = 50
"""Runs of one answer, the newest: more would not fit into what Systems Manager returns of a command's output."""


class ListedRun(Document):
    """A run, by its records."""

    directory: Line = Field(description="Where its records are.")
    problem: Line = Field(default="", description="Why the records cannot be read; empty: they can.")
    program: Line = Field(default="", description="What it runs; empty: that is not known.")
    nodes: int | None = Field(default=None, description="Nodes of the newest attempt.")
    attempts: int | None = Field(default=None, description="How often it was started.")
    job: JobNumber | None = Field(default=None, description="Slurm's job of the newest attempt.")
    step: int | None = Field(default=None, description="The newest step.")
    steps: int | None = Field(default=None, description="Steps of the whole run.")
    loss: float | None = Field(default=None, description="Loss of the newest step.")
    updated: datetime | None = Field(default=None, description="When the newest step ended, UTC.")


class RunList(Result):
    """What ``runs list --output json`` prints."""

    total: int = Field(description="How many runs there are.")
    runs: tuple[ListedRun, ...] = Field(description=f"The {LISTED} newest.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield report.Line(
            counted(self.total, "runs") + (f", the {len(self.runs)} newest:" if len(self.runs) < self.total else "")
        )
        titles = columns("run", "program", ">step", ">loss", ">nodes", ">attempts", "job", "updated, UTC")
        yield Table("", titles, list(map(_row, self.runs)))


def _row(run: ListedRun) -> list[str]:
    if run.problem:
        return [run.directory, "", "", "", "", "", "", run.problem]
    loss = "" if run.loss is None else f"{run.loss:.4f}"
    updated = "" if run.updated is None else f"{run.updated:%Y-%m-%d %H:%M}"
    step = f"{run.step} of {run.steps}" if run.steps else str(run.step)
    return [run.directory, run.program, step, loss, str(run.nodes), str(run.attempts), run.job or "", updated]


def list_runs(deployment: Deployment, directory: str) -> RunList:
    """Return the runs below a directory of the head node.

    Raises:
        HeadNodeError: The head node cannot be asked, or its answer cannot be read.
    """
    words = program.as_user(deployment.system_user, program.words("files", "runs", directory, str(LISTED)))
    return program.ask(HeadNode(deployment), words, "runs", RunList)
