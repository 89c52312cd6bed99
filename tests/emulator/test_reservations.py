"""The emulated capacity reservations: when they hold, and what launches take of them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws
from tests.emulator.account import REGION

TARGET = "CapacityReservationTarget"


@pytest.fixture
def ec2(rehearsed_aws: EmulatedAws) -> Any:
    return rehearsed_aws.client("ec2", REGION)


@pytest.fixture
def launch(ec2: Any, rehearsed_aws: EmulatedAws) -> Callable[..., list[dict[str, Any]]]:
    """Return a function that launches instances with such a target."""
    name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
    image = rehearsed_aws.client("ssm", REGION).get_parameter(Name=name)["Parameter"]["Value"]

    def run(count: int, instance_type: str = "c6i.large", **target: str) -> list[dict[str, Any]]:
        launched: list[dict[str, Any]] = ec2.run_instances(
            ImageId=image,
            InstanceType=instance_type,
            MinCount=count,
            MaxCount=count,
            SubnetId=ec2.describe_subnets()["Subnets"][0]["SubnetId"],
            CapacityReservationSpecification={TARGET: target},
        )["Instances"]
        return launched

    return run


def make(ec2: Any, count: int = 3, **dates: datetime) -> dict[str, Any]:
    made: dict[str, Any] = ec2.create_capacity_reservation(
        InstanceType="c6i.large",
        InstancePlatform="Linux/UNIX",
        AvailabilityZoneId="usw2-az4",
        InstanceCount=count,
        **dates,
    )["CapacityReservation"]
    return made


def state(ec2: Any, reservation_id: str) -> tuple[str, int, int]:
    [described] = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])["CapacityReservations"]
    return described["State"], described["TotalInstanceCount"], described["AvailableInstanceCount"]


def from_now(**span: float) -> datetime:
    return datetime.now(UTC) + timedelta(**span)


def test_launches_use_a_reservation_up(ec2: Any, launch: Callable[..., list[dict[str, Any]]]) -> None:
    reservation_id = make(ec2)["CapacityReservationId"]
    [first, _] = launch(2, CapacityReservationId=reservation_id)
    assert state(ec2, reservation_id) == ("active", 3, 1)
    [described] = ec2.describe_instances(InstanceIds=[first["InstanceId"]])["Reservations"][0]["Instances"]
    assert described["CapacityReservationId"] == reservation_id
    with pytest.raises(ClientError, match="ReservationCapacityExceeded"):
        launch(2, CapacityReservationId=reservation_id)
    ec2.terminate_instances(InstanceIds=[first["InstanceId"]])
    assert state(ec2, reservation_id) == ("active", 3, 2)


def test_launches_into_a_group_use_what_fits_and_else_run_on_demand(
    ec2: Any, launch: Callable[..., list[dict[str, Any]]], rehearsed_aws: EmulatedAws
) -> None:
    reservations = [make(ec2, 1), make(ec2, 3)]
    groups = rehearsed_aws.client("resource-groups", REGION)
    pool = groups.create_group(Name="pool", Configuration=[{"Type": "AWS::EC2::CapacityReservationPool"}])
    arn = pool["Group"]["GroupArn"]
    groups.group_resources(Group="pool", ResourceArns=[each["CapacityReservationArn"] for each in reservations])

    def used(count: int, instance_type: str) -> str | None:
        return launch(count, instance_type, CapacityReservationResourceGroupArn=arn)[0].get("CapacityReservationId")

    assert used(2, "c6i.large") == reservations[1]["CapacityReservationId"]
    assert used(2, "c6i.large") is None
    assert used(1, "m5.large") is None
    assert used(1, "c6i.large") == reservations[0]["CapacityReservationId"]


def test_a_reservation_starts_and_ends(ec2: Any, launch: Callable[..., list[dict[str, Any]]]) -> None:
    future = make(ec2, StartDate=from_now(hours=1))
    assert state(ec2, future["CapacityReservationId"]) == ("scheduled", 0, 0)
    assert future["CommitmentInfo"]["CommittedInstanceCount"] == 3
    with pytest.raises(ClientError, match="PendingActivation"):
        launch(1, CapacityReservationId=future["CapacityReservationId"])
    assert state(ec2, make(ec2, EndDate=from_now(hours=1))["CapacityReservationId"]) == ("active", 3, 3)
    ended = make(ec2, EndDate=from_now(hours=-1))
    assert (ended["State"], ended["EndDateType"]) == ("expired", "limited")
    with pytest.raises(ClientError, match="ReservationCapacityExceeded"):
        launch(1, CapacityReservationId=ended["CapacityReservationId"])
