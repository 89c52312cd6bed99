"""What failed in the stacks of a deployment: the newest operations, and the events of the stacks below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from pydantic import Field

from scripts.account import stacks
from scripts.account.causes import Evidence
from scripts.account.stack_state import StackState
from scripts.account.stacks import CLUSTER, NESTED, StackEvent
from scripts.core.aws_errors import is_consequence
from scripts.core.document import Document
from scripts.watch.diagnose.reader import PROVIDER_GROUP, Reader

_VPC = re.compile(r"\bvpc-[0-9a-f]+")


class Operation(Document):
    """The newest operation of a stack, with what failed in it and in the stacks below."""

    stack: str = Field(description="Name of the stack.")
    status: str = Field(description="Status of the stack now, as CloudFormation has it.")
    started: datetime = Field(description="When the operation started.")
    events: tuple[Evidence, ...] = Field(exclude=True)
    """What failed by itself, oldest first, then what failed because of that; never empty."""
    provider_group: str = Field(default="", exclude=True)
    """The log group of the provider's function; empty: no event names it."""


def operations(reader: Reader) -> list[Operation]:
    """Return the newest operation of each stack where it failed, newest first.

    A call for each stack; for those that failed one per 100 events, and those of the stacks below. Needs
    cloudformation:DescribeStacks, DescribeStackEvents, ListStacks and ListChangeSets.
    """
    failed = []
    for stack in stacks.names(reader.deployment):
        if stack not in reader.read:  # the cluster's own was gone through with the stack that has the cluster
            failed.append(_operation(reader, stack))
    return sorted((each for each in failed if each), key=lambda operation: operation.started, reverse=True)


def _operation(reader: Reader, stack: str) -> Operation | None:
    described = reader.stack(stack)
    if described is None:
        return None
    reader.read.append(stack)
    state = StackState.of(described)
    if state.is_in_review:
        return _refused_change_set(reader, stack, described["CreationTime"])
    if not state.has_failed and not state.is_in_progress:
        return None
    own = reader.events(described["StackId"])
    started = next((each.time for each in own if each.is_start), described["CreationTime"])
    events = list(_with_nested(reader, stack, [each for each in own if each.time >= started], started))
    failed = [
        (root, each)
        for root, each in events
        if each.has_failed
        and (not each.is_own or each.stack == root)  # else the stack that it is nested in says the same
    ]
    failed.sort(key=lambda each: (_is_consequence(each[1]), each[1].time))
    evidence = tuple(_evidence(*each) for each in failed)
    if not evidence and state.has_failed:  # events are not to be read
        text = f"{state} {NESTED} {stack}: {described.get('StackStatusReason', '')}"
        evidence = (Evidence(kind="event", source=stack, time=started, text=text),)
    if not evidence:
        return None
    groups = (PROVIDER_GROUP.search(f"{each.physical_id} {each.reason}") for _, each in events)
    group = next((each[0] for each in groups if each), "")
    return Operation(stack=stack, status=state, started=started, events=evidence, provider_group=group)


def _is_consequence(event: StackEvent) -> bool:
    """Whether a resource failed because another one did."""
    return event.is_own or not event.reason or is_consequence(event.reason)


def _refused_change_set(reader: Reader, stack: str, created: datetime) -> Operation | None:
    """Return why the change set that was to create a stack failed, such as for a parameter that does not exist."""
    listed: list[Any] = reader.try_fetch(
        f"change sets of {stack}",
        "cloudformation:ListChangeSets",
        lambda: reader.deployment.account.list("cloudformation", "list_change_sets", StackName=stack),
        [],
    )
    failed = [each for each in listed if each["Status"] == "FAILED"]
    texts = {each["CreationTime"]: f"FAILED change set: {each.get('StatusReason', '')}" for each in failed}
    events = tuple(Evidence(kind="event", source=stack, time=time, text=text) for time, text in texts.items())
    state = StackState.REVIEW_IN_PROGRESS
    return Operation(stack=stack, status=state, started=created, events=events) if events else None


def _with_nested(
    reader: Reader, root: str, events: Iterable[StackEvent], started: datetime
) -> Iterator[tuple[str, StackEvent]]:
    """Yield the events of a stack, and of the stacks below that failed.

    The root is the name of the stack, or of the one that it is nested in.
    """
    below: dict[str, str] = {}
    for event in events:
        yield root, event
        if event.is_own or not event.has_failed:
            continue
        if event.type == NESTED and event.physical_id.startswith("arn:"):
            below[event.physical_id] = root
        if event.type == CLUSTER and reader.cluster_name not in below.values():
            below |= dict.fromkeys(_cluster_stacks(reader, started), reader.cluster_name)
    for stack_id, top in sorted(below.items()):
        reader.read.append(stack_id.split("/")[1])
        yield from _with_nested(reader, top, reader.events(stack_id, started), started)


def _cluster_stacks(reader: Reader, since: datetime) -> list[str]:
    """Return the ids of the cluster's own stacks that exist, or were deleted since a time."""
    name = reader.cluster_name
    alive = reader.stack(name)
    deleted: list[dict[str, Any]] = reader.try_fetch(
        "deleted stacks", "cloudformation:ListStacks", lambda: list(stacks.deleted(reader.deployment)), []
    )
    own = [each for each in deleted if each["StackName"] == name and each["DeletionTime"] >= since]
    return [each["StackId"] for each in (*([alive] if alive else []), *own)]


def _evidence(root: str, event: StackEvent) -> Evidence:
    names = {"resource": event.logical_id, "root": root, "stack_id": event.stack_id}
    vpc = _VPC.search(f"{event.physical_id} {event.properties} {event.reason}")
    names |= {"vpc": vpc[0]} if vpc else {}
    text = f"{event.status} {event.type} {event.logical_id}: {event.reason}"
    return Evidence(kind="event", source=event.stack, time=event.time, text=text, names=names)


def provider_group(reader: Reader, operation: Operation) -> str:
    """Return the log group of the function that makes the cluster; empty: not found.

    If no event names it, a call for the stack and one for each that is nested in it. Needs
    cloudformation:ListStackResources.
    """
    if operation.provider_group:
        return operation.provider_group
    nested = [each for each in _resources(reader, operation.stack) if each.type == NESTED and each.physical_id]
    names = [inner.physical_id for each in nested for inner in _resources(reader, each.physical_id)]
    return next((each for each in names if PROVIDER_GROUP.fullmatch(each)), "")


def _resources(reader: Reader, stack: str) -> list[stacks.StackResource]:
    """Return the resources of a stack, deleted ones too: after a roll-back only its log group is left of a provider."""
    return reader.try_fetch(
        f"resources of {stack}",
        "cloudformation:ListStackResources",
        lambda: stacks.resources(reader.deployment, stack),
        [],
    )


def window(operation: Operation) -> tuple[datetime, datetime]:
    """Return the time whose logs belong to an operation: from its start to shortly after the first failure.

    What nodes log later belongs to the rollback.
    """
    return operation.started - timedelta(minutes=1), operation.events[0].time + timedelta(minutes=5)
