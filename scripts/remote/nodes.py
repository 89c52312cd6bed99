"""The nodes of a cluster by the names that people have for them, those that are gone included."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from datetime import timedelta

from scripts.aws_errors import is_denied
from scripts.clock import Clock
from scripts.command import OperationError, Say, UnusableError
from scripts.deployment import Deployment
from scripts.logs import streams
from scripts.remote.head_node import HeadNode, is_head_node, status_command

HEAD_NODE = "head-node"
NAMES = f"{HEAD_NODE}, an instance id, an address, ip-10-0-1-2, or Slurm's name such as trn1-dy-trn1-32xl-3"
_INSTANCE_ID = re.compile(r"i-[0-9a-f]{8,17}")
_ADDRESS = re.compile(r"(?:ip-)?(\d+)[.-](\d+)[.-](\d+)[.-](\d+)")
_SLURM = re.compile(r"[a-z0-9][a-z0-9-]*-(?:st|dy)-[a-z0-9-]+-\d+", re.IGNORECASE)
"""https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-workload-manager-v3.html"""
_ASSIGNED = re.compile(
    r"\('(?P<name>[^']+)', EC2Instance\(id='(?P<instance_id>i-\w+)', private_ip='(?P<address>[\d.]+)'"
)
"""How ParallelCluster logs which instance a node is from then on.

https://github.com/aws/aws-parallelcluster-node, src/slurm_plugin/instance_manager.py
"""
_ASSIGNING = ("slurm_resume", "clustermgtd")
"""Where it does: for nodes that a job wants, and for those that are always on."""
_MOST_ASSIGNED = 100
"""Lines of who was assigned what that are enough to find a node."""
_ASSIGNED_IN = timedelta(days=30)

_LIST = "make logs ENV={} ARGS=--list"


@dataclass(frozen=True)
class Node:
    """An instance that is or was a node.

    Attributes:
        name: For people: ``head-node``, or Slurm's name if it was asked for, or that of its address.
        host: ``ip-`` and its private address; log streams begin with it.
        instance_id: Its EC2 instance.
        state: As EC2 has it; empty: it is gone, or EC2 was not asked.
    """

    name: str
    host: str
    instance_id: str
    state: str = ""

    @property
    def prefix(self) -> str:
        """What the names of its log streams begin with."""
        return f"{self.host}.{self.instance_id}."


def is_node(name: str) -> bool:
    """Tell whether a name is one that a node can have."""
    return name == HEAD_NODE or any(each.fullmatch(name) for each in (_INSTANCE_ID, _ADDRESS, _SLURM))


def present(deployment: Deployment) -> list[Node]:
    """Return the nodes that are not terminated, the head node first, and those that run before others of a name.

    1,000 a call; needs ec2:DescribeInstances.
    """
    nodes = []
    for each in deployment.nodes():
        if "PrivateIpAddress" in each:  # those that end have none any more
            name = host(each["PrivateIpAddress"])
            shown = HEAD_NODE if is_head_node(each) else name
            nodes.append(Node(shown, name, each["InstanceId"], each["State"]["Name"]))
    return sorted(nodes, key=lambda node: (node.name != HEAD_NODE, node.state != "running"))


def seen(deployment: Deployment, say: Say) -> list[Node]:
    """Return the nodes as `present` does; none if ec2:DescribeInstances is not allowed, which is said."""
    from botocore.exceptions import ClientError

    try:
        return present(deployment)
    except ClientError as error:
        if not is_denied(error):
            raise
        say("ec2:DescribeInstances is not allowed: nodes are known by their logs alone.")
        return []


def running(deployment: Deployment, name: str) -> Node:
    """Return the node of a name; needs ec2:DescribeInstances, and for Slurm's names also what `HeadNode.run` needs.

    Raises:
        UnusableError: No node has such a name.
        OperationError: This node does not run.
    """
    if not is_node(name):
        raise UnusableError(f"got {name} as a node; allowed: {NAMES}")
    if name == HEAD_NODE:
        wanted = HeadNode(deployment).instance_id
    else:
        wanted = _address_in_slurm(deployment, name) if _SLURM.fullmatch(name) else name
    for node in present(deployment):
        if wanted == node.instance_id or host(wanted) == node.host:
            if node.state != "running":
                raise OperationError(f"{name} is {node.state}. How it is: {status_command(deployment)}")
            return replace(node, name=name) if _SLURM.fullmatch(name) else node
    raise OperationError(f"{name} does not run now; {_LIST.format(deployment.environment)} shows the nodes there are")


def over_time(deployment: Deployment, group: str, name: str, say: Say) -> list[Node]:
    """Return the instances that have or had a name, the newest first; of the head node only the one that is.

    What EC2 does not have is looked for among the log streams, or in what the head node's logs say of the last 30 days.
    Needs ec2:DescribeInstances, logs:DescribeLogStreams and, for the latter, logs:FilterLogEvents.

    Args:
        deployment: Whose cluster it is.
        group: The cluster's log group.
        name: One of `NAMES`.
        say: Takes what may not be seen, or was not looked at.

    Raises:
        OperationError: There are none.
    """
    found = [node for node in seen(deployment, say) if name in (node.name, node.instance_id)]
    if name == HEAD_NODE:
        return found[:1] or [_head_node_of_logs(deployment, group)]
    if found:
        return found
    if _SLURM.fullmatch(name):
        return _assigned(deployment, group, f"'{name}', EC2Instance(id='", say) or [running(deployment, name)]
    if _INSTANCE_ID.fullmatch(name):
        found = _assigned(deployment, group, f"EC2Instance(id='{name}'", say)
    else:
        listed = streams.of_prefix(deployment, group, f"{host(name)}.")
        listed.sort(key=lambda each: (each.latest is not None, each.latest), reverse=True)
        found = list(dict.fromkeys(Node(each.host, each.host, each.instance_id) for each in listed))
    if not found:
        raise OperationError(f"{group} has no logs of {name}; {_LIST.format(deployment.environment)} shows what it has")
    return found


def _head_node_of_logs(deployment: Deployment, group: str) -> Node:
    """Return the head node that wrote last, of a cluster that is gone."""
    for each in streams.newest(deployment, group)[0]:
        if each.kind in streams.HEAD_KINDS:
            return Node(HEAD_NODE, each.host, each.instance_id)
    raise OperationError(f"{group} has no logs of a head node")


def _assigned(deployment: Deployment, group: str, text: str, say: Say) -> list[Node]:
    """Return the instances that ParallelCluster gave to nodes, by a part of what it logs of that; the newest first."""
    [head_node] = over_time(deployment, group, HEAD_NODE, say)
    listed = [each for each in streams.of_prefix(deployment, group, head_node.prefix) if each.kind in _ASSIGNING]
    if not listed:
        return []
    now = Clock().now()
    source = streams.Source(deployment, group, [each.name for each in listed], text)
    told = source.last(_MOST_ASSIGNED, now - _ASSIGNED_IN, now)
    if told.gap:
        say(f"Which instance it was is known only if it was logged after {told.gap[1]:%Y-%m-%d %H:%M} UTC.")
    found = [
        Node(match["name"], host(match["address"]), match["instance_id"])
        for event in reversed(told.events)
        for match in _ASSIGNED.finditer(event.message)
        if text in match[0]
    ]
    return list(dict.fromkeys(found))


def _address_in_slurm(deployment: Deployment, name: str) -> str:
    """Ask the head node for the address of a node by Slurm's name; the name itself: it has none now."""
    script = f"/opt/slurm/bin/scontrol --oneliner show node {shlex.quote(name)}"
    found = re.search(r" NodeAddr=(\S+)", HeadNode(deployment).run(script).output)
    return found[1] if found else name


def host(address: str) -> str:
    """Return the name of the host with an address, given as one or the other: ``ip-10-0-1-2``."""
    return _ADDRESS.sub(r"ip-\1-\2-\3-\4", address)
