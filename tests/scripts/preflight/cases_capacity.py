"""What the checks of reserved capacity must say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from scripts.preflight.capacity import capacity_block, capacity_reservation, capacity_reservation_group
from scripts.preflight.check import Status
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.conftest import GoodAccount

RESERVATION, BLOCK = "cr-0123456789abcdef0", "cr-0fedcba9876543210"
"""Those that config/reserved.yaml names: 8 and 4 trn1.32xlarge."""

GROUP = "arn:aws:resource-groups:us-west-2:123456789012:group/pool"
TYPE_TAG = "aws:ec2capacityreservation:capacityReservationType"


def from_now(**span: float) -> datetime:
    return datetime.now(UTC) + timedelta(**span)


def make_reservation(
    account: GoodAccount, reservation_id: str, *, block: bool = False, **changes: Any
) -> dict[str, Any]:
    """Make a reservation, in the place of the one of that id if there is one."""
    tags = {"_custom_id_": reservation_id, **({TYPE_TAG: "capacity-block"} if block else {})}
    arguments = {
        "InstanceType": "trn1.32xlarge",
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZoneId": account.settings.zone_id,
        "InstanceCount": 8,
        "InstanceMatchCriteria": "targeted",
        **changes,
    }
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    made: dict[str, Any] = account.client("ec2").create_capacity_reservation(
        **arguments, TagSpecifications=[{"ResourceType": "capacity-reservation", "Tags": listed}]
    )["CapacityReservation"]
    return made


def remade(reservation_id: str = RESERVATION, **changes: Any) -> Callable[[GoodAccount], object]:
    return lambda account: make_reservation(account, reservation_id, **changes)


def remade_block(**changes: Any) -> Callable[[GoodAccount], object]:
    return remade(BLOCK, **{"block": True, "InstanceCount": 4, **changes})


def cancelled(account: GoodAccount) -> None:
    account.client("ec2").cancel_capacity_reservation(CapacityReservationId=RESERVATION)


def launch(account: GoodAccount, count: int, target: dict[str, str], **tags: str) -> None:
    """Launch instances into a reservation or a group."""
    ec2 = account.client("ec2")
    zone = [{"Name": "availability-zone-id", "Values": [account.settings.zone_id]}]
    ec2.run_instances(
        ImageId=ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"],
        InstanceType="trn1.32xlarge",
        MinCount=count,
        MaxCount=count,
        SubnetId=ec2.describe_subnets(Filters=zone)["Subnets"][0]["SubnetId"],
        CapacityReservationSpecification={"CapacityReservationTarget": target},
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
        ],
    )


def used_by_others(account: GoodAccount) -> None:
    launch(account, 2, {"CapacityReservationId": RESERVATION}, Name="of somebody else")


def in_another_placement_group(account: GoodAccount) -> None:
    group = account.client("ec2").create_placement_group(GroupName="another", Strategy="cluster")["PlacementGroup"]
    make_reservation(account, RESERVATION, PlacementGroupArn=group["GroupArn"])


def placed(raw: dict[str, Any]) -> None:
    """Put the on-demand queue into a placement group that exists, in which the reservation is made."""
    raw["cluster"]["queues"][0] |= {"placement_group": None, "existing_placement_group": "ours"}


def static(raw: dict[str, Any]) -> None:
    raw["cluster"]["queues"][0]["compute_resources"][0]["min_count"] = 1


def grouped(raw: dict[str, Any]) -> None:
    """Launch the on-demand queue into a group of reservations."""
    raw["cluster"]["queues"][0]["compute_resources"][0] |= {
        "capacity_reservation_id": None,
        "capacity_reservation_group_arn": GROUP,
    }


def placed_group(raw: dict[str, Any]) -> None:
    """Launch the queue into a group of reservations, and into the placement group that its reservation is in."""
    grouped(raw)
    placed(raw)


def unplaced_member(account: GoodAccount) -> None:
    """Put a reservation outside of placement groups beside the one that fits."""
    made = make_reservation(account, "cr-0000000000000000a")
    account.client("resource-groups").group_resources(Group="pool", ResourceArns=[made["CapacityReservationArn"]])


def shared(raw: dict[str, Any]) -> None:
    """Launch a second compute resource into the group, by the id of a reservation that is in it."""
    grouped(raw)
    [resource] = raw["cluster"]["queues"][0]["compute_resources"]
    by_id = {"name": "more", "capacity_reservation_group_arn": None, "capacity_reservation_id": RESERVATION}
    raw["cluster"]["queues"][0]["compute_resources"].append({**resource, **by_id})


def only_member(account: GoodAccount) -> None:
    """Leave one reservation in the group: the one that is named by its id, too."""
    groups, first = account.client("resource-groups"), member(account)
    account.client("ec2").cancel_capacity_reservation(CapacityReservationId=first)
    made = make_reservation(account, RESERVATION)
    groups.group_resources(Group="pool", ResourceArns=[made["CapacityReservationArn"]])


def member(account: GoodAccount) -> str:
    """Return the id of the reservation in the group."""
    listed = account.client("resource-groups").list_group_resources(Group=GROUP)["Resources"]
    found: str = listed[0]["Identifier"]["ResourceArn"].rpartition("/")[2]
    return found


def member_remade(**changes: Any) -> Callable[[GoodAccount], object]:
    return lambda account: make_reservation(account, member(account), **changes)


def without_group(account: GoodAccount) -> None:
    account.client("resource-groups").delete_group(Group="pool")


def group_of_another_kind(account: GoodAccount) -> None:
    without_group(account)
    account.client("resource-groups").create_group(Name="pool", Configuration=[{"Type": "AWS::EC2::HostManagement"}])


def second_member(account: GoodAccount) -> None:
    """Make the reservation smaller, and put one into the group that does not fit."""
    make_reservation(account, member(account), InstanceCount=5)
    made = make_reservation(account, "cr-0000000000000000a", InstanceType="c6i.large")
    account.client("resource-groups").group_resources(Group="pool", ResourceArns=[made["CapacityReservationArn"]])


def later(**span: float) -> Callable[[pytest.MonkeyPatch], object]:
    """Set the clock of the checks forward."""
    return lambda monkeypatch: monkeypatch.setattr(
        "scripts.preflight.reservation_faults.now", partial(from_now, **span)
    )


CASES = (
    Case(capacity_reservation, Status.SKIP),
    Case(
        capacity_reservation,
        Status.PASS,
        ("active without end, 8 of 8 trn1.32xlarge free in usw2-az4, 8 more needed", RESERVATION),
        environment="reserved",
        name="reserved",
    ),
    Case(
        capacity_reservation,
        Status.PASS,
        ("10 of 10 trn1.32xlarge free", "open to any instance of its type"),
        remade(InstanceCount=10, InstanceMatchCriteria="open", EndDate=from_now(days=9)),
        environment="reserved",
        name="open",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("no reservation that this account can use in us-west-2", "compute_resources[0].capacity_reservation_id"),
        lambda account: account.aws.reset(),
        environment="reserved",
        name="missing",
    ),
    Case(capacity_reservation, Status.FAIL, ("it is cancelled",), cancelled, "reserved", name="cancelled"),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("it is expired since 20", "cluster.queues[0].compute_resources[0].capacity_reservation_id: another"),
        remade(EndDate=from_now(hours=-1)),
        "reserved",
        name="expired",
    ),
    Case(
        capacity_reservation,
        Status.WARN,
        ("it ends 20", "extend it"),
        remade(EndDate=from_now(hours=23)),
        "reserved",
        name="ends-soon",
    ),
    Case(
        capacity_reservation,
        Status.WARN,
        ("it is scheduled and starts 20", "cannot start before", "deploy later"),
        remade(StartDate=from_now(hours=5)),
        "reserved",
        name="scheduled",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("waits for static nodes", "cluster.queues[0].compute_resources[0].min_count: 0"),
        remade(StartDate=from_now(hours=5)),
        "reserved",
        static,
        name="scheduled-static",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        (
            "it is for trn1n.32xlarge, and cluster.queues[0].compute_resources[0] has trn1.32xlarge",
            "cluster.queues[0].compute_resources[0].instance_type: trn1n.32xlarge",
        ),
        remade(InstanceType="trn1n.32xlarge"),
        "reserved",
        name="type",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("it is in usw2-az1, the deployment in usw2-az4", "zone_id: usw2-az1"),
        remade(AvailabilityZoneId="usw2-az1"),
        "reserved",
        name="zone",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("it is for Windows; ubuntu2404 needs Linux/UNIX",),
        remade(InstancePlatform="Windows"),
        "reserved",
        name="platform",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("its tenancy is dedicated", "a reservation of default tenancy"),
        remade(Tenancy="dedicated"),
        "reserved",
        name="tenancy",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("it is a Capacity Block", "cluster.queues[0].capacity_type: CAPACITY_BLOCK"),
        remade(block=True),
        "reserved",
        name="block",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        (
            "5 of 5 instances free, 8 more needed",
            "modify-capacity-reservation --capacity-reservation-id cr-0123456789abcdef0 --instance-count 8",
            "max_count of cluster.queues[0].compute_resources[0]: 3 less",
        ),
        remade(InstanceCount=5),
        "reserved",
        name="small",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("6 of 8 instances free, 8 more needed", "--instance-count 10"),
        used_by_others,
        "reserved",
        name="used",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("5 of 5 instances free, 8 more needed", "it is scheduled"),
        remade(InstanceCount=5, StartDate=from_now(hours=5)),
        "reserved",
        name="scheduled-small",
    ),
    Case(capacity_reservation, Status.PASS, ("8 of 8",), environment="reserved", edit=placed, name="placed"),
    Case(
        capacity_reservation,
        Status.FAIL,
        (
            "it was made in placement group another, and cluster.queues[0] is in ours",
            "cluster.queues[0].existing_placement_group: another",
        ),
        in_another_placement_group,
        "reserved",
        placed,
        name="placed-elsewhere",
    ),
    Case(
        capacity_reservation,
        Status.FAIL,
        ("made outside of placement groups", "cluster.queues[0].existing_placement_group: null"),
        remade(),
        "reserved",
        placed,
        name="not-placed",
    ),
    Case(capacity_block, Status.SKIP),
    Case(
        capacity_block,
        Status.PASS,
        ("active until 20", "4 of 4 trn1.32xlarge free in usw2-az4, 4 more needed", BLOCK),
        environment="reserved",
        name="reserved",
    ),
    Case(
        capacity_block,
        Status.WARN,
        ("it is scheduled and starts 20",),
        remade_block(StartDate=from_now(days=2), EndDate=from_now(days=9)),
        "reserved",
        name="scheduled",
    ),
    Case(
        capacity_block,
        Status.FAIL,
        (
            "it is expired since 20",
            "cluster.queues[1].compute_resources[0].capacity_reservation_id: another",
            "describe-capacity-block-offerings --instance-type trn1.32xlarge --instance-count 4 "
            "--capacity-duration-hours 24",
        ),
        remade_block(EndDate=from_now(hours=-1)),
        "reserved",
        name="expired",
    ),
    Case(
        capacity_block,
        Status.WARN,
        ("it ends 20",),
        environment="reserved",
        patch=later(days=13, hours=1),
        name="ends-soon",
    ),
    Case(
        capacity_block,
        Status.FAIL,
        ("it ended 20",),
        environment="reserved",
        patch=later(days=15),
        name="ended",
    ),
    Case(
        capacity_block,
        Status.FAIL,
        ("3 of 3 instances free, 4 more needed", "compute_resources[0]: 1 less, and min_count the same"),
        remade_block(InstanceCount=3),
        "reserved",
        name="small",
    ),
    Case(
        capacity_block,
        Status.FAIL,
        ("it is no Capacity Block", "cluster.queues[1].capacity_type: ONDEMAND"),
        remade_block(block=False),
        "reserved",
        name="on-demand",
    ),
    Case(capacity_reservation_group, Status.SKIP),
    Case(
        capacity_reservation_group,
        Status.PASS,
        ("1 of 1 reservations fit, 8 trn1.32xlarge free, 8 more needed",),
        environment="reserved",
        edit=grouped,
        name="grouped",
    ),
    Case(
        capacity_reservation_group,
        Status.FAIL,
        ("there is no such group", "compute_resources[0].capacity_reservation_group_arn"),
        without_group,
        "reserved",
        grouped,
        name="missing",
    ),
    Case(
        capacity_reservation_group,
        Status.FAIL,
        (
            "its types are AWS::EC2::HostManagement",
            '"Type": "AWS::ResourceGroups::Generic", "Parameters": [{"Name": "allowed-resource-types"',
        ),
        group_of_another_kind,
        "reserved",
        grouped,
        name="kind",
    ),
    Case(
        capacity_reservation_group,
        Status.FAIL,
        ("0 of 1 reservations fit", "it is in usw2-az1", "put a reservation for trn1.32xlarge in usw2-az4 into it"),
        member_remade(AvailabilityZoneId="usw2-az1"),
        "reserved",
        grouped,
        name="zone",
    ),
    Case(
        capacity_reservation_group,
        Status.WARN,
        ("1 of 2 reservations fit, 5 trn1.32xlarge free, 8 more needed; the rest starts on demand", "3 less"),
        second_member,
        "reserved",
        grouped,
        name="small",
    ),
    Case(
        capacity_reservation_group,
        Status.WARN,
        ("it ends 20",),
        member_remade(EndDate=from_now(hours=23)),
        "reserved",
        grouped,
        name="ends-soon",
    ),
    Case(
        capacity_reservation_group,
        Status.PASS,
        ("1 of 1 reservations fit",),
        environment="reserved",
        edit=placed_group,
        name="placed",
    ),
    Case(
        capacity_reservation_group,
        Status.FAIL,
        ("made outside of placement groups", "cluster.queues[0].existing_placement_group: null"),
        unplaced_member,
        "reserved",
        placed_group,
        name="one-not-placed",
    ),
    Case(
        capacity_reservation_group,
        Status.WARN,
        ("1 of 2 reservations fit, 8 trn1.32xlarge free, 16 more needed", "8 less"),
        only_member,
        "reserved",
        shared,
        name="shared",
    ),
)
