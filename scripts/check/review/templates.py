"""The resources of templates, with names in place of references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from scripts.check.plan.comparison import Comparison
from toolchain.assembly import Stack

NOBODY: Final = "127.0.0.1/32"
"""AllowedIps of a node whose port 22 is closed: where nothing is said, ParallelCluster opens it to everyone."""
_MOST_NAMES: Final = 4

Part = Mapping[str, Any]
"""A part of a ParallelCluster configuration: the head node, a pool of login nodes, a queue."""


@dataclass(frozen=True)
class Resource:
    """A resource of a template.

    Attributes:
        id: Stack and logical id, which stand for it wherever it is referred to: ``trn1-16-storage/LustreF8935BA0``.
        type: Such as ``AWS::EC2::VPC``.
        stack: Name of its stack.
        properties: Its properties, in which references are ids, those to other stacks, too.
        retained: Whether it stays when its stack is deleted.
    """

    id: str
    type: str
    stack: str
    properties: Mapping[str, Any]
    retained: bool


def resources_of(stacks: Mapping[str, Stack]) -> Iterator[Resource]:
    """Yield the resources of stacks."""
    names = Comparison(stacks, stacks)
    for name, stack in stacks.items():
        for logical_id, each in stack.resources.items():
            properties = names.before(name, each.get("Properties", {}))
            retained = each.get("DeletionPolicy", "").startswith("Retain")
            yield Resource(f"{name}/{logical_id}", each["Type"], name, properties, retained)


def nodes(configuration: Part) -> Iterator[tuple[str, Part]]:
    """Yield head node, pools of login nodes and queues of a ParallelCluster configuration, with what they are."""
    yield "head node", configuration["HeadNode"]
    for pool in configuration.get("LoginNodes", {}).get("Pools", []):
        yield f"login nodes {pool['Name']}", pool
    for queue in configuration["Scheduling"]["SlurmQueues"]:
        yield f"queue {queue['Name']}", queue


def listed(names: Sequence[str]) -> str:
    """Return names as a list, of many the first and the last."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return ", ".join([*names[: _MOST_NAMES - 2], "...", names[-1]])
