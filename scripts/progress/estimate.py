"""What an operation on a stack has to do, and how long that typically takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from scripts.progress.events import Resource, StackOperation
from scripts.stacks import CLUSTER, NESTED
from toolchain.durations import BOOT_SECONDS, UPDATE_SECONDS, seconds
from toolchain.values import references

_WAIT, _INSTANCE = "AWS::CloudFormation::WaitCondition", "AWS::EC2::Instance"
CLUSTER_SECONDS: Mapping[str, float] = {"CREATE": 600.0, "UPDATE": 180.0, "DELETE": 300.0}
"""Seconds of a cluster's own stack that is not there to be looked at; AWS's function looks every two minutes, too."""
NESTED_SECONDS = 90.0
"""Seconds of a nested stack that is not there to be looked at."""
PART_SECONDS: Mapping[str, float] = {"network": 140.0, "storage": 420.0, "cluster": 710.0, "monitoring": 130.0}
"""Seconds to create the stacks of a deployment: the longest chains of their templates' resources, rounded."""


@dataclass(frozen=True)
class Plan:
    """What an operation has to do.

    Attributes:
        types: Types of the resources that it touches, by logical id.
        waits_for: By logical id, the resources that have to be done before.
    """

    types: Mapping[str, str] = field(default_factory=dict)
    waits_for: Mapping[str, frozenset[str]] = field(default_factory=dict)


def template_plan(body: Mapping[str, Any] | str) -> Plan | None:
    """Return what the creation or deletion of a stack has to do; None: its template is not in JSON.

    Args:
        body: As boto3 returns it: the object, or the text of a template that is in YAML.
    """
    if isinstance(body, str):
        return None
    resources = body["Resources"]
    types = {name: resource["Type"] for name, resource in resources.items()}
    needs = {name: _needs(resource) & resources.keys() for name, resource in resources.items()}
    for name, kind in types.items():
        if kind == _WAIT:  # for what instances do, though the template does not say so
            needs[name] |= {each for each, its_kind in types.items() if its_kind == _INSTANCE}
    return Plan(types, {name: frozenset(each) for name, each in needs.items()})


def change_plan(changes: list[Mapping[str, Any]]) -> Plan:
    """Return what an update has to do, by the changes of its change set."""
    changed = [each["ResourceChange"] for each in changes if each.get("ResourceChange")]
    return Plan({each["LogicalResourceId"]: each["ResourceType"] for each in changed})


def amount(plan: Plan | None, operation: StackOperation) -> tuple[int, int]:
    """Return how many resources are done, and of how many.

    A creation that is undone deletes what it has begun to make. Without a plan, what was seen counts.
    """
    resources = operation.resources
    if operation.deletes and operation.action != "DELETE":
        gone = sum(each.status in ("DELETE_COMPLETE", "DELETE_SKIPPED") for each in resources.values())
        return (len(resources) if not operation.in_progress else gone), len(resources)
    done = sum(not each.in_progress for each in resources.values())
    if not operation.in_progress:
        return done, done
    return done, len(resources.keys() | (plan.types.keys() if plan else set()))


def left(plan: Plan | None, operation: StackOperation, now: datetime, inner: Mapping[str, float]) -> float:
    """Return how many seconds an operation typically takes yet: the longest chain of what waits for one another.

    Args:
        plan: What it has to do; None: that is not known, and what is in progress counts.
        operation: What it has done.
        now: The time.
        inner: Seconds that stacks take yet that are resources of this one, by logical id.
    """
    if not operation.in_progress:
        return 0.0
    plan = plan or Plan()
    types = {**plan.types, **{name: each.type for name, each in operation.resources.items()}}
    undone = operation.rolls_back or (operation.deletes and operation.action != "DELETE")
    weights: dict[str, float] = {}
    for name, kind in types.items():
        resource = operation.resources.get(name)
        if name in inner:
            weights[name] = inner[name]
        elif resource is not None and resource.in_progress:
            weights[name] = max(typical(kind, operation) - _elapsed(resource, types, operation, now), 0.0)
        elif undone:
            gone = resource is None or resource.status.startswith("DELETE")
            weights[name] = 0.0 if gone or not operation.deletes else typical(kind, operation)
        else:
            weights[name] = 0.0 if resource is not None else typical(kind, operation)
    return _longest(weights, plan.waits_for)


def typical(resource_type: str, operation: StackOperation) -> float:
    """Return how many seconds a resource of a type typically takes in an operation."""
    action = "DELETE" if operation.deletes else operation.action
    if resource_type == CLUSTER:
        return CLUSTER_SECONDS.get(action, 0.0)
    if resource_type == NESTED:
        return NESTED_SECONDS
    found = seconds(resource_type)
    if found < math.inf:
        return found
    return {"CREATE": BOOT_SECONDS, "UPDATE": UPDATE_SECONDS}.get(action, 0.0)  # a head node is waited for


def _elapsed(resource: Resource, types: Mapping[str, str], operation: StackOperation, now: datetime) -> float:
    """Return how many seconds of its typical time a resource has used: a head node boots from its launch on."""
    if resource.type != _WAIT:
        return resource.seconds(now)
    launched = [operation.resources.get(name) for name, kind in types.items() if kind == _INSTANCE]
    since = [resource.began, *(each.changed for each in launched if each and not each.in_progress)]
    return (now - max(since)).total_seconds() if len(since) == 1 + len(launched) else 0.0


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
