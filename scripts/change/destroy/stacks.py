"""Deletes stacks: waits, reports what is left of them, and tries again where AWS only needs time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scripts.account import operations, stacks
from scripts.account.deployment import Deployment
from scripts.account.stack_state import StackState
from scripts.core.aws_errors import is_not_empty, passes
from scripts.core.clock import Changes, Clock
from scripts.core.errors import OperationError
from scripts.core.terminal import Say
from scripts.watch.inventory.removal import empty_zone, free_group, free_role

TRIES = 6
EVERY, PAUSE, LIMIT = 10.0, 120.0, 5400.0
"""Seconds between two calls for a stack, before another try, and to wait for one deletion at most: CloudFormation gives
a custom resource an hour, and its parent continues after that."""

_EMPTIED: Mapping[str, Callable[[Deployment, str], None]] = {
    "AWS::EC2::SecurityGroup": free_group,
    "AWS::IAM::Role": free_role,
    "AWS::Route53::HostedZone": empty_zone,
}
"""What empties a resource that cannot be deleted for what it contains and the stack does not know, by type.

ParallelCluster's daemons launch nodes, with their interfaces, and write the records of nodes into the zone.
https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteRole.html,
https://docs.aws.amazon.com/Route53/latest/APIReference/API_DeleteHostedZone.html
"""


def of_cluster(deployment: Deployment) -> dict[str, Any] | None:
    """Return the cluster's own stack, made by ParallelCluster; None: there is none, or one that is somebody else's."""
    stack = deployment.stack(deployment.settings.cluster_spec.name)
    return stack if stack is not None and deployment.is_tagged(stack) else None


def is_healthy(own: Mapping[str, Any] | None) -> bool:
    """Tell whether the cluster's own stack has a status in which ParallelCluster stops its fleet."""
    return own is not None and StackState.of(own).is_ready


def delete(
    deployment: Deployment,
    name: str,
    *,
    clock: Clock,
    say: Say,
    unprotect: bool = False,
    started: Callable[[], object] = lambda: None,
) -> None:
    """Delete a stack and wait until it is deleted; a deletion that is in progress is only waited for.

    Up to `TRIES` times. If it has a cluster that its provider fails to delete, the cluster's own stack is deleted
    before the next try; security groups, zones and roles are emptied before it, too. One call for each 100 resources
    every 10 seconds. CloudFormation uses the role that it remembers for the stack. `started` is called whenever it
    deletes the stack.

    Raises:
        OperationError: It could not be deleted; the message has the reasons.
        botocore.exceptions.ClientError: AWS refused it, or gave no answer for as long as `with_retries` waits for one.
    """
    for tried in range(1, TRIES + 1):
        causes = _delete_once(deployment, name, clock, say, started, unprotect=unprotect)
        if not causes:
            return
        for each in causes:
            say(f"{each.stack}: {each.logical_id} ({each.type}) could not be deleted: {each.reason}")
        cluster_failed = any(each.type == stacks.CLUSTER for each in causes)
        if tried == TRIES or not (cluster_failed or all(map(_can_pass, causes))):
            reasons = "\n".join(f"  {each.logical_id} ({each.type}): {each.reason}" for each in causes)
            hint = f"./ultracluster diagnose {deployment.name}"
            raise OperationError(f"{name} could not be deleted:\n{reasons}", hint)
        for each in causes:
            if each.type in _EMPTIED:
                _empty(deployment, each, say)
        say(f"{name}: trying again in {PAUSE / 60:.0f} min.")
        clock.sleep(PAUSE)
        deployment.account.forget()
        own = of_cluster(deployment)
        if cluster_failed and own is not None:
            delete(deployment, own["StackName"], clock=clock, say=say)


def _delete_once(
    deployment: Deployment, name: str, clock: Clock, say: Say, started: Callable[[], object], *, unprotect: bool
) -> list[stacks.StackResource]:
    """Delete a stack once, and return what could not be deleted; nothing: the stack is deleted."""
    deployment.account.forget()
    described = deployment.stack(name)
    if described is None:
        return []
    stack, cloudformation = described["StackId"], deployment.account.client("cloudformation")
    if not StackState.of(described).is_being_deleted:
        if unprotect and described.get("EnableTerminationProtection"):
            cloudformation.update_termination_protection(StackName=stack, EnableTerminationProtection=False)
        token = operations.new_name(deployment.account, "destroy")
        cloudformation.delete_stack(StackName=stack, ClientRequestToken=token)
    started()
    say(f"{name}: is being deleted.")
    report = Changes(say)

    def ended() -> bool:
        deployment.account.forget()
        now = deployment.stack(stack)
        if now is None:
            return True
        listed = stacks.resources(deployment, stack)
        left = [each for each in listed if not each.status.is_released]
        report(f"{name}: {len(left)} of {len(listed)} resources left.")
        return not StackState.of(now).is_being_deleted

    clock.wait(ended, report, every=EVERY, limit=LIMIT)
    now = deployment.stack(stack)
    if now is None:
        say(f"{name}: deleted.")
        return []
    failed = [each for each in stacks.all_resources(deployment, stack) if each.status.is_undeletable]
    if not failed:
        raise OperationError(f"{name} is {now['StackStatus']}: {now.get('StackStatusReason', 'without a reason')}")
    return [each for each in failed if each.type != stacks.NESTED] or failed


def _can_pass(cause: stacks.StackResource) -> bool:
    return passes(cause.reason) or (cause.type in _EMPTIED and is_not_empty(cause.reason))


def _empty(deployment: Deployment, cause: stacks.StackResource, say: Say) -> None:
    """Delete what a resource contains; the next try tells whether that was enough."""
    from botocore.exceptions import ClientError

    say(f"{cause.stack}: deleting what {cause.logical_id} ({cause.physical_id}) contains.")
    try:
        _EMPTIED[cause.type](deployment, cause.physical_id)
    except ClientError as error:
        say(str(error))
