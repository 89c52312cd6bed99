"""Reads the operations on the stacks of a deployment and on those nested in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

from scripts.account.deployment import Deployment
from scripts.account.stack_state import ResourceState, StackState
from scripts.account.stacks import CLUSTER, NESTED, StackEvent, events, other_clusters
from scripts.core.aws_errors import code_of, is_consequence, is_denied, is_not_found
from scripts.watch.progress.estimate import PART_SECONDS, typical_seconds
from scripts.watch.progress.model import Progress, ResourceProgress, StackProgress

GRACE_SECONDS = 60.0
"""How long nothing may be in progress: the CDK starts a stack some seconds after it has finished the one before."""
_CONTAINERS = (NESTED, CLUSTER)
"""Types of resources that are stacks themselves: they fail because a resource in them failed."""
_SLOWEST = 3
"""Resources of each stack that a summary names."""


class Tracker:
    """Reads all stacks of a deployment, again and again.

    Each time one call for every 100 events of the last operation on a stack, one for all stacks of the Region, and at
    the start of an operation one or two for what it changes. Needs cloudformation:DescribeStackEvents; for other
    clusters cloudformation:DescribeStacks on all stacks; and for the number of resources cloudformation:GetTemplate,
    cloudformation:DescribeStacks and cloudformation:DescribeChangeSet.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self._client = deployment.account.client("cloudformation")
        self._ids: dict[str, str] = {}
        """Ids of stacks by name: a deleted stack is known by its id only."""
        self._types: dict[tuple[str, datetime], Mapping[str, str]] = {}
        """Types of the resources that an operation changes, by the stack's id and the start of the operation."""
        self._without_events: set[str] = set()
        """Stacks that exist, and have been unchanged for longer than CloudFormation keeps events, which is 90 days."""
        self._denied: set[str] = set()

    def read(self, now: datetime, grace: float = GRACE_SECONDS) -> Progress:
        """Return the last operation on the deployment.

        It consists of the newest one on a stack and all before it that ended at most the grace before the next
        started. Earlier operations on a stack are no part of it.

        Raises:
            botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not answer, or refuses.
        """
        names = {part: self.deployment.stack_name(part) for part in self.deployment.settings.parts}
        roots = {part: self._stack(name, name, name, now) for part, name in names.items()}
        stacks: list[StackProgress] = []
        newest_first = sorted(filter(None, roots.values()), key=lambda each: each.ended or now, reverse=True)
        for each in newest_first:
            first = min((stack.started for stack in stacks), default=None)
            if first is None or (each.ended or now) >= first - timedelta(seconds=grace):
                stacks.append(each)
        stacks.sort(key=lambda each: each.started)
        creates = any(each.action == "CREATE" for each in stacks)
        failed = any(each.ended and not each.state.has_succeeded for each in stacks)
        existing = [
            part
            for part, root in roots.items()
            if (root and not root.state.is_gone) or names[part] in self._without_events
        ]
        missing = [part for part in roots if creates and not failed and part not in existing]
        running = max((each.left_seconds for each in stacks if not each.ended), default=0)
        started = min((each.started for each in stacks), default=now)
        end = max((each.ended or now for each in stacks), default=now)
        return Progress(
            deployment=self.deployment.name,
            time=now,
            outcome=_outcome(stacks),
            started=started if stacks else None,
            seconds=round((end - started).total_seconds()),
            left_seconds=round(running + sum(PART_SECONDS[part] for part in missing)),
            complete=True,
            not_started=tuple(names[part] for part in missing),
            existing=len(existing),
            denied=tuple(sorted(self._denied)),
            other_clusters=dict(self._other_clusters()),
            failure=_newest_failure(stacks),
            stacks=tuple(stacks),
            trouble=None,
        )

    def _stack(
        self, key: str, name: str, title: str, now: datetime, since: datetime | None = None
    ) -> StackProgress | None:
        """Return the last operation on a stack; None: there is none.

        For a nested stack, everything since the start of the operation on its parent is one operation, a roll-back
        included.

        Args:
            key: Its name or id.
            name: Its name; of a nested stack its logical id.
            title: Its name for people.
            now: The time.
            since: When the operation on the stack in which it is nested started.
        """
        read = self._events(key, since)
        starts = [each for each in read if each.is_start]
        if not starts:
            return None
        start, last = starts[-1], next(each for each in read if each.is_own)
        state = StackState(last.status)
        action, is_over = StackState(start.status).operation, not state.is_in_progress
        by_id: dict[str, list[StackEvent]] = {}
        for event in reversed(read):
            if not event.is_own:
                by_id.setdefault(event.logical_id, []).append(event)
        resources = {logical_id: _resource(own, now) for logical_id, own in by_id.items()}
        children: dict[str, StackProgress] = {}
        for each in resources.values():
            inner = each.physical_id if each.type == NESTED else self.deployment.settings.cluster_spec.name
            if each.type in _CONTAINERS and inner:
                shown = each.logical_id if each.type == NESTED else inner
                child = self._stack(inner, each.logical_id, shown, now, since or start.time)
                children |= {each.logical_id: child} if child else {}
        types = {} if is_over else self._types_of(start.stack_id, action, start.time)
        done, total = _count(resources, types, action, state)
        busy = [each for each in resources.values() if each.is_in_progress and each.logical_id not in children]
        slow = [each for each in resources.values() if each.type not in _CONTAINERS]
        return StackProgress(
            name=name,
            title=title,
            stack=start.stack,
            stack_id=start.stack_id,
            action=action,
            status=last.status,
            reason=last.reason or None,
            started=start.time,
            ended=last.time if is_over else None,
            seconds=round(((last.time if is_over else now) - start.time).total_seconds()),
            left_seconds=0 if is_over else round(_left(resources, types, action, state, children)),
            resources_done=done,
            resources=total,
            in_progress=tuple(sorted(busy, key=lambda each: each.seconds, reverse=True)),
            slowest=tuple(sorted(slow, key=lambda each: each.seconds, reverse=True)[:_SLOWEST]),
            events=tuple(each for each in reversed(read) if each.is_own or _failed_by_itself(each)),
            stacks=tuple(children.values()),
        )

    def _events(self, key: str, since: datetime | None) -> list[StackEvent]:
        """Return the events of a stack, the newest first; of one that is deleted if its id is known."""
        for each in filter(None, (key, self._ids.get(key))):
            try:
                read = list(events(self._client, each, since))
            except Exception as error:
                if not is_not_found(error):
                    raise
                continue
            if read:
                self._ids[key] = read[0].stack_id
                self._without_events.discard(key)
            else:
                self._without_events.add(key)
            return read
        return []

    def _other_clusters(self) -> Mapping[str, str]:
        """Return the statuses of the stacks of the deployment's other clusters, by name: one during an upgrade."""
        from botocore.exceptions import ClientError

        try:
            pages = self._client.get_paginator("describe_stacks").paginate()
            listed = [each for page in pages for each in page["Stacks"]]
        except ClientError as error:
            if not is_denied(error):
                raise
            return {}
        return other_clusters(self.deployment.settings, listed)

    def _types_of(self, stack_id: str, action: str, started: datetime) -> Mapping[str, str]:
        """Return the types of the resources that an operation changes, by logical id; none: not known."""
        from botocore.exceptions import ClientError

        if (stack_id, started) not in self._types:
            types: Mapping[str, str] = {}
            try:
                types = self._changes(stack_id) if action == "UPDATE" else self._template(stack_id)
            except ClientError as error:
                if is_denied(error):
                    self._denied.add(f"cloudformation:{error.operation_name}")
                elif not is_not_found(error) and code_of(error) != "ValidationError":
                    raise
            self._types[stack_id, started] = types
        return self._types[stack_id, started]

    def _template(self, stack_id: str) -> Mapping[str, str]:
        body = self._client.get_template(StackName=stack_id, TemplateStage="Processed")["TemplateBody"]
        if isinstance(body, str):  # as boto3 returns a template in YAML
            return {}
        return {name: each["Type"] for name, each in body["Resources"].items()}

    def _changes(self, stack_id: str) -> Mapping[str, str]:
        stack = self._client.describe_stacks(StackName=stack_id)["Stacks"][0]
        if "ChangeSetId" not in stack:
            return {}
        pages = [*self._client.get_paginator("describe_change_set").paginate(ChangeSetName=stack["ChangeSetId"])]
        if pages[0]["ExecutionStatus"] != "EXECUTE_IN_PROGRESS":  # it is that of an earlier update
            return {}
        changed = (each["ResourceChange"] for page in pages for each in page["Changes"] if each.get("ResourceChange"))
        return {each["LogicalResourceId"]: each["ResourceType"] for each in changed}


def _resource(own: Sequence[StackEvent], now: datetime) -> ResourceProgress:
    """Return what was done to a resource last, by its events, the oldest first."""
    last = own[-1]
    state = ResourceState(last.status)
    is_over = not state.is_in_progress
    started = last.time
    for each in reversed(own[:-1]):
        earlier = ResourceState(each.status)
        if not earlier.is_in_progress or earlier.operation != state.operation:
            break
        started = each.time
    return ResourceProgress(
        logical_id=last.logical_id,
        physical_id=next((each.physical_id for each in reversed(own) if each.physical_id), None),
        type=last.type,
        status=last.status,
        seconds=round(((last.time if is_over else now) - started).total_seconds()),
    )


def _failed_by_itself(event: StackEvent) -> bool:
    """Tell whether a resource failed, and was not merely cancelled because another one failed."""
    return not event.is_own and event.has_failed and not is_consequence(event.reason)


def _count(
    resources: Mapping[str, ResourceProgress], types: Mapping[str, str], action: str, state: StackState
) -> tuple[int, int]:
    """Return how many resources are done, and of how many; a creation that is rolled back deletes what it created."""
    if action == "CREATE" and state.is_rolling_back:
        deleted = [each for each in resources.values() if each.state.is_released]
        return len(deleted), len(resources)
    return sum(not each.is_in_progress for each in resources.values()), len(resources.keys() | types.keys())


def _left(
    resources: Mapping[str, ResourceProgress],
    types: Mapping[str, str],
    action: str,
    state: StackState,
    children: Mapping[str, StackProgress],
) -> float:
    """Return how many seconds an operation takes yet: as the resource does that takes longest.

    Those that wait for another one are not added to it. Of a roll-back only what is in progress is known.
    """
    left = [0.0, *(each.left_seconds for each in children.values())]
    for name, each in resources.items():
        if each.is_in_progress and name not in children:
            left.append(typical_seconds(each.type, each.state.operation) - each.seconds)
    if not state.is_rolling_back:
        left += [typical_seconds(kind, action) for name, kind in types.items() if name not in resources]
    return max(left)


def _outcome(stacks: Sequence[StackProgress]) -> Literal["in progress", "complete", "failed", "nothing"]:
    if not stacks:
        return "nothing"
    if not all(each.ended for each in stacks):
        return "in progress"
    return "complete" if all(each.state.has_succeeded for each in stacks) else "failed"


def _newest_failure(stacks: Sequence[StackProgress]) -> StackEvent | None:
    failures = [event for stack in stacks for each in stack.all() for event in each.events if not event.is_own]
    causes = [event for event in failures if event.type not in _CONTAINERS] or failures
    return max(causes, key=lambda each: each.time, default=None)
