"""A fake of CloudFormation: at each time it has the events that have happened by then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from config.settings import load
from scripts.account.deployment import Account, Deployment
from scripts.account.stacks import CLUSTER, NESTED
from scripts.core.clock import Clock
from scripts.core.options import CONFIG
from tests.scripts.refusals import refusal

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NETWORK, STORAGE, PART, MONITORING = (f"trn1-16-{part}" for part in ("network", "storage", "cluster", "monitoring"))
OWN = "trn1-16"
"""The stacks of config/trn1-16.yaml; the last is the cluster's own."""
DAY = 86_400
_PAGE = 100


class FakeClock(Clock):
    """Time that passes only in `sleep`, and what else is to happen then."""

    def __init__(self, seconds: float = 0) -> None:
        self.time = START + timedelta(seconds=seconds)
        self.slept: list[float] = []
        self.meanwhile: Callable[[], None] = lambda: None

    @property
    def elapsed(self) -> float:
        return (self.time - START).total_seconds()

    def now(self) -> datetime:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += timedelta(seconds=seconds)
        self.meanwhile()


def arn(stack: str, number: int = 0) -> str:
    return f"arn:aws:cloudformation:us-west-2:123456789012:stack/{stack}/{number}"


class FakeCloudFormation:
    """CloudFormation's API as far as progress asks it.

    Attributes:
        events: By ARN of the stack, the oldest first.
        templates: Resources by ARN; what is not here has a template in YAML.
        change_sets: Changes by ARN of the stack.
        listed: All stacks there are, for who names none.
        execution_status: That of the change sets.
        failing: By operation, what it raises.
        calls: Operations that were called since the last `counted`.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.events: dict[str, list[dict[str, Any]]] = {}
        self.templates: dict[str, dict[str, Any]] = {}
        self.change_sets: dict[str, list[dict[str, Any]]] = {}
        self.listed: list[dict[str, Any]] = []
        self.execution_status = "EXECUTE_IN_PROGRESS"
        self.failing: dict[str, Exception] = {}
        self.calls: list[str] = []

    def add_events(self, stack: str, *entries: tuple[float, str, str], number: int = 0, reason: str = "") -> None:
        """Add events: seconds, a resource as ``Name=Type=physical id`` or "" for the stack, status."""
        events = self.events.setdefault(arn(stack, number), [])
        for seconds, what, status in entries:
            name, kind, physical = [*what.split("=", 2), "", ""][:3] if what else (stack, NESTED, arn(stack, number))
            events.append(
                {
                    "EventId": f"{stack}-{number}-{len(events)}",
                    "StackId": arn(stack, number),
                    "StackName": stack,
                    "LogicalResourceId": name,
                    "PhysicalResourceId": physical,
                    "ResourceType": kind,
                    "ResourceStatus": status,
                    **({"ResourceStatusReason": reason} if status.endswith("_FAILED") else {}),
                    "Timestamp": START + timedelta(seconds=seconds),
                }
            )

    def counted(self) -> list[str]:
        """Return the operations that were called since the last time."""
        calls, self.calls = self.calls, []
        return calls

    def get_paginator(self, operation: str) -> Any:
        return SimpleNamespace(paginate=partial(self._pages, getattr(self, operation)))

    def _pages(self, operation: Callable[..., Any], **parameters: str) -> Iterator[Any]:
        token: dict[str, str] | None = {}
        while token is not None:
            page = operation(**parameters, **token)
            yield page
            token = {"NextToken": page["NextToken"]} if "NextToken" in page else None

    def describe_stack_events(self, StackName: str, NextToken: str = "") -> Any:
        self._called("DescribeStackEvents")
        events = self._happened(self._id(StackName))
        end = int(NextToken or len(events))
        start = max(end - _PAGE, 0)
        token = {"NextToken": str(start)} if start else {}
        return {"StackEvents": events[start:end][::-1], **token}

    def get_template(self, StackName: str, TemplateStage: str) -> Any:
        self._called("GetTemplate")
        assert TemplateStage == "Processed"
        resources = self.templates.get(StackName)
        return {"TemplateBody": {"Resources": resources} if resources else "Resources: {}"}

    def describe_stacks(self, StackName: str = "") -> Any:
        self._called("DescribeStacks")
        if not StackName:
            return {"Stacks": self.listed}
        given = {"ChangeSetId": f"change-set of {StackName}"} if StackName in self.change_sets else {}
        return {"Stacks": [{"StackName": StackName, **given}]}

    def describe_change_set(self, ChangeSetName: str) -> Any:
        self._called("DescribeChangeSet")
        changes = self.change_sets[ChangeSetName.removeprefix("change-set of ")]
        return {"ExecutionStatus": self.execution_status, "Changes": changes}

    def _called(self, operation: str) -> None:
        self.calls.append(operation)
        if operation in self.failing:
            raise self.failing[operation]

    def _happened(self, stack_id: str) -> list[dict[str, Any]]:
        happened = [each for each in self.events[stack_id] if each["Timestamp"] <= self._clock.now()]
        return sorted(happened, key=lambda each: each["Timestamp"])

    def _id(self, name: str) -> str:
        """Return the ARN of a stack: by ARN whatever became of it, by name unless it was deleted."""
        for stack_id in [name] if name.startswith("arn:") else [arn(name, 0), arn(name, 1)]:
            if self.events.get(stack_id) == []:
                return stack_id  # a stack that is older than its events are kept
            happened = self._happened(stack_id) if stack_id in self.events else []
            own = [each for each in happened if each["PhysicalResourceId"] == stack_id]
            if own and (name.startswith("arn:") or own[-1]["ResourceStatus"] != "DELETE_COMPLETE"):
                return stack_id
        raise refusal("ValidationError", "DescribeStackEvents", f"Stack [{name}] does not exist")


def deployment(api: FakeCloudFormation) -> Deployment:
    """Return config/trn1-16.yaml in the account."""
    described = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
    described.account = cast("Account", SimpleNamespace(client=lambda _: api))
    return described


def created(api: FakeCloudFormation, stack: str, start: float, end: float, *, number: int = 0) -> None:
    """Add a stack that was created, with one resource."""
    what = "Only=AWS::SNS::Topic"
    api.add_events(stack, (start, "", "CREATE_IN_PROGRESS"), (start + 1, what, "CREATE_IN_PROGRESS"), number=number)
    api.add_events(stack, (end - 1, what, "CREATE_COMPLETE"), (end, "", "CREATE_COMPLETE"), number=number)


def aged(api: FakeCloudFormation, *stacks: str, seconds: float = -DAY) -> None:
    for stack in stacks:
        created(api, stack, seconds, seconds + 100)


def creation(api: FakeCloudFormation) -> None:
    """Add the creation of everything: 15 minutes, with pauses of 20 seconds between the stacks."""
    created(api, NETWORK, 10, 160)
    created(api, STORAGE, 180, 420)
    nested = f"Provider={NESTED}={arn('provider')}"
    api.add_events(PART, (440, "", "CREATE_IN_PROGRESS"), (442, nested, "CREATE_IN_PROGRESS"))
    created(api, "provider", 443, 480)
    api.add_events(PART, (481, nested, "CREATE_COMPLETE"), (482, f"Cluster={CLUSTER}", "CREATE_IN_PROGRESS"))
    api.add_events(OWN, (490, "", "CREATE_IN_PROGRESS"), (495, "HeadNode=AWS::EC2::Instance", "CREATE_IN_PROGRESS"))
    api.add_events(OWN, (530, "HeadNode=AWS::EC2::Instance=i-1", "CREATE_COMPLETE"))
    wait = "Wait=AWS::CloudFormation::WaitCondition"
    api.add_events(OWN, (531, wait, "CREATE_IN_PROGRESS"), (800, wait, "CREATE_COMPLETE"), (801, "", "CREATE_COMPLETE"))
    api.add_events(PART, (820, f"Cluster={CLUSTER}=trn1-16", "CREATE_COMPLETE"), (822, "", "CREATE_COMPLETE"))
    created(api, MONITORING, 840, 900)
