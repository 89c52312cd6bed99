"""Live progress of a deployment: of the creation, update, roll-back or deletion of its stacks, to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from scripts.command import DONE, FAILED, UnusableError
from scripts.progress.estimate import PART_SECONDS, amount, left
from scripts.progress.events import CONTAINERS, WELL, Event, StackOperation
from scripts.progress.stacks import Tracker, Watched

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.clock import Clock
    from scripts.deployment import Deployment
    from scripts.progress.screen import Screen

TIMED_OUT = 124
"""Exit code: the time limit is over, and the operation goes on. It is that of the command ``timeout``."""
GRACE_SECONDS = 60.0
"""How long nothing may be in progress: the CDK begins a stack some seconds after it has done the one before."""
SECONDS_BETWEEN_LOOKS = 5.0
LONGEST_SECONDS_BETWEEN_LOOKS = 60.0
SECONDS_WITHOUT_ANSWER = 300.0
"""How long AWS may be out of reach."""
GOES_ON = "What was begun goes on in AWS. The same command takes up where this one stops."


@dataclass(frozen=True)
class Node:
    """A stack in an operation.

    Attributes:
        name: Its name, or for one in another stack its logical id there.
        title: What people call it: for the cluster's own stack its name.
        operation: What happens to it.
        done: How many of its resources are done.
        total: How many there are to be done, as far as it is known.
        left: Seconds that it typically takes yet.
        children: The stacks that are resources of it.
    """

    name: str
    title: str
    operation: StackOperation
    done: int
    total: int
    left: float
    children: tuple[Node, ...] = ()

    def all(self) -> Sequence[Node]:
        """Return it and all stacks in it."""
        return [self, *(each for child in self.children for each in child.all())]


@dataclass(frozen=True)
class Progress:
    """All that is known of an operation on a deployment at one time.

    Attributes:
        now: The time.
        nodes: The deployment's own stacks that take part, in the order in which they began.
        missing: Parts that a creation has yet to begin.
        present: How many of the deployment's own stacks there are.
        is_complete: Whether all events were read.
        denied: IAM actions that are missing to know how much there is to do.
        others: Statuses of the stacks of the deployment's other clusters, by name.
    """

    now: datetime
    nodes: tuple[Node, ...]
    missing: tuple[str, ...]
    present: int
    is_complete: bool
    denied: tuple[str, ...] = ()
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def in_progress(self) -> bool:
        """Whether anything is under way."""
        return any(each.operation.in_progress for each in self.nodes)

    @property
    def ended_well(self) -> bool:
        """Whether everything that took part ended as it was meant to; so does nothing at all."""
        return all(each.operation.status in WELL for each in self.nodes)

    @property
    def began(self) -> datetime | None:
        """When the first of the stacks began; None: there is nothing."""
        return min((each.operation.began for each in self.nodes), default=None)

    @property
    def seconds(self) -> float:
        """How long it has taken, until now or its end."""
        if self.began is None:
            return 0.0
        ends = [each.operation.ended or self.now for each in self.nodes]
        return (max(ends) - self.began).total_seconds()

    @property
    def left(self) -> float:
        """Seconds that it typically takes yet: stacks in progress beside, and those to come after one another."""
        running = max((each.left for each in self.nodes if each.operation.in_progress), default=0.0)
        return running + sum(PART_SECONDS[part] for part in self.missing)

    @property
    def failure(self) -> Event | None:
        """The newest failure of a resource, rather in a stack than of one; None: there is none."""
        found = [event for node in self.nodes for each in node.all() for event in each.operation.failures]
        causes = [event for event in found if event.type not in CONTAINERS] or found
        return max(causes, key=lambda each: each.time, default=None)

    @property
    def outcome(self) -> str:
        """``in progress``, ``complete``, ``failed`` or, if no stack takes part, ``nothing``."""
        if not self.nodes:
            return "nothing"
        if self.in_progress:
            return "in progress"
        return "complete" if self.ended_well else "failed"


def under_way(stacks: Mapping[str, Mapping[str, Any]]) -> bool:
    """Tell whether something is done to any of some stacks, given as DescribeStacks tells of them."""
    statuses = [each["StackStatus"] for each in stacks.values()]
    return any(each.endswith("_IN_PROGRESS") and each != "REVIEW_IN_PROGRESS" for each in statuses)


def progress(tracker: Tracker, now: datetime, grace: float = GRACE_SECONDS) -> Progress:
    """Return what a tracker knows.

    An operation is the newest one and all those before it that ended not longer than the grace before the next began.
    What a stack was through earlier is no part of it.
    """
    nodes = [node for root in tracker.roots.values() if (node := _node(root, now))]
    nodes.sort(key=lambda each: each.operation.ended or now, reverse=True)
    together: list[Node] = []
    for node in nodes:
        first = min((each.operation.began for each in together), default=None)
        if first is None or (node.operation.ended or now) >= first - timedelta(seconds=grace):
            together.append(node)
    together.sort(key=lambda each: each.operation.began)
    creates = any(each.operation.action == "CREATE" for each in together)
    goes_on = creates and all(each.operation.in_progress or each.operation.status in WELL for each in together)
    present = [part for part, root in tracker.roots.items() if root.is_present]
    return Progress(
        now,
        tuple(together),
        tuple(part for part in tracker.roots if goes_on and part not in present),
        len(present),
        tracker.is_complete,
        tuple(sorted(tracker.denied)),
        dict(tracker.others),
    )


def watch(
    deployment: Deployment,
    console: Console,
    *,
    clock: Clock,
    as_json: bool,
    timeout: float | None = None,
    grace: float = GRACE_SECONDS,
) -> int:
    """Show what is done to a deployment until it is done, and return the exit code.

    Everything comes from CloudFormation, at most `progress_stacks.BUDGET` calls in each look, so that it may be ended
    and begun anew at any time, anywhere.

    Args:
        deployment: Whose stacks.
        console: To show it on; a terminal has a picture that changes, anything else gets lines.
        clock: Lets time pass between looks.
        as_json: Print JSON lines to standard output instead.
        timeout: Minutes to wait at most; None: as long as it takes.
        grace: Seconds for which nothing may be in progress before it counts as done.

    Returns:
        0: it ended as it was meant to, or nothing was begun; 1: it failed or was rolled back; 124: the time is over.

    Raises:
        UnusableError: AWS refused, such as for expired credentials, or did not answer for some minutes.
    """
    from scripts.progress.screen import screen

    with screen(deployment, console, as_json=as_json) as shown:
        try:
            return _follow(Tracker(deployment), shown, clock, timeout, grace)
        except KeyboardInterrupt:
            shown.stop(GOES_ON)
            raise


def _follow(tracker: Tracker, shown: Screen, clock: Clock, timeout: float | None, grace: float) -> int:
    began = clock.now()
    answered, interval = None, SECONDS_BETWEEN_LOOKS
    while True:
        trouble = _refresh(tracker)
        now = clock.now()
        answered = answered if trouble else now
        if trouble and not (trouble.passes and answered and _seconds(answered, now) <= SECONDS_WITHOUT_ANSWER):
            raise UnusableError(f"{trouble.text}\n{GOES_ON}")
        found = progress(tracker, now, grace)
        shown.show(found, trouble.text if trouble else "")
        if not trouble and _is_over(found, began, grace):
            shown.end(found)
            return DONE if found.ended_well else FAILED
        slower = min(interval * 2, LONGEST_SECONDS_BETWEEN_LOOKS)
        interval = slower if trouble or tracker.retries else SECONDS_BETWEEN_LOOKS
        if timeout is not None and _seconds(began, now) + interval > timeout * 60:
            shown.stop(f"The {timeout:g} minutes are over. {GOES_ON}")
            return TIMED_OUT
        clock.sleep(interval)


@dataclass(frozen=True)
class _Trouble:
    """Why AWS did not answer.

    Attributes:
        text: For people.
        passes: Whether it may go away by itself.
    """

    text: str
    passes: bool


def _refresh(tracker: Tracker) -> _Trouble | None:
    """Look anew, and return what is in the way."""
    from botocore.exceptions import BotoCoreError, ClientError, ConnectionError, HTTPClientError

    from scripts.aws_errors import explain, is_throttled

    try:
        tracker.refresh()
    except (BotoCoreError, ClientError) as error:
        return _Trouble(explain(error), is_throttled(error) or isinstance(error, (ConnectionError, HTTPClientError)))
    return None


def _seconds(earlier: datetime, later: datetime) -> float:
    return (later - earlier).total_seconds()


def _is_over(found: Progress, began: datetime, grace: float) -> bool:
    """Tell whether nothing is under way, and nothing is about to be."""
    if found.in_progress or not found.is_complete:
        return False
    if not found.ended_well or _is_all_done(found):
        return True
    newest = max((each.operation.newest for each in found.nodes), default=began)
    everything = found.present == len(PART_SECONDS)
    return _seconds(newest if everything else max(newest, began), found.now) >= grace


def _is_all_done(found: Progress) -> bool:
    """Tell whether all stacks were created, or deleted: there is nothing left to begin."""
    statuses = [each.operation.status for each in found.nodes]
    return len(statuses) == len(PART_SECONDS) and len(set(statuses)) == 1 and statuses[0] != "UPDATE_COMPLETE"


def _node(watched: Watched, now: datetime) -> Node | None:
    """Return what is known of a stack and those in it; None: nothing happened to it."""
    if watched.operation is None:
        return None
    children = tuple(node for child in watched.children.values() if (node := _node(child, now)))
    inner = {each.name: each.left for each in children}
    done, total = amount(watched.plan, watched.operation)
    seconds = left(watched.plan, watched.operation, now, inner)
    return Node(watched.name, watched.title, watched.operation, done, total, seconds, children)
