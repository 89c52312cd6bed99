"""The stacks of a deployment and those nested in them, while something is done to them, in few API calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from scripts import generations
from scripts.aws_errors import code_of, is_denied, is_not_found
from scripts.deployment import PARTS, Deployment
from scripts.progress.estimate import Plan, change_plan, template_plan
from scripts.progress.events import CONTAINERS, History, StackOperation, operation
from scripts.stacks import NESTED

BUDGET = 12
"""API calls of one refresh, whatever the number of stacks, events and nodes."""
_UPDATE_PLAN_CALLS = 2
_ROUNDS_BETWEEN_OTHERS = 12
"""Refreshes from one look for other clusters to the next: a minute."""


@dataclass(eq=False)
class Watched:
    """A stack that is looked at.

    Attributes:
        name: Its name, or for one in another stack its logical id there.
        title: What people call it: for the cluster's own stack its name.
        history: Its events.
        parent: The stack that has it; None: it is one of the deployment's own.
        operation: What the events say; None: nothing, yet.
        plan: What the operation has to do; None: that is not known.
        planned: Whether that was asked for.
        children: The stacks that are resources of this one, by id or name.
        served: The refresh in which each kind of call was last made for it.
    """

    name: str
    title: str
    history: History
    parent: Watched | None = None
    operation: StackOperation | None = None
    plan: Plan | None = None
    planned: bool = False
    children: dict[str, Watched] = field(default_factory=dict)
    served: dict[str, int] = field(default_factory=dict)

    @property
    def is_present(self) -> bool:
        """Whether the stack is there. One that waits for the review of its first change set is not, yet."""
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
    """Something to ask for.

    Attributes:
        about: For which stack.
        kind: ``newest``, ``gap`` or ``plan``.
        cost: How many API calls it takes.
        make: Asks.
    """

    about: Watched
    kind: str
    cost: int
    make: Callable[[Watched], Any]


class Tracker:
    """Looks at all stacks of a deployment, again and again.

    A refresh takes at most `BUDGET` API calls: one for each of the deployment's own stacks, which may be begun at any
    time, now and then one for its other clusters, and the rest in turn for nested stacks in progress, events not read
    yet, and templates. Needs cloudformation:DescribeStackEvents; for other clusters cloudformation:DescribeStacks on
    all stacks; and for the sizes of bars cloudformation:GetTemplate, cloudformation:DescribeStacks and
    cloudformation:DescribeChangeSet.

    Attributes:
        roots: The deployment's own stacks by part.
        others: Statuses of the stacks of its other clusters, by name: there is one while an upgrade is under way.
        denied: What could not be asked for sizes: IAM actions.
        retries: How often the last refresh had to repeat a call, as when throttled.
    """

    def __init__(self, deployment: Deployment) -> None:
        self._client = deployment.account.client("cloudformation")
        self._settings = deployment.settings
        self._cluster_name = deployment.settings.cluster_spec.name
        self._round = 0
        self.others: dict[str, str] = {}
        self.roots = {part: _watched(deployment.stack_name(part)) for part in PARTS}
        self.denied: set[str] = set()
        self.retries = 0

    @property
    def is_complete(self) -> bool:
        """Whether all events were read that there were."""
        return all(each.history.is_complete for each in self._all())

    def refresh(self) -> None:
        """Ask for what is new.

        Raises:
            botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not answer, or refuses. What
                was read so far is kept.
        """
        self._round += 1
        self.retries = 0
        for root in self.roots.values():
            self._look(root)
        calls = BUDGET - len(self.roots)
        if self._round % _ROUNDS_BETWEEN_OTHERS == 1:
            self._look_for_others()
            calls -= 1
        while wanted := [each for each in self._wanted() if each.cost <= calls]:
            chosen = min(wanted, key=lambda each: each.about.served.get(each.kind, 0))
            chosen.about.served[chosen.kind] = self._round
            calls -= chosen.cost
            chosen.make(chosen.about)

    def _look_for_others(self) -> None:
        """Ask for the deployment's other clusters. One call, which tells of the stacks on its first page."""
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

    def _all(self) -> Iterator[Watched]:
        waiting = list(self.roots.values())
        while waiting:
            yield (each := waiting.pop(0))
            waiting += each.children.values()

    def _wanted(self) -> Iterator[_Call]:
        """Yield what is worth a call; whatever was asked in this refresh only if it was for one of several pages."""
        for each in self._all():
            if each.parent and each.is_due and each.served.get("newest") != self._round:
                yield _Call(each, "newest", 1, self._look)
            if each.history.gaps:
                yield _Call(each, "gap", 1, self._fill)
            if each.operation and each.operation.in_progress and not each.planned:
                updates = each.operation.action == "UPDATE"
                yield _Call(each, "plan", _UPDATE_PLAN_CALLS if updates else 1, self._make_plan)

    def _look(self, watched: Watched) -> None:
        ended = watched.operation
        if watched.parent is None and ended and ended.status == "DELETE_COMPLETE":
            anew = History(ended.stack)  # the old one is over: is there another one of its name?
            self._note(anew.read_newest(self._client))
            if not anew.exists:
                return
            watched.history = anew
        else:
            self._note(watched.history.read_newest(self._client))
        self._follow(watched)

    def _fill(self, watched: Watched) -> None:
        self._note(watched.history.read_gap(self._client))
        self._follow(watched)

    def _note(self, answer: Any) -> None:
        self.retries += answer["ResponseMetadata"]["RetryAttempts"] if answer else 0

    def _follow(self, watched: Watched) -> None:
        """Take over what a stack's events say, and take notice of the stacks in it."""
        before, now = watched.operation, operation(watched.history.events.values())
        watched.operation = now
        if now is None or (before and (before.stack_id, before.began) != (now.stack_id, now.began)):
            watched.children.clear()
            watched.plan, watched.planned = None, False
        if now is None:
            return
        root = watched
        while root.parent:
            root = root.parent
        began = root.operation.began if root.operation else now.began
        for resource in now.resources.values():
            key = resource.physical_id if resource.type == NESTED else self._cluster_name
            if resource.type in CONTAINERS and key and key not in watched.children:
                title = resource.logical_id if resource.type == NESTED else key
                child = Watched(resource.logical_id, title, History(key, began), watched)
                watched.children[key] = child

    def _make_plan(self, watched: Watched) -> None:
        """Ask what the operation has to do."""
        from botocore.exceptions import ClientError

        now = watched.operation
        assert now is not None  # noqa: S101 - else there is nothing to plan
        try:
            watched.plan = self._update_plan(now) if now.action == "UPDATE" else self._template_plan(now)
        except ClientError as error:
            if is_denied(error):
                self.denied.add(f"cloudformation:{error.operation_name}")
            elif not is_not_found(error) and code_of(error) != "ValidationError":
                raise
        watched.planned = True

    def _template_plan(self, now: StackOperation) -> Plan | None:
        """Return the plan of a creation or deletion. One call, of GetTemplate."""
        return template_plan(
            self._client.get_template(StackName=now.stack_id, TemplateStage="Processed")["TemplateBody"]
        )

    def _update_plan(self, now: StackOperation) -> Plan | None:
        """Return the plan of an update by a change set of one page. Two calls: DescribeStacks and DescribeChangeSet."""
        told = self._client.describe_stacks(StackName=now.stack_id)["Stacks"][0]
        if "ChangeSetId" not in told:
            return None
        answer = self._client.describe_change_set(ChangeSetName=told["ChangeSetId"])
        executes = answer["ExecutionStatus"] == "EXECUTE_IN_PROGRESS"
        return change_plan(answer["Changes"]) if executes and "NextToken" not in answer else None


def _watched(name: str) -> Watched:
    return Watched(name, name, History(name))
