"""Whether reserved capacity is there: on-demand capacity reservations, groups of them, and Capacity Blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from scripts.aws_errors import is_not_found
from scripts.preflight.check import Finding, Status, check
from scripts.preflight.reservation_faults import Fault, reservation_faults, time_text, unplaced_faults, wants_block
from scripts.preflight.reservations import (
    BEFORE_ITS_START,
    CAPACITY_BLOCK,
    by_type,
    members,
    reservations,
    size,
    still_to_launch,
    users,
    with_named,
)

if TYPE_CHECKING:
    from scripts.deployment import Deployment
    from scripts.preflight.reservations import User

_GROUP_TYPE = "AWS::EC2::CapacityReservationPool"
_GROUP_CONFIGURATION: tuple[dict[str, Any], ...] = (
    {"Type": _GROUP_TYPE},
    {
        "Type": "AWS::ResourceGroups::Generic",
        "Parameters": [{"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}],
    },
)
"""What makes a group one of reservations (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-group.html)."""


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
        for same_type in by_type(using).values():
            yield _group_finding(deployment, group_arn, same_type, command)


def _findings(deployment: Deployment, *, blocks: bool) -> Iterator[Finding]:
    known = reservations(deployment)
    for reservation_id, using in users(deployment.settings, "capacity_reservation_id").items():
        if not any(wants_block(user) is blocks for user in using):
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
            *reservation_faults(deployment, reservation, using),
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
        if not is_not_found(error):
            raise
        listing = deployment.command("resource-groups", "list-groups")
        hint = f"{user.path}.capacity_reservation_group_arn: one of those that `{listing}` lists"
        return Fault(Status.FAIL, "there is no such group", hint)
    types = [each["Type"] for each in answer["GroupConfiguration"].get("Configuration", [])]
    if _GROUP_TYPE not in types:
        sentence = f"no group to launch into: its types are {', '.join(types) or 'none'}, not {_GROUP_TYPE}"
        creation = ("create-group", "--name", "NAME", "--configuration")
        configuration = map(json.dumps, _GROUP_CONFIGURATION)
        command = deployment.command("resource-groups", *creation, *configuration)
        hint = f"`{command}`, put the reservations into it, and name it here"
        return Fault(Status.FAIL, sentence, hint)
    return None


def _group_finding(deployment: Deployment, group_arn: str, using: Sequence[User], command: str) -> Finding:
    """Return whether nodes of one type find enough in a group; EC2 launches on demand what does not.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """
    known, reservation_ids = reservations(deployment), members(deployment, group_arn)
    faults = {
        each: list(reservation_faults(deployment, known[each], using)) for each in reservation_ids if each in known
    }
    fit = [known[each] for each in faults if all(fault.status is not Status.FAIL for fault in faults[each])]
    free = sum(_free(each) for each in fit)
    instance_type = using[0].resource.instance_type
    sharing = by_type(with_named(deployment.settings, using, reservation_ids))[instance_type]
    more = still_to_launch(deployment, sharing, reservation_ids)
    summary = f"{len(fit)} of {len(reservation_ids)} reservations fit, {free} {instance_type} free, {more} more needed"
    of_members = [fault._replace(sentence=f"{each}: {fault.sentence}") for each in faults for fault in faults[each]]
    if not fit:
        hint = f"put a reservation for {instance_type} in {deployment.settings.zone_id} into it"
        return _joined([Fault(Status.FAIL, summary, hint), *of_members], summary, command, group_arn)
    place = (instance_type, deployment.settings.zone_id)
    matching = (known[each] for each in faults if _place(known[each]) == place)
    if unplaced := [fault for each in matching for fault in unplaced_faults(each, using)]:
        return _joined(unplaced, summary, command, group_arn)
    warnings = [fault for fault in of_members if fault.status is Status.WARN]
    if free < more:
        sentence = f"{summary}; the rest starts on demand, as far as there is capacity"
        hint = f"a larger reservation in the group, or max_count of {_paths(sharing)}: {more - free} less"
        warnings.insert(0, Fault(Status.WARN, sentence, hint))
    return _joined(warnings, summary, command, group_arn)


def _count_faults(
    deployment: Deployment, reservation: dict[str, Any], more: int, using: Sequence[User]
) -> Iterator[Fault]:
    free, missing = _free(reservation), more - _free(reservation)
    if missing <= 0 or (reservation["State"] not in BEFORE_ITS_START and reservation["State"] != "active"):
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
    if reservation["State"] in BEFORE_ITS_START:
        return size(reservation)
    free: int = reservation["AvailableInstanceCount"]
    return free


def _summary(reservation: dict[str, Any], more: int) -> str:
    end = reservation.get("EndDate")
    until = f"until {time_text(end)}" if end else "without end"
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


def _place(reservation: dict[str, Any]) -> tuple[str, str]:
    return reservation["InstanceType"], reservation["AvailabilityZoneId"]


def _paths(using: Sequence[User]) -> str:
    return ", ".join(user.path for user in using)


CHECKS = (capacity_reservation, capacity_block, capacity_reservation_group)
