"""The nodes of a cluster by the names that people use, terminated ones included."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta

from scripts.account import log_streams
from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode, is_head_node, status_command
from scripts.account.remote.values import Address, Name
from scripts.core.aws_errors import is_denied
from scripts.core.clock import Clock
from scripts.core.errors import OperationError, UnusableError
from scripts.core.terminal import Say

HEAD_NODE = "head-node"
NAMES = f"{HEAD_NODE}, an instance id, an address, ip-10-0-1-2, or Slurm's name such as trn1-dy-trn1-32xl-3"
_INSTANCE_ID = re.compile(r"i-[0-9a-f]{8,17}")
_ADDRESS = re.compile(r"(?:ip-)?(\d+)[.-](\d+)[.-](\d+)[.-](\d+)")
_SLURM = re.compile(r"[a-z0-9][a-z0-9-]*-(?:st|dy)-[a-z0-9-]+-\d+", re.IGNORECASE)
"""https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-workload-manager-v3.html"""
_ASSIGNED = re.compile(
    r"\('(?P<name>[^']+)', EC2Instance\(id='(?P<instance_id>i-\w+)', private_ip='(?P<address>[\d.]+)'"
)
"""How ParallelCluster logs which instance a node gets.

https://github.com/aws/aws-parallelcluster-node, src/slurm_plugin/instance_manager.py
"""
_ASSIGNING = ("slurm_resume", "clustermgtd")
"""Where it does: for nodes that a job needs, and for static nodes."""
_MOST_ASSIGNED = 100
"""Log lines of assignments that are enough to find a node."""
_ASSIGNED_IN = timedelta(days=30)


@dataclass(frozen=True)
class Node:
    """An instance that is or was a node.

    Attributes:
        name: For people: ``head-node``, the name in Slurm if that was given, or the host.
        host: ``ip-`` and its private address; its log streams start with it.
        instance_id: Its EC2 instance.
        state: As EC2 has it; empty: it is terminated, or EC2 was not called.
    """

    name: str
    host: str
    instance_id: str
    state: str = ""

    @property
    def prefix(self) -> str:
        """The prefix of the names of its log streams."""
        return f"{self.host}.{self.instance_id}."


def is_node(name: str) -> bool:
    """Tell whether a node can have a name."""
    return name == HEAD_NODE or any(each.fullmatch(name) for each in (_INSTANCE_ID, _ADDRESS, _SLURM))


def list_present(deployment: Deployment) -> list[Node]:
    """Return the nodes that are not terminated, the head node first, and running ones before others of a name.

    1,000 a call; needs ec2:DescribeInstances.
    """
    nodes = []
    for each in deployment.nodes():
        if "PrivateIpAddress" in each:  # nodes that shut down have none any more
            name = host(each["PrivateIpAddress"])
            shown = HEAD_NODE if is_head_node(each) else name
            nodes.append(Node(shown, name, each["InstanceId"], each["State"]["Name"]))
    return sorted(nodes, key=lambda node: (node.name != HEAD_NODE, node.state != "running"))


def try_list(deployment: Deployment, say: Say) -> list[Node]:
    """Return the nodes as `list_present` does; none if ec2:DescribeInstances is not allowed, with a note."""
    from botocore.exceptions import ClientError

    try:
        return list_present(deployment)
    except ClientError as error:
        if not is_denied(error):
            raise
        say("ec2:DescribeInstances is not allowed: only nodes with logs are known.")
        return []


def running(deployment: Deployment, name: str) -> Node:
    """Return the running node of a name. Needs ec2:DescribeInstances, and for names in Slurm what `HeadNode.run` needs.

    Raises:
        UnusableError: No node can have such a name.
        OperationError: This node does not run.
    """
    if not is_node(name):
        raise UnusableError(f"got {name} as a node; allowed: {NAMES}")
    if name == HEAD_NODE:
        wanted = HeadNode(deployment).instance_id
    else:
        wanted = _address_in_slurm(deployment, name) if _SLURM.fullmatch(name) else name
    for node in list_present(deployment):
        if wanted == node.instance_id or host(wanted) == node.host:
            if node.state != "running":
                raise OperationError(f"{name} is {node.state}", status_command(deployment))
            return replace(node, name=name) if _SLURM.fullmatch(name) else node
    raise OperationError(f"{name} does not run now", log_streams.list_command(deployment))


def over_time(deployment: Deployment, group: str, name: str, say: Say) -> list[Node]:
    """Return the instances that have or had a name, the newest first; of the head node only the current one.

    Terminated ones are found by their log streams, or in the head node's logs of the last 30 days.
    Needs ec2:DescribeInstances, logs:DescribeLogStreams and, for the latter, logs:FilterLogEvents.

    Raises:
        OperationError: There are none.
    """
    nodes = [node for node in try_list(deployment, say) if name in (node.name, node.instance_id)]
    if name == HEAD_NODE:
        return nodes[:1] or [_head_node_of_logs(deployment, group)]
    if nodes:
        return nodes
    if _SLURM.fullmatch(name):
        return _assigned(deployment, group, f"'{name}', EC2Instance(id='", say) or [running(deployment, name)]
    if _INSTANCE_ID.fullmatch(name):
        nodes = _assigned(deployment, group, f"EC2Instance(id='{name}'", say)
    else:
        listed = log_streams.list_by_prefix(deployment, group, f"{host(name)}.")
        listed.sort(key=lambda each: (each.latest is not None, each.latest), reverse=True)
        nodes = list(dict.fromkeys(Node(each.host, each.host, each.instance_id) for each in listed))
    if not nodes:
        raise OperationError(f"{group} has no logs of {name}", log_streams.list_command(deployment))
    return nodes


def _head_node_of_logs(deployment: Deployment, group: str) -> Node:
    """Return the head node that wrote last, of a deleted cluster."""
    for each in log_streams.list_newest(deployment, group)[0]:
        if each.kind in log_streams.HEAD_KINDS:
            return Node(HEAD_NODE, each.host, each.instance_id)
    raise OperationError(f"{group} has no logs of a head node")


def _assigned(deployment: Deployment, group: str, text: str, say: Say) -> list[Node]:
    """Return the instances that ParallelCluster assigned to nodes, by a part of the log line; the newest first."""
    [head_node] = over_time(deployment, group, HEAD_NODE, say)
    listed = [
        each for each in log_streams.list_by_prefix(deployment, group, head_node.prefix) if each.kind in _ASSIGNING
    ]
    if not listed:
        return []
    now = Clock().now()
    events, is_whole = log_streams.Source(deployment, group, listed, text=text).last(
        _MOST_ASSIGNED, now - _ASSIGNED_IN, now
    )
    if not is_whole:
        say(f"{group} has too many lines to read all: older instances of the node may be missing.")
    nodes = [
        Node(match["name"], host(match["address"]), match["instance_id"])
        for event in reversed(events)
        for match in _ASSIGNED.finditer(event.message)
        if text in match[0]
    ]
    return list(dict.fromkeys(nodes))


def _address_in_slurm(deployment: Deployment, name: str) -> str:
    """Ask the head node for the address of a node by its name in Slurm; the name itself: it has none now."""
    words = program.words("jobs", "addresses", name)
    return program.ask(HeadNode(deployment), words, "addresses", dict[Name, Address]).get(name, name)


def host(address: str) -> str:
    """Return the name of a host, ``ip-10-0-1-2``, given its name or its address."""
    return _ADDRESS.sub(r"ip-\1-\2-\3-\4", address)
