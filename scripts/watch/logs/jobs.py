"""The nodes and the output file of a job of Slurm."""

from __future__ import annotations

from typing import cast

from pydantic import Field

from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.streamed_command import OUTPUT, StreamedCommand, print_output, start
from scripts.account.remote.values import Address, FilePath, JobNumber, Name, State, User
from scripts.core.document import Document

MOST_NODES = 32
"""Nodes of a job whose logs are shown: those of a large job say the same."""
LONGEST = 48 * 3600
"""Seconds that a file may be followed on the head node, should nobody end it: as long as Systems Manager lets it."""


class KnownJob(Document):
    """A job that Slurm knows: it waits, runs, or ended some minutes ago."""

    number: JobNumber
    state: State = Field(description="As Slurm has it, such as RUNNING.")
    user: User = Field(description="Whose job it is.")
    output: FilePath = Field(description="Its output file on the cluster; empty: it has none.")
    nodes: dict[Name, Address] = Field(description="Its nodes, `MOST_NODES` at most; none: it waits.")


def find(head_node: HeadNode, job: str) -> KnownJob | None:
    """Ask the head node for a job, by number or name; None: Slurm does not know it, or no longer.

    Slurm forgets ended jobs after five minutes (https://slurm.schedmd.com/slurm.conf.html#OPT_MinJobAge).

    Raises:
        HeadNodeError: It could not be asked.
    """
    command = program.words("slurm", "job", job, str(MOST_NODES))
    return program.ask(head_node, command, "job", cast("type[KnownJob | None]", KnownJob | None))


class JobOutput:
    """The output file of a job, read on the head node as the job's user, who may have put anything in its place."""

    def __init__(self, deployment: Deployment, head_node: HeadNode, job: KnownJob, *, lines: int, follow: bool) -> None:
        """Start with the last lines. Needs what `streamed_command.start` needs."""
        words = program.words("files", "tail", job.output, str(lines), *(["follow"] if follow else []))
        self.command: StreamedCommand = start(deployment, head_node, program.as_user(job.user, words), seconds=LONGEST)
        self._rest = ""

    def new(self) -> list[str]:
        """Return the lines that are complete since the last call. Needs logs:GetLogEvents."""
        self.command.new(self.take)
        *lines, self._rest = self._rest.split("\n")
        return lines

    def take(self, stream: str, text: str) -> None:
        """Keep text of the file, and print what is said of it."""
        if stream == OUTPUT:
            self._rest += text
        else:
            print_output(stream, text)

    def rest(self) -> list[str]:
        """Return all lines that were not returned yet."""
        lines, self._rest = self._rest.splitlines(), ""
        return lines
