"""Other numbers of nodes: the settings file says them, a deployment brings them about, and Slurm confirms them.

More nodes at most, and more of both kinds together, ParallelCluster takes while the fleet runs. Fewer, or another
min_count alone, it refuses then, unless queue_update_strategy is TERMINATE; the provider of the custom resource stops
no fleet by itself. Its own update check says what a change needs, by way of the change plan.
https://docs.aws.amazon.com/parallelcluster/latest/ug/using-pcluster-update-cluster-v3.html
"""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from scripts.clock import Clock
from scripts.command import CONFIG, OperationError, Say, UnusableError
from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.fleet import queues
from scripts.fleet.jobs import Changes, patiently
from scripts.fleet.scaling_needs import ends_jobs, needs_stopped_fleet
from scripts.remote.head_node import HeadNode

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.plan.model import Plan

SECONDS_TO_RELOAD: Final = 300.0
"""How long Slurm may take to know its new nodes once the cluster is updated."""


class Counts(NamedTuple):
    """Numbers of nodes of a compute resource: those that always run, and all at most."""

    min_count: int
    max_count: int


@dataclass(frozen=True)
class Scaling:
    """A change of the numbers of nodes of one compute resource.

    Attributes:
        deployment: As its settings file is now.
        queue: The queue.
        compute_resource: The compute resource.
        place: Where its counts stand in the settings.
        before: What the settings file says now.
        after: What it shall say.
        settings: The settings with them.
        assembly: What they are deployed with.
    """

    deployment: Deployment
    queue: str
    compute_resource: str
    place: tuple[str | int, ...]
    before: Counts
    after: Counts
    settings: Settings
    assembly: Path

    @property
    def name(self) -> str:
        """Queue and compute resource, as the command line names them."""
        return f"{self.queue}/{self.compute_resource}"

    @property
    def edits(self) -> dict[str, tuple[int, int]]:
        """What changes in the settings file: from, to, by key."""
        pairs = zip(Counts._fields, self.before, self.after, strict=True)
        return {key: (before, after) for key, before, after in pairs if before != after}

    @property
    def grows(self) -> bool:
        """Whether there may be more nodes, or more of them always run."""
        return any(after > before for before, after in self.edits.values())


def prepare(deployment: Deployment, target: str | None, counts: dict[str, int], directory: Path) -> Scaling:
    """Return a change, tried on a copy of the settings file.

    Args:
        deployment: What is changed.
        target: QUEUE or QUEUE/COMPUTE-RESOURCE; None where there is only one.
        counts: The new min_count, max_count or both.
        directory: Where the copy is put.

    Raises:
        OperationError: There is no cluster; a deployment would make one.
        UnusableError: There is no such compute resource, or the settings break rules with these counts.
    """
    from config.edit import EditError, set_values
    from config.settings import SettingsError, load

    queue, resource = _find(deployment.settings, target)
    place = ("cluster", "queues", queue, "compute_resources", resource)
    found = deployment.settings.cluster.queues[queue].compute_resources[resource]
    path = CONFIG / f"{deployment.environment}.yaml"
    before = Counts(found.min_count, found.max_count)
    copy = directory / path.name
    shutil.copy(path, copy)
    try:
        set_values(copy, {(*place, key): count for key, count in counts.items()})
        settings = load(copy)
    except (EditError, SettingsError) as error:
        text = str(error).replace(str(copy), f"config/{path.name}")
        raise UnusableError(f"{text}\nconfig/{path.name} is as it was.") from None
    fleet.known_status(deployment)
    return Scaling(
        deployment,
        deployment.settings.cluster.queues[queue].name,
        found.name,
        place,
        before,
        before._replace(**counts),
        settings,
        directory / "cdk.out",
    )


def plan(scaling: Scaling) -> Plan:
    """Return what a deployment of the new counts would do. Needs what ``make plan`` needs.

    Raises:
        UnusableError: There is no plan.
    """
    from scripts.plan.command import PlanError, make_plan, synthesize

    environment = scaling.deployment.environment
    try:
        synthesize(str(scaling.assembly.with_name(environment)), scaling.assembly)
        return make_plan(environment, scaling.assembly)
    except PlanError as error:
        raise UnusableError(str(error)) from None


def apply(
    scaling: Scaling, found: Plan, *, clock: Clock, say: Say, drain: bool, force: bool, output: bool = True
) -> None:
    """Stop the fleet where that is needed, change the settings file, deploy, start the fleet, and ask Slurm.

    Run again after an interruption, the same command does what is left to do.

    Args:
        scaling: The change.
        found: Its plan.
        clock: Time.
        say: Told what is done, and where things stand when it fails.
        drain: Whether jobs come to their end before nodes are taken from them.
        force: Whether they are ended.
        output: Whether the CDK may write to standard output.

    Raises:
        OperationError: It did not work.
    """
    from config.edit import set_values

    deployment = scaling.deployment
    path = CONFIG / f"{deployment.environment}.yaml"
    stops, drains = needs_stopped_fleet(found), ends_jobs(found) and drain
    try:
        if stops:
            fleet.stop(deployment, clock=clock, say=say, drain=drain, force=force)
        elif drains:
            fleet.drain(deployment, clock=clock, say=say)
        elif ends_jobs(found):
            fleet.pass_jobs(HeadNode(deployment, clock), say, force=force)
        set_values(path, {(*scaling.place, key): after for key, (_, after) in scaling.edits.items()})
        if not found.empty:
            _deploy(scaling, output=output)
        deployment.account.forget()
        if stops or drains or fleet.status(deployment) not in (fleet.RUNNING, fleet.PROTECTED):
            fleet.start(deployment, clock=clock, say=say)
        verify(scaling, clock, say)
    except BaseException:
        _tell_where_it_stands(scaling, say)
        raise


def verify(scaling: Scaling, clock: Clock, say: Say) -> None:
    """Ask Slurm whether it has the nodes that the settings say.

    Raises:
        OperationError: It has not.
    """
    head_node = HeadNode(scaling.deployment, clock)
    always, at_most = scaling.after
    expected = (always, at_most - always)
    counted: tuple[int | str, ...] = ("an unknown number of",) * 2

    def known() -> bool:
        nonlocal counted
        asked = queues.ask(head_node)
        counted = tuple(asked.count(scaling.queue, scaling.compute_resource, static=static) for static in (True, False))
        return counted == expected

    look = patiently(known, clock, Changes(say))
    if not clock.until(look, every=fleet.SECONDS_BETWEEN_LOOKS, limit=SECONDS_TO_RELOAD):
        raise OperationError(
            "Slurm has {} static and {} dynamic nodes of {}; deployed: {} and {}".format(
                *counted, scaling.name, *expected
            )
        )


def _find(settings: Settings, target: str | None) -> tuple[int, int]:
    """Return the indices of a queue and its compute resource."""
    known = {
        (queue.name, resource.name): (i, j)
        for i, queue in enumerate(settings.cluster.queues)
        for j, resource in enumerate(queue.compute_resources)
    }
    wanted = tuple(target.split("/")) if target else ()
    fitting = [place for names, place in known.items() if names[: len(wanted)] == wanted]
    if len(fitting) != 1:
        names = ", ".join("/".join(each) for each in known)
        raise UnusableError(f"got {target or 'no queue'}; allowed: {names} (the queue alone where that is clear)")
    return fitting[0]


def _deploy(scaling: Scaling, *, output: bool) -> None:
    from scripts.deploy import deploy

    environment = scaling.deployment.environment
    code = deploy(environment, scaling.assembly, (), output=None if output else sys.stderr)
    if code != 0:
        raise OperationError(f"The CDK failed with exit code {code}. Why: make diagnose ENV={environment}")


def _tell_where_it_stands(scaling: Scaling, say: Say) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    from config.settings import SettingsError, load

    deployment, status, written = scaling.deployment, "not known", False
    with suppress(BotoCoreError, ClientError):
        deployment.account.forget()
        status = fleet.status(deployment)
    with suppress(SettingsError):
        written = load(CONFIG / f"{deployment.environment}.yaml") == scaling.settings
    counts = "has the new counts" if written else "does not have the new counts"
    where = f"config/{deployment.environment}.yaml {counts}; the fleet is {status}."
    say(f"{where} What AWS has begun goes on there. The same command goes on from here.")
