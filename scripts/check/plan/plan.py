"""The plan of a deployment: against what runs in the account, or against other templates."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from botocore.exceptions import ClientError

from config.settings import PARTS, Settings
from scripts.account import operations, way_out
from scripts.account.deployment import Account, Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.account.slurm import ACTIVE, slurm_state
from scripts.check.plan import cdk, change_sets, findings, people, refusals
from scripts.check.plan.change_sets import ChangeSetError
from scripts.check.plan.cluster import STOPPED, plan_cluster
from scripts.check.plan.comparison import Comparison
from scripts.check.plan.live import MANIFEST, LiveStacks
from scripts.check.plan.model import ClusterPlan, Kind, PlanError, Source, StackPlan
from scripts.check.plan.report import Plan
from scripts.check.preflight import access, runner, update
from scripts.core import options
from scripts.core.aws_errors import is_denied
from scripts.core.errors import HeadNodeError, told
from scripts.core.findings import CheckStatus, Finding
from scripts.core.temporary import temporary_directory
from toolchain.assembly import EXAMPLE_ACCOUNT, Assembly, Stack
from toolchain.golden import read_golden
from toolchain.parallelcluster import ParallelCluster, RunnerError
from toolchain.values import UnsupportedError

_JOBS_LISTED: Final = 10


def make_plan(
    deployment_name: str,
    assembly: Path | None = None,
    against: Path | None = None,
    *,
    accepted: bool = False,
    diff: bool = False,
) -> Plan:
    """Return the plan of a configuration.

    Args:
        deployment_name: The deployment, or the path of its settings without .yaml.
        assembly: What would be deployed; None: it is synthesized first.
        against: What it is compared with; None: what runs in the account of the credentials in use.
        accepted: Whether replacing and removing what holds data was accepted.
        diff: Whether the CDK's own diff with the account is printed first.

    Raises:
        PlanError: There is no plan; the message says why.
        botocore.exceptions.BotoCoreError: AWS does not answer, or there are no credentials.
        botocore.exceptions.ClientError: AWS refuses a call.
    """
    settings = options.settings_of(deployment_name)
    for directory in (assembly, against):
        if directory is not None and not directory.is_dir():
            raise PlanError(f"got {directory}; allowed: a directory")
    if against is None and assembly is not None and not (assembly / MANIFEST).exists():
        raise PlanError(f"got {assembly}; allowed: a directory that cdk synth wrote, with a {MANIFEST}")
    try:
        with temporary_directory() as temporary:
            if assembly is None:
                assembly = temporary / "cdk.out"
                cdk.synthesize(deployment_name, assembly)
            if diff:
                cdk.diff(assembly)
            if against is None:
                return plan_of_account(deployment_name, settings, assembly, accepted=accepted)
            return plan_of_directories(deployment_name, settings, against, assembly, accepted=accepted)
    except (FileNotFoundError, UnsupportedError) as error:
        raise PlanError(str(error)) from None
    except RunnerError as error:
        raise PlanError(f"ParallelCluster's code broke down:\n{error}") from None


def plan_of_account(deployment_name: str, settings: Settings, directory: Path, *, accepted: bool) -> Plan:
    """Return what a deployment of an assembly would do in the account of the credentials in use.

    With `accepted` the replacement and removal of what holds data does not block it.

    Raises:
        PlanError: The settings name another account, or a change set could not be deleted.
        botocore.exceptions.BotoCoreError: AWS could not be asked.
        botocore.exceptions.ClientError: AWS refused to answer.
    """
    with ParallelCluster(os.environ) as parallelcluster:  # it loads while CloudFormation is asked
        parallelcluster.version = settings.cluster.parallelcluster_version
        live = LiveStacks(deployment_name, settings, directory)
        comparison = Comparison(live.old, live.new, live.physical_ids, live.attributes)
        stacks = _stacks_of_account(live, comparison)
        cluster = plan_cluster(parallelcluster, deployment_name, comparison, stacks, live=True)
    of_people, findings_of_people = people.of_people(comparison, settings.team, live.deployment)
    return Plan(
        deployment=deployment_name,
        region=settings.region,
        against=f"account {live.account_id}",
        stacks=stacks,
        cluster=cluster,
        people=of_people,
        findings=(
            *_findings_of_account(live),
            *findings.of_roll_back(cluster, live.deployment.stack(cluster.name)),
            *_findings_of_update(live, cluster),
            *findings_of_people,
            *findings_of_jobs(live.deployment, cluster),
            *_findings(
                deployment_name, comparison, stacks, cluster, accepted=accepted, account=live.deployment.account
            ),
        ),
    )


def plan_of_directories(
    deployment_name: str, settings: Settings, old: Path | None, new: Path, *, accepted: bool
) -> Plan:
    """Return what a deployment would do where other templates are deployed; needs no account.

    Both are assemblies, or directories of templates named after their stacks; without the old one nothing is deployed.

    Raises:
        PlanError: A directory holds no templates, one is an assembly and the other is not, or there is no cluster.
    """
    if old is not None and (old / MANIFEST).exists() != (new / MANIFEST).exists():
        raise PlanError(
            f"got {old} and {new}; allowed: two assemblies, or two directories of golden templates, which name no "
            "assets (--assembly says which is the other one)"
        )
    before, after = read_stacks(old, settings.region) if old else {}, read_stacks(new, settings.region)
    comparison = Comparison(before, after)
    stacks = tuple(
        StackPlan(
            name,
            Source.FILES if name in before else Source.NEW,
            changes=changes,
            other=tuple(_other(before.get(name), after.get(name))),
        )
        for name, changes in comparison.changes.items()
    )
    with ParallelCluster(os.environ) as parallelcluster:
        parallelcluster.version = settings.cluster.parallelcluster_version
        cluster = plan_cluster(parallelcluster, deployment_name, comparison, stacks, live=False)
    return Plan(
        deployment=deployment_name,
        region=settings.region,
        against=str(old or "nothing"),
        stacks=stacks,
        cluster=cluster,
        findings=(
            *_findings_of_launch_templates(Deployment(deployment_name, settings), cluster),
            *_findings(deployment_name, comparison, stacks, cluster, accepted=accepted),
        ),
    )


def _stacks_of_account(live: LiveStacks, comparison: Comparison) -> tuple[StackPlan, ...]:
    ready = [name for name in live.old if live.statuses[name].is_ready and not comparison.is_passed_over(name)]
    cloudformation = live.deployment.account.client("cloudformation")
    name_of_all = operations.new_name(live.deployment.account, "plan")
    described = change_sets.describe(cloudformation, [live.new[name] for name in ready], name_of_all)
    stacks = []
    for name, new in live.new.items():
        changes = comparison.changes[name]
        if name not in live.old:
            stacks.append(StackPlan(name, Source.NEW, changes=changes))
            continue
        other = list(_other(live.old[name], new))
        if (name in live.protected) != (name in live.to_be_protected):
            other.append(f"termination protection {'on' if name in live.to_be_protected else 'off'}")
        description = described.get(name, ChangeSetError(f"the stack is {live.statuses[name]}"))
        if comparison.is_passed_over(name):
            source, reason = Source.SAME, ""
        elif isinstance(description, ChangeSetError):
            source, reason = Source.STORED_TEMPLATE, str(description)
        else:
            source, reason = Source.CHANGE_SET, ""
            changes = change_sets.changes(description, changes, comparison.read_late(name))
        stacks.append(StackPlan(name, source, reason, changes, tuple(other)))
    return tuple(stacks)


def _other(old: Stack | None, new: Stack | None) -> Iterator[str]:
    """Yield what changes in a stack beside its resources."""
    before, after = (old.template if old else {}), (new.template if new else {})
    for section in sorted((before.keys() | after.keys()) - {"Resources"}):
        if before.get(section) != after.get(section):
            yield section.lower()
    if old and new and old.tags != new.tags:
        yield "tags"


def _findings(
    deployment_name: str,
    comparison: Comparison,
    stacks: Sequence[StackPlan],
    cluster: ClusterPlan,
    *,
    accepted: bool,
    account: Account | None = None,
) -> Iterator[Finding]:
    for stack in stacks:
        yield from findings.of_stack(stack, deployment_name, accepted)
        yield from refusals.of_stack(stack, comparison, account)
        for output, users in comparison.exports_in_use(stack.name):
            yield findings.of_export(stack.name, output, users)
    for name, changes in comparison.left_behind().items():
        yield from findings.of_passed_over(name, changes)
    yield from findings.of_cluster(cluster, deployment_name)


def _findings_of_account(live: LiveStacks) -> Iterator[Finding]:
    for each in runner.findings(access.cdk_bootstrap, live.deployment):
        if each.status is CheckStatus.FAIL:
            yield each.of("account")
    ways_out = {each.stack: each for each in way_out.find(live.deployment)}
    for own in (way for name, way in ways_out.items() if name not in live.statuses):
        yield Finding(CheckStatus.FAIL, own.sentence, own.steps, subject=f"cluster {own.stack}")
    for name, status in live.statuses.items():
        if status.is_ready or status.is_in_review:  # that one is deployed as if it did not exist, also if protected
            continue
        if status.has_nothing and name not in live.protected:
            sentence = f"the stack is {status}: it is deleted and created again"
            yield Finding(CheckStatus.WARN, sentence, subject=name)
        else:
            sentence, way = f"the stack is {status}: it cannot be updated", ways_out.get(name)
            preflight = f"./ultracluster preflight {live.deployment.name} --only stack-names"
            if way:
                yield Finding(CheckStatus.FAIL, f"{sentence}; {way.in_force}", way.steps, subject=name)
            else:
                yield Finding(CheckStatus.FAIL, sentence, "the check says what helps", preflight, name)
    for name in sorted(live.protected - live.to_be_protected):
        yield Finding(CheckStatus.WARN, "the stack is no longer protected against deletion", subject=name)


def _findings_of_update(live: LiveStacks, cluster: ClusterPlan) -> Iterator[Finding]:
    """Yield what would roll back an update of the cluster: nodes that will not take it over."""
    yield from _findings_of_launch_templates(live.deployment, cluster)
    if not (cluster.exists and cluster.changes):
        return
    subject = f"cluster {cluster.name}"
    for each in runner.findings(update.login_nodes, live.deployment):  # what may happen blocks nothing
        if each.status not in (CheckStatus.PASS, CheckStatus.SKIP):
            yield each.of(subject, each.command)
    found = list(runner.findings(update.update_nodes, live.deployment))
    if update.nodes_that_run(live.deployment):
        found += update.silent_nodes(live.deployment)
    for each in found:
        if each.status is not CheckStatus.PASS:
            status = CheckStatus.FAIL if each.status is CheckStatus.WARN else each.status
            yield replace(each, status=status, subject=subject)


def findings_of_jobs(deployment: Deployment, cluster: ClusterPlan) -> Iterator[Finding]:
    """Yield which jobs end now with the nodes that a change terminates, as far as the head node says it."""
    paths = [each.path for each in cluster.changes if each.kind is Kind.TERMINATES]
    if not paths or cluster.fleet_status == STOPPED:
        return
    queues = re.findall(r"SlurmQueues\[([^\]]+)\]", " ".join(paths))
    try:
        state = slurm_state(HeadNode(deployment))
    except (HeadNodeError, ClientError) as error:
        if isinstance(error, ClientError) and not is_denied(error):
            raise
        yield Finding(CheckStatus.UNKNOWN, f"which jobs have nodes there: {told(error)}", subject="jobs")
        return
    jobs = [job for job in state.jobs if job.state in ACTIVE and (not queues or job.queue in queues)]
    if jobs:
        shown = ", ".join(f"{job.id} of {job.user} in {job.queue}" for job in jobs[:_JOBS_LISTED])
        more = f" and {len(jobs) - _JOBS_LISTED} more" if len(jobs) > _JOBS_LISTED else ""
        yield Finding(CheckStatus.WARN, f"these have nodes there now: {shown}{more}", subject="jobs")


def _findings_of_launch_templates(deployment: Deployment, cluster: ClusterPlan) -> Iterator[Finding]:
    """Yield that an update would be rolled back, or later ones of a new cluster, as it has too many of them."""
    if cluster.changes or not cluster.exists:
        for each in runner.findings(update.launch_templates, deployment):
            if each.status is not CheckStatus.PASS:
                yield each.of(f"cluster {cluster.name}")


def read_stacks(directory: Path, region: str) -> dict[str, Stack]:
    """Return the stacks of an assembly, or those whose templates a directory holds."""
    if (directory / MANIFEST).exists():
        return Assembly(directory).stacks
    try:
        templates = read_golden(directory)
    except ValueError as error:
        raise PlanError(f"got {directory}, with a file that is no JSON: {error}") from None
    if not templates or not all("Resources" in template for template in templates.values()):
        raise PlanError(f"got {directory}; allowed: a directory that cdk synth wrote, or one of templates (*.json)")
    return in_order({name: Stack(name, region, EXAMPLE_ACCOUNT, each, {}) for name, each in templates.items()})


def in_order(stacks: Mapping[str, Stack]) -> dict[str, Stack]:
    """Return stacks in the order of their deployment."""
    return {name: stacks[name] for name in sorted(stacks, key=lambda name: (_position(name), name))}


def _position(stack_name: str) -> int:
    """Return the position of a stack in the order of deployment; others come last."""
    part = re.search(rf"-({'|'.join(PARTS)})(-\d+)?$", stack_name)
    return PARTS.index(part[1]) if part else len(PARTS)
