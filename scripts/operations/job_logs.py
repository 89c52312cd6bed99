"""What a job of Slurm leaves to be read: its nodes and its output file."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scripts.operations.head_node import HeadNode

MOST_NODES = 32
"""Nodes of a job whose logs are shown: a large job's say the same."""
_SCRIPT = """\
export PATH=/opt/slurm/bin:$PATH LC_ALL=C
job=$(scontrol --oneliner show job {number}) || exit
nodes=$(printf '%s\\n' "$job" | sed --quiet 's/.* NodeList=\\([^ (][^ ]*\\).*/\\1/p')
printf '%s\\n' "$job" | tr ' ' '\\n' | grep --extended-regexp '^(JobState|StdOut)='
[ -z "$nodes" ] || scontrol --oneliner show node "$nodes" |
    sed --quiet 's/^NodeName=\\([^ ]*\\) .* NodeAddr=\\([^ ]*\\).*/Node=\\1 \\2/p' | head --lines={most}
"""
"""Tells state, output file and nodes of a job: https://slurm.schedmd.com/scontrol.html."""


@dataclass(frozen=True)
class Job:
    """A job that Slurm still knows: it waits, runs, or ended some minutes ago.

    Attributes:
        state: As Slurm has it, such as RUNNING.
        output: The file on the cluster that has its output; empty: it has none.
        nodes: Names and addresses of its nodes, `MOST_NODES` at most; none: it waits.
    """

    state: str
    output: str
    nodes: dict[str, str]


def find(head_node: HeadNode, number: int) -> Job | None:
    """Ask the head node for a job; None: Slurm does not know it, or no longer.

    Slurm forgets ended jobs after five minutes (https://slurm.schedmd.com/slurm.conf.html#OPT_MinJobAge).

    Raises:
        HeadNodeError: It could not be asked.
    """
    answer = head_node.run(_SCRIPT.format(number=number, most=MOST_NODES))
    told = dict(re.findall(r"^(JobState|StdOut)=(.*)$", answer.output, re.MULTILINE))
    if "JobState" not in told:
        return None
    nodes = dict(re.findall(r"^Node=(\S+) (\S+)$", answer.output, re.MULTILINE))
    return Job(told["JobState"], told.get("StdOut", ""), nodes)
