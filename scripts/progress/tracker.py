"""Tracks operations on the stacks of a deployment and those nested in them, with few API calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from scripts import generations
from scripts.aws_errors import code_of, is_denied, is_not_found
from scripts.deployment import PARTS, Deployment
from scripts.progress.estimate import ResourceGraph, graph_of_changes, graph_of_template
from scripts.progress.events import CONTAINERS, History, StackOperation, operation
from scripts.stacks import NESTED

BUDGET = 12
"""API calls of one refresh, whatever the number of stacks, events and nodes."""
_UPDATE_GRAPH_CALLS = 2
_ROUNDS_BETWEEN_OTHERS = 12
"""Refreshes from one call for other clusters to the next: a minute."""


@dataclass(eq=False)
class TrackedStack:
    """A stack that is tracked.

    Attributes:
        name: Its name; of a nested stack its logical id.
        title: Its name for people: of the cluster's own stack the name, too.
        history: Its events.
        parent: The stack that it is nested in; None: it is one of the deployment's own.
        operation: The last operation; None: not known yet.
        graph: The resources that the operation changes; None: not known.
        has_graph: Whether that was fetched.
        children: The stacks nested in it, by id or name.
        served: The refresh in which each kind of call was last made for it.
    """

    name: str
    title: str
    history: History
    parent: TrackedStack | None = None
    operation: StackOperation | None = None
    graph: ResourceGraph | None = None
    has_graph: bool = False
    children: dict[str, TrackedStack] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)

    @property
    def exists(self) -> bool:
        """Whether the stack exists. One that waits for the review of its first change set does not, yet."""
        if not self.history.exists or (self.history.events and self.operation is None):
            return False
        return self.operation is None or self.operation.status != "DELETE_COMPLETE"

    @property
    def is_due(self) -> bool:
        """Whether a nested stack may have new events."""
        if self.history.exists is None or (self.operation and self.operation.in_progress):
            return True
        above = self.parent.operation if self.parent else None
        resource = above.resources.get(self.name) if above else None
        return resource is not None and resource.in_progress


@dataclass(frozen=True)
class _Call:
    """A call to make.

    Attributes:
        stack: For which stack.
        kind: ``newest``, ``gap`` or ``graph``.
        cost: How many API calls it takes.
        make: Makes it.
    """

    stack: TrackedStack
    kind: str
    cost: int
    make: Callable[[TrackedStack], Any]


class Tracker:
    """Tracks all stacks of a deployment.

    A refresh takes at most `BUDGET` API calls: one for each of the deployment's own stacks, which may start at any
    time, now and then one for its other clusters, and the rest in turn for nested stacks in progress, events not read
    yet, and templates. Needs cloudformation:DescribeStackEvents; for other clusters cloudformation:DescribeStacks on
    all stacks; and for the sizes of bars cloudformation:GetTemplate, cloudformation:DescribeStacks and
    cloudformation:DescribeChangeSet.

    Attributes:
        environment: File name in config/ without .yaml.
        roots: The deployment's own stacks by part.
        others: Statuses of the stacks of its other clusters, by name: there is one during an upgrade.
        denied: IAM actions that are missing to fetch sizes.
        retries: How often the last refresh had to repeat a call, as when throttled.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._client = deployment.account.client("cloudformation")
        self.environment = deployment.environment
        self._settings = deployment.settings
        self._cluster_name = deployment.settings.cluster_spec.name
        self._round = 0
        self.others: dict[str, str] = {}
        self.roots = {part: _tracked(deployment.stack_name(part)) for part in PARTS}
        self.denied: set[str] = set()
        self.retries = 0

    @property
    def is_complete(self) -> bool:
        """Whether all events have been read."""
        return all(each.history.is_complete for each in self._all())

    def refresh(self) -> None:
        """Fetch what is new.

        Raises:
            botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not answer, or refuses. What
                was read so far is kept.
        """
        self._round += 1
        self.retries = 0
        for root in self.roots.values():
            self._read_newest(root)
        calls = BUDGET - len(self.roots)
        if self._round % _ROUNDS_BETWEEN_OTHERS == 1:
            self._fetch_others()
            calls -= 1
        while wanted := [each for each in self._wanted() if each.cost <= calls]:
            chosen = min(wanted, key=lambda each: each.stack.served.get(each.kind, 0))
            chosen.stack.served[chosen.kind] = self._round
            calls -= chosen.cost
            chosen.make(chosen.stack)

    def _fetch_others(self) -> None:
        """Fetch the deployment's other clusters. One call, which returns the stacks of its first page."""
        from botocore.exceptions import ClientError

        try:
            listed = self._client.describe_stacks()["Stacks"]
        except ClientError as error:
            if not is_denied(error):
                raise
            return
        self.others = {
            self._settings.of_generation(generation).stack_name("cluster"): status
            for generation, status in generations.among(self._settings, listed).items()
            if generation != self._settings.cluster.generation
        }

    def _all(self) -> Iterator[TrackedStack]:
        waiting = list(self.roots.values())
        while waiting:
            yield (each := waiting.pop(0))
            waiting += each.children.values()

    def _wanted(self) -> Iterator[_Call]:
        """Yield useful calls; one that was made in this refresh only if it was for one of several pages."""
        for each in self._all():
            if each.parent and each.is_due and each.served.get("newest") != self._round:
                yield _Call(each, "newest", 1, self._read_newest)
            if each.history.gaps:
                yield _Call(each, "gap", 1, self._read_gap)
            if each.operation and each.operation.in_progress and not each.has_graph:
                updates = each.operation.action == "UPDATE"
                yield _Call(each, "graph", _UPDATE_GRAPH_CALLS if updates else 1, self._fetch_graph)

    def _read_newest(self, tracked: TrackedStack) -> None:
        ended = tracked.operation
        if tracked.parent is None and ended and ended.status == "DELETE_COMPLETE":
            other = History(ended.stack)  # the old one is deleted: does another one have its name?
            self._note(other.read_newest(self._client))
            if not other.exists:
                return
            tracked.history = other
        else:
            self._note(tracked.history.read_newest(self._client))
        self._follow(tracked)

    def _read_gap(self, tracked: TrackedStack) -> None:
        self._note(tracked.history.read_gap(self._client))
        self._follow(tracked)

    def _note(self, answer: Any) -> None:
        self.retries += answer["ResponseMetadata"]["RetryAttempts"] if answer else 0

    def _follow(self, tracked: TrackedStack) -> None:
        """Update a stack from its events, and track the stacks nested in it."""
        before, now = tracked.operation, operation(tracked.history.events.values())
        tracked.operation = now
        if now is None or (before and (before.stack_id, before.began) != (now.stack_id, now.began)):
            tracked.children.clear()
            tracked.graph, tracked.has_graph = None, False
        if now is None:
            return
        root = tracked
        while root.parent:
            root = root.parent
        began = root.operation.began if root.operation else now.began
        for resource in now.resources.values():
            key = resource.physical_id if resource.type == NESTED else self._cluster_name
            if resource.type in CONTAINERS and key and key not in tracked.children:
                title = resource.logical_id if resource.type == NESTED else key
                child = TrackedStack(resource.logical_id, title, History(key, began), tracked)
                tracked.children[key] = child

    def _fetch_graph(self, tracked: TrackedStack) -> None:
        """Fetch the resources that the operation changes."""
        from botocore.exceptions import ClientError

        now = tracked.operation
        assert now is not None  # noqa: S101 - else there is no call
        try:
            tracked.graph = self._graph_of_update(now) if now.action == "UPDATE" else self._graph_of_template(now)
        except ClientError as error:
            if is_denied(error):
                self.denied.add(f"cloudformation:{error.operation_name}")
            elif not is_not_found(error) and code_of(error) != "ValidationError":
                raise
        tracked.has_graph = True

    def _graph_of_template(self, now: StackOperation) -> ResourceGraph | None:
        """Return the resources of a creation or deletion. One call, of GetTemplate."""
        return graph_of_template(
            self._client.get_template(StackName=now.stack_id, TemplateStage="Processed")["TemplateBody"]
        )

    def _graph_of_update(self, now: StackOperation) -> ResourceGraph | None:
        """Return the resources of an update by a change set of one page. Calls DescribeStacks and DescribeChangeSet."""
        stack = self._client.describe_stacks(StackName=now.stack_id)["Stacks"][0]
        if "ChangeSetId" not in stack:
            return None
        answer = self._client.describe_change_set(ChangeSetName=stack["ChangeSetId"])
        executes = answer["ExecutionStatus"] == "EXECUTE_IN_PROGRESS"
        return graph_of_changes(answer["Changes"]) if executes and "NextToken" not in answer else None


def _tracked(name: str) -> TrackedStack:
    return TrackedStack(name, name, History(name))
