"""Ends a deployment, or parts of it: tells what blocks it before anything is deleted.

All state is in AWS: a call after an interruption, on any machine, continues where the first one stopped.
"""

from __future__ import annotations

from scripts.clock import Clock
from scripts.command import OperationError, Say
from scripts.deployment import Deployment
from scripts.destroy import stacks as destroy_stacks
from scripts.destroy.model import DestroyOptions, DestroyOutcome
from scripts.destroy.plan import plan
from scripts.destroy.steps import BENEATH, Steps
from scripts.fleet import control as fleet
from scripts.inventory.removal import terminate
from scripts.remote.head_node import HeadNode, HeadNodeError

_HEALTHY = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
"""Statuses of a cluster's own stack in which ParallelCluster stops its fleet."""


def destroy(
    deployment: Deployment, options: DestroyOptions, *, clock: Clock, say: Say, outcome: DestroyOutcome | None = None
) -> DestroyOutcome:
    """Delete the cluster, and other parts of a deployment on request, and search for leftovers.

    Needs what `plan`, `fleet.stop` and the deletions need. Once the fleet is stopped, what AWS refuses is recorded,
    for want of a permission or for any other reason, and what does not depend on it is done. A given outcome is filled
    meanwhile, for a caller who must know it after an interruption.

    Raises:
        OperationError: Something blocks it, jobs have nodes, or the fleet does not stop; nothing is deleted.
        botocore.exceptions.BotoCoreError: AWS does not answer, or there are no credentials any more.
        botocore.exceptions.ClientError: The credentials are not valid any more, or AWS refuses to stop the fleet.
    """
    planned = plan(deployment, options)
    if planned.obstacles:
        raise OperationError("\n".join(planned.obstacles))
    outcome = DestroyOutcome(started=clock.now()) if outcome is None else outcome
    steps = Steps(deployment, options, clock, say, outcome)
    if "cluster" in planned.parts:
        _stop_fleet(deployment, options, clock, say)
    beneath = [part for part in planned.parts if part in BENEATH]
    for part in planned.parts:
        if options.sweep and beneath[:1] == [part]:
            steps.sweep(last=False)
        if part == "storage":
            steps.delete_storage()
        else:
            steps.delete_part(part)
    if options.sweep:
        steps.sweep(last=True)
    steps.find_leftovers()
    outcome.ended = clock.now()
    return outcome


def _stop_fleet(deployment: Deployment, options: DestroyOptions, clock: Clock, say: Say) -> None:
    """Let ParallelCluster stop its fleet; if it cannot any more, terminate the compute nodes.

    Raises:
        OperationError: Jobs have nodes, or Slurm cannot be asked, or the fleet does not stop.
    """
    try:
        _end_jobs(deployment, options, clock, say)
    except OperationError as error:
        if not options.force:
            advice = "\n--force deletes it anyway." if isinstance(error, HeadNodeError) else ""
            raise OperationError(f"{error}{advice}") from error
        say(f"{error} Continuing, as requested.")
    deployment.account.forget()
    nodes = [each["InstanceId"] for each in fleet.instances(deployment)]
    if nodes:
        say(f"{len(nodes):,} compute nodes are being terminated.")
        terminate(deployment, nodes, clock, say)


def _end_jobs(deployment: Deployment, options: DestroyOptions, clock: Clock, say: Say) -> None:
    """Let ParallelCluster stop its fleet; if it cannot any more, check at least that no job has nodes."""
    deployment.account.forget()
    own = destroy_stacks.of_cluster(deployment)
    drain, force, limit = options.drain, options.force, options.drain_limit
    if own is not None and own["StackStatus"] in _HEALTHY:
        fleet.stop(deployment, clock=clock, say=say, drain=drain, force=force, drain_limit=limit)
    elif fleet.instances(deployment) and drain:
        fleet.drain(deployment, clock=clock, say=say, limit=limit)
    elif fleet.instances(deployment) and not force:
        fleet.check_jobs(HeadNode(deployment, clock), say, force=False)
