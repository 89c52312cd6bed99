"""Stacks whose update could be neither made nor rolled back: what is in force, and what leads out.

CloudFormation updates such a stack only after its roll-back was continued. For the cluster's stack that fails again and
again once ParallelCluster's own stack has rolled back: the provider has nothing to change, looks at that stack, and
takes "rolled back" for a failure (aws/aws-parallelcluster, cloudformation/custom_resource/cluster.yaml, `poll`;
https://github.com/aws/aws-parallelcluster/issues/5686). It succeeds without the cluster's resource.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-continueupdaterollback.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pydantic import Field

from scripts.account import stacks
from scripts.account.deployment import Deployment
from scripts.account.stack_state import StackState
from scripts.account.stacks import StackResource
from scripts.core.aws_errors import is_consequence
from scripts.core.document import Document


class WayOut(Document):
    """What leads a stack out of UPDATE_ROLLBACK_FAILED."""

    stack: str = Field(description="Name of the stack.")
    in_force: str = Field(description="Which configuration is in force.")
    first: str = Field(description="What has to be done before, or instead; empty: nothing.")
    continued: str = Field(description="Name of the stack whose roll-back has to be continued; empty: none yet.")
    skipped: tuple[str, ...] = Field(description="Logical ids of the resources that it has to leave as they are.")
    is_safe: bool = Field(description="Whether that changes nothing that runs; then `deploy --yes` does it.")
    command: str = Field(description="AWS CLI command that does it; empty: none helps yet.")
    deployment: str = Field(exclude=True)

    @property
    def sentence(self) -> str:
        """What is wrong with the stack, and what is in force."""
        return f"{self.stack} is {StackState.UPDATE_ROLLBACK_FAILED}: {self.in_force}"

    @property
    def steps(self) -> str:
        """What to do, in a sentence."""
        if not self.command:
            return self.first
        asks = "" if self.is_safe else " and always asks"
        by_deploy = f"`./ultracluster deploy {self.deployment}` continues the roll-back before it deploys{asks}"
        return f"{f'{self.first}; then ' if self.first else ''}{by_deploy}; so does `{self.command}`"


@dataclass(frozen=True)
class ClusterStack:
    """ParallelCluster's own stack of the cluster.

    Attributes:
        name: Its name.
        state: What it is; None: there is none.
        is_updated: Whether its last operation started after the update that failed, and belongs to it.
    """

    name: str
    state: StackState | None
    is_updated: bool = False


def find(deployment: Deployment) -> tuple[WayOut, ...]:
    """Return what leads out, for each stack of a deployment that is stuck, ParallelCluster's own among them.

    A call for each stack; for one that is stuck one per 100 resources and, of the cluster's, per 100 events. Needs
    cloudformation:DescribeStacks, DescribeStackEvents and ListStackResources.

    Raises:
        botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError: AWS does not answer, or refuses.
    """
    described = [deployment.stack(deployment.stack_name(part)) for part in deployment.settings.parts]
    ways = [_of(deployment, each["StackName"]) for each in described if each and StackState.of(each).is_stuck]
    name, parent = deployment.settings.cluster_spec.name, deployment.stack_name("cluster")
    own = deployment.stack(name)
    if own and StackState.of(own).is_stuck and parent not in [each.stack for each in ways]:
        ways.append(of_own(deployment, name))
    return tuple(ways)


def of_own(deployment: Deployment, name: str) -> WayOut:
    """Return what leads ParallelCluster's own stack out, where the deployment's stack of the cluster is not stuck.

    Somebody had CloudFormation skip the cluster's resource; ParallelCluster refuses every update until it is out.
    """
    in_force = "it could not go back: the cluster has parts of both configurations"
    return _way_out(deployment, name, in_force, f"fix what the events of {name} name", continued=name)


def decide(deployment: Deployment, stack: str, failed: Sequence[StackResource], own: ClusterStack) -> WayOut:
    """Return what leads a stack out.

    Args:
        deployment: Whose stack.
        stack: Its name.
        failed: Its resources that could not go back, each by itself.
        own: ParallelCluster's own stack, if the cluster is among them.
    """
    cluster = next((each for each in failed if each.type == stacks.CLUSTER), None)
    if cluster:
        return _with_cluster(deployment, stack, cluster, own)
    names = ", ".join(each.logical_id for each in failed) or "a resource"
    in_force = f"{names} could not go back; all else is as it was before the update"
    return _way_out(deployment, stack, in_force, f"fix what the events of {stack} name", continued=stack)


def _with_cluster(deployment: Deployment, stack: str, cluster: StackResource, own: ClusterStack) -> WayOut:
    way, named = partial(_way_out, deployment, stack), f"ParallelCluster's stack {own.name}"
    if own.state is None or own.state.is_leaving or own.state.was_never_complete:
        instead = f"`./ultracluster destroy {deployment.name}` deletes what is left of it; network and storage stay"
        return way(f"{named} is {own.state or 'gone'}: there is no cluster that could go back", instead)
    if own.state.is_in_progress:
        wait = f"wait until it has ended: `./ultracluster status {deployment.name} --watch` follows it"
        return way(f"{named} is still {own.state}, and decides which configuration will be in force", wait)
    if own.state.is_stuck:
        in_force = f"{named} could not go back, either: the cluster has parts of both configurations"
        return way(in_force, f"fix what the events of {own.name} name", continued=own.name)
    if own.state.is_as_before:
        in_force = f"{named} went back: the configuration from before the update is in force, and stays"
        return way(in_force, continued=stack, skipped=(cluster.logical_id,), is_safe=True)
    if own.is_updated:
        in_force = f"{named} completed the update when CloudFormation had given up: the new configuration is in force. "
        return way(f"{in_force}The roll-back updates the cluster again, to the old one", continued=stack)
    in_force = f"the update did not reach {named}: the configuration from before is in force"
    return way(in_force, f"fix why the cluster refuses it: {cluster.reason}", continued=stack, is_safe=True)


def _way_out(
    deployment: Deployment,
    stack: str,
    in_force: str,
    first: str = "",
    *,
    continued: str = "",
    skipped: tuple[str, ...] = (),
    is_safe: bool = False,
) -> WayOut:
    words = ["continue-update-rollback", "--stack-name", continued]
    words += ["--resources-to-skip", *skipped] if skipped else []
    return WayOut(
        stack=stack,
        in_force=in_force,
        first=first,
        continued=continued,
        skipped=skipped,
        is_safe=is_safe,
        command=deployment.command("cloudformation", *words) if continued else "",
        deployment=deployment.name,
    )


def _of(deployment: Deployment, stack: str) -> WayOut:
    listed = stacks.resources(deployment, stack)
    failed = [each for each in listed if each.status.has_failed and not is_consequence(each.reason)]
    has_cluster = any(each.type == stacks.CLUSTER for each in failed)
    name = deployment.settings.cluster_spec.name
    return decide(deployment, stack, failed, _own(deployment, stack, name) if has_cluster else ClusterStack(name, None))


def _own(deployment: Deployment, stack: str, name: str) -> ClusterStack:
    described = deployment.stack(name)
    if described is None:
        return ClusterStack(name, None)

    def started(stack: str) -> Any:
        own = stacks.events(deployment.account.client("cloudformation"), stack)
        return next((each.time for each in own if each.is_start), None)

    update, last = started(stack), started(name)
    return ClusterStack(name, StackState.of(described), is_updated=not update or not last or update <= last)
