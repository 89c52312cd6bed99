"""What settings name in a user's account exists in the emulated one, under the same id."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.settings import Settings, load
from emulator.aws import EmulatedAws
from scripts import emulated
from scripts.commands.validate import CONFIG

pytestmark = pytest.mark.validation

GROUP_ARN = "arn:aws:resource-groups:us-west-2:111122223333:group/reservations"


@pytest.fixture
def account(rehearsed_aws: EmulatedAws) -> EmulatedAws:
    return rehearsed_aws


@pytest.fixture
def made(account: EmulatedAws, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that edits the trn1-16 settings, makes the stand-ins and gives an EC2 client."""

    def make(edit: Callable[[dict[str, Any]], object]) -> Any:
        document = yaml.safe_load((CONFIG / "trn1-16.yaml").read_text())
        edit(document)
        (tmp_path / "edited.yaml").write_text(yaml.safe_dump(document))
        settings: Settings = load(tmp_path / "edited.yaml")
        emulated.create_prerequisites(account, settings)
        return account.client("ec2", settings.region)

    return make


def queue(document: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = document["cluster"]["queues"][0]
    return first


def test_the_official_images(made: Callable[..., Any]) -> None:
    ec2 = made(lambda _: None)
    images = ec2.describe_images(Owners=["amazon"])["Images"]
    assert "aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64-202609010000" in {each["Name"] for each in images}
    assert {each["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] for each in images} == {45}


def test_an_existing_vpc(made: Callable[..., Any]) -> None:
    ids = {
        "vpc_id": "vpc-0123456789abcdef0",
        "public_subnet_id": "subnet-0123456789abcdef0",
        "private_subnet_id": "subnet-0123456789abcdef1",
    }
    blocks = {key: f"10.0.{part}" for key, part in (("cidr", "0.0/16"), ("public", "0.0/24"), ("private", "64.0/18"))}
    network = {
        "cidr": blocks["cidr"],
        "public_subnet_cidr": blocks["public"],
        "private_subnet_cidr": blocks["private"],
        "existing": ids,
    }
    ec2 = made(lambda document: document.update(network=network))
    for subnet_id, cidr, public in (
        (ids["public_subnet_id"], blocks["public"], True),
        (ids["private_subnet_id"], blocks["private"], False),
    ):
        [subnet] = ec2.describe_subnets(SubnetIds=[subnet_id])["Subnets"]
        assert (subnet["VpcId"], subnet["CidrBlock"]) == (ids["vpc_id"], cidr)
        assert (subnet["AvailabilityZoneId"], subnet["MapPublicIpOnLaunch"]) == ("usw2-az4", public)


def test_a_reservation_in_its_placement_group(made: Callable[..., Any]) -> None:
    def reserve(document: dict[str, Any]) -> None:
        queue(document).update(placement_group=None, existing_placement_group="theirs")
        queue(document)["compute_resources"][0]["capacity_reservation_id"] = "cr-0123456789abcdef0"

    ec2 = made(reserve)
    [group] = ec2.describe_placement_groups(GroupNames=["theirs"])["PlacementGroups"]
    [found] = ec2.describe_capacity_reservations(CapacityReservationIds=["cr-0123456789abcdef0"])[
        "CapacityReservations"
    ]
    assert (found["PlacementGroupArn"], found["ReservationType"]) == (group["GroupArn"], "default")
    assert (found["InstanceType"], found["TotalInstanceCount"]) == ("trn1.32xlarge", 16)
    assert (found["AvailabilityZoneId"], found["Tags"]) == ("usw2-az4", [])


def test_a_capacity_block(made: Callable[..., Any]) -> None:
    def reserve(document: dict[str, Any]) -> None:
        queue(document).update(placement_group=None, capacity_type="CAPACITY_BLOCK")
        block = {"capacity_reservation_id": "cr-0123456789abcdef1", "min_count": 4, "max_count": 4}
        queue(document)["compute_resources"][0].update(block)

    [found] = made(reserve).describe_capacity_reservations()["CapacityReservations"]
    assert (found["CapacityReservationId"], found["ReservationType"]) == ("cr-0123456789abcdef1", "capacity-block")
    assert found["TotalInstanceCount"] == 4


def test_a_group_of_reservations(account: EmulatedAws, made: Callable[..., Any]) -> None:
    def reserve(document: dict[str, Any]) -> None:
        queue(document)["placement_group"] = "none"
        queue(document)["compute_resources"][0]["capacity_reservation_group_arn"] = GROUP_ARN

    [reservation] = made(reserve).describe_capacity_reservations()["CapacityReservations"]
    groups = account.client("resource-groups", "us-west-2")
    [member] = groups.list_group_resources(Group=GROUP_ARN)["Resources"]
    assert member["Identifier"]["ResourceArn"] == reservation["CapacityReservationArn"]


def test_key_image_and_bucket(account: EmulatedAws, made: Callable[..., Any]) -> None:
    def name_them(document: dict[str, Any]) -> None:
        document["cluster"]["custom_ami"] = "ami-0123456789abcdef0"
        document["cluster"]["head_node"].update(ssh_key_name="mine", ssh_cidr="203.0.113.0/24")
        document["storage"]["file_system"]["backup_retention_days"] = 0
        document["storage"]["data_repositories"] = [{"path": "/data", "bucket": "my-bucket"}]

    ec2 = made(name_them)
    assert ec2.describe_key_pairs(KeyNames=["mine"])["KeyPairs"][0]["KeyType"] == "ed25519"
    [image] = ec2.describe_images(ImageIds=["ami-0123456789abcdef0"])["Images"]
    assert {"Key": "parallelcluster:os", "Value": "ubuntu2404"} in image["Tags"]
    account.client("s3", "us-west-2").head_bucket(Bucket="my-bucket")
