"""RunInstances in dry-run mode refuses what EC2 refuses, with EC2's error codes."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws

pytestmark = pytest.mark.validation

Launch = dict[str, Any]


def interface_in_a_vpc_of_its_own(ec2: Any, block: str, zone_id: str) -> Launch:
    vpc_id = ec2.create_vpc(CidrBlock=block)["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc_id, CidrBlock=block, AvailabilityZoneId=zone_id)["Subnet"]
    return {"DeviceIndex": 0, "SubnetId": subnet["SubnetId"]}


@pytest.fixture(scope="module")
def ec2(rehearsal_server: EmulatedAws) -> Any:
    rehearsal_server.reset()
    return rehearsal_server.client("ec2", "us-west-2")


@pytest.fixture(scope="module")
def good(ec2: Any) -> Launch:
    """Return a launch that nothing speaks against."""
    interface = interface_in_a_vpc_of_its_own(ec2, "10.0.0.0/24", "usw2-az4")
    [subnet] = ec2.describe_subnets(SubnetIds=[interface["SubnetId"]])["Subnets"]
    group_id = ec2.create_security_group(GroupName="group", Description="group", VpcId=subnet["VpcId"])["GroupId"]
    ec2.create_key_pair(KeyName="key", KeyType="ed25519")
    ec2.create_placement_group(GroupName="group", Strategy="cluster")
    reservation = ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge", InstancePlatform="Linux/UNIX", AvailabilityZoneId="usw2-az4", InstanceCount=1
    )["CapacityReservation"]["CapacityReservationId"]
    return {
        "DryRun": True,
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": ec2.register_image(Name="image")["ImageId"],
        "InstanceType": "trn1.32xlarge",
        "KeyName": "key",
        "Placement": {"GroupName": "group"},
        "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": reservation}},
        "NetworkInterfaces": [{**interface, "NetworkCardIndex": card, "Groups": [group_id]} for card in range(8)],
    }


CHANGES: dict[str, tuple[Callable[[Any, Launch], Launch], str]] = {
    "nothing": (lambda *_: {}, "DryRunOperation"),
    "image": (lambda *_: {"ImageId": "ami-0123456789abcdef0"}, "InvalidAMIID.NotFound"),
    "type": (lambda *_: {"InstanceType": "trn9.32xlarge"}, "InvalidParameterValue"),
    "key": (lambda *_: {"KeyName": "nowhere"}, "InvalidKeyPair.NotFound"),
    "placement group": (lambda *_: {"Placement": {"GroupName": "nowhere"}}, "InvalidPlacementGroup.Unknown"),
    "reservation": (
        lambda *_: {
            "CapacityReservationSpecification": {
                "CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}
            }
        },
        "InvalidCapacityReservationId.NotFound",
    ),
    "subnet": (
        lambda *_: {"NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": "subnet-0123456789abcdef0"}]},
        "InvalidSubnetID.NotFound",
    ),
    "security group": (
        lambda _, good: {"NetworkInterfaces": [{**good["NetworkInterfaces"][0], "Groups": ["sg-0123456789abcdef0"]}]},
        "InvalidGroup.NotFound",
    ),
    "security group of another VPC": (
        lambda ec2, good: {
            "NetworkInterfaces": [
                {
                    **interface_in_a_vpc_of_its_own(ec2, "10.1.0.0/24", "usw2-az4"),
                    "Groups": good["NetworkInterfaces"][0]["Groups"],
                }
            ]
        },
        "InvalidParameter",
    ),
    "zone without the type": (
        lambda ec2, _: {"NetworkInterfaces": [interface_in_a_vpc_of_its_own(ec2, "10.2.0.0/24", "usw2-az2")]},
        "Unsupported",
    ),
    "too few addresses": (
        lambda ec2, _: {"NetworkInterfaces": [interface_in_a_vpc_of_its_own(ec2, "10.3.0.0/28", "usw2-az4")] * 12},
        "InsufficientFreeAddressesInSubnet",
    ),
}


@pytest.mark.parametrize(("change", "code"), CHANGES.values(), ids=CHANGES)
def test_the_answer_to_a_launch(change: Callable[[Any, Launch], Launch], code: str, ec2: Any, good: Launch) -> None:
    with pytest.raises(ClientError) as raised:
        ec2.run_instances(**{**good, **change(ec2, good)})
    assert raised.value.response["Error"]["Code"] == code


def test_a_real_launch_still_works(ec2: Any, good: Launch) -> None:
    launch = {**good, "DryRun": False, "NetworkInterfaces": good["NetworkInterfaces"][:1]}
    assert len(ec2.run_instances(**launch)["Instances"]) == 1


@pytest.mark.parametrize("region", ["us-east-1", "us-east-2", "us-west-2", "ap-southeast-2"])
def test_zones_offer_by_name_what_they_offer_by_id(aws: EmulatedAws, region: str) -> None:
    ec2 = aws.client("ec2", region)
    ids = {zone["ZoneName"]: zone["ZoneId"] for zone in ec2.describe_availability_zones()["AvailabilityZones"]}
    only = [{"Name": "instance-type", "Values": ["trn1.32xlarge"]}]

    def zones(location_type: str) -> set[str]:
        offered = ec2.describe_instance_type_offerings(LocationType=location_type, Filters=only)
        return {offer["Location"] for offer in offered["InstanceTypeOfferings"]}

    by_id = zones("availability-zone-id")
    assert by_id
    assert {ids[name] for name in zones("availability-zone")} == by_id
