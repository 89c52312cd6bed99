"""Other numbers of nodes: the settings file is changed, deployed, and Slurm confirms them.

ParallelCluster accepts a higher max_count, also together with a higher min_count, while the fleet runs. It rejects
fewer nodes, or another min_count alone, unless queue_update_strategy is TERMINATE; the provider of the custom resource
does not stop the fleet itself. ParallelCluster's own update check, through the plan, says what a change needs.
https://docs.aws.amazon.com/parallelcluster/latest/ug/using-pcluster-update-cluster-v3.html
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import Field, NonNegativeInt, PositiveInt

from scripts.account import compute_fleet, operations
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.account.slurm import slurm_state
from scripts.change.candidate import Candidate
from scripts.change.fleet import control as fleet
from scripts.check.plan.model import Kind
from scripts.check.plan.report import Plan
from scripts.core import interrupts, options, terminal
from scripts.core.clock import Changes, Clock
from scripts.core.document import Document
from scripts.core.errors import OperationError, UnusableError
from scripts.core.findings import CheckStatus
from scripts.core.temporary import temporary_directory
from scripts.core.terminal import Say

if TYPE_CHECKING:
    from config.settings import Settings

CHECKS: Final = (
    "instance-types",
    "quota-trn-on-demand",
    "quota-trn-spot",
    "quota-trn1-capacity-blocks",
    "quota-trn2-capacity-blocks",
    "quota-capacity-block-instances",
    "quota-interfaces",
    "quota-gp3",
    "capacity-",
    "free-addresses",
)
"""The preflight checks that more nodes may fail."""
SECONDS_TO_RELOAD: Final = 300.0
"""How long Slurm may take to know its new nodes once the cluster is updated."""


class Counts(Document):
    """Numbers of nodes of a compute resource."""

    min_count: NonNegativeInt = Field(description="Static nodes.")
    max_count: PositiveInt = Field(description="Nodes at most.")


class Scaled(Document):
    """The result of scaling."""

    queue: str = Field(description="The queue.")
    compute_resource: str = Field(description="The compute resource.")
    before: Counts = Field(description="The counts in the settings file before.")
    after: Counts = Field(description="The new counts.")
    stops_fleet: bool = Field(description="Whether ParallelCluster accepts the change on a stopped fleet only.")
    ends_jobs: bool = Field(
        description="Whether nodes are terminated while the fleet runs (queue_update_strategy TERMINATE)."
    )
    done: bool = Field(description="Whether it was done; false with --dry-run.")


@dataclass(frozen=True)
class Scaling:
    """A change of the numbers of nodes of one compute resource; the deployment has the settings file as it is."""

    deployment: Deployment
    queue: str
    compute_resource: str
    keys: tuple[str | int, ...]
    """Where its counts are in the settings."""
    before: Counts
    after: Counts
    candidate: Candidate

    @property
    def name(self) -> str:
        """Queue and compute resource, as the command line names them."""
        return f"{self.queue}/{self.compute_resource}"

    @property
    def edits(self) -> dict[str, tuple[int, int]]:
        """What changes in the settings file: from, to, by key."""
        after = dict(self.after)
        return {key: (before, after[key]) for key, before in self.before if before != after[key]}

    @property
    def grows(self) -> bool:
        """Whether there may be more nodes, or more static ones."""
        return any(after > before for before, after in self.edits.values())


def scale(
    deployment: Deployment,
    target: str | None,
    counts: dict[str, int],
    *,
    clock: Clock,
    say: Say,
    drain: bool,
    force: bool,
    dry_run: bool,
    checks: bool,
    asks: bool,
    quiet: bool,
) -> Scaled:
    """Plan other counts, show the steps, ask, and take them.

    With `checks` preflight looks for room for more nodes first; with `quiet` the plan is not shown.

    Raises:
        OperationError: There is no cluster or no room, somebody else changes a stack, something blocks it, a step
            failed, or the answer was no.
        UnusableError: There is no such compute resource, or the settings break rules with these counts.
    """
    if not dry_run:
        operations.check(deployment)
    with temporary_directory() as directory:
        change = prepare(deployment, target, counts, directory)
        if change.grows and checks:
            check(change, say)
        plan = make_plan(change.candidate)
        if not quiet:
            terminal.show(plan, "text")
        say(steps(change, plan, drain=drain, force=force))
        if problems := plan.blockers:
            raise OperationError("\n".join(["This cannot be deployed:", *problems]))
        if not dry_run:
            if asks:
                terminal.confirm()
            confirm = terminal.confirm if asks else None
            apply(change, plan, clock=clock, say=say, drain=drain, force=force, quiet=quiet, confirm=confirm)
        return Scaled(
            queue=change.queue,
            compute_resource=change.compute_resource,
            before=change.before,
            after=change.after,
            stops_fleet=Kind.FLEET_STOPPED in plan.cluster.kinds,
            ends_jobs=Kind.TERMINATES in plan.cluster.kinds,
            done=not dry_run,
        )


def prepare(deployment: Deployment, target: str | None, counts: dict[str, int], directory: Path) -> Scaling:
    """Return a change of min_count, max_count or both, tried on a copy of the settings file in a directory.

    The target is QUEUE or QUEUE/COMPUTE-RESOURCE; None where there is only one.

    Raises:
        OperationError: There is no cluster; a deployment would create one.
        UnusableError: There is no such compute resource, or the settings break rules with these counts.
    """
    queue, resource = _find(deployment.settings, target)
    keys = ("cluster", "queues", queue, "compute_resources", resource)
    current = deployment.settings.cluster.queues[queue].compute_resources[resource]
    before = Counts(min_count=current.min_count, max_count=current.max_count)
    path = options.settings_file(deployment.name)
    candidate = Candidate.create(path, directory, {(*keys, key): count for key, count in counts.items()})
    compute_fleet.known_status(deployment)
    name = deployment.settings.cluster.queues[queue].name
    return Scaling(deployment, name, current.name, keys, before, before.model_copy(update=counts), candidate)


def make_plan(candidate: Candidate) -> Plan:
    """Plan a candidate, without the findings on a fleet that runs: `apply` stops it."""
    plan = candidate.plan()
    solved = {change.path for change in plan.cluster.changes if change.kind is Kind.FLEET_STOPPED}
    findings = tuple(each for each in plan.findings if each.status is not CheckStatus.FAIL or each.path not in solved)
    return plan.model_copy(update={"findings": findings})


def check(scaling: Scaling, say: Say) -> None:
    """Let preflight check whether the account has room for more nodes."""
    from scripts.check.preflight.catalog import CATALOG, select

    try:
        scaling.candidate.check(select(CATALOG, CHECKS, []), say, fail_on="fail")
    except OperationError as error:
        raise OperationError(str(error), "--no-preflight skips this") from None


def steps(scaling: Scaling, plan: Plan, *, drain: bool, force: bool) -> str:
    """Return what `apply` does, a line each."""
    jobs = "after all jobs have ended" if drain else "although jobs have nodes" if force else "unless jobs have nodes"
    is_stopped = plan.cluster.fleet_status == compute_fleet.STOPPED
    edits = ", ".join(f"{key} from {before} to {after}" for key, (before, after) in scaling.edits.items())
    lines = [f"{scaling.deployment.file}, {scaling.name}: {edits or 'unchanged'}"]
    stops, ends_jobs = Kind.FLEET_STOPPED in plan.cluster.kinds, Kind.TERMINATES in plan.cluster.kinds
    if stops:
        lines.insert(0, "the fleet is STOPPED already" if is_stopped else f"stop the fleet, {jobs}")
    elif ends_jobs:
        lines.insert(0, f"nodes are terminated while the fleet runs, {jobs}")
    lines.append("nothing to deploy" if plan.empty else "deploy")
    if stops or is_stopped:
        lines.append("start the fleet")
    lines.append("compare the nodes in Slurm")
    return "\n".join(["Steps:", *(f"  {number}. {line}" for number, line in enumerate(lines, start=1))])


def apply(
    scaling: Scaling,
    plan: Plan,
    *,
    clock: Clock,
    say: Say,
    drain: bool,
    force: bool,
    quiet: bool = False,
    confirm: fleet.Confirm | None = None,
) -> None:
    """Stop the fleet where needed, change the settings file, deploy, start the fleet, and compare with Slurm.

    With `drain` it waits for the end of jobs before their nodes are terminated; with `force` it does not, and says
    which jobs these are, or lets `confirm` ask. With `quiet` the CDK's output goes to standard error. Run again after
    an interruption, the same command does what is left.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from config.edit import set_values

    deployment = scaling.deployment
    path = options.settings_file(deployment.name)
    stops, ends_jobs = Kind.FLEET_STOPPED in plan.cluster.kinds, Kind.TERMINATES in plan.cluster.kinds
    is_written = not scaling.edits
    try:
        if stops:
            fleet.stop(deployment, clock=clock, say=say, drain=drain, force=force, confirm=confirm)
        elif ends_jobs and drain:
            fleet.drain(deployment, clock=clock, say=say)
        elif ends_jobs:
            fleet.check_jobs(HeadNode(deployment, clock), say, force=force, confirm=confirm)
        interrupts.check()
        set_values(path, {(*scaling.keys, key): after for key, (_, after) in scaling.edits.items()})
        is_written = True
        if not plan.empty:
            scaling.candidate.deploy(quiet=quiet)
        deployment.account.forget()
        runs = compute_fleet.status(deployment) in (compute_fleet.RUNNING, compute_fleet.PROTECTED)
        if stops or (ends_jobs and drain) or not runs:
            fleet.start(deployment, clock=clock, say=say)
        _verify(scaling, clock, say)
    except BaseException:
        status = "not known"
        with suppress(BotoCoreError, ClientError):
            deployment.account.forget()
            status = compute_fleet.status(deployment)
        counts = "has the new counts" if is_written else "does not have the new counts"
        state = f"{deployment.file} {counts}; the fleet is {status}."
        say(f"{state} What AWS has started continues. The same command continues from here.")
        raise


def _verify(scaling: Scaling, clock: Clock, say: Say) -> None:
    """Compare the nodes that Slurm knows with the settings."""
    head_node, report = HeadNode(scaling.deployment, clock), Changes(say)
    expected = {"static": scaling.after.min_count, "dynamic": scaling.after.max_count - scaling.after.min_count}

    def is_known() -> bool:
        state = slurm_state(head_node)
        known = {
            kind: state.node_count(scaling.queue, scaling.compute_resource, static=kind == "static")
            for kind in expected
        }
        if known != expected:
            report(f"Nodes of {scaling.name} in Slurm: {known}; deployed: {expected}.")
        return known == expected

    clock.wait(is_known, report, every=fleet.SECONDS_BETWEEN_POLLS, limit=SECONDS_TO_RELOAD)


def _find(settings: Settings, target: str | None) -> tuple[int, int]:
    known = {
        (queue.name, resource.name): (i, j)
        for i, queue in enumerate(settings.cluster.queues)
        for j, resource in enumerate(queue.compute_resources)
    }
    wanted = tuple(target.split("/")) if target else ()
    matching = [keys for names, keys in known.items() if names[: len(wanted)] == wanted]
    if len(matching) != 1:
        names = ", ".join("/".join(each) for each in known)
        raise UnusableError(f"got {target or 'no queue'}; allowed: {names} (the queue alone if it has only one)")
    return matching[0]
