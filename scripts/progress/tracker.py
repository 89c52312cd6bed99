"""Tracks operations on the stacks of a deployment and those nested in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scripts.aws_errors import code_of, is_denied, is_not_found
from scripts.deployment import PARTS, Deployment
from scripts.progress.estimate import ResourceGraph, graph_of_changes, graph_of_template
from scripts.progress.operations import CONTAINERS, StackOperation, operation
from scripts.stacks import NESTED, StackEvent, events, other_clusters

_ROUNDS_BETWEEN_OTHERS = 12
"""Refreshes from one call for other clusters to the next: a minute."""


@dataclass(eq=False)
class TrackedStack:
    """A stack that is tracked.

    Attributes:
        name: Its name; of a nested stack its logical id.
        title: Its name for people: of the cluster's own stack the name, too.
        key: Its name or ARN.
        parent: The stack that it is nested in; None: it is one of the deployment's own.
        since: When the operation on the stacks that it is nested in started.
        is_there: Whether CloudFormation has such a stack; None: not known yet.
        events: Those of its last operation, the newest first.
        operation: The last operation; None: not known yet.
        graph: The resources that the operation changes; None: not known.
        has_graph: Whether that was fetched.
        children: The stacks nested in it, by id or name.
    """

    name: str
    title: str
    key: str
    parent: TrackedStack | None = None
    since: datetime | None = None
    is_there: bool | None = None
    events: list[StackEvent] = field(default_factory=list)
    operation: StackOperation | None = None
    graph: ResourceGraph | None = None
    has_graph: bool = False
    children: dict[str, TrackedStack] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        """Whether the stack exists. One that waits for the review of its first change set does not, yet."""
        if not self.is_there or (self.events and self.operation is None):
            return False
        return self.operation is None or self.operation.status != "DELETE_COMPLETE"

    @property
    def is_due(self) -> bool:
        """Whether it may have new events: one of the deployment's own at any time."""
        if self.parent is None or self.is_there is None or (self.operation and not self.operation.ended):
            return True
        above = self.parent.operation
        resource = above.by_id.get(self.name) if above else None
        return resource is not None and resource.is_in_progress


class Tracker:
    """Tracks all stacks of a deployment.

    A refresh takes a call for each of the deployment's own stacks and for each nested one in progress, once a minute
    one for its other clusters, and at the start of an operation one or two for what it changes. Needs
    cloudformation:DescribeStackEvents; for other clusters cloudformation:DescribeStacks on all stacks; and for the
    sizes of bars cloudformation:GetTemplate, cloudformation:DescribeStacks and cloudformation:DescribeChangeSet.

    Attributes:
        environment: File name in config/ without .yaml.
        roots: The deployment's own stacks by part.
        others: Statuses of the stacks of its other clusters, by name: there is one during an upgrade.
        denied: IAM actions that are missing to fetch sizes.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._client = deployment.account.client("cloudformation")
        self.environment = deployment.environment
        self._settings = deployment.settings
        self._cluster_name = deployment.settings.cluster_spec.name
        self._round = 0
        self.others: dict[str, str] = {}
        names = {part: deployment.stack_name(part) for part in PARTS}
        self.roots = {part: TrackedStack(name, name, name) for part, name in names.items()}
        self.denied: set[str] = set()

    def refresh(self) -> None:
        """Fetch what is new.

        Raises:
            botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not answer, or refuses. What
                was read so far is kept.
        """
        for root in self.roots.values():
            self._refresh(root)
        if self._round % _ROUNDS_BETWEEN_OTHERS == 0:
            self._fetch_others()
        self._round += 1

    def _refresh(self, tracked: TrackedStack) -> None:
        """Fetch what is new of a stack and of those nested in it."""
        self._read(tracked)
        now = tracked.operation
        if now and not now.ended and not tracked.has_graph:
            tracked.graph = self._fetch_graph(now)
            tracked.has_graph = True
        for child in tracked.children.values():
            if child.is_due:
                self._refresh(child)

    def _read(self, tracked: TrackedStack) -> None:
        """Read the new events of a stack, and note the stacks nested in it."""
        before = tracked.operation
        is_deleted = tracked.parent is None and before is not None and before.status == "DELETE_COMPLETE"
        known = set() if is_deleted else {each.id for each in tracked.events}  # another one may have its name by now
        new = []
        try:
            for event in events(self._client, tracked.name if is_deleted else tracked.key, tracked.since):
                if event.id in known:
                    break
                new.append(event)
        except Exception as error:
            if not is_not_found(error):
                raise
            tracked.is_there = False
            return
        tracked.is_there = True
        if not new:
            return
        is_new_operation = is_deleted or (tracked.since is None and new[-1].is_start)
        tracked.events = new if is_new_operation else [*new, *tracked.events]
        tracked.key = new[0].stack_id  # from now on this very stack, even if another one gets its name
        tracked.operation = operation(tracked.events)
        if is_new_operation:
            tracked.children.clear()
            tracked.graph, tracked.has_graph = None, False
        if tracked.operation:
            tracked.children |= dict(self._nested(tracked, tracked.operation))

    def _nested(self, tracked: TrackedStack, now: StackOperation) -> Iterator[tuple[str, TrackedStack]]:
        """Yield the stacks that an operation has started in a stack and that are not tracked yet, by id or name."""
        for resource in now.by_id.values():
            key = resource.physical_id if resource.type == NESTED else self._cluster_name
            if resource.type in CONTAINERS and key and key not in tracked.children:
                title = resource.logical_id if resource.type == NESTED else key
                yield key, TrackedStack(resource.logical_id, title, key, tracked, tracked.since or now.started)

    def _fetch_others(self) -> None:
        """Fetch the deployment's other clusters. One call, which returns the stacks of its first page."""
        from botocore.exceptions import ClientError

        try:
            listed = self._client.describe_stacks()["Stacks"]
        except ClientError as error:
            if not is_denied(error):
                raise
            return
        self.others = other_clusters(self._settings, listed)

    def _fetch_graph(self, now: StackOperation) -> ResourceGraph | None:
        """Return the resources that an operation changes; None: not known."""
        from botocore.exceptions import ClientError

        try:
            return self._graph_of_update(now) if now.action == "UPDATE" else self._graph_of_template(now)
        except ClientError as error:
            if is_denied(error):
                self.denied.add(f"cloudformation:{error.operation_name}")
            elif not is_not_found(error) and code_of(error) != "ValidationError":
                raise
            return None

    def _graph_of_template(self, now: StackOperation) -> ResourceGraph | None:
        answer = self._client.get_template(StackName=now.stack_id, TemplateStage="Processed")
        return graph_of_template(answer["TemplateBody"])

    def _graph_of_update(self, now: StackOperation) -> ResourceGraph | None:
        stack = self._client.describe_stacks(StackName=now.stack_id)["Stacks"][0]
        if "ChangeSetId" not in stack:
            return None
        changes: list[Any] = []
        for page in self._client.get_paginator("describe_change_set").paginate(ChangeSetName=stack["ChangeSetId"]):
            if page["ExecutionStatus"] != "EXECUTE_IN_PROGRESS":  # it is that of an earlier update
                return None
            changes += page["Changes"]
        return graph_of_changes(changes)
