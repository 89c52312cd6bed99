"""Launches of instances: their interfaces, and what they take of capacity reservations."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto.ec2.exceptions import EC2ClientError

from emulator.aws import EmulatedAws
from emulator.moto_patches.fleets import capacities
from tests.emulator.account import Account, refused


@pytest.fixture
def launches(aws: EmulatedAws) -> Account:
    return Account(aws)


@pytest.fixture
def ec2(launches: Account) -> Any:
    return launches.client("ec2")


def into(account: Account, count: int, instance_type: str = "c6i.large", **target: str) -> list[str]:
    """Launch instances with a target, and return the reservations that they use."""
    subnet = account.client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
    specification = {"CapacityReservationTarget": target}
    ids = account.launch(
        count, InstanceType=instance_type, SubnetId=subnet, CapacityReservationSpecification=specification
    )
    return [each.get("CapacityReservationId", "") for each in account.instances(*ids)]


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


def test_a_node_has_an_interface_per_network_card_and_one_address(launches: Account, ec2: Any) -> None:
    vpc = launches.vpc()
    subnet = launches.subnet(vpc).ref
    common = {"SubnetId": subnet, "Groups": [launches.group(vpc).ref]}
    efa = {"DeviceIndex": 1, "InterfaceType": "efa-only", "AssociatePublicIpAddress": False, **common}
    cards = [{**efa, "NetworkCardIndex": card} for card in range(8)]

    def free() -> int:
        return int(ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["AvailableIpAddressCount"])

    before = free()
    first = {"DeviceIndex": 0, "NetworkCardIndex": 0, **common}
    ids = launches.launch(InstanceType="trn1.32xlarge", NetworkInterfaces=[first, *cards])
    [interfaces] = [each["NetworkInterfaces"] for each in launches.instances(*ids)]
    kinds = [each["InterfaceType"] for each in interfaces]
    assert (kinds.count("interface"), kinds.count("efa-only")) == (1, 8)
    assert sum(len(each["PrivateIpAddresses"]) for each in interfaces) == 1
    assert before - free() == 1
    ec2.terminate_instances(InstanceIds=ids)
    assert (
        ec2.describe_network_interfaces(Filters=[{"Name": "subnet-id", "Values": [subnet]}])["NetworkInterfaces"] == []
    )


def test_launches_use_a_reservation_up(launches: Account, ec2: Any) -> None:
    reservation_id = make(ec2)["CapacityReservationId"]
    assert into(launches, 2, CapacityReservationId=reservation_id) == [reservation_id] * 2
    assert state(ec2, reservation_id) == ("active", 3, 1)
    with pytest.raises(ClientError, match="ReservationCapacityExceeded"):
        into(launches, 2, CapacityReservationId=reservation_id)
    ec2.terminate_instances(InstanceIds=[launches.instances()[0]["InstanceId"]])
    assert state(ec2, reservation_id) == ("active", 3, 2)


def test_launches_into_a_group_use_what_fits_and_else_run_on_demand(launches: Account, ec2: Any) -> None:
    reservations = [make(ec2, 1), make(ec2, 3)]
    groups = launches.client("resource-groups")
    pool = groups.create_group(Name="pool", Configuration=[{"Type": "AWS::EC2::CapacityReservationPool"}])
    arn = pool["Group"]["GroupArn"]
    groups.group_resources(Group="pool", ResourceArns=[each["CapacityReservationArn"] for each in reservations])
    for count, instance_type, used in (
        (2, "c6i.large", reservations[1]["CapacityReservationId"]),
        (2, "c6i.large", ""),
        (1, "m5.large", ""),
        (1, "c6i.large", reservations[0]["CapacityReservationId"]),
    ):
        assert set(into(launches, count, instance_type, CapacityReservationResourceGroupArn=arn)) == {used}


def test_a_reservation_starts_and_ends(launches: Account, ec2: Any) -> None:
    future = make(ec2, StartDate=from_now(hours=1))
    assert state(ec2, future["CapacityReservationId"]) == ("scheduled", 0, 0)
    assert future["CommitmentInfo"]["CommittedInstanceCount"] == 3
    with pytest.raises(ClientError, match="PendingActivation"):
        into(launches, 1, CapacityReservationId=future["CapacityReservationId"])
    assert state(ec2, make(ec2, EndDate=from_now(hours=1))["CapacityReservationId"]) == ("active", 3, 3)
    ended = make(ec2, EndDate=from_now(hours=-1))
    assert (ended["State"], ended["EndDateType"]) == ("expired", "limited")
    with pytest.raises(ClientError, match="ReservationCapacityExceeded"):
        into(launches, 1, CapacityReservationId=ended["CapacityReservationId"])


def test_an_instance_is_small_unless_a_type_is_asked_for(launches: Account, ec2: Any) -> None:
    """Moto's test_create_instance_from_launch_template_default_version passed on AWS."""
    image = ec2.register_image(Name="plain", RootDeviceName="/dev/sda1")["ImageId"]
    [instance] = ec2.run_instances(ImageId=image, MinCount=1, MaxCount=1)["Instances"]
    assert instance["InstanceType"] == "m1.small"


@pytest.mark.parametrize(
    ("target", "lifecycles"),
    [
        ({"TotalTargetCapacity": 2, "DefaultTargetCapacityType": "spot"}, ["spot", "spot"]),
        (
            {"TotalTargetCapacity": 3, "OnDemandTargetCapacity": 1, "DefaultTargetCapacityType": "spot"},
            ["on-demand", "spot", "spot"],
        ),
        ({"TotalTargetCapacity": 1, "SpotTargetCapacity": 0}, ["on-demand"]),
    ],
)
def test_a_fleet_has_both_lifecycles_and_an_end(ec2: Any, target: dict[str, Any], lifecycles: list[str]) -> None:
    """Moto's test_create_instant_fleet_target_capacity_combinations passed on AWS."""
    image = ec2.register_image(Name="plain", RootDeviceName="/dev/sda1")["ImageId"]
    ec2.create_launch_template(LaunchTemplateName="template", LaunchTemplateData={"ImageId": image})
    template = {"LaunchTemplateSpecification": {"LaunchTemplateName": "template", "Version": "$Latest"}}
    target = {"DefaultTargetCapacityType": "on-demand", **target}
    fleet = ec2.create_fleet(Type="instant", LaunchTemplateConfigs=[template], TargetCapacitySpecification=target)
    chosen = [each["LaunchTemplateAndOverrides"]["LaunchTemplateSpecification"] for each in fleet["Instances"]]
    assert {each["Version"] for each in chosen} == {"1"}
    assert sorted(each["Lifecycle"] for each in fleet["Instances"] for _ in each["InstanceIds"]) == lifecycles
    ids = [each for group in fleet["Instances"] for each in group["InstanceIds"]]
    answer = ec2.delete_fleets(FleetIds=[fleet["FleetId"], "fleet-none"], TerminateInstances=True)
    assert [each["FleetId"] for each in answer["SuccessfulFleetDeletions"]] == [fleet["FleetId"]]
    assert answer["UnsuccessfulFleetDeletions"][0]["Error"]["Code"] == "fleetIdDoesNotExist"
    states = ec2.describe_instances(InstanceIds=ids)["Reservations"]
    assert {each["State"]["Name"] for group in states for each in group["Instances"]} == {"terminated"}


@pytest.mark.parametrize(
    ("total", "parts"),
    [
        (total, {"OnDemandTargetCapacity": on_demand, "SpotTargetCapacity": spot, "DefaultTargetCapacityType": default})
        for total in (0, 1, 3)
        for on_demand in (None, 0, 2)
        for spot in (None, 0, 2)
        for default in ("on-demand", "spot")
    ],
)
def test_the_capacities_of_a_fleet_add_up_or_are_refused(total: int, parts: dict[str, Any]) -> None:
    told = [each for each in (parts["OnDemandTargetCapacity"], parts["SpotTargetCapacity"]) if each is not None]
    target = {"TotalTargetCapacity": total, **parts}
    if sum(told) > total:
        with pytest.raises(EC2ClientError, match="add up"):
            capacities(target)
        return
    wanted = capacities(target)
    assert sum(number for _, number in wanted) == total
    assert all(number > 0 for _, number in wanted)


@pytest.mark.parametrize(
    ("template", "code"),
    [
        ({"LaunchTemplateId": "lt-0123456789abcdef0"}, "InvalidLaunchTemplateId.NotFound"),
        ({"LaunchTemplateName": "none"}, "InvalidLaunchTemplateName.NotFoundException"),
        ({"LaunchTemplateName": "made", "Version": "7"}, "InvalidLaunchTemplateId.VersionNotFound"),
        ({"LaunchTemplateName": "made", "Version": "newest"}, "InvalidParameterValue"),
        ({"Version": "1"}, "MissingParameter"),
        ({"LaunchTemplateName": "made"}, "MissingParameter"),
    ],
)
def test_a_launch_template_that_gives_no_instance_is_refused(ec2: Any, template: dict[str, str], code: str) -> None:
    """By RunInstances, and by a fleet for each choice."""
    ec2.create_launch_template(LaunchTemplateName="made", LaunchTemplateData={"InstanceType": "c6i.large"})
    with pytest.raises(ClientError) as caught:
        ec2.run_instances(MinCount=1, MaxCount=1, LaunchTemplate=template)
    assert caught.value.response["Error"]["Code"] == code
    choice = {"LaunchTemplateSpecification": template}
    fleet = {"LaunchTemplateConfigs": [choice], "TargetCapacitySpecification": {"TotalTargetCapacity": 1}}
    errors = ec2.create_fleet(Type="instant", **fleet)["Errors"]
    assert [each["ErrorCode"] for each in errors] == [code]


def test_a_volume_is_detached_from_whatever_instance_has_it(launches: Account, ec2: Any) -> None:
    [instance_id] = launches.launch()
    zone = launches.instances(instance_id)[0]["Placement"]["AvailabilityZone"]
    volume_id = ec2.create_volume(AvailabilityZone=zone, Size=1)["VolumeId"]
    ec2.attach_volume(VolumeId=volume_id, InstanceId=instance_id, Device="/dev/sdf")
    assert ec2.detach_volume(VolumeId=volume_id)["InstanceId"] == instance_id
    with refused("IncorrectState", f"Volume '{volume_id}' is in the 'available' state."):
        ec2.detach_volume(VolumeId=volume_id)
