"""What is wrong with a deployment, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from scripts.preflight.reservations import BEFORE_ITS_START
from scripts.status.model import (
    PROTECTED,
    USABLE_FILE_SYSTEM,
    FileSystem,
    Instances,
    Reservation,
    Status,
    Unseen,
)
from scripts.status.software import UNIT


def faults(status: Status) -> list[str]:
    """Return what failed, is missing, or could not be seen; none: it is healthy."""
    if not status.exists:
        return [f"there is nothing of {status.name} in {status.region}: make deploy ENV={status.environment}"]
    return [*_of_stacks(status), *_of_cluster(status), *_of_the_rest(status), *_unseen(status)]


def unseen(status: Status) -> dict[str, Unseen]:
    """Return what could not be looked at, by what it is."""
    stacks = next((each for each in status.stacks if isinstance(each, Unseen)), None)
    sections = {
        "stacks": stacks,
        "other_clusters": status.others,
        "instances": status.instances,
        "fleet": status.fleet,
        "slurm": status.slurm,
        "file_system": status.file_system,
        "usage": status.usage,
        "reservations": status.reservations,
        "alarms": status.alarms,
    }
    return {name: each for name, each in sections.items() if isinstance(each, Unseen)}


def _of_stacks(status: Status) -> Iterator[str]:
    for each in status.stacks:
        if isinstance(each, Unseen) or each.name == status.cluster:
            continue
        if each.status is None:
            yield f"there is no stack {each.name}"
        elif each.failed:
            yield f"stack {each.name} is {each.status}"
    if (own := status.known_stacks.get(status.cluster)) and own.failed:
        yield f"ParallelCluster's stack {own.name} is {own.status}"


def _of_cluster(status: Status) -> Iterator[str]:
    if isinstance(status.instances, Instances):
        head_node = status.instances.head_node
        if head_node is None:
            yield f"the cluster {status.cluster} has no head node"
        elif head_node.state != "running":
            yield f"the head node {head_node.instance_id} is {head_node.state}"
    if status.fleet == PROTECTED:
        yield "the fleet is PROTECTED: queues are closed whose nodes kept failing"
    if status.software and (status.software.state == "failed" or status.software.is_interrupted):
        what = status.software.reason if status.software.state == "failed" else "nothing builds it now."
        retry = f"make run ENV={status.environment} ARGS='sudo systemctl restart {UNIT}'"
        yield f"the software of jobs is not ready: {what} Again: {retry}"


def _of_the_rest(status: Status) -> Iterator[str]:
    if isinstance(status.file_system, FileSystem) and status.file_system.lifecycle not in USABLE_FILE_SYSTEM:
        yield f"the file system {status.file_system.file_system_id} is {status.file_system.lifecycle}"
    if not isinstance(status.reservations, Unseen):
        yield from (
            f"the reservation {each.reservation_id} is {each.state}"
            for each in status.reservations
            if not _is_usable(each)
        )
    if not isinstance(status.alarms, Unseen):
        yield from (f"alarm {each} is raised" for each in status.alarms)


def _is_usable(reservation: Reservation) -> bool:
    return reservation.state == "active" or reservation.state in BEFORE_ITS_START


def _unseen(status: Status) -> Iterator[str]:
    for name, each in unseen(status).items():
        if each.is_fault and not (name == "slurm" and status.lacks_head_node):
            yield f"{name.replace('_', ' ')}: {each.reason}"
