"""The output file of a job of Slurm."""

from __future__ import annotations

from scripts.account.deployment import Deployment
from scripts.account.jobs import MOST_NODES, KnownJob, find
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.streamed_command import OUTPUT, StreamedCommand, print_output, start

__all__ = ["MOST_NODES", "JobOutput", "KnownJob", "find"]
LONGEST = 48 * 3600
"""Seconds that a file may be followed on the head node, should nobody end it: as long as Systems Manager lets it."""


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
