"""Slurm's queues (partitions) and the kinds of node in them: asked, closed to new jobs, and opened again."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from scripts.remote.head_node import HeadNode, HeadNodeError, ask_slurm

UP, DRAIN = "up", "drain"
"""A queue that takes jobs; one that takes no new jobs and runs those that it has (https://slurm.schedmd.com/sinfo.html).

Others are ``down`` (jobs wait) and ``inact`` (ParallelCluster has stopped the fleet, or protects the queue).
"""
_PATH = "export PATH=/opt/slurm/bin:$PATH LC_ALL=C\nset -e\n"
QUERY = (
    _PATH
    + r"""
queues=$(sinfo --noheader --format='%R|%a')
nodes=$(sinfo --noheader --Node --format='%R|%N|%T')
printf '# queues\n%s\n# nodes\n' "$queues"
printf '%s' "$nodes" | sed -E 's/-[0-9]+\|([^|]*)$/|\1/' | sort | uniq --count
echo '# end'
"""
)
"""For a shell on the head node. Its answer has a line for each kind and state of node, not for each node."""
_THERE = frozenset({"allocated", "completing", "idle", "mixed", "planned", "reserved"})
"""States of nodes that take jobs or run them. A node that is off, on its way or silent has a flag as well: one of ~#%!*
(https://slurm.schedmd.com/sinfo.html)."""


@dataclass(frozen=True)
class NodeKind:
    """The nodes of one compute resource that always run, or those that come and go.

    Attributes:
        queue: The queue.
        compute_resource: The compute resource.
        static: Whether they always run (min_count).
        count: How many Slurm knows, running or not.
        ready: How many take jobs or run them.
    """

    queue: str
    compute_resource: str
    static: bool
    count: int
    ready: int


@dataclass(frozen=True)
class Queues:
    """The queues of a cluster.

    Attributes:
        states: ``up``, ``drain``, ``down`` or ``inact``, by queue.
        kinds: Their nodes.
    """

    states: dict[str, str]
    kinds: tuple[NodeKind, ...]

    def count(self, queue: str, compute_resource: str, *, static: bool) -> int:
        """Return how many nodes of a kind Slurm knows."""
        wanted = (queue, compute_resource, static)
        return sum(each.count for each in self.kinds if (each.queue, each.compute_resource, each.static) == wanted)

    @property
    def missing_static(self) -> int:
        """How many nodes that always run are not there."""
        return sum(each.count - each.ready for each in self.kinds if each.static)


def ask(head_node: HeadNode) -> Queues:
    """Ask the head node for its queues.

    Raises:
        HeadNodeError: It could not be asked, or Slurm did not answer.
    """
    return ask_slurm(head_node, QUERY, parse)


def set_state(head_node: HeadNode, queues: Iterable[str], state: str) -> None:
    """Set the state of queues: UP or DRAIN (https://slurm.schedmd.com/scontrol.html).

    Raises:
        HeadNodeError: It could not be asked, or Slurm refused.
    """
    lines = [f"scontrol update PartitionName={shlex.quote(queue)} State={state.upper()}" for queue in queues]
    answer = head_node.run(_PATH + "\n".join(lines))
    if answer.code:
        raise HeadNodeError(f"Slurm did not set {', '.join(queues)} to {state.upper()}: {answer.errors}")


def parse(text: str) -> Queues:
    """Return what `QUERY` printed.

    Raises:
        ValueError: It did not come to its end, or something else was printed.
    """
    if not text.rstrip().endswith("# end"):
        raise ValueError(text)
    queues, nodes = re.findall(r"^# (?:queues|nodes)\n((?:(?!# ).*\n)*)", text, re.MULTILINE)
    states = dict(line.split("|") for line in queues.split())
    counts: Counter[tuple[str, str, bool]] = Counter()
    ready: Counter[tuple[str, str, bool]] = Counter()
    for line in nodes.splitlines():
        count, kind = line.split()
        queue, name, state = kind.split("|")
        life, compute_resource = name.removeprefix(f"{queue}-").split("-", 1)
        identity = (queue, compute_resource, life == "st")
        counts[identity] += int(count)
        if state.rstrip("+-$@^") in _THERE:
            ready[identity] += int(count)
    return Queues(states, tuple(NodeKind(*each, counts[each], ready[each]) for each in sorted(counts)))
