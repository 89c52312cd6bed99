"""The compute nodes of a cluster: what EC2 has of them, and how they are stopped and started.

ParallelCluster keeps one status for all compute nodes of a cluster. Who wants it changed leaves a request; clustermgtd
on the head node follows within a minute. To stop, it sets all queues INACTIVE and terminates the nodes; to start, it
sets all queues UP. In between it leaves a queue alone that somebody has set to DRAIN.
https://github.com/aws/aws-parallelcluster-node/blob/develop/src/slurm_plugin/clustermgtd.py

trn1 instances take many minutes from shutting-down to terminated, and hold on to their placement group until then.
https://github.com/aws/aws-parallelcluster/issues/6329
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Final

from scripts.aws_errors import is_not_found
from scripts.clock import Clock
from scripts.command import OperationError, Say
from scripts.deployment import Deployment
from scripts.fleet import queues
from scripts.fleet.jobs import (
    LISTED,
    Changes,
    close_queues,
    listed,
    nodes,
    open_queues,
    patiently,
    slurm_state,
    unfinished,
    wait_for_end,
)
from scripts.remote.head_node import HeadNode, HeadNodeError
from toolchain.parallelcluster import FleetRequestError, ParallelCluster

UNKNOWN: Final = "UNKNOWN"
STOPPED: Final = "STOPPED"
RUNNING: Final = "RUNNING"
PROTECTED: Final = "PROTECTED"
STOP_STATUSES: Final = ("STOP_REQUESTED", "STOPPING", STOPPED)
START_STATUSES: Final = ("START_REQUESTED", "STARTING", RUNNING)
"""In the order in which they follow each other; the first leaves `request`, the others leaves clustermgtd.

Beside them is PROTECTED: running, but queues are closed whose nodes kept failing.
https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-protected-mode-v3.html
"""
SECONDS_BETWEEN_LOOKS: Final = 15.0
_COMPUTE = {"Key": "parallelcluster:node-type", "Value": "Compute"}


def instances(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the compute nodes that are not terminated, as EC2 describes them. Needs ec2:DescribeInstances."""
    return [each for each in deployment.nodes() if _COMPUTE in each.get("Tags", [])]


def status(deployment: Deployment) -> str:
    """Return the status of the fleet: one of `STOP_STATUSES`, of `START_STATUSES`, PROTECTED, or UNKNOWN: no cluster.

    One call; needs dynamodb:GetItem.
    """
    from botocore.exceptions import ClientError

    table = f"parallelcluster-{deployment.settings.cluster_spec.name}"
    try:
        found = deployment.account.ask("dynamodb", "get_item", TableName=table, Key={"Id": {"S": "COMPUTE_FLEET"}})
    except ClientError as error:
        if is_not_found(error):
            return UNKNOWN
        raise
    return str(found.get("Item", {}).get("Data", {}).get("M", {}).get("status", {}).get("S", UNKNOWN))


def known_status(deployment: Deployment) -> str:
    """Return the `status` of the fleet of a cluster that there is.

    Raises:
        OperationError: There is none.
    """
    found = status(deployment)
    if found == UNKNOWN:
        name, region = deployment.settings.cluster_spec.name, deployment.settings.region
        first = f"make deploy ENV={deployment.environment}"
        raise OperationError(f"There is no fleet of a cluster {name} in {region}. First: {first}")
    return found


def request(deployment: Deployment, wanted: str) -> None:
    """Leave a request as ParallelCluster does.

    Needs cloudformation:DescribeStacks, dynamodb:GetItem and dynamodb:UpdateItem.

    Args:
        deployment: Whose fleet.
        wanted: START_REQUESTED or STOP_REQUESTED.

    Raises:
        OperationError: ParallelCluster refuses, for example while the cluster is being updated.
    """
    try:
        with ParallelCluster(os.environ) as parallelcluster:
            name, region = deployment.settings.cluster_spec.name, deployment.settings.region
            parallelcluster.update_compute_fleet(region, name, wanted)
    except (FileNotFoundError, FleetRequestError) as error:
        raise OperationError(f"ParallelCluster does not take the request {wanted}: {error}") from None


def stop(
    deployment: Deployment,
    *,
    clock: Clock,
    say: Say,
    drain: bool = False,
    force: bool = False,
    drain_limit: float | None = None,
    limit: float = 3600,
) -> None:
    """Stop the fleet, and wait until EC2 has every compute node terminated. Run again, it goes on where it was.

    Needs what `status`, `instances`, `request` and `HeadNode` need.

    Args:
        deployment: Whose fleet.
        clock: Time.
        say: Told what is waited for, a sentence at a time.
        drain: Whether to let all jobs come to their end first.
        force: Whether to take nodes from jobs, and to go on where Slurm cannot be asked for them.
        drain_limit: Seconds to wait for the jobs at most; None: as long as they take.
        limit: Seconds to wait at most once the stop is requested.

    Raises:
        OperationError: Jobs have nodes, Slurm or ParallelCluster refuses, or the nodes are not gone in time.
    """
    deployment.account.forget()
    before = known_status(deployment)
    if before == STOPPED and not instances(deployment):
        say("The fleet is STOPPED and has no node.")
        return
    if before != STOPPED:
        head_node = HeadNode(deployment, clock)  # nobody else follows a request
    if before not in STOP_STATUSES:
        if drain:
            _drain(deployment, head_node, clock, say, drain_limit)
        else:
            pass_jobs(head_node, say, force=force)
        request(deployment, STOP_STATUSES[0])
        say("The stop is requested. Trn1 nodes can take more than 15 minutes to terminate.")
    _wait_until_gone(deployment, clock, say, limit)


def start(deployment: Deployment, *, clock: Clock, say: Say, limit: float = 3600) -> None:
    """Start the fleet, open queues that were drained, and wait for the nodes that always run (min_count).

    Needs what `status`, `request` and `HeadNode` need.

    Args:
        deployment: Whose fleet.
        clock: Time.
        say: Told what is waited for, a sentence at a time.
        limit: Seconds to wait at most, for the fleet and again for the nodes.

    Raises:
        OperationError: Slurm or ParallelCluster refuses, or the nodes are not there in time.
    """
    deployment.account.forget()
    before = known_status(deployment)
    head_node = HeadNode(deployment, clock)
    if before not in START_STATUSES:
        request(deployment, START_STATUSES[0])
        say("The start is requested.")
    told = Changes(say)

    def runs() -> bool:
        deployment.account.forget()
        now = status(deployment)
        if now not in START_STATUSES:
            raise OperationError(
                f"The fleet is {now}: it was stopped again, or its nodes keep failing (make diagnose)."
            )
        told(f"The fleet is {now}.")
        return now == RUNNING

    if not clock.until(patiently(runs, clock, told), every=SECONDS_BETWEEN_LOOKS, limit=limit):
        raise OperationError(
            f"After {limit / 60:.0f} min the fleet is {status(deployment)}. The same command goes on waiting; "
            "/var/log/parallelcluster/clustermgtd on the head node tells more."
        )
    open_queues(head_node, say)
    _wait_for_static_nodes(head_node, clock, told, limit)


def drain(deployment: Deployment, *, clock: Clock, say: Say, limit: float | None = None) -> None:
    """Let the queues take no new jobs, and wait until none runs or waits. `start` opens the queues again.

    Needs what `status` and `HeadNode` need.

    Args:
        deployment: Whose fleet.
        clock: Time.
        say: Told what is waited for, a sentence at a time.
        limit: Seconds to wait at most; None: as long as the jobs take.

    Raises:
        OperationError: Slurm cannot be asked, or jobs are left after the limit.
    """
    deployment.account.forget()
    head_node = HeadNode(deployment, clock)
    left = unfinished(slurm_state(head_node))
    if left and (now := known_status(deployment)) in STOP_STATUSES:
        raise OperationError(f"The fleet is {now}: {left} jobs that wait cannot come to their end. First start it.")
    _drain(deployment, head_node, clock, say, limit)


def pass_jobs(head_node: HeadNode, say: Say, *, force: bool) -> None:
    """Refuse to go on where jobs have nodes, or nobody can tell, unless it is forced.

    Raises:
        OperationError: So it is.
    """
    from botocore.exceptions import ClientError

    from scripts.aws_errors import credentials_hint

    try:
        state = slurm_state(head_node)
    except (ClientError, HeadNodeError) as error:
        if credentials_hint(error):
            raise
        if not force:
            raise OperationError(
                f"Slurm cannot be asked whether jobs run: {error}\n--force stops the fleet all the same."
            ) from None
        say(f"Slurm cannot be asked whether jobs run: {error}")
        return
    if state.active_jobs and not force:
        raise OperationError(
            f"Jobs with nodes: {state.active_jobs}\n{listed(state, waiting=False)}\n"
            "--drain waits until all jobs have ended, --force takes their nodes away."
        )


def _drain(deployment: Deployment, head_node: HeadNode, clock: Clock, say: Say, limit: float | None) -> None:
    try:
        close_queues(head_node, say)
        wait_for_end(head_node, clock, say, limit)
    except BaseException:
        say(f"The queues stay closed to new jobs. To open them: make fleet ENV={deployment.environment} ARGS=start")
        raise


def _wait_until_gone(deployment: Deployment, clock: Clock, say: Say, limit: float) -> None:
    told = Changes(say)

    def gone() -> bool:
        deployment.account.forget()
        now, states = status(deployment), Counter(each["State"]["Name"] for each in instances(deployment))
        if now not in STOP_STATUSES:
            raise OperationError(f"The fleet is {now}: somebody has started it again.")
        parts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        told(f"The fleet is {now}, {nodes(states.total())} left{': ' if parts else '.'}{parts}")
        return now == STOPPED and not states

    if not clock.until(patiently(gone, clock, told), every=SECONDS_BETWEEN_LOOKS, limit=limit):
        left = [each["InstanceId"] for each in instances(deployment)]
        shown = ", ".join(left[:LISTED]) + (", ..." if len(left) > LISTED else "")
        raise OperationError(
            f"After {limit / 60:.0f} min the fleet is {status(deployment)} and has {nodes(len(left))} left"
            f"{': ' if left else ''}{shown}. The same command goes on waiting."
        )


def _wait_for_static_nodes(head_node: HeadNode, clock: Clock, told: Changes, limit: float) -> None:
    found: list[queues.Queues] = []

    def there() -> bool:
        found.append(queues.ask(head_node))
        if missing := found[-1].missing_static:
            told(f"Nodes that always run, still to come: {missing:,}")
        return not missing

    if not clock.until(patiently(there, clock, told), every=SECONDS_BETWEEN_LOOKS, limit=limit):
        missing = nodes(found[-1].missing_static) if found else "not known how many"
        raise OperationError(
            f"After {limit / 60:.0f} min {missing} of those that always run are not there. "
            "The same command goes on waiting; make diagnose tells why nodes fail."
        )
    closed = [f"{queue} ({state})" for queue, state in found[-1].states.items() if state != queues.UP]
    if closed:
        raise OperationError(f"The fleet is {RUNNING}, but takes no jobs in: {', '.join(closed)}")
