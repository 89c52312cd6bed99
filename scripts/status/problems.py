"""What is wrong with a deployment, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.preflight.reservations import BEFORE_ITS_START
from scripts.status.model import PROTECTED, FileSystem, HeadNodeStatus, Status, Unavailable
from scripts.status.software import UNIT

USABLE_FILE_SYSTEM = frozenset({"AVAILABLE", "UPDATING"})
"""Lifecycles of a file system that can be used: https://docs.aws.amazon.com/fsx/latest/APIReference/API_FileSystem.html."""


def problems(status: Status) -> list[str]:
    """Return what failed, is missing, or could not be collected; none: the deployment is healthy."""
    if not status.exists:
        return [f"there is nothing of {status.name} in {status.region}: make deploy ENV={status.environment}"]
    return [*_of_stacks(status), *_of_cluster(status), *_of_the_rest(status), *_unavailable(status)]


def _of_stacks(status: Status) -> Iterator[str]:
    for each in status.stacks:
        if each.name == status.cluster:
            continue
        if each.status is None:
            yield f"there is no stack {each.name}"
        elif each.failed:
            yield f"stack {each.name} is {each.status}"
    if (own := status.existing_stacks.get(status.cluster)) and own.failed:
        yield f"ParallelCluster's stack {own.name} is {own.status}"


def _of_cluster(status: Status) -> Iterator[str]:
    if status.head_node is None:
        yield f"the cluster {status.cluster} has no head node"
    elif isinstance(status.head_node, HeadNodeStatus) and status.head_node.state != "running":
        yield f"the head node {status.head_node.instance_id} is {status.head_node.state}"
    if status.fleet == PROTECTED:
        yield "the fleet is PROTECTED: queues are closed whose nodes kept failing"
    if status.software and (status.software.state == "failed" or status.software.is_interrupted):
        why = status.software.reason if status.software.state == "failed" else "nothing builds it now."
        retry = f"make run ENV={status.environment} ARGS='sudo systemctl restart {UNIT}'"
        yield f"the software of jobs is not ready: {why} To retry: {retry}"


def _of_the_rest(status: Status) -> Iterator[str]:
    if isinstance(status.file_system, FileSystem) and status.file_system.lifecycle not in USABLE_FILE_SYSTEM:
        yield f"the file system {status.file_system.file_system_id} is {status.file_system.lifecycle}"
    if not isinstance(status.reservations, Unavailable):
        for each in status.reservations:
            if each.state != "active" and each.state not in BEFORE_ITS_START:
                yield f"the reservation {each.reservation_id} is {each.state}"
    if not isinstance(status.alarms, Unavailable):
        yield from (f"alarm {each} is raised" for each in status.alarms)


def _unavailable(status: Status) -> Iterator[str]:
    for name, each in status.unavailable().items():
        if each.is_problem and name != "diagnosis" and not (name == "slurm" and status.lacks_head_node):
            yield f"{name.replace('_', ' ')}: {each.reason}"
