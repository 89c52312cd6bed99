"""Ends a deployment, or parts of it: what stands against it is said before anything is touched.

All state is AWS's: a call after an interruption, on whichever machine, goes on where the first one stopped.
"""

from __future__ import annotations

from collections.abc import Sequence

from scripts.clock import Clock
from scripts.command import OperationError, Say
from scripts.deployment import Deployment
from scripts.destroy import stacks as destruction_stacks
from scripts.destroy.outcome import Outcome
from scripts.destroy.plan import plan
from scripts.destroy.steps import BENEATH, Steps
from scripts.fleet import control as fleet
from scripts.inventory.leftovers_removal import terminate
from scripts.remote.head_node import HeadNode, HeadNodeError

_HEALTHY = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
"""Statuses of a cluster's own stack in which ParallelCluster stops its fleet."""


def destroy(
    deployment: Deployment,
    *,
    parts: Sequence[str] = ("cluster",),
    clock: Clock,
    say: Say,
    final_backup: bool = True,
    drain: bool = False,
    force: bool = False,
    drain_limit: float | None = None,
    unprotect: bool = False,
    bucket: bool = False,
    sweep: bool = False,
    outcome: Outcome | None = None,
) -> Outcome:
    """Delete the cluster, and other parts of a deployment on request, and look for leftovers.

    Needs what `plan`, `scripts.fleet.control.stop` and the deletions need. Once the fleet is stopped, what
    AWS refuses is noted, for want of a right or for any other reason, and what does not depend on it is done.

    Args:
        deployment: What to delete. Its settings say which cluster.
        parts: Of `ORDER`; those that stand on others go first.
        clock: Time.
        say: Told what happens, a sentence at a time.
        final_backup: Whether to back up each file system before anything of the storage is deleted.
        drain: Whether to let jobs end first.
        force: Whether to take nodes from jobs, and to go on where the head node cannot be asked.
        drain_limit: Seconds to wait for the jobs at most; None: as long as they take.
        unprotect: Whether to take termination protection away, and to delete what ``storage.retain`` keeps.
        bucket: Whether to delete the deployment's bucket, too, which ``storage.retain`` kept.
        sweep: Whether to remove leftovers that nothing keeps on purpose.
        outcome: Takes what comes of it, for who must know that when this is broken off.

    Raises:
        OperationError: Something stands against it, jobs have nodes, or the fleet does not stop; nothing is deleted.
        botocore.exceptions.BotoCoreError: AWS does not answer, or there are no credentials any more.
        botocore.exceptions.ClientError: The credentials are no longer good, or AWS refuses to stop the fleet.
    """
    planned = plan(deployment, parts, unprotect=unprotect, final_backup=final_backup, bucket=bucket, sweep=sweep)
    if planned.obstacles:
        raise OperationError("\n".join(planned.obstacles))
    outcome = Outcome(clock.now()) if outcome is None else outcome
    steps = Steps(deployment, clock, say, outcome, unprotect=unprotect, final_backup=final_backup)
    if "cluster" in planned.parts:
        _stop_fleet(deployment, clock, say, drain=drain, force=force, drain_limit=drain_limit)
    beneath = [part for part in planned.parts if part in BENEATH]
    for part in planned.parts:
        if sweep and beneath[:1] == [part]:
            steps.sweep(last=False)
        if part == "storage":
            steps.delete_storage(bucket=bucket)
        else:
            steps.delete_part(part)
    if sweep:
        steps.sweep(last=True)
    steps.look_for_leftovers()
    outcome.ended = clock.now()
    return outcome


def _stop_fleet(
    deployment: Deployment, clock: Clock, say: Say, *, drain: bool, force: bool, drain_limit: float | None
) -> None:
    """Let ParallelCluster stop its fleet; where it cannot any more, terminate the compute nodes.

    Raises:
        OperationError: Jobs have nodes, or nobody can tell, or the fleet does not stop.
    """
    try:
        _end_jobs(deployment, clock, say, drain=drain, force=force, drain_limit=drain_limit)
    except OperationError as error:
        if not force:
            advice = "\n--force deletes it all the same." if isinstance(error, HeadNodeError) else ""
            raise OperationError(f"{error}{advice}") from error
        say(f"{error} Going on, as asked for.")
    deployment.account.forget()
    nodes = [each["InstanceId"] for each in fleet.instances(deployment)]
    if nodes:
        say(f"{len(nodes):,} compute nodes are being terminated.")
        terminate(deployment, nodes, clock, say)


def _end_jobs(
    deployment: Deployment, clock: Clock, say: Say, *, drain: bool, force: bool, drain_limit: float | None
) -> None:
    """Let ParallelCluster stop its fleet; where it cannot any more, see at least that no job has nodes."""
    deployment.account.forget()
    own = destruction_stacks.of_cluster(deployment)
    if own is not None and own["StackStatus"] in _HEALTHY:
        fleet.stop(deployment, clock=clock, say=say, drain=drain, force=force, drain_limit=drain_limit)
    elif fleet.instances(deployment) and drain:
        fleet.drain(deployment, clock=clock, say=say, limit=drain_limit)
    elif fleet.instances(deployment) and not force:
        fleet.pass_jobs(HeadNode(deployment, clock), say, force=False)
