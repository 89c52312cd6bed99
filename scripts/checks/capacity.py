"""Whether reserved capacity is there: on-demand capacity reservations, groups of them, and Capacity Blocks.

What makes a reservation unfit for a queue is what aws-parallelcluster 3.16.1 checks (validators/ec2_validators.py), and
what it does not: that it is active, has instances free at this moment, and does not end soon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from scripts.checks.check import Finding, Status, check
from scripts.checks.reservations import CAPACITY_BLOCK, members, reservations, size, still_to_launch, users

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.checks.deployment import Deployment
    from scripts.checks.reservations import User

PLATFORM = "Linux/UNIX"
"""Platform of reservations for every OS that the settings know (CAPACITY_RESERVATION_OS_MAP in its constants.py)."""

SOON = timedelta(hours=24)
_BEFORE_ITS_START = frozenset({"assessing", "delayed", "payment-pending", "pending", "scheduled"})
_GROUP_TYPE = "AWS::EC2::CapacityReservationPool"


class Fault(NamedTuple):
    """What is wrong with a reservation, as the parts of a finding."""

    status: Status
    sentence: str
    hint: str


def now() -> datetime:
    """Return the time that starts and ends of reservations are compared with."""
    return datetime.now(UTC)


@check(
    "capacity-reservation",
    "On-demand capacity reservations",
    prevents="Nodes would not start: their reservation is gone, full, or for other instances or another place.",
    calls=("ec2:DescribeCapacityReservations", "ec2:DescribeInstances"),
)
def capacity_reservation(deployment: Deployment) -> Iterator[Finding]:
    """Look at each reservation that on-demand queues name."""
    yield from _findings(deployment, blocks=False)


@check(
    "capacity-block",
    "Capacity Blocks",
    prevents="Nodes would not start: their Capacity Block is over, has not begun, or is too small.",
    calls=("ec2:DescribeCapacityReservations", "ec2:DescribeInstances"),
)
def capacity_block(deployment: Deployment) -> Iterator[Finding]:
    """Look at each Capacity Block that queues name."""
    yield from _findings(deployment, blocks=True)


@check(
    "capacity-reservation-group",
    "Groups of capacity reservations",
    prevents="Nodes would be launched on demand, which is what the reservations were made to avoid, or not at all.",
    calls=(
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeInstances",
        "resource-groups:GetGroupConfiguration",
        "resource-groups:ListGroupResources",
    ),
)
def capacity_reservation_group(deployment: Deployment) -> Iterator[Finding]:
    """Look at each group that queues name, and at what is in it."""
    for group_arn, using in users(deployment.settings, "capacity_reservation_group_arn").items():
        command = deployment.command("resource-groups", "list-group-resources", "--group", group_arn)
        fault = _group_fault(deployment, group_arn, using[0])
        if fault:
            yield Finding(*fault, command, group_arn)
            continue
        by_type = defaultdict(list)
        for user in using:
            by_type[user.resource.instance_type].append(user)
        for same_type in by_type.values():
            yield _group_finding(deployment, group_arn, same_type, command)


def _findings(deployment: Deployment, *, blocks: bool) -> Iterator[Finding]:
    known = reservations(deployment)
    for reservation_id, using in users(deployment.settings, "capacity_reservation_id").items():
        if not any(_wants_block(user) is blocks for user in using):
            continue
        command = deployment.command(
            "ec2", "describe-capacity-reservations", "--capacity-reservation-ids", reservation_id
        )
        if reservation_id not in known:
            where = f"no reservation that this account can use in {deployment.settings.region}"
            listing = deployment.command("ec2", "describe-capacity-reservations")
            hint = f"{using[0].path}.capacity_reservation_id: one of those that `{listing}` lists"
            yield Finding(Status.FAIL, where, hint, command, reservation_id)
            continue
        reservation = known[reservation_id]
        more = still_to_launch(deployment, using, [reservation_id])
        faults = [
            *_faults(deployment.settings, reservation, using),
            *_count_faults(deployment, reservation, more, using),
        ]
        yield _joined(faults, _summary(reservation, more), command, reservation_id)


def _group_fault(deployment: Deployment, group_arn: str, user: User) -> Fault | None:
    """Return what keeps a group from being launched into, whatever is in it.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """
    from botocore.exceptions import ClientError

    try:
        answer = deployment.account.ask("resource-groups", "get_group_configuration", Group=group_arn)
    except ClientError as error:
        if error.response["Error"]["Code"] != "NotFoundException":
            raise
        listing = deployment.command("resource-groups", "list-groups")
        hint = f"{user.path}.capacity_reservation_group_arn: one of those that `{listing}` lists"
        return Fault(Status.FAIL, "there is no such group", hint)
    types = [each["Type"] for each in answer["GroupConfiguration"].get("Configuration", [])]
    if _GROUP_TYPE not in types:
        sentence = f"no group to launch into: its types are {', '.join(types) or 'none'}, not {_GROUP_TYPE}"
        creation = ("create-group", "--name", "NAME", "--configuration", f"Type={_GROUP_TYPE}")
        hint = f"{deployment.command('resource-groups', *creation)}, put the reservations into it, and name it here"
        return Fault(Status.FAIL, sentence, hint)
    return None


def _group_finding(deployment: Deployment, group_arn: str, using: Sequence[User], command: str) -> Finding:
    """Return whether nodes of one type find enough in a group; EC2 launches on demand what does not.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """
    known, reservation_ids = reservations(deployment), members(deployment, group_arn)
    faults = {each: list(_faults(deployment.settings, known[each], using)) for each in reservation_ids if each in known}
    fit = [known[each] for each in faults if all(fault.status is not Status.FAIL for fault in faults[each])]
    free = sum(_free(each) for each in fit)
    more = still_to_launch(deployment, using, reservation_ids)
    instance_type = using[0].resource.instance_type
    summary = f"{len(fit)} of {len(reservation_ids)} reservations fit, {free} {instance_type} free, {more} more needed"
    of_members = [fault._replace(sentence=f"{each}: {fault.sentence}") for each in faults for fault in faults[each]]
    if not fit:
        hint = f"put a reservation for {instance_type} in {deployment.settings.zone_id} into it"
        return _joined([Fault(Status.FAIL, summary, hint), *of_members], summary, command, group_arn)
    warnings = [fault for fault in of_members if fault.status is Status.WARN]
    if free < more:
        sentence = f"{summary}; the rest starts on demand, as far as there is capacity"
        hint = f"a larger reservation in the group, or max_count of {_paths(using)}: {more - free} less"
        warnings.insert(0, Fault(Status.WARN, sentence, hint))
    return _joined(warnings, summary, command, group_arn)


def _faults(settings: Settings, reservation: dict[str, Any], using: Sequence[User]) -> Iterator[Fault]:
    """Yield what is wrong with a reservation, however many instances it has."""
    yield from _state_faults(reservation, using)
    zone_id = reservation["AvailabilityZoneId"]
    if zone_id != settings.zone_id:
        sentence = f"it is in {zone_id}, the deployment in {settings.zone_id}"
        yield Fault(Status.FAIL, sentence, f"zone_id: {zone_id}, or a reservation in {settings.zone_id}")
    if reservation["InstancePlatform"] != PLATFORM:
        sentence = f"it is for {reservation['InstancePlatform']}; {settings.cluster.os} needs {PLATFORM}"
        yield Fault(Status.FAIL, sentence, f"a reservation for {PLATFORM}")
    for user in using:
        yield from _user_faults(reservation, user)


def _state_faults(reservation: dict[str, Any], using: Sequence[User]) -> Iterator[Fault]:
    state, start, end = reservation["State"], reservation.get("StartDate"), reservation.get("EndDate")
    another = "another reservation, or take this one out of the settings"
    if state in _BEFORE_ITS_START:
        begins = f"it is {state}" + (f" and starts {_time(start)}" if start else "")
        static = next((user for user in using if user.resource.min_count and not _wants_block(user)), None)
        if static:
            hint = f"{static.path}.min_count: 0, or deploy later"
            yield Fault(Status.FAIL, f"{begins}; the creation of the cluster waits for static nodes", hint)
        else:
            yield Fault(Status.WARN, f"{begins}; its nodes cannot start before", "deploy later, or wait for the nodes")
    elif state != "active":
        since = f" since {_time(end)}" if end and end <= now() else ""
        yield Fault(Status.FAIL, f"it is {state}{since}", another)
    elif end and end <= now():
        yield Fault(Status.FAIL, f"it ended {_time(end)}", another)
    elif end and end - now() < SOON:
        yield Fault(Status.WARN, f"it ends {_time(end)}, and its nodes with it", f"extend it, or {another}")


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
    if is_block is not _wants_block(user):
        is_what, is_not = ("a Capacity Block", "no") if is_block else ("no Capacity Block", "a")
        wanted = "CAPACITY_BLOCK" if is_block else "ONDEMAND"
        yield Fault(
            Status.FAIL,
            f"it is {is_what}, and {queue_path} has capacity_type {user.queue.capacity_type}",
            f"{queue_path}.capacity_type: {wanted}, or a reservation that is {is_not} Capacity Block",
        )
    chosen = user.queue.existing_placement_group
    made_in = reservation.get("PlacementGroupArn", "").rpartition("/")[2]
    if chosen and not made_in:
        yield Fault(
            Status.WARN,
            f"it was made outside of placement groups, and {queue_path} is in {chosen}: it may lie too far apart",
            f"{queue_path}.existing_placement_group: null and placement_group: none",
        )
    elif chosen and chosen != made_in:
        sentence = f"it was made in placement group {made_in}, and {queue_path} is in {chosen}"
        yield Fault(Status.FAIL, sentence, f"{queue_path}.existing_placement_group: {made_in}")


def _count_faults(
    deployment: Deployment, reservation: dict[str, Any], more: int, using: Sequence[User]
) -> Iterator[Fault]:
    free, missing = _free(reservation), more - _free(reservation)
    if missing <= 0 or (reservation["State"] not in _BEFORE_ITS_START and reservation["State"] != "active"):
        return
    less = f"max_count of {_paths(using)}: {missing} less"
    if reservation.get("ReservationType") == CAPACITY_BLOCK:
        hint = f"{less}, and min_count the same"
    else:
        words = ("--capacity-reservation-id", reservation["CapacityReservationId"])
        larger = ("--instance-count", str(size(reservation) + missing))
        hint = f"{deployment.command('ec2', 'modify-capacity-reservation', *words, *larger)}; or {less}"
    yield Fault(Status.FAIL, f"{free} of {size(reservation)} instances free, {more} more needed", hint)


def _free(reservation: dict[str, Any]) -> int:
    """Return the instances that are free; of a reservation that has not begun, all."""
    if reservation["State"] in _BEFORE_ITS_START:
        return size(reservation)
    free: int = reservation["AvailableInstanceCount"]
    return free


def _summary(reservation: dict[str, Any], more: int) -> str:
    end = reservation.get("EndDate")
    until = f"until {_time(end)}" if end else "without end"
    who = "" if reservation["InstanceMatchCriteria"] == "targeted" else "; open to any instance of its type"
    free = f"{_free(reservation)} of {size(reservation)} {reservation['InstanceType']} free"
    where = reservation["AvailabilityZoneId"]
    return f"{reservation['State']} {until}, {free} in {where}, {more} more needed{who}"


def _joined(faults: Sequence[Fault], summary: str, command: str, subject: str) -> Finding:
    """Return one finding of all faults, the summary if there is none."""
    if not faults:
        return Finding(Status.PASS, summary, command=command, subject=subject)
    status = Status.FAIL if any(fault.status is Status.FAIL for fault in faults) else Status.WARN
    sentence = "; ".join(dict.fromkeys(fault.sentence for fault in faults))
    hint = "; ".join(dict.fromkeys(fault.hint for fault in faults))
    return Finding(status, sentence, hint, command, subject)


def _wants_block(user: User) -> bool:
    return user.queue.capacity_type == "CAPACITY_BLOCK"


def _paths(using: Sequence[User]) -> str:
    return ", ".join(user.path for user in using)


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


CHECKS = (capacity_reservation, capacity_block, capacity_reservation_group)
