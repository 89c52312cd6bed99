"""The compute fleet of a cluster: its nodes, and how it is stopped, started and drained.

ParallelCluster keeps one status for all compute nodes of a cluster. A change is requested in DynamoDB; clustermgtd on
the head node carries it out within a minute. To stop, it sets all queues INACTIVE and terminates the nodes; to start,
it sets all queues UP. Otherwise it leaves a queue alone that somebody has set to DRAIN.
https://github.com/aws/aws-parallelcluster-node/blob/develop/src/slurm_plugin/clustermgtd.py

trn1 instances take many minutes from shutting-down to terminated, and keep their placement group in use until then.
https://github.com/aws/aws-parallelcluster/issues/6329
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections import Counter
from collections.abc import Callable
from datetime import UTC
from typing import Any, Final

from scripts.account import compute_fleet
from scripts.account.deployment import Deployment
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.values import Text
from scripts.account.slurm import SlurmState, slurm_state
from scripts.change.fleet.queues import (
    REQUEUE,
    UP,
    close_queues,
    listed,
    nodes,
    open_queues,
    unfinished,
    wait_for_end,
)
from scripts.core import interrupts
from scripts.core.aws_errors import credentials_hint
from scripts.core.clock import Changes, Clock
from scripts.core.document import Document
from scripts.core.errors import HeadNodeError, OperationError, told
from scripts.core.figures import counted
from scripts.core.terminal import Say
from toolchain.parallelcluster import FleetRequestError, ParallelCluster

ENDING_JOBS: Final = "--drain waits until all jobs have ended, --force terminates their nodes"
SECONDS_BETWEEN_POLLS: Final = 15.0
_LIMIT = 3600.0
Confirm = Callable[[str], None]
"""Asks whether to continue after a text; raises OperationError if the answer is no."""


def request(deployment: Deployment, wanted: str) -> None:
    """Request START_REQUESTED or STOP_REQUESTED, by ParallelCluster's own code.

    It rejects that, for example, while the cluster is being updated.
    """
    try:
        with ParallelCluster(os.environ) as parallelcluster:
            name, region = deployment.settings.cluster_spec.name, deployment.settings.region
            parallelcluster.version = deployment.settings.cluster.parallelcluster_version
            with interrupts.changing():
                parallelcluster.update_compute_fleet(region, name, wanted)
    except (FileNotFoundError, FleetRequestError) as error:
        raise OperationError(f"ParallelCluster rejects the request {wanted}: {error}") from None


def stop(
    deployment: Deployment,
    *,
    clock: Clock,
    say: Say,
    drain: bool = False,
    force: bool = False,
    drain_limit: float | None = None,
    confirm: Confirm | None = None,
) -> None:
    """Stop the fleet, and wait until all compute nodes are terminated. Interrupted, the same call continues.

    With `drain` it waits for the end of all jobs first, `drain_limit` seconds at most, and then an hour for the nodes.
    With `force` it stops although jobs have nodes, or Slurm cannot be asked: it says which ones, or lets `confirm` ask.

    Raises:
        OperationError: Jobs have nodes, Slurm or ParallelCluster rejects it, or nodes are not terminated in time.
    """
    deployment.account.forget()
    before = compute_fleet.known_status(deployment)
    if before == compute_fleet.STOPPED and not compute_fleet.instances(deployment):
        say("The fleet is STOPPED and has no node.")
        return
    if before != compute_fleet.STOPPED:
        head_node = HeadNode(deployment, clock)  # nothing else carries out a request
    if before not in compute_fleet.STOP_STATUSES:
        if drain:
            _drain(deployment, head_node, clock, say, drain_limit)
        else:
            check_jobs(head_node, say, force=force, confirm=confirm)
        request(deployment, compute_fleet.STOP_STATUSES[0])
        say("Stop requested. Trn1 nodes can take more than 15 minutes to terminate.")
    _wait_until_gone(deployment, clock, say)


def start(deployment: Deployment, *, clock: Clock, say: Say, overrule: bool = False) -> None:
    """Start the fleet, open drained queues, and wait for the static nodes (min_count), an hour for each.

    Queues that the guard of the budget closed stay closed, unless it is overruled; then it closes none either that were
    INACTIVE when the limit was reached.

    Raises:
        OperationError: Slurm or ParallelCluster rejects it, or the nodes are not ready in time.
    """
    deployment.account.forget()
    before = compute_fleet.known_status(deployment)
    head_node = HeadNode(deployment, clock)
    if before not in compute_fleet.START_STATUSES:
        request(deployment, compute_fleet.START_STATUSES[0])
        say("Start requested.")
    report = Changes(say)

    def runs() -> bool:
        deployment.account.forget()
        now = compute_fleet.status(deployment)
        if now not in compute_fleet.START_STATUSES:
            raise OperationError(
                f"The fleet is {now}: it was stopped again, or nodes keep failing",
                f"./ultracluster diagnose {deployment.name}",
            )
        report(f"The fleet is {now}.")
        return now == compute_fleet.RUNNING

    clock.wait(runs, report, every=SECONDS_BETWEEN_POLLS, limit=_LIMIT)
    try:
        is_spent, closed = ask_guard(deployment, head_node, clock)
        if overrule and (is_spent or closed):
            _overrule_budget(deployment, head_node, clock, say)
            closed = []
        if closed:
            say(
                f"Closed by the budget until the month ends: {', '.join(closed)}. "
                f"Open them: ./ultracluster fleet start {deployment.name}"
            )
        open_queues(head_node, say, but=closed)
        _wait_for_static_nodes(deployment, head_node, clock, report)
    except HeadNodeError as error:
        if before == compute_fleet.RUNNING:
            raise
        say(f"ParallelCluster opens the queues of a fleet that it starts; whether it has is not known: {error}")


def drain(deployment: Deployment, *, clock: Clock, say: Say, limit: float | None = None) -> None:
    """Close the queues to new jobs, and wait until none runs or waits. `start` opens the queues again.

    It waits `limit` seconds at most; None: as long as the jobs take.

    Raises:
        OperationError: Slurm cannot be asked, or jobs are left after the limit.
    """
    deployment.account.forget()
    head_node = HeadNode(deployment, clock)
    left = unfinished(slurm_state(head_node))
    if left and (now := compute_fleet.known_status(deployment)) in compute_fleet.STOP_STATUSES:
        hint = f"./ultracluster fleet start {deployment.name}"
        raise OperationError(f"The fleet is {now}: {counted(left, 'waiting jobs')} cannot end", hint)
    _drain(deployment, head_node, clock, say, limit)


def check_jobs(head_node: HeadNode, say: Say, *, force: bool, confirm: Confirm | None = None) -> None:
    """Raise OperationError if jobs have nodes, or Slurm cannot be asked; forced, say it, or let `confirm` ask."""
    from botocore.exceptions import ClientError

    try:
        state = slurm_state(head_node)
    except (ClientError, HeadNodeError) as error:
        if credentials_hint(error):
            raise
        unasked = f"Slurm cannot be asked whether jobs run: {told(error)}"
        if not force:
            raise OperationError(unasked, "--force stops the fleet anyway") from None
        (confirm or say)(f"{unasked}\nJobs that cannot be listed lose their nodes. {REQUEUE}")
        return
    if not state.active_jobs:
        return
    if not force:
        raise OperationError(jobs_with_nodes(state), ENDING_JOBS)
    (confirm or say)(f"These jobs lose their nodes:\n{listed(state, waiting=False)}\n{REQUEUE}")


def jobs_with_nodes(state: SlurmState) -> str:
    """Return the jobs that have nodes; empty: none has."""
    return f"Jobs with nodes: {state.active_jobs}\n{listed(state, waiting=False)}" if state.active_jobs else ""


def _drain(deployment: Deployment, head_node: HeadNode, clock: Clock, say: Say, limit: float | None) -> None:
    try:
        close_queues(head_node, say)
        wait_for_end(head_node, clock, say, limit)
    except BaseException:
        say(f"The queues stay closed to new jobs. Open them: ./ultracluster fleet start {deployment.name}")
        raise


class _Spending(Document):
    """What the head node has of the budget: records by cluster, and the month in which the guard is overruled."""

    records: dict[Text, dict[str, Any]]
    overruled: Text


def ask_guard(deployment: Deployment, head_node: HeadNode, clock: Clock) -> tuple[bool, list[str]]:
    """Return whether the month's budget is spent, and the queues of this cluster that its guard keeps closed.

    Neither, if the guard is overruled. It counts nodes of all clusters of the deployment (nodes/metrics).

    Raises:
        HeadNodeError: The head node does not answer.
    """
    budget = deployment.settings.budget
    if budget is None or budget.action == "none":
        return False, []
    directory, month = _spending(deployment, clock)
    words = program.as_user(deployment.system_user, program.words("files", "spending", directory))
    answer = program.ask(head_node, words, "spending", _Spending)
    if answer.overruled == month:
        return False, []
    spent, closed = 0.0, []
    for cluster, record in answer.records.items():
        with contextlib.suppress(ValueError, LookupError, TypeError):  # one that is damaged
            if record["month"] == month:
                spent += float(record["usd"])
                if cluster == deployment.settings.cluster_spec.name:
                    closed = [*record["closed"]]
    return spent >= budget.monthly_usd, closed


def _overrule_budget(deployment: Deployment, head_node: HeadNode, clock: Clock, say: Say) -> None:
    """Let the head node not close queues again this month."""
    directory, month = _spending(deployment, clock)
    answer = head_node.run(f"echo {month} >{shlex.quote(directory)}/overruled")
    if answer.code:
        raise OperationError(f"The guard of the budget cannot be overruled: {answer.errors.strip()}")
    say("The budget closes no queue until the month ends.")


def _spending(deployment: Deployment, clock: Clock) -> tuple[str, str]:
    """Return where the guard keeps its files, and the month as it writes it."""
    directory = f"{deployment.settings.storage.file_system.mount_dir}/ultracluster/spending"
    return directory, f"{clock.now().astimezone(UTC):%Y-%m}"


def _wait_until_gone(deployment: Deployment, clock: Clock, say: Say) -> None:
    report = Changes(say)

    def gone() -> bool:
        deployment.account.forget()
        now = compute_fleet.status(deployment)
        states = Counter(each["State"]["Name"] for each in compute_fleet.instances(deployment))
        if now not in compute_fleet.STOP_STATUSES:
            raise OperationError(f"The fleet is {now}: it was started again.")
        parts = ", ".join(f"{count:,} {state}" for state, count in sorted(states.items()))
        report(f"The fleet is {now}, {nodes(states.total())} left{': ' if parts else '.'}{parts}")
        return now == compute_fleet.STOPPED and not states

    clock.wait(gone, report, every=SECONDS_BETWEEN_POLLS, limit=_LIMIT)


def _wait_for_static_nodes(deployment: Deployment, head_node: HeadNode, clock: Clock, report: Changes) -> None:
    def ready() -> bool:
        state = slurm_state(head_node)
        if state.missing_static:
            report(
                f"Static nodes that are not ready: {state.missing_static:,}. Why nodes fail: ./ultracluster diagnose."
            )
            return False
        closed = {name: each for name, each in state.availability.items() if each != UP}
        if closed and closed.keys() - {*ask_guard(deployment, head_node, clock)[1]}:
            names = ", ".join(f"{name} ({each})" for name, each in closed.items())
            raise OperationError(f"The fleet is {compute_fleet.RUNNING}, but takes no jobs in: {names}")
        return True

    clock.wait(ready, report, every=SECONDS_BETWEEN_POLLS, limit=_LIMIT)
