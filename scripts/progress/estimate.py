"""The resources that an operation on a stack changes, and how long that typically takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from scripts.progress.operations import StackOperation
from scripts.stacks import CLUSTER, NESTED
from toolchain.durations import BOOT_SECONDS, UPDATE_SECONDS, seconds
from toolchain.values import references

CLUSTER_SECONDS: Mapping[str, float] = {"CREATE": 600.0, "UPDATE": 180.0, "DELETE": 300.0}
"""Seconds of a cluster's own stack that is not known in detail; AWS's function checks it every two minutes only."""
NESTED_SECONDS = 90.0
"""Seconds of a nested stack that is not known in detail."""
PART_SECONDS: Mapping[str, float] = {"network": 140.0, "storage": 420.0, "cluster": 710.0, "monitoring": 130.0}
"""Seconds to create the stacks of a deployment: the longest chains of their templates' resources, rounded."""


@dataclass(frozen=True)
class ResourceGraph:
    """The resources that an operation changes.

    Attributes:
        types: Their types, by logical id.
        waits_for: The resources that must be done before, by logical id.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    waits_for: Mapping[str, frozenset[str]] = field(default_factory=dict)


def graph_of_template(body: Mapping[str, Any] | str) -> ResourceGraph | None:
    """Return the resources that the creation or deletion of a stack changes; None: its template is not in JSON.

    Args:
        body: As boto3 returns it: the object, or the text of a template that is in YAML.
    """
    if isinstance(body, str):
        return None
    resources = body["Resources"]
    types = {name: resource["Type"] for name, resource in resources.items()}
    needs = {name: frozenset(_needs(resource) & resources.keys()) for name, resource in resources.items()}
    return ResourceGraph(types, needs)


def graph_of_changes(changes: list[Mapping[str, Any]]) -> ResourceGraph:
    """Return the resources that an update changes, from its change set."""
    changed = [each["ResourceChange"] for each in changes if each.get("ResourceChange")]
    return ResourceGraph({each["LogicalResourceId"]: each["ResourceType"] for each in changed})


def count_done(graph: ResourceGraph | None, operation: StackOperation) -> tuple[int, int]:
    """Return how many resources are done, and of how many.

    A creation that is rolled back deletes what it has created. Without a graph, the resources in events count.
    """
    resources = operation.by_id
    if operation.deletes and operation.action != "DELETE":
        deleted = sum(each.status in ("DELETE_COMPLETE", "DELETE_SKIPPED") for each in resources.values())
        return (len(resources) if operation.ended else deleted), len(resources)
    done = sum(not each.is_in_progress for each in resources.values())
    if operation.ended:
        return done, done
    return done, len(resources.keys() | (graph.types.keys() if graph else set()))


def remaining_seconds(
    graph: ResourceGraph | None, operation: StackOperation, now: datetime, nested: Mapping[str, float]
) -> float:
    """Return how many seconds an operation takes yet: the longest chain of resources that wait for one another.

    Args:
        graph: What it changes; None: not known, and only what is in progress counts.
        operation: Its state.
        now: The time.
        nested: Seconds that the stacks nested in it take yet, by logical id.
    """
    if operation.ended:
        return 0.0
    graph = graph or ResourceGraph()
    types = {**graph.types, **{name: each.type for name, each in operation.by_id.items()}}
    rolled_back = operation.rolls_back or (operation.deletes and operation.action != "DELETE")
    weights: dict[str, float] = {}
    for name, kind in types.items():
        resource = operation.by_id.get(name)
        if name in nested:
            weights[name] = nested[name]
        elif resource is not None and resource.is_in_progress:
            weights[name] = max(typical_seconds(kind, operation) - resource.seconds_at(now), 0.0)
        elif rolled_back:
            deleted = resource is None or resource.status.startswith("DELETE")
            weights[name] = 0.0 if deleted or not operation.deletes else typical_seconds(kind, operation)
        else:
            weights[name] = 0.0 if resource is not None else typical_seconds(kind, operation)
    return _longest(weights, graph.waits_for)


def typical_seconds(resource_type: str, operation: StackOperation) -> float:
    """Return how many seconds a resource of a type typically takes in an operation."""
    action = "DELETE" if operation.deletes else operation.action
    if resource_type == CLUSTER:
        return CLUSTER_SECONDS.get(action, 0.0)
    if resource_type == NESTED:
        return NESTED_SECONDS
    typical = seconds(resource_type)
    if typical < math.inf:
        return typical
    return {"CREATE": BOOT_SECONDS, "UPDATE": UPDATE_SECONDS}.get(action, 0.0)  # a head node is waited for


def _needs(resource: Mapping[str, Any]) -> set[str]:
    depends_on = resource.get("DependsOn", [])
    return references(resource.get("Properties", {})) | (
        {depends_on} if isinstance(depends_on, str) else set(depends_on)
    )


def _longest(weights: Mapping[str, float], waits_for: Mapping[str, frozenset[str]]) -> float:
    """Return the weight of the heaviest chain. Templates have no cycles: CloudFormation refuses them."""

    @cache
    def until(name: str) -> float:
        return weights[name] + max((until(each) for each in waits_for.get(name, ()) if each in weights), default=0.0)

    return max((until(name) for name in weights), default=0.0)
