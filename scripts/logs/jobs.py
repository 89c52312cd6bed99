"""The nodes and the output file of a job of Slurm."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scripts.deployment import Deployment
from scripts.remote.head_node import HeadNode
from scripts.remote.streamed_command import OUTPUT, StreamedCommand, print_output, start

MOST_NODES = 32
"""Nodes of a job whose logs are shown: those of a large job say the same."""
LONGEST = 48 * 3600
"""Seconds that a ``tail`` may run on the head node, should nobody end it: as long as Systems Manager lets it."""
_SCRIPT = """\
export PATH=/opt/slurm/bin:$PATH LC_ALL=C
asked={job}
case $asked in
[0-9]*) number=$asked ;;
*) number=$(squeue --states=all --name="$asked" --sort=-i --noheader --format=%A | head --lines=1) ;;
esac
[ -n "$number" ] || exit 0
echo "Number=$number"
job=$(scontrol show job "$number" |
    awk -v RS= -v number="$number" 'number ~ /_/ || $1 == "JobId=" number {{ print; exit }}')
nodes=$(printf '%s\\n' "$job" | sed --quiet 's/^ *NodeList=\\([^ (][^ ]*\\).*/\\1/p')
printf '%s\\n' "$job" | grep --extended-regexp '^ *(JobState|UserId|StdOut)='
[ -z "$nodes" ] || scontrol --oneliner show node "$nodes" |
    sed --quiet 's/^NodeName=\\([^ ]*\\) .* NodeAddr=\\([^ ]*\\).*/Node=\\1 \\2/p' | head --lines={most}
"""
"""Prints number, state, user, output file and nodes of a job, or of the newest job of a name.

https://slurm.schedmd.com/scontrol.html, https://slurm.schedmd.com/squeue.html. Of an array scontrol prints all jobs, a
paragraph each: https://slurm.schedmd.com/job_array.html.
"""


@dataclass(frozen=True)
class KnownJob:
    """A job that Slurm knows: it waits, runs, or ended some minutes ago.

    Attributes:
        number: Such as ``12``, or ``12_3`` of an array.
        state: As Slurm has it, such as RUNNING.
        user: Its user.
        output: Its output file on the cluster; empty: it has none.
        nodes: Names and addresses of its nodes, `MOST_NODES` at most; none: it waits.
    """

    number: str
    state: str
    user: str
    output: str
    nodes: dict[str, str]


def find(head_node: HeadNode, job: str) -> KnownJob | None:
    """Ask the head node for a job, by number or name; None: Slurm does not know it, or no longer.

    Slurm forgets ended jobs after five minutes (https://slurm.schedmd.com/slurm.conf.html#OPT_MinJobAge).

    Raises:
        HeadNodeError: It could not be asked.
    """
    answer = head_node.run(_SCRIPT.format(job=job, most=MOST_NODES)).output
    facts: dict[str, str] = dict(re.findall(r"^ *(Number|JobState|UserId|StdOut)=(.*)$", answer, re.MULTILINE))
    if not {"JobState", "UserId"} <= facts.keys():
        return None
    nodes = dict(re.findall(r"^Node=(\S+) (\S+)$", answer, re.MULTILINE))
    state, user = facts["JobState"].split()[0], facts["UserId"].split("(")[0]
    return KnownJob(facts["Number"], state, user, facts.get("StdOut", ""), nodes)


class JobOutput:
    """The output file of a job, read by a ``tail`` on the head node as the job's user."""

    def __init__(self, deployment: Deployment, head_node: HeadNode, job: KnownJob, *, lines: int, follow: bool) -> None:
        """Start with the last lines. Needs what `streamed_command.start` needs."""
        words = ["tail", f"--lines={lines}", *(["--follow=name", "--retry"] if follow else []), job.output]
        self.command: StreamedCommand = start(deployment, head_node, words, user=job.user, seconds=LONGEST)
        self._rest = ""

    def new(self) -> list[str]:
        """Return the lines that are complete since the last call. Needs logs:GetLogEvents."""
        self.command.new(self.take)
        *lines, self._rest = self._rest.split("\n")
        return lines

    def take(self, stream: str, text: str) -> None:
        """Keep text of the file, and print what ``tail`` itself says."""
        if stream == OUTPUT:
            self._rest += text
        else:
            print_output(stream, text)

    def rest(self) -> list[str]:
        """Return all lines that were not returned yet."""
        lines, self._rest = self._rest.splitlines(), ""
        return lines
