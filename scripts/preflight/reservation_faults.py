"""What is wrong with a capacity reservation, for the compute resources that are launched into it.

What makes a reservation unfit for a queue is what aws-parallelcluster 3.16.1 checks (validators/ec2_validators.py), and
what it does not: that it is active, of default tenancy, and does not end soon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from scripts.preflight.check import Status
from scripts.preflight.reservations import BEFORE_ITS_START, CAPACITY_BLOCK

if TYPE_CHECKING:
    from scripts.deployment import Deployment
    from scripts.preflight.reservations import User

PLATFORM = "Linux/UNIX"
"""Platform of reservations for every OS that the settings know (CAPACITY_RESERVATION_OS_MAP in its constants.py)."""

SOON = timedelta(hours=24)

_MIN_BLOCK_HOURS = 24
"""Shortest Capacity Block (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html)."""


class Fault(NamedTuple):
    """What is wrong with a reservation, as the parts of a finding."""

    status: Status
    sentence: str
    hint: str


def now() -> datetime:
    """Return the time that starts and ends of reservations are compared with."""
    return datetime.now(UTC)


def reservation_faults(deployment: Deployment, reservation: dict[str, Any], using: Sequence[User]) -> Iterator[Fault]:
    """Yield what is wrong with a reservation, however many instances it has."""
    settings = deployment.settings
    yield from _state_faults(deployment, reservation, using)
    zone_id = reservation["AvailabilityZoneId"]
    if zone_id != settings.zone_id:
        sentence = f"it is in {zone_id}, the deployment in {settings.zone_id}"
        yield Fault(Status.FAIL, sentence, f"zone_id: {zone_id}, or a reservation in {settings.zone_id}")
    if reservation["InstancePlatform"] != PLATFORM:
        sentence = f"it is for {reservation['InstancePlatform']}; {settings.cluster.os} needs {PLATFORM}"
        yield Fault(Status.FAIL, sentence, f"a reservation for {PLATFORM}")
    if reservation["Tenancy"] != "default":
        sentence = f"its tenancy is {reservation['Tenancy']}; ParallelCluster launches instances of default tenancy"
        yield Fault(Status.FAIL, sentence, "a reservation of default tenancy")
    for user in using:
        yield from _user_faults(reservation, user)
    yield from unplaced_faults(reservation, using)


def _state_faults(deployment: Deployment, reservation: dict[str, Any], using: Sequence[User]) -> Iterator[Fault]:
    state, start, end = reservation["State"], reservation.get("StartDate"), reservation.get("EndDate")
    another = _another(deployment, reservation, using)
    if state in BEFORE_ITS_START:
        begins = f"it is {state}" + (f" and starts {time_text(start)}" if start else "")
        static = next((user for user in using if user.resource.min_count and not wants_block(user)), None)
        if static:
            hint = f"{static.path}.min_count: 0, or deploy later"
            yield Fault(Status.FAIL, f"{begins}; the creation of the cluster waits for static nodes", hint)
        else:
            yield Fault(Status.WARN, f"{begins}; its nodes cannot start before", "deploy later, or wait for the nodes")
    elif state != "active":
        since = f" since {time_text(end)}" if end and end <= now() else ""
        yield Fault(Status.FAIL, f"it is {state}{since}", another)
    elif end and end <= now():
        yield Fault(Status.FAIL, f"it ended {time_text(end)}", another)
    elif end and end - now() < SOON:
        yield Fault(Status.WARN, f"it ends {time_text(end)}, and its nodes with it", f"extend it, or {another}")


def _another(deployment: Deployment, reservation: dict[str, Any], using: Sequence[User]) -> str:
    """Return where the settings name a reservation, and for a Capacity Block how to find one to buy."""
    by_id = using[0].resource.capacity_reservation_id
    key = "capacity_reservation_id" if by_id else "capacity_reservation_group_arn"
    places = ", ".join(f"{user.path}.{key}" for user in using)
    hint = f"{places}: another reservation, or null" if by_id else f"put another one into the group of {places}"
    if reservation.get("ReservationType") != CAPACITY_BLOCK:
        return hint
    offers = {
        "--instance-type": using[0].resource.instance_type,
        "--instance-count": str(sum(user.resource.max_count for user in using)),
        "--capacity-duration-hours": str(_MIN_BLOCK_HOURS),
    }
    words = (word for option in offers.items() for word in option)
    return f"{hint}; on offer: `{deployment.command('ec2', 'describe-capacity-block-offerings', *words)}`"


def _user_faults(reservation: dict[str, Any], user: User) -> Iterator[Fault]:
    """Yield what does not fit between a reservation and a compute resource."""
    queue_path = user.path.rpartition(".")[0]
    of_type, instance_type = reservation["InstanceType"], user.resource.instance_type
    if of_type != instance_type:
        sentence = f"it is for {of_type}, and {user.path} has {instance_type}"
        yield Fault(
            Status.FAIL, sentence, f"{user.path}.instance_type: {of_type}, or a reservation for {instance_type}"
        )
    is_block = reservation.get("ReservationType") == CAPACITY_BLOCK
    if is_block is not wants_block(user):
        is_what, is_not = ("a Capacity Block", "no") if is_block else ("no Capacity Block", "a")
        wanted = "CAPACITY_BLOCK" if is_block else "ONDEMAND"
        yield Fault(
            Status.FAIL,
            f"it is {is_what}, and {queue_path} has capacity_type {user.queue.capacity_type}",
            f"{queue_path}.capacity_type: {wanted}, or a reservation that is {is_not} Capacity Block",
        )
    chosen = user.queue.existing_placement_group
    made_in = reservation.get("PlacementGroupArn", "").rpartition("/")[2]
    if chosen and made_in and chosen != made_in:
        sentence = f"it was made in placement group {made_in}, and {queue_path} is in {chosen}"
        yield Fault(Status.FAIL, sentence, f"{queue_path}.existing_placement_group: {made_in}")


def unplaced_faults(reservation: dict[str, Any], using: Sequence[User]) -> Iterator[Fault]:
    """Yield where a queue is in a placement group, and its reservation was made outside of any.

    ParallelCluster warns of it (PlacementGroupCapacityReservationValidator), in a group also if another member fits;
    and a warning stops the deployment.
    """
    for user in using:
        queue_path, chosen = user.path.rpartition(".")[0], user.queue.existing_placement_group
        if chosen and not reservation.get("PlacementGroupArn"):
            yield Fault(
                Status.FAIL,
                f"it was made outside of placement groups, and {queue_path} is in {chosen}",
                f"{queue_path}.existing_placement_group: null and placement_group: none, or a reservation in {chosen}",
            )


def wants_block(user: User) -> bool:
    """Tell whether a compute resource is to run in a Capacity Block."""
    return user.queue.capacity_type == "CAPACITY_BLOCK"


def time_text(moment: datetime) -> str:
    """Return a moment as findings tell it."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
