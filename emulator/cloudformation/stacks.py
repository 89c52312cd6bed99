"""What is remembered of stacks: their resources, events, outputs and change sets. It changes nothing by itself."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Any
from uuid import uuid4

from emulator.cloudformation.parameters import Parameter
from emulator.cloudformation.template import Template
from emulator.resources.model import Physical

STACK_TYPE = "AWS::CloudFormation::Stack"
CANCELLED = "Resource {} cancelled"
"""The reason of a resource that did not fail by itself; with `creation` or `update`."""
INITIATED = "Resource creation Initiated"
"""The reason in the first event that has a resource's physical id."""


def is_custom(resource_type: str) -> bool:
    """Tell whether a function of the account provides the resources of a type."""
    return resource_type.startswith("Custom::") or resource_type == "AWS::CloudFormation::CustomResource"


@dataclass(frozen=True)
class Request:
    """What a caller asks of a stack.

    Attributes:
        kept_parameters: Names of those that keep their value.
        tags: Tags of the stack; None for those that it has.
        token: The caller's token, which the events carry.
    """

    template: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    kept_parameters: frozenset[str] = frozenset()
    tags: Mapping[str, str] | None = None
    capabilities: tuple[str, ...] = ()
    termination_protection: bool = False
    token: str | None = None


@dataclass(frozen=True)
class Revision:
    """What a stack is asked to be."""

    template: Template
    parameters: Mapping[str, Parameter]
    tags: Mapping[str, str]
    capabilities: tuple[str, ...]


@dataclass(frozen=True)
class StackResource:
    """One resource of a stack, as the last operation on it left it.

    Attributes:
        name: The name that CloudFormation made up for it.
        physical: What exists of it; None if it could not be created.
        properties: Those that it has, evaluated.
        shown: The same, as events and change sets tell them: without the values of parameters without echo.
        dependencies: Logical ids of what has to outlive it.
        deletion_policy: What becomes of it when the stack no longer has it.
        replacement_policy: What becomes of it when another one takes its place.
    """

    logical_id: str
    type: str
    name: str
    status: str = ""
    reason: str = ""
    physical: Physical | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    dependencies: frozenset[str] = frozenset()
    deletion_policy: str = "Delete"
    replacement_policy: str = "Delete"
    changed: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def physical_id(self) -> str:
        """Return the physical id; empty if there is none."""
        return self.physical.ref if self.physical else ""


@dataclass(frozen=True)
class Output:
    """One output of a stack; `export` is empty if it is not exported."""

    key: str
    value: str
    description: str
    export: str


@dataclass
class ChangeSet:
    """A change set.

    Attributes:
        name: Its name, unique in its stack.
        revision: What it would make of the stack.
        changes: What it would change, as `ResourceChange` of the API has it.
        failure: Why it cannot be executed; empty if it can.
    """

    id: str
    name: str
    type: str
    description: str
    revision: Revision
    changes: list[dict[str, Any]] = field(default_factory=list)
    failure: str = ""
    execution_status: str = "AVAILABLE"
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def status(self) -> str:
        """Return the status."""
        return "FAILED" if self.failure else "CREATE_COMPLETE"

    @property
    def is_executed(self) -> bool:
        """Tell whether it was executed, well or not."""
        return self.execution_status in ("EXECUTE_COMPLETE", "EXECUTE_FAILED")

    def is_named(self, name: str) -> bool:
        """Tell whether it has a name: one whose execution failed has lost it.

        https://github.com/aws/aws-cdk/issues/11995, https://github.com/aws/aws-cdk/issues/21677
        """
        return self.name == name and self.execution_status != "EXECUTE_FAILED"


@dataclass(frozen=True)
class Origin:
    """Where an update comes from: what its roll-back needs.

    Attributes:
        replaced: Logical ids of those that another one has, or would have, taken the place of.
        superseded: What is to be deleted at the end, unless the stack has come back to it.
    """

    revision: Revision
    resources: Mapping[str, StackResource]
    replaced: set[str] = field(default_factory=set)
    superseded: list[StackResource] = field(default_factory=list)


@dataclass
class Stack:
    """A stack.

    Attributes:
        revision: What it is, or is about to be.
        resources: By logical id; what was deleted is not here.
        gone: By logical id; what was deleted or left behind with the stack, or when its creation was rolled back.
        imports: Names of the exports that it uses.
        events: Oldest first, as DescribeStackEvents gives them.
        updated: When the last update, or the execution of its first change set, started.
        deleted: When its deletion, or the roll-back of its creation, started.
        skipped: Logical ids of those that its roll-back, which is continued, leaves as they are.
        origin: What there is to return to, from the start of an update until it, or its roll-back, is complete.
        lock: Held while an event is written: several threads may work on a stack.
    """

    id: str
    name: str
    region: str
    account: str
    partition: str
    revision: Revision = field(init=False)
    status: str = ""
    reason: str = ""
    resources: dict[str, StackResource] = field(default_factory=dict)
    gone: dict[str, StackResource] = field(default_factory=dict)
    outputs: dict[str, Output] = field(default_factory=dict)
    imports: frozenset[str] = frozenset()
    events: list[dict[str, Any]] = field(default_factory=list)
    change_sets: dict[str, ChangeSet] = field(default_factory=dict)
    change_set_id: str | None = None
    skipped: frozenset[str] = frozenset()
    origin: Origin | None = None
    termination_protection: bool = False
    parent_id: str | None = None
    root_id: str | None = None
    token: str | None = None
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated: datetime | None = None
    deleted: datetime | None = None
    lock: RLock = field(default_factory=RLock, repr=False, compare=False)

    def enter(self, status: str, reason: str = "") -> None:
        """Get a status, with an event."""
        with self.lock:
            self.status, self.reason = status, reason
            self._add_event(self.name, self.id, STACK_TYPE, ResourceStatus=status, ResourceStatusReason=reason or None)

    def put(self, resource: StackResource, status: str, reason: str = "") -> StackResource:
        """Keep a resource with a new status, with an event, and return it."""
        resource = self.announce(resource, status, reason)
        self.resources[resource.logical_id] = resource
        return resource

    def announce(self, resource: StackResource, status: str, reason: str = "") -> StackResource:
        """Tell by an event of a resource that is not kept, or not yet, and return it with the status."""
        changed = self._add_event(
            resource.logical_id,
            resource.physical_id,
            resource.type,
            ResourceStatus=status,
            ResourceStatusReason=reason or None,
            ResourceProperties=json.dumps(resource.shown) if resource.shown else None,
        )
        return replace(resource, status=status, reason=reason, changed=changed)

    def _add_event(self, logical_id: str, physical_id: str, resource_type: str, **facts: str | None) -> datetime:
        """Add an event, and return its time: a millisecond of its own, because tools sort events by it."""
        with self.lock:
            now = datetime.now(UTC)
            if self.events:
                now = max(now, self.events[-1]["Timestamp"] + timedelta(milliseconds=1))
            when = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            of_resource = f"{logical_id}-{facts['ResourceStatus']}-{when}"
            self.events.append(
                {
                    "StackId": self.id,
                    "StackName": self.name,
                    "EventId": str(uuid4()) if resource_type == STACK_TYPE and physical_id == self.id else of_resource,
                    "LogicalResourceId": logical_id,
                    "PhysicalResourceId": physical_id,
                    "ResourceType": resource_type,
                    "Timestamp": now,
                    "ClientRequestToken": self.token,
                    **facts,
                }
            )
        return now


class Store:
    """The stacks of all regions."""

    def __init__(self) -> None:
        self._regions: dict[str, dict[str, Stack]] = defaultdict(dict)

    def add(self, stack: Stack) -> None:
        """Keep a stack."""
        self._regions[stack.region][stack.id] = stack

    def find(self, region: str, name_or_id: str) -> Stack | None:
        """Return a stack: by id in any state, by name only if it was not deleted."""
        if name_or_id.startswith("arn:"):
            return self._regions[region].get(name_or_id)
        return next((stack for stack in self.live(region) if stack.name == name_or_id), None)

    def all(self, region: str) -> list[Stack]:
        """Return the stacks of a region, the youngest first, with those that were deleted."""
        return list(self._regions[region].values())[::-1]

    def live(self, region: str) -> list[Stack]:
        """Return the stacks of a region that were not deleted, the youngest first."""
        return [stack for stack in self.all(region) if stack.status != "DELETE_COMPLETE"]

    def exports(self, region: str) -> dict[str, tuple[Stack, str]]:
        """Return stack and value of each export of a region, by name."""
        outputs = [(stack, output) for stack in self.live(region) for output in stack.outputs.values()]
        return {output.export: (stack, output.value) for stack, output in outputs if output.export}

    def importers(self, region: str, name: str) -> list[str]:
        """Return the names of the stacks that use an export."""
        return [stack.name for stack in self.live(region) if name in stack.imports]
