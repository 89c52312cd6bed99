"""What failed in the stacks of a deployment: the newest operations, and the events of the stacks below."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from pydantic import ConfigDict, Field

from scripts import stacks
from scripts.diagnose.causes import Evidence
from scripts.diagnose.reader import PROVIDER_GROUP, Reader
from scripts.document import Document
from scripts.stacks import CLUSTER, NESTED

EVENT_PAGES = 50
"""Pages of 100 events that are read of one stack at most; operations of a cluster's stacks have about three pages."""
STACK_PAGES = 20
"""Pages of 100 deleted stacks that are looked through at most, newest first."""
_FAILED = re.compile(r"FAILED|ROLLBACK")
_VPC = re.compile(r"\bvpc-[0-9a-f]+")
_STARTS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")
_CONSEQUENCES = re.compile(
    r"Resource (creation|update|deletion) cancelled|The following resource\(s\) failed to|"
    r"Embedded stack \S+ was not successfully|^$"
)


class Operation(Document):
    """The newest operation of a stack, with what failed in it and in the stacks below."""

    model_config = ConfigDict(frozen=False)

    stack: str = Field(description="Name of the stack.")
    status: str = Field(description="Status of the stack now, as CloudFormation has it.")
    began: datetime = Field(description="When the operation started.")
    failures: list[Evidence] = Field(default=[], exclude=True)
    """What failed by itself, oldest first."""
    consequences: list[Evidence] = Field(default=[], exclude=True)
    """What failed because of that, oldest first."""
    provider_group: str = Field(default="", exclude=True)
    """The log group of the provider's function; empty: no event names it."""

    @property
    def events(self) -> list[Evidence]:
        """What failed, oldest first; consequences last."""
        return [*self.failures, *self.consequences]


def operations(reader: Reader) -> list[Operation]:
    """Return the newest operation of each stack where it failed, newest first.

    A call for each stack; for those that failed one per 100 events, and those of the stacks below. Needs
    cloudformation:DescribeStacks, DescribeStackEvents, ListStacks and ListChangeSets.
    """
    failed = []
    for stack in stacks.names(reader.deployment):
        if stack not in reader.read:  # the cluster's own was gone through with the stack that has the cluster
            failed.append(_operation(reader, stack))
    return sorted((each for each in failed if each), key=lambda operation: operation.began, reverse=True)


def _operation(reader: Reader, stack: str) -> Operation | None:
    described: dict[str, Any] | None = reader.try_fetch(
        f"stack {stack}", "cloudformation:DescribeStacks", lambda: reader.deployment.stack(stack), None
    )
    if described is None:
        return None
    reader.read.append(stack)
    status = described["StackStatus"]
    if status == "REVIEW_IN_PROGRESS":
        return _refused_change_set(reader, stack, described["CreationTime"])
    if not _FAILED.search(status) and not status.endswith("_IN_PROGRESS"):
        return None
    stack_id = described["StackId"]
    events = list(_events(reader, stack_id))
    began = next((each["Timestamp"] for each in events if _starts(each)), described["CreationTime"])
    operation = Operation(stack=stack, status=status, began=began)
    _sort(reader, operation, stack, [each for each in events if each["Timestamp"] >= began])
    operation.failures.sort(key=lambda each: each.time)
    operation.consequences.sort(key=lambda each: each.time)
    if _FAILED.search(status) and not operation.events:  # events are not to be read
        reason = described.get("StackStatusReason", "")
        text = f"{status} {NESTED} {stack}: {reason}"
        operation.consequences.append(Evidence(kind="event", place=stack, time=began, text=text))
    return operation if operation.events else None


def _refused_change_set(reader: Reader, stack: str, created: datetime) -> Operation | None:
    """Return why the change set that was to create a stack failed, such as for a parameter that does not exist."""
    listed: list[Any] = reader.try_fetch(
        f"change sets of {stack}",
        "cloudformation:ListChangeSets",
        lambda: reader.deployment.account.list("cloudformation", "list_change_sets", StackName=stack),
        [],
    )
    failed = [
        Evidence(
            kind="event",
            place=stack,
            time=each["CreationTime"],
            text=f"FAILED change set: {each.get('StatusReason', '')}",
        )
        for each in listed
        if each["Status"] == "FAILED"
    ]
    return Operation(stack=stack, status="REVIEW_IN_PROGRESS", began=created, failures=failed) if failed else None


def _events(reader: Reader, stack: str, since: datetime | None = None) -> Iterator[dict[str, Any]]:
    """Yield the events of a stack, newest first, to the start of its newest operation or to a time."""
    paginator = reader.deployment.account.client("cloudformation").get_paginator("describe_stack_events")
    pages = iter(paginator.paginate(StackName=stack))
    name = stack.split("/")[1]
    for _ in range(EVENT_PAGES):
        page: dict[str, Any] | None = reader.try_fetch(
            f"events of {name}", "cloudformation:DescribeStackEvents", lambda: next(pages, None), None
        )
        if page is None:
            return
        for event in page["StackEvents"]:
            if since and event["Timestamp"] < since:
                return
            yield event
            if since is None and _starts(event):
                return
    reader.cut_off.append(f"events of {name}: only the newest {EVENT_PAGES * 100:,}")


def _sort(reader: Reader, operation: Operation, root: str, events: list[dict[str, Any]]) -> None:
    """Sort the events of a stack, newest first, and of the stacks below that failed, into failures and consequences.

    The root is the name of the stack, or of the one that it is nested in.
    """
    below: set[str] = set()
    own: list[str] = []
    is_cluster_among = False
    for event in events:
        reason, physical = event.get("ResourceStatusReason", ""), event.get("PhysicalResourceId", "")
        group = PROVIDER_GROUP.search(f"{physical} {reason}")
        operation.provider_group = group[0] if group else operation.provider_group
        if not event["ResourceStatus"].endswith("_FAILED"):
            continue
        evidence = _event(root, event)
        is_own = physical == event["StackId"]
        if is_own and evidence.place != root:
            continue  # the stack that it is nested in says the same
        is_consequence = is_own or _CONSEQUENCES.search(reason)
        (operation.consequences if is_consequence else operation.failures).append(evidence)
        if event["ResourceType"] == NESTED and not is_own and physical.startswith("arn:"):
            below.add(physical)
        is_cluster_among = is_cluster_among or event["ResourceType"] == CLUSTER
    if is_cluster_among:
        own = _cluster_stacks(reader, operation.began)
        below.update(own)
    for stack_id in sorted(below):
        name = stack_id.split("/")[1]
        reader.read.append(name)
        top = name if stack_id in own else root
        _sort(reader, operation, top, list(_events(reader, stack_id, operation.began)))


def _cluster_stacks(reader: Reader, since: datetime) -> list[str]:
    """Return the ids of the cluster's own stacks that exist, or were deleted since a time."""
    name = reader.cluster_name
    alive: dict[str, Any] | None = reader.try_fetch(
        f"stack {name}", "cloudformation:DescribeStacks", lambda: reader.deployment.stack(name), None
    )
    pages = (
        reader.deployment.account.client("cloudformation")
        .get_paginator("list_stacks")
        .paginate(StackStatusFilter=["DELETE_COMPLETE"])
    )
    deleted: list[Any] = reader.try_fetch(
        "deleted stacks", "cloudformation:ListStacks", lambda: list(islice(pages, STACK_PAGES)), []
    )
    if len(deleted) == STACK_PAGES and "NextToken" in deleted[-1]:
        reader.cut_off.append(f"deleted stacks: only the newest {STACK_PAGES * 100:,}")
    return [
        *([alive["StackId"]] if alive else []),
        *(
            each["StackId"]
            for page in deleted
            for each in page["StackSummaries"]
            if each["StackName"] == name and each["DeletionTime"] >= since
        ),
    ]


def _starts(event: dict[str, Any]) -> bool:
    return event["PhysicalResourceId"] == event["StackId"] and event["ResourceStatus"] in _STARTS


def _event(root: str, event: dict[str, Any]) -> Evidence:
    resource, reason = event["LogicalResourceId"], event.get("ResourceStatusReason", "")
    stack = event["StackId"].split("/")[1]
    text = f"{event['ResourceStatus']} {event['ResourceType']} {resource}: {reason}"
    names = {"resource": resource, "root": root, "stack_id": event["StackId"]}
    vpc = _VPC.search(f"{event.get('PhysicalResourceId')} {event.get('ResourceProperties')} {reason}")
    names |= {"vpc": vpc[0]} if vpc else {}
    return Evidence(kind="event", place=stack, time=event["Timestamp"], text=text, names=names)


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
    return operation.began - timedelta(minutes=1), operation.events[0].time + timedelta(minutes=5)
