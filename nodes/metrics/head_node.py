"""The service of the head node: what Slurm and ParallelCluster say of nodes and queues, and what nodes cost.

Arguments: Region, cluster; with a budget also the shared file system, and `Budget.of`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import service
from .cloudwatch import CloudWatch, Metric
from .spending import DIRECTORY, Budget, Spending, changes

REASON = "ultracluster: "
"""Start of the reason and of the comment of a node that health/check.sh drained."""
_MARKS = "--Format=NodeList:64,Comment:64"
_DRAINS = "--Format=NodeList:64,StateComplete:160,Reason:64"
_UPDATE = "during cluster update"
"""In the reason of a node that ParallelCluster drains to replace it (update_head_node.rb of its cookbook)."""

_TIME_LIMIT = 15
_GUARD_LIMIT = 60
"""Seconds for one command of the guard: to cancel thousands of jobs takes a while."""
_FLEET_STATUS = "/usr/local/bin/get-compute-fleet-status.sh"
_STOPPED = {"STOP_REQUESTED", "STOPPING", "STOPPED", "START_REQUESTED", "STARTING"}


class HeadNode:
    """What the head node tells of its cluster."""

    def __init__(self, cloudwatch: CloudWatch, cluster: str, budget: tuple[Budget, Spending] | None = None) -> None:
        """Count from the first report on.

        Args:
            cloudwatch: Where metrics go.
            cluster: Name of the cluster.
            budget: The limit, and what counts; None: nothing is counted.
        """
        self._cloudwatch = cloudwatch
        self._cluster = cluster
        self._marks: dict[str, str] | None = None
        self._budget = budget
        self._idle_since: dict[str, float] = {}

    def report(self, timestamp: float) -> None:
        """Send what Slurm says now; nothing if its controller does not answer."""
        try:
            states = partitions()
            found = marks()
            reasons = drained_now()
            by_health = {name for name, reason in reasons.items() if reason.startswith(REASON)}
            by_health |= self._drained_since(found)
            drained = by_health | {name for name, reason in reasons.items() if _UPDATE not in reason}
            protected = protected_queues(states)
            running = [node for node in all_nodes() if node.is_running]
            of_cluster = {"NodeIdleSeconds": (self._longest_idle(running, timestamp), "Seconds")}
        except (OSError, subprocess.SubprocessError) as failure:
            print(f"{type(failure).__name__}: Slurm's controller does not answer")
            return
        self._marks = found
        names, idle = [node.name for node in running], [node.name for node in running if node.is_idle]
        counts = {
            "NodesDrained": {queue: count_of(queue, drained) for queue in states},
            "NodesDrainedByHealth": {queue: count_of(queue, by_health) for queue in states},
            "QueuesProtected": {queue: int(queue in protected) for queue in states},
            "NodesRunning": {queue: count_of(queue, names) for queue in states},
            "NodesIdle": {queue: count_of(queue, idle) for queue in states},
        }
        spent: float | None = None
        if self._budget:
            budget, spending = self._budget
            rate = sum(price_of(node, budget.prices) for node in running)
            spent = spending.add(timestamp, rate)
            of_cluster["NodeUsdPerHour"] = rate, "None"
            if spent is not None:
                of_cluster["NodeUsdThisMonth"] = spent, "None"
        self._cloudwatch.send(self._metrics(counts, of_cluster), timestamp)
        if self._budget and spent is not None:
            guard(*self._budget, spent, states)

    def _metrics(
        self, counts: Mapping[str, Mapping[str, int]], of_cluster: Mapping[str, tuple[float, str]]
    ) -> list[Metric]:
        cluster = {"Cluster": self._cluster}
        metrics = [Metric(name, value, unit, cluster) for name, (value, unit) in of_cluster.items()]
        for name, of_queues in counts.items():
            metrics.append(Metric(name, sum(of_queues.values()), "Count", cluster))
            metrics += [Metric(name, count, "Count", {**cluster, "Queue": queue}) for queue, count in of_queues.items()]
        return metrics

    def _drained_since(self, found: Mapping[str, str]) -> set[str]:
        """Return the nodes that health checks drained since the last report."""
        return set() if self._marks is None else {name for name, mark in found.items() if self._marks.get(name) != mark}

    def _longest_idle(self, running: Sequence[Node], timestamp: float) -> float:
        """Return for how many seconds that dynamic node has been idle that has been so for longest."""
        idle = [node.name for node in running if node.is_idle and not node.is_static]
        self._idle_since = {name: self._idle_since.get(name, timestamp) for name in idle}
        return timestamp - min(self._idle_since.values(), default=timestamp)


@dataclass(frozen=True)
class Node:
    """A node, as Slurm describes it.

    Attributes:
        name: Its name.
        address: That of its instance; its own name, as long as it has none.
        states: Words such as IDLE, CLOUD and POWERED_DOWN.
        features: Words; ParallelCluster's are static or dynamic, the instance type and the compute resource.
    """

    name: str
    address: str
    states: frozenset[str]
    features: frozenset[str]

    @property
    def is_running(self) -> bool:
        """Whether it has an instance: of one that powers down it is being terminated.

        The state alone does not tell: a node that EC2 has no capacity for is DOWN or POWERING_UP. ParallelCluster's
        daemon asks the address, too (aws-parallelcluster-node, src/slurm_plugin/slurm_resources.py).
        """
        return self.address != self.name and self.states.isdisjoint({"POWERED_DOWN", "POWERING_DOWN"})

    @property
    def is_idle(self) -> bool:
        """Whether it is up and could take a job."""
        return "IDLE" in self.states and self.states.isdisjoint({"POWERING_UP", "DRAIN", "COMPLETING", "PLANNED"})

    @property
    def is_static(self) -> bool:
        """Whether it runs without jobs, too."""
        return "static" in self.features


def guard(budget: Budget, spending: Spending, spent: float, states: Mapping[str, str]) -> None:
    """Close or open queues by what nodes have cost. What fails ends nothing: the next report tries it again.

    A queue is remembered before it is closed, and until it is open.

    Args:
        budget: The limit, and what happens.
        spending: What remembers the queues.
        spent: What nodes have cost this month.
        states: State of each queue.
    """
    # Others were opened by somebody. Those of a stopped fleet are INACTIVE, and UP once it starts.
    closed = [queue for queue in spending.closed if states.get(queue) in ("DOWN", "INACTIVE")]
    if spending.is_overruled():
        spending.close(closed)
        return
    changed = changes(budget, spent, states, closed)
    closed = sorted({*closed, *changed})
    spending.close(closed)
    for queue, state in changed.items():
        if _succeeds("scontrol", "update", f"PartitionName={queue}", f"State={state}"):
            print(
                f"ultracluster: budget: nodes have cost ${spent:,.2f} this month of ${budget.limit:,.2f}: "
                f"queue {queue} set to {state}"
            )
            if state == "UP":
                closed.remove(queue)
    spending.close(closed)
    if budget.action == "stop" and spent >= budget.limit:
        for state in ("RUNNING", "SUSPENDED"):  # scancel takes one; suspended jobs keep their nodes, too
            _succeeds("scancel", f"--state={state}")


def price_of(node: Node, prices: Mapping[str, float]) -> float:
    """Return what an hour of a node costs."""
    return sum(price for instance_type, price in prices.items() if instance_type in node.features)


def marks() -> dict[str, str]:
    """Return the comments by which health/check.sh says of nodes that it drained them, and when.

    ParallelCluster replaces a drained node within a minute or so, and sets another reason: a look at the reasons once a
    minute would miss it. A comment stays. Only root and Slurm's operators set it; in the log of Slurm's controller,
    any user can have lines written.

    Raises:
        OSError: There is no Slurm.
        subprocess.SubprocessError: Its controller does not answer.
    """
    rows = [line.split(maxsplit=1) for line in _run("sinfo", "--all", "--Node", "--noheader", _MARKS).splitlines()]
    return {row[0]: row[1].strip() for row in rows if row[1:] and row[1].startswith(REASON)}


def drained_now() -> dict[str, str]:
    """Return why nodes are drained or fail now, by their names; not those that are powered down when they are idle.

    Such are drained, too, and the power-down ends that (state=power_down_asap).

    Raises:
        OSError: There is no Slurm.
        subprocess.SubprocessError: Its controller does not answer.
    """
    lines = _run("sinfo", "--all", "--Node", "--noheader", "--states=drain,fail", _DRAINS).splitlines()
    rows = [line.split(maxsplit=2) for line in lines if line.strip()]
    return {name: "".join(reason) for name, states, *reason in rows if "power_down" not in states.lower().split("+")}


def all_nodes() -> list[Node]:
    """Return the nodes that Slurm knows, running or not.

    Raises:
        OSError: There is no Slurm.
        subprocess.SubprocessError: Its controller does not answer.
    """
    columns = "NodeList:64,NodeAddr:64,StateComplete:160,Features:128"
    return nodes_of(_run("sinfo", "--all", "--Node", "--noheader", f"--Format={columns}"))


def nodes_of(shown: str) -> list[Node]:
    """Return the nodes that sinfo shows."""
    rows = {tuple(line.split()) for line in shown.splitlines()}  # a node is there once for each of its partitions
    return [
        Node(name, address, frozenset(states.upper().split("+")), frozenset(features.split(",")))
        for name, address, states, features in sorted(rows)
    ]


def partitions() -> dict[str, str]:
    """Return the state of each partition, which is a queue of ParallelCluster, such as UP or INACTIVE.

    Raises:
        OSError: There is no Slurm.
        subprocess.SubprocessError: Its controller does not answer.
    """
    shown = _run("scontrol", "--all", "--oneliner", "show", "partition")
    return dict(re.findall(r"^PartitionName=(\S+) .*\bState=(\S+)", shown, re.MULTILINE))


def protected_queues(states: Mapping[str, str]) -> set[str]:
    """Return the queues that ParallelCluster took out of service because their nodes keep failing to start.

    It makes their partitions INACTIVE and the fleet PROTECTED
    (https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-protected-mode-v3.html). It makes all partitions
    INACTIVE too when somebody stops the fleet, which is no fault.

    Args:
        states: State of each partition.
    """
    inactive = {name for name, state in states.items() if state == "INACTIVE"}
    return set() if not inactive or fleet_status() in _STOPPED else inactive


def fleet_status() -> str:
    """Return the status of ParallelCluster's compute fleet; empty if it is not known.

    ParallelCluster's own daemon asks the same program (https://github.com/aws/aws-parallelcluster-node,
    src/slurm_plugin/clustermgtd.py).
    """
    try:
        return str(json.loads(_run(_FLEET_STATUS)).get("status", ""))
    except (OSError, subprocess.SubprocessError, ValueError):
        return ""


def count_of(queue: str, nodes: Collection[str]) -> int:
    """Return how many of some nodes are of a queue: the names of its static and dynamic nodes start with its own."""
    return sum(node.startswith((f"{queue}-st-", f"{queue}-dy-")) for node in nodes)


def _run(*command: str, limit: float = _TIME_LIMIT) -> str:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        timeout=limit, check=True,
    ).stdout  # fmt: skip


def _succeeds(*command: str) -> bool:
    """Return whether a command of the guard does what it says; print why not."""
    try:
        _run(*command, limit=_GUARD_LIMIT)
    except (OSError, subprocess.SubprocessError) as failure:
        print(f"ultracluster: budget: {failure}")
        return False
    return True


def main() -> None:
    """Report until the service is stopped."""
    region, cluster, *of_budget = sys.argv[1:]
    budget: tuple[Budget, Spending] | None = None
    if of_budget:
        mount = Path(of_budget[0])
        budget = Budget.of(of_budget[1]), Spending(mount / DIRECTORY, cluster, mount)
    service.run(cluster, HeadNode(CloudWatch(region), cluster, budget).report)


if __name__ == "__main__":
    main()
