"""The nodes and the output file of a job of Slurm."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from scripts.clock import Clock
from scripts.deployment import Deployment
from scripts.remote.head_node import HeadNode
from scripts.remote.streamed_command import OUTPUT, StreamedCommand, print_output, start
from scripts.terminal import Say

MOST_NODES = 32
"""Nodes of a job whose logs are shown: those of a large job say the same."""
LONGEST = timedelta(minutes=15)
"""How long one ``tail`` may run, should nobody end it. It is sent again for `--follow`."""
RENEWAL = LONGEST - timedelta(minutes=1)
_SCRIPT = """\
export PATH=/opt/slurm/bin:$PATH LC_ALL=C
job=$(scontrol show job {job} | awk -v RS= '{condition} {{ print; exit }}')
nodes=$(printf '%s\\n' "$job" | sed --quiet 's/^ *NodeList=\\([^ (][^ ]*\\).*/\\1/p')
printf '%s\\n' "$job" | grep --extended-regexp '^ *(JobState|UserId|StdOut)='
[ -z "$nodes" ] || scontrol --oneliner show node "$nodes" |
    sed --quiet 's/^NodeName=\\([^ ]*\\) .* NodeAddr=\\([^ ]*\\).*/Node=\\1 \\2/p' | head --lines={most}
"""
"""Prints state, user, output file and nodes of a job: https://slurm.schedmd.com/scontrol.html.

It prints all jobs of an array, a paragraph each: https://slurm.schedmd.com/job_array.html.
"""
_NEWEST = """\
export PATH=/opt/slurm/bin:$PATH LC_ALL=C
squeue --states=all --name={name} --sort=-i --noheader --format=%A
"""
"""Prints the numbers of the jobs of a name, the newest first: https://slurm.schedmd.com/squeue.html."""
_FIRST = "ultracluster-first-line "
_TAIL = """\
total=$({ wc --lines <"$1"; } 2>/dev/null) || total=0
first=${3:-$((total - $2 + 1))}
[ "$first" -ge 1 ] && [ "$first" -le $((total + 1)) ] || first=1
echo "ultracluster-first-line $first"
exec tail --lines=+"$first" --follow=name --retry "$1"
"""
"""Follows a file: prints the number of the first line, and the lines from there on.

Args: the file, how many of its last lines to show, and the number of the first in place of that. A file that became
shorter, as that of a job that runs again, is shown from its start.
"""


@dataclass(frozen=True)
class KnownJob:
    """A job that Slurm knows: it waits, runs, or ended some minutes ago.

    Attributes:
        state: As Slurm has it, such as RUNNING.
        user: Its user.
        output: Its output file on the cluster; empty: it has none.
        nodes: Names and addresses of its nodes, `MOST_NODES` at most; none: it waits.
    """

    state: str
    user: str
    output: str
    nodes: dict[str, str]


def newest_of_name(head_node: HeadNode, name: str) -> str:
    """Ask the head node for the newest job of a name; empty: Slurm knows none, or none any more.

    Raises:
        HeadNodeError: It could not be asked.
    """
    return next(iter(head_node.run(_NEWEST.format(name=name)).output.split()), "")


def find(head_node: HeadNode, job: str) -> KnownJob | None:
    """Ask the head node for a job, ``12`` or ``12_3`` of an array; None: Slurm does not know it, or no longer.

    Slurm forgets ended jobs after five minutes (https://slurm.schedmd.com/slurm.conf.html#OPT_MinJobAge).

    Raises:
        HeadNodeError: It could not be asked.
    """
    condition = "" if "_" in job else f'$1 == "JobId={job}"'
    answer = head_node.run(_SCRIPT.format(job=job, condition=condition, most=MOST_NODES))
    facts: dict[str, str] = dict(re.findall(r"^ *(JobState|UserId|StdOut)=(.*)$", answer.output, re.MULTILINE))
    if not {"JobState", "UserId"} <= facts.keys():
        return None
    nodes = dict(re.findall(r"^Node=(\S+) (\S+)$", answer.output, re.MULTILINE))
    return KnownJob(facts["JobState"].split()[0], facts["UserId"].split("(")[0], facts.get("StdOut", ""), nodes)


class JobOutput:
    """The output file of a job, read by a ``tail`` on the head node as the job's user."""

    def __init__(self, deployment: Deployment, head_node: HeadNode, job: KnownJob, clock: Clock, say: Say) -> None:
        """Read nothing yet."""
        self._deployment = deployment
        self._head_node = head_node
        self._job = job
        self._clock = clock
        self._say = say
        self._command: StreamedCommand | None = None
        self._sent = clock.now()
        self._rest = ""
        self._next = 0
        self._is_numbered = False

    def all(self, count: int) -> list[str]:
        """Return the last lines. Needs what `streamed_command.start` and `StreamedCommand.follow` need."""
        self._command = self._start("tail", f"--lines={count}", self._job.output)
        self._command.follow(self._take, self._say, self._clock)
        self._command = None
        return self._rest.splitlines()

    def new(self, count: int) -> list[str]:
        """Return the last lines, and from the second call on the new ones. Two calls or more.

        Needs what `streamed_command.start` needs, again each 14 minutes, and logs:GetLogEvents.
        """
        now = self._clock.now()
        if self._command is None or now - self._sent >= RENEWAL:
            words = ("bash", "-c", _TAIL, "tail", self._job.output, str(count), str(self._next or ""))
            self._command = self._start(*words)
            self._sent, self._rest, self._is_numbered = now, "", False
        self._command.new(self._take)
        *whole, self._rest = self._rest.split("\n")
        while whole and not self._is_numbered:
            if first := re.fullmatch(rf"{_FIRST}(\d+)", whole.pop(0)):
                self._next, self._is_numbered = int(first[1]), True
        self._next += len(whole)
        return whole

    def close(self) -> None:
        """End the command on the head node. Needs ssm:CancelCommand."""
        if self._command:
            self._command.cancel(self._say)

    def _start(self, *words: str) -> StreamedCommand:
        seconds = int(LONGEST.total_seconds())
        return start(self._deployment, self._head_node, words, user=self._job.user, seconds=seconds)

    def _take(self, stream: str, text: str) -> None:
        if stream == OUTPUT:
            self._rest += text
        else:
            print_output(stream, text)
