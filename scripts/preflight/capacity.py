"""Reserved capacity: on-demand capacity reservations, groups of them, and Capacity Blocks.

Which reservation a queue cannot use is what aws-parallelcluster 3.16.1 checks (validators/ec2_validators.py), and what
it does not check: that it is active, of default tenancy, and does not end soon.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from scripts.preflight.check import CheckStatus, Finding, check, find
from scripts.preflight.reservations import (
    BEFORE_ITS_START,
    by_type,
    is_block,
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

Reservation = Mapping[str, Any]

_PLATFORM = "Linux/UNIX"
"""Platform of reservations for every OS that the settings know (CAPACITY_RESERVATION_OS_MAP in its constants.py)."""
_SOON = timedelta(hours=24)
_MIN_BLOCK_HOURS = 24
"""Shortest Capacity Block (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html)."""
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
    """Check each reservation that on-demand queues name."""
    yield from _named_reservations(deployment, blocks=False)


@check(
    "capacity-block",
    "Capacity Blocks",
    prevents="Nodes would not start: their Capacity Block is over, has not started, or is too small.",
    calls=("ec2:DescribeCapacityReservations", "ec2:DescribeInstances"),
)
def capacity_block(deployment: Deployment) -> Iterator[Finding]:
    """Check each Capacity Block that queues name."""
    yield from _named_reservations(deployment, blocks=True)


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
    """Check each group that queues name, and the reservations in it."""
    for group_arn, using in users(deployment.settings, "capacity_reservation_group_arn").items():
        command = deployment.command("resource-groups", "list-group-resources", "--group", group_arn)
        if unusable := _unusable_group(deployment, group_arn, using[0]):
            yield unusable.of(group_arn, command)
            continue
        for same_type in by_type(using).values():
            yield _in_group(deployment, group_arn, same_type).of(group_arn, command)


def reservation_problems(
    deployment: Deployment, reservation: Reservation, using: Sequence[User], now: datetime
) -> Iterator[Finding]:
    """Yield why a reservation does not fit, however many instances it has."""
    settings = deployment.settings
    yield from _state_problems(deployment, reservation, using, now)
    zone_id = reservation["AvailabilityZoneId"]
    if zone_id != settings.zone_id:
        sentence = f"it is in {zone_id}, the deployment in {settings.zone_id}"
        yield Finding(CheckStatus.FAIL, sentence, f"zone_id: {zone_id}, or a reservation in {settings.zone_id}")
    if reservation["InstancePlatform"] != _PLATFORM:
        sentence = f"it is for {reservation['InstancePlatform']}; {settings.cluster.os} needs {_PLATFORM}"
        yield Finding(CheckStatus.FAIL, sentence, f"a reservation for {_PLATFORM}")
    if reservation["Tenancy"] != "default":
        sentence = f"its tenancy is {reservation['Tenancy']}; ParallelCluster launches instances of default tenancy"
        yield Finding(CheckStatus.FAIL, sentence, "a reservation of default tenancy")
    for user in using:
        yield from _user_problems(reservation, user)
    yield from _without_placement_group(reservation, using)


def _named_reservations(deployment: Deployment, *, blocks: bool) -> Iterator[Finding]:
    known, now = reservations(deployment), datetime.now(UTC)
    for reservation_id, using in users(deployment.settings, "capacity_reservation_id").items():
        if not any(user.wants_block is blocks for user in using):
            continue
        describe = ("ec2", "describe-capacity-reservations")
        command = deployment.command(*describe, "--capacity-reservation-ids", reservation_id)
        if reservation_id not in known:
            sentence = f"no reservation that this account can use in {deployment.settings.region}"
            listing = deployment.command(*describe)
            hint = f"{using[0].path}.capacity_reservation_id: one of those that `{listing}` lists"
            yield Finding(CheckStatus.FAIL, sentence, hint, command, reservation_id)
            continue
        reservation = known[reservation_id]
        more = still_to_launch(deployment, using, [reservation_id])
        problems = [
            *reservation_problems(deployment, reservation, using, now),
            *_too_small(deployment, reservation, more, using),
        ]
        yield _joined(problems, _summary(reservation, more)).of(reservation_id, command)


def _unusable_group(deployment: Deployment, group_arn: str, user: User) -> Finding | None:
    """Return why nothing can be launched into a group, whatever is in it.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """
    answer = find(deployment, "resource-groups", "get_group_configuration", Group=group_arn)
    if answer is None:
        listing = deployment.command("resource-groups", "list-groups")
        hint = f"{user.path}.capacity_reservation_group_arn: one of those that `{listing}` lists"
        return Finding(CheckStatus.FAIL, "there is no such group", hint)
    types = [each["Type"] for each in answer["GroupConfiguration"].get("Configuration", [])]
    if _GROUP_TYPE in types:
        return None
    sentence = f"no group to launch into: its types are {', '.join(types) or 'none'}, not {_GROUP_TYPE}"
    creation = ("create-group", "--name", "NAME", "--configuration")
    command = deployment.command("resource-groups", *creation, *map(json.dumps, _GROUP_CONFIGURATION))
    return Finding(CheckStatus.FAIL, sentence, f"`{command}`, put the reservations into it, and name it here")


def _in_group(deployment: Deployment, group_arn: str, using: Sequence[User]) -> Finding:
    """Return whether nodes of one type find enough in a group; EC2 launches the others on demand.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """
    known, reservation_ids, now = reservations(deployment), members(deployment, group_arn), datetime.now(UTC)
    problems = {
        each: list(reservation_problems(deployment, known[each], using, now))
        for each in reservation_ids
        if each in known
    }
    fit = [known[each] for each, found in problems.items() if all(one.status is not CheckStatus.FAIL for one in found)]
    free = sum(_free(each) for each in fit)
    instance_type, zone_id = using[0].resource.instance_type, deployment.settings.zone_id
    sharing = by_type(with_named(deployment.settings, using, reservation_ids))[instance_type]
    more = still_to_launch(deployment, sharing, reservation_ids)
    summary = f"{len(fit)} of {len(reservation_ids)} reservations fit, {free} {instance_type} free, {more} more needed"
    of_members = [replace(one, sentence=f"{each}: {one.sentence}") for each, found in problems.items() for one in found]
    if not fit:
        hint = f"put a reservation for {instance_type} in {zone_id} into it"
        return _joined([Finding(CheckStatus.FAIL, summary, hint), *of_members], summary)
    matching = [
        known[each]
        for each in problems
        if (known[each]["InstanceType"], known[each]["AvailabilityZoneId"]) == (instance_type, zone_id)
    ]
    if unplaced := [one for each in matching for one in _without_placement_group(each, using)]:
        return _joined(unplaced, summary)
    warnings = [one for one in of_members if one.status is CheckStatus.WARN]
    if free < more:
        sentence = f"{summary}; the rest starts on demand, as far as there is capacity"
        hint = f"a larger reservation in the group, or max_count of {_paths(sharing)}: {more - free} less"
        warnings.insert(0, Finding(CheckStatus.WARN, sentence, hint))
    return _joined(warnings, summary)


def _state_problems(
    deployment: Deployment, reservation: Reservation, using: Sequence[User], now: datetime
) -> Iterator[Finding]:
    state, start, end = reservation["State"], reservation.get("StartDate"), reservation.get("EndDate")
    another = _another(deployment, reservation, using)
    if state in BEFORE_ITS_START:
        starts = f"it is {state}" + (f" and starts {_time(start)}" if start else "")
        static = next((user for user in using if user.resource.min_count and not user.wants_block), None)
        if static:
            hint = f"{static.path}.min_count: 0, or deploy later"
            yield Finding(CheckStatus.FAIL, f"{starts}; the creation of the cluster waits for static nodes", hint)
        else:
            yield Finding(
                CheckStatus.WARN, f"{starts}; its nodes cannot start before", "deploy later, or wait for the nodes"
            )
    elif state != "active":
        since = f" since {_time(end)}" if end and end <= now else ""
        yield Finding(CheckStatus.FAIL, f"it is {state}{since}", another)
    elif end and end <= now:
        yield Finding(CheckStatus.FAIL, f"it ended {_time(end)}", another)
    elif end and end - now < _SOON:
        yield Finding(CheckStatus.WARN, f"it ends {_time(end)}, and its nodes with it", f"extend it, or {another}")


def _another(deployment: Deployment, reservation: Reservation, using: Sequence[User]) -> str:
    """Return where the settings name a reservation, and for a Capacity Block how to find one to buy."""
    by_id = using[0].resource.capacity_reservation_id
    key = "capacity_reservation_id" if by_id else "capacity_reservation_group_arn"
    paths = ", ".join(f"{user.path}.{key}" for user in using)
    hint = f"{paths}: another reservation, or null" if by_id else f"put another one into the group of {paths}"
    if not is_block(reservation):
        return hint
    offers = {
        "--instance-type": using[0].resource.instance_type,
        "--instance-count": str(sum(user.resource.max_count for user in using)),
        "--capacity-duration-hours": str(_MIN_BLOCK_HOURS),
    }
    words = (word for option in offers.items() for word in option)
    return f"{hint}; on offer: `{deployment.command('ec2', 'describe-capacity-block-offerings', *words)}`"


def _user_problems(reservation: Reservation, user: User) -> Iterator[Finding]:
    """Yield why a compute resource cannot use a reservation."""
    of_type, instance_type = reservation["InstanceType"], user.resource.instance_type
    if of_type != instance_type:
        sentence = f"it is for {of_type}, and {user.path} has {instance_type}"
        hint = f"{user.path}.instance_type: {of_type}, or a reservation for {instance_type}"
        yield Finding(CheckStatus.FAIL, sentence, hint)
    if is_block(reservation) is not user.wants_block:
        is_what, is_not = ("a Capacity Block", "no") if is_block(reservation) else ("no Capacity Block", "a")
        wanted = "CAPACITY_BLOCK" if is_block(reservation) else "ONDEMAND"
        sentence = f"it is {is_what}, and {user.queue_path} has capacity_type {user.queue.capacity_type}"
        hint = f"{user.queue_path}.capacity_type: {wanted}, or a reservation that is {is_not} Capacity Block"
        yield Finding(CheckStatus.FAIL, sentence, hint)
    chosen = user.queue.existing_placement_group
    made_in = reservation.get("PlacementGroupArn", "").rpartition("/")[2]
    if chosen and made_in and chosen != made_in:
        sentence = f"it was made in placement group {made_in}, and {user.queue_path} is in {chosen}"
        yield Finding(CheckStatus.FAIL, sentence, f"{user.queue_path}.existing_placement_group: {made_in}")


def _without_placement_group(reservation: Reservation, using: Sequence[User]) -> Iterator[Finding]:
    """Yield the queues in a placement group whose reservation was made outside of any.

    ParallelCluster warns of it (PlacementGroupCapacityReservationValidator), in a group also if another member fits;
    and a warning stops the deployment.
    """
    for user in using:
        path, chosen = f"{user.queue_path}.existing_placement_group", user.queue.existing_placement_group
        if chosen and not reservation.get("PlacementGroupArn"):
            sentence = f"it was made outside of placement groups, and {user.queue_path} is in {chosen}"
            hint = f"{path}: null and placement_group: none, or a reservation in {chosen}"
            yield Finding(CheckStatus.FAIL, sentence, hint)


def _too_small(deployment: Deployment, reservation: Reservation, more: int, using: Sequence[User]) -> Iterator[Finding]:
    free, missing = _free(reservation), more - _free(reservation)
    if missing <= 0 or (reservation["State"] not in BEFORE_ITS_START and reservation["State"] != "active"):
        return
    less = f"max_count of {_paths(using)}: {missing} less"
    if is_block(reservation):
        hint = f"{less}, and min_count the same"
    else:
        words = ("--capacity-reservation-id", reservation["CapacityReservationId"])
        larger = ("--instance-count", str(size(reservation) + missing))
        hint = f"{deployment.command('ec2', 'modify-capacity-reservation', *words, *larger)}; or {less}"
    yield Finding(CheckStatus.FAIL, f"{free} of {size(reservation)} instances free, {more} more needed", hint)


def _free(reservation: Reservation) -> int:
    """Return the free instances; of a reservation that has not started, all."""
    return size(reservation) if reservation["State"] in BEFORE_ITS_START else int(reservation["AvailableInstanceCount"])


def _summary(reservation: Reservation, more: int) -> str:
    end = reservation.get("EndDate")
    until = f"until {_time(end)}" if end else "without end"
    who = "" if reservation["InstanceMatchCriteria"] == "targeted" else "; open to any instance of its type"
    free = f"{_free(reservation)} of {size(reservation)} {reservation['InstanceType']} free"
    where = reservation["AvailabilityZoneId"]
    return f"{reservation['State']} {until}, {free} in {where}, {more} more needed{who}"


def _joined(problems: Sequence[Finding], summary: str) -> Finding:
    """Return one finding of all problems, the summary if there is none."""
    if not problems:
        return Finding(CheckStatus.PASS, summary)
    status = CheckStatus.FAIL if any(each.status is CheckStatus.FAIL for each in problems) else CheckStatus.WARN
    sentence = "; ".join(dict.fromkeys(each.sentence for each in problems))
    return Finding(status, sentence, "; ".join(dict.fromkeys(each.hint for each in problems)))


def _paths(using: Sequence[User]) -> str:
    return ", ".join(user.path for user in using)


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


CHECKS = (capacity_reservation, capacity_block, capacity_reservation_group)
