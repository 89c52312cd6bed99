"""Reserved capacity: on-demand capacity reservations, groups of them, and Capacity Blocks.

Which reservation a queue cannot use is what aws-parallelcluster 3.16.1 checks (validators/ec2_validators.py), and what
it does not check: that it is active, of default tenancy, and does not end soon.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from scripts.account.reservations import by_type, members, reservations, still_to_launch, users
from scripts.check.preflight.check import check
from scripts.core.findings import FAIL, PASS, WARN, Finding

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment
    from scripts.account.reservations import Reservation, User

_PLATFORM = "Linux/UNIX"
"""Platform of reservations for every OS that the settings know (CAPACITY_RESERVATION_OS_MAP in its constants.py)."""
_SOON = timedelta(hours=24)
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
    calls=("ec2:DescribeCapacityReservations", "ec2:DescribeInstances"),
)
def capacity_reservation(deployment: Deployment) -> Iterator[Finding]:
    """Nodes would not start: their reservation is gone, full, or for other instances or another place."""
    yield from _named_reservations(deployment, blocks=False)


@check("capacity-block", "Capacity Blocks", calls=("ec2:DescribeCapacityReservations", "ec2:DescribeInstances"))
def capacity_block(deployment: Deployment) -> Iterator[Finding]:
    """Nodes would not start: their Capacity Block is over, has not started, or is too small."""
    yield from _named_reservations(deployment, blocks=True)


@check(
    "capacity-reservation-group",
    "Groups of capacity reservations",
    calls=(
        "ec2:DescribeCapacityReservations",
        "ec2:DescribeInstances",
        "resource-groups:GetGroupConfiguration",
        "resource-groups:ListGroupResources",
    ),
)
def capacity_reservation_group(deployment: Deployment) -> Iterator[Finding]:
    """Nodes would be launched on demand, which is what the reservations were made to avoid, or not at all."""
    for group_arn, using in users(deployment.settings, "capacity_reservation_group_arn").items():
        command = deployment.command("resource-groups", "list-group-resources", "--group", group_arn)
        if unusable := _unusable_group(deployment, group_arn, using[0]):
            yield unusable.of(group_arn, command)
            continue
        for same_type in by_type(using).values():
            yield _in_group(deployment, group_arn, same_type).of(group_arn, command)


def _named_reservations(deployment: Deployment, *, blocks: bool) -> Iterator[Finding]:
    known, listing = reservations(deployment), ("ec2", "describe-capacity-reservations")
    for reservation_id, using in users(deployment.settings, "capacity_reservation_id").items():
        if not any(user.wants_block is blocks for user in using):
            continue
        command = deployment.command(*listing, "--capacity-reservation-ids", reservation_id)
        if reservation_id not in known:
            sentence = f"no reservation that this account can use in {deployment.settings.region}"
            hint = f"{using[0].path}.capacity_reservation_id: one of those that `{deployment.command(*listing)}` lists"
            yield Finding(FAIL, sentence, hint, command, reservation_id)
            continue
        reservation = known[reservation_id]
        more = still_to_launch(deployment, using, [reservation_id])
        problems = [*_problems(deployment, reservation, using), *_too_small(deployment, reservation, more, using)]
        yield _joined(problems, _summary(reservation, more)).of(reservation_id, command)


def _unusable_group(deployment: Deployment, group_arn: str, user: User) -> Finding | None:
    """Return why nothing can be launched into a group, whatever is in it.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """
    answer = deployment.account.find("resource-groups", "get_group_configuration", Group=group_arn)
    if answer is None:
        listing = deployment.command("resource-groups", "list-groups")
        hint = f"{user.path}.capacity_reservation_group_arn: one of those that `{listing}` lists"
        return Finding(FAIL, "there is no such group", hint)
    types = [each["Type"] for each in answer["GroupConfiguration"].get("Configuration", [])]
    if _GROUP_TYPE in types:
        return None
    sentence = f"no group to launch into: its types are {', '.join(types) or 'none'}, not {_GROUP_TYPE}"
    creation = ("create-group", "--name", "NAME", "--configuration")
    command = deployment.command("resource-groups", *creation, *map(json.dumps, _GROUP_CONFIGURATION))
    return Finding(FAIL, sentence, f"`{command}`, put the reservations into it, and name it here")


def _in_group(deployment: Deployment, group_arn: str, using: Sequence[User]) -> Finding:
    """Return whether nodes of one type find enough in a group; EC2 launches the others on demand.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    """
    instance_type, zone_id = using[0].resource.instance_type, deployment.settings.zone_id
    known, ids = reservations(deployment), members(deployment, group_arn)
    problems = {each: list(_problems(deployment, known[each], using)) for each in ids if each in known}
    fit = [known[key] for key, each in problems.items() if not any(problem.status is FAIL for problem in each)]
    free, more = sum(each.free for each in fit), still_to_launch(deployment, using, ids)
    summary = f"{len(fit)} of {len(ids)} reservations fit, {free} {instance_type} free, {more} more needed"
    named = [
        replace(problem, sentence=f"{key}: {problem.sentence}") for key, each in problems.items() for problem in each
    ]
    if not fit:
        hint = f"put a reservation for {instance_type} in {zone_id} into it"
        return _joined([Finding(FAIL, summary, hint), *named], summary)
    of_type = [known[key] for key in problems if known[key].instance_type == instance_type]
    of_zone = [each for each in of_type if each.zone_id == zone_id]
    if unplaced := [problem for each in of_zone for problem in _without_placement_group(each, using)]:
        return _joined(unplaced, summary)
    warnings = [each for each in named if each.status is WARN]
    if free < more:
        sentence = f"{summary}; the rest starts on demand, as far as there is capacity"
        hint = f"a larger reservation in the group, or max_count of {_paths(using)}: {more - free} less"
        warnings.insert(0, Finding(WARN, sentence, hint))
    return _joined(warnings, summary)


def _problems(deployment: Deployment, reservation: Reservation, using: Sequence[User]) -> Iterator[Finding]:
    """Yield why a reservation does not fit, however many instances it has."""
    yield from _state_problems(deployment, reservation, using)
    for key, value, wanted in (
        ("AvailabilityZoneId", reservation.zone_id, deployment.settings.zone_id),
        ("InstancePlatform", reservation.platform, _PLATFORM),
        ("Tenancy", reservation.tenancy, "default"),
    ):
        if value != wanted:
            yield Finding(FAIL, f"its {key} is {value}; needed: {wanted}", f"a reservation of {key} {wanted}")
    for user in using:
        yield from _user_problems(reservation, user)
    yield from _without_placement_group(reservation, using)


def _state_problems(deployment: Deployment, reservation: Reservation, using: Sequence[User]) -> Iterator[Finding]:
    state, start, end = reservation.state, reservation.begins, reservation.ends
    now = datetime.now(UTC)
    another = f"name another one for {_paths(using)}"
    if reservation.is_block:
        another += f"; `{deployment.command('ec2', 'describe-capacity-block-offerings')}` lists those on offer"
    if reservation.is_coming:
        starts = f"it is {state}" + (f" and starts {_time(start)}" if start else "")
        static = next((user for user in using if user.resource.min_count and not user.wants_block), None)
        if static:
            hint = f"{static.path}.min_count: 0, or deploy later"
            yield Finding(FAIL, f"{starts}; the creation of the cluster waits for static nodes", hint)
        else:
            yield Finding(WARN, f"{starts}; its nodes cannot start before", "deploy later, or wait for the nodes")
    elif not reservation.is_active or (end and end <= now):
        yield Finding(FAIL, f"it is {state}" + (f" and ended {_time(end)}" if end and end <= now else ""), another)
    elif end and end - now < _SOON:
        yield Finding(WARN, f"it ends {_time(end)}, and its nodes with it", f"extend it, or {another}")


def _user_problems(reservation: Reservation, user: User) -> Iterator[Finding]:
    """Yield why a compute resource cannot use a reservation."""
    of_type, instance_type = reservation.instance_type, user.resource.instance_type
    if of_type != instance_type:
        hint = f"{user.path}.instance_type: {of_type}, or a reservation for {instance_type}"
        yield Finding(FAIL, f"it is for {of_type}, and {user.path} has {instance_type}", hint)
    if reservation.is_block is not user.wants_block:
        sentence = f"it is {'a' if reservation.is_block else 'no'} Capacity Block"
        path, capacity_type = f"{user.queue_path}.capacity_type", user.queue.capacity_type
        yield Finding(FAIL, sentence, f"change {path}, which is {capacity_type}, or name another reservation")
    chosen, made_in = user.queue.existing_placement_group, reservation.placement_group
    if chosen and made_in and chosen != made_in:
        sentence = f"it was made in placement group {made_in}, and {user.queue_path} is in {chosen}"
        yield Finding(FAIL, sentence, f"{user.queue_path}.existing_placement_group: {made_in}")


def _without_placement_group(reservation: Reservation, using: Sequence[User]) -> Iterator[Finding]:
    """Yield the queues in a placement group whose reservation was made outside of any.

    ParallelCluster warns of it (PlacementGroupCapacityReservationValidator), in a group also if another member fits;
    and a warning stops the deployment.
    """
    for user in using:
        path, chosen = f"{user.queue_path}.existing_placement_group", user.queue.existing_placement_group
        if chosen and not reservation.placement_group:
            sentence = f"it was made outside of placement groups, and {user.queue_path} is in {chosen}"
            hint = f"{path}: null and placement_group: none, or a reservation in {chosen}"
            yield Finding(FAIL, sentence, hint)


def _too_small(deployment: Deployment, reservation: Reservation, more: int, using: Sequence[User]) -> Iterator[Finding]:
    total, free = reservation.total, reservation.free
    if free >= more or not (reservation.is_coming or reservation.is_active):
        return
    hint = f"max_count of {_paths(using)}: {more - free} less"
    if not reservation.is_block:
        words = ("--capacity-reservation-id", reservation.reservation_id)
        larger = ("--instance-count", str(total + more - free))
        hint = f"{deployment.command('ec2', 'modify-capacity-reservation', *words, *larger)}; or {hint}"
    yield Finding(FAIL, f"{free} of {total} instances free, {more} more needed", hint)


def _summary(reservation: Reservation, more: int) -> str:
    until = f"until {_time(reservation.ends)}" if reservation.ends else "without end"
    who = "" if reservation.is_targeted else "; open to any instance of its type"
    free = f"{reservation.free} of {reservation.total} {reservation.instance_type} free"
    return f"{reservation.state} {until}, {free} in {reservation.zone_id}, {more} more needed{who}"


def _joined(problems: Sequence[Finding], summary: str) -> Finding:
    """Return one finding of all problems, the summary if there is none."""
    if not problems:
        return Finding(PASS, summary)
    status = FAIL if any(each.status is FAIL for each in problems) else WARN
    sentence = "; ".join(dict.fromkeys(each.sentence for each in problems))
    return Finding(status, sentence, "; ".join(dict.fromkeys(each.hint for each in problems)))


def _paths(using: Sequence[User]) -> str:
    return ", ".join(user.path for user in using)


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


CHECKS = (capacity_reservation, capacity_block, capacity_reservation_group)
