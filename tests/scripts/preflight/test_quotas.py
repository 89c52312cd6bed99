"""Checks of quotas in accounts where much is in use, and beside a deployment that exists."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from config.settings import Settings, load
from scripts.deployment import Deployment
from scripts.estimate.quotas import quotas
from scripts.preflight import usage
from scripts.preflight.check import Finding, Status
from scripts.preflight.quotas import CHECKS, LOOKS
from scripts.preflight.reservations import unused_by_type
from scripts.preflight.runner import findings
from tests.configurations import CONFIG, SHIPPED
from tests.emulator.stacks import Stacks
from tests.scripts.preflight.cases_capacity import BLOCK, RESERVATION, grouped, launch, make_reservation
from tests.scripts.preflight.cases_quotas import (
    SPOT,
    STANDARD_SPOT,
    add_nat_gateways,
    large_block,
    new_account,
    quota,
    subnet_id,
    trn2_block,
)
from tests.scripts.preflight.conftest import GoodAccount

MakeAccount = Callable[..., GoodAccount]


def edited(environment: str, edit: Callable[[dict[str, Any]], object]) -> Settings:
    raw = load(CONFIG / f"{environment}.yaml").model_dump(mode="json")
    edit(raw)
    return Settings.model_validate(raw)


def file_system(deployment_type: str, throughput: int | None) -> Settings:
    keys = {
        "deployment_type": deployment_type,
        "throughput_mbps_per_tib": throughput,
        "backup_retention_days": 0,
        "metadata_iops": None,
    }
    return edited("trn1-16", lambda raw: raw["storage"]["file_system"].update(keys))


def says(account: GoodAccount, name: str) -> str:
    """Return the sentence of the check of a quota."""
    [finding] = account.look(quota(name))
    return finding.sentence


def look_at_all(account: GoodAccount) -> dict[str, Finding]:
    """Return the findings of all checks of quotas, by what follows ``quota-`` in their ids."""
    deployment = Deployment(account.settings.name, account.settings)
    return {each.id.removeprefix("quota-"): finding for each in CHECKS for finding in findings(each, deployment)}


def run_instances(account: GoodAccount, instance_type: str, count: int = 1, **options: Any) -> list[str]:
    ec2 = account.client("ec2")
    image_id = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    options.setdefault("SubnetId", subnet_id(account))
    launched = ec2.run_instances(
        ImageId=image_id, InstanceType=instance_type, MinCount=count, MaxCount=count, **options
    )
    return [each["InstanceId"] for each in launched["Instances"]]


ALL_SETTINGS = (
    *(load(CONFIG / f"{name}.yaml") for name in SHIPPED),
    edited("trn1-16", SPOT),
    edited("trn1-16", STANDARD_SPOT),
    edited("reserved", trn2_block),
    edited("reserved", large_block),
    file_system("SCRATCH_2", None),
    file_system("PERSISTENT_1", 100),
)


def test_every_quota_of_a_plan_has_one_check() -> None:
    looked_at = [code for look in LOOKS for code in look.codes]
    assert sorted(looked_at) == sorted({each.code for settings in ALL_SETTINGS for each in quotas(settings)})


def test_an_ultracluster_does_not_fit_into_a_new_account(good_account: MakeAccount) -> None:
    account = good_account("ultracluster")
    assert {finding.status for finding in look_at_all(account).values()} == {Status.PASS, Status.SKIP}
    new_account(account)
    found = look_at_all(account)
    failed = {name: finding.sentence for name, finding in found.items() if finding.status is Status.FAIL}
    assert failed == {
        "trn-on-demand": "0 of 0 vCPUs in use, 240,000 more needed; room for 0 of 1,875 nodes",
        "standard-on-demand": "0 of 5 vCPUs in use, 64 more needed",
        "interfaces": "0 of 5,000 interfaces in use, 16,958 more needed; room for 546 of 1,875 nodes",
        "elastic-ips": "0 of 5 addresses in use, 8 more needed",
        "addresses-per-nat": "0 of 2 addresses in use, 8 more needed",
        "gp3": "0 of 50 TiB in use, 367 more needed; room for 255 of 1,875 nodes",
    }


@pytest.mark.parametrize("environment", ["dev", "reserved", "trn1-16", "two-queues"])
def test_a_good_account_has_room(good_account: MakeAccount, environment: str) -> None:
    found = look_at_all(good_account(environment))
    assert {finding.status for finding in found.values()} == {Status.PASS, Status.SKIP}


NETWORK = {
    "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16"}},
    "Gateway": {"Type": "AWS::EC2::InternetGateway"},
    "Attachment": {
        "Type": "AWS::EC2::VPCGatewayAttachment",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "InternetGatewayId": {"Ref": "Gateway"}},
    },
    "Subnet": {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.64.0/18", "AvailabilityZoneId": "usw2-az4"},
    },
    "Address": {"Type": "AWS::EC2::EIP", "DependsOn": "Attachment", "Properties": {"Domain": "vpc"}},
    "NatGateway": {
        "Type": "AWS::EC2::NatGateway",
        "Properties": {"SubnetId": {"Ref": "Subnet"}, "AllocationId": {"Fn::GetAtt": ["Address", "AllocationId"]}},
    },
}


def deployed(account: GoodAccount) -> None:
    """Make what trn1-16 has of each quota: its network, its file system, its head node and its 16 nodes."""
    stacks = Stacks(account.aws, account.settings.region)
    outputs = {"Subnet": {"Value": {"Ref": "Subnet"}}}
    stacks.create("trn1-16-network", NETWORK, template={"Outputs": outputs})
    completed = stacks.client.get_waiter("stack_create_complete")
    completed.wait(StackName="trn1-16-network", WaiterConfig={"Delay": 1})
    subnet = stacks.output("trn1-16-network", "Subnet")
    storage = {
        "Lustre": {
            "Type": "AWS::FSx::FileSystem",
            "Properties": {
                "FileSystemType": "LUSTRE",
                "StorageCapacity": 4800,
                "SubnetIds": [subnet],
                "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250},
            },
        }
    }
    stacks.create("trn1-16-storage", storage)
    completed.wait(StackName="trn1-16-storage", WaiterConfig={"Delay": 1})
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "trn1-16"}]
    volume = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 200, "VolumeType": "gp3"}}
    options: dict[str, Any] = {
        "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}],
        "BlockDeviceMappings": [volume],
    }
    run_instances(account, "c6i.4xlarge", SubnetId=subnet, **options)
    cards = [{"DeviceIndex": 0, "SubnetId": subnet}]
    cards += [
        {"DeviceIndex": 1, "NetworkCardIndex": card, "SubnetId": subnet, "InterfaceType": "efa-only"}
        for card in range(8)
    ]
    run_instances(account, "trn1.32xlarge", 16, SubnetId="", NetworkInterfaces=cards, **options)


def test_a_deployment_that_exists_needs_nothing_twice(good_account: MakeAccount) -> None:
    account = good_account()
    deployed(account)
    assert {name: finding.sentence for name, finding in look_at_all(account).items()} == {
        "trn-on-demand": "2,048 of 300,000 vCPUs in use, 0 more needed",
        "trn-spot": "nothing of this kind in these settings",
        "standard-on-demand": "16 of 5,000 vCPUs in use, 0 more needed",
        "standard-spot": "nothing of this kind in these settings",
        "trn1-capacity-blocks": "nothing of this kind in these settings",
        "trn2-capacity-blocks": "nothing of this kind in these settings",
        "capacity-block-instances": "nothing of this kind in these settings",
        # The emulated file system has 1 interface, not the 4 that the plan counts.
        "interfaces": "147 of 25,000 interfaces in use, 3 more needed",
        "elastic-ips": "1 of 20 addresses in use, 0 more needed",
        "addresses-per-nat": "1 of 8 addresses in use, 0 more needed",
        "nat-gateways": "1 of 5 gateways in use, 0 more needed",
        "vpcs": "2 of 5 VPCs in use, 0 more needed",
        "lustre-storage": "4,800 of 100,800 GiB in use, 0 more needed",
        "lustre-file-systems": "1 of 100 file systems in use, 0 more needed",
        "gp3": "4 of 500 TiB in use, 0 more needed",
    }


def test_a_larger_fleet_needs_the_difference(good_account: MakeAccount) -> None:
    larger = edited("trn1-16", lambda raw: raw["cluster"]["queues"][0]["compute_resources"][0].update(max_count=20))
    account = good_account("trn1-16", larger)
    deployed(account)
    assert says(account, "trn-on-demand") == "2,048 of 300,000 vCPUs in use, 512 more needed"
    assert says(account, "interfaces") == "147 of 25,000 interfaces in use, 39 more needed"


def test_nodes_that_fit_are_told_beside_what_is_in_use(good_account: MakeAccount) -> None:
    account = good_account()
    new_account(account)
    trn = {"ServiceCode": "ec2", "QuotaCode": "L-2C3B7624"}
    account.client("service-quotas").request_service_quota_increase(**trn, DesiredValue=10 * 128)
    # Asking for the parameter makes the image.
    account.client("ssm").get_parameter(Name="/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64")
    run_instances(account, "trn1.2xlarge")
    sentence = "8 of 1,280 vCPUs in use, 2,048 more needed; room for 9 of 16 nodes"
    assert says(account, "trn-on-demand") == sentence


def test_a_smaller_fleet_needs_nothing_even_where_more_is_in_use_than_allowed(good_account: MakeAccount) -> None:
    account = good_account()
    run_instances(account, "c6i.metal", 40)  # 128 vCPUs each, 5,120 of 5,000
    [finding] = account.look(quota("standard-on-demand"))
    assert (finding.status, finding.sentence) == (Status.FAIL, "5,120 of 5,000 vCPUs in use, 16 more needed")
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "trn1-16"}]
    run_instances(account, "c6i.4xlarge", TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])
    [finding] = account.look(quota("standard-on-demand"))
    assert (finding.status, finding.sentence) == (Status.PASS, "5,136 of 5,000 vCPUs in use, 0 more needed")


def test_instances_count_by_family_and_by_how_they_were_bought(good_account: MakeAccount) -> None:
    account = good_account()
    spot: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": "spot"}}
    run_instances(account, "m5.large")
    run_instances(account, "t3.xlarge", **spot)
    run_instances(account, "trn1.2xlarge")
    run_instances(account, "trn1.32xlarge", 2, **spot)
    run_instances(account, "trn1.32xlarge", InstanceMarketOptions={"MarketType": "capacity-block"})
    run_instances(account, "inf1.xlarge")
    assert says(account, "standard-on-demand").startswith("2 of 5,000")
    assert says(account, "trn-on-demand").startswith("8 of 300,000")
    assert says(good_account("trn1-16", edited("trn1-16", SPOT)), "trn-spot").startswith("256 of 300,000")
    assert says(good_account("trn1-16", edited("trn1-16", STANDARD_SPOT)), "standard-spot").startswith("4 of 5,000")


def test_stopped_instances_do_not_count(good_account: MakeAccount) -> None:
    account = good_account()
    account.client("ec2").stop_instances(InstanceIds=run_instances(account, "trn1.2xlarge"))
    assert says(account, "trn-on-demand").startswith("0 of 300,000")


def test_reservations_count_unused_too_but_those_of_this_deployment_only_once(good_account: MakeAccount) -> None:
    account = good_account("reserved")
    assert says(account, "trn-on-demand") == "0 of 300,000 vCPUs in use, 1,024 more needed"
    make_reservation(account, RESERVATION, InstanceCount=10)  # 2 more than this deployment has nodes
    make_reservation(account, "cr-00000000000000001", InstanceType="trn1.2xlarge", InstanceCount=3)
    make_reservation(account, "cr-00000000000000002", InstanceType="trn1.2xlarge", InstanceCount=5, block=True)
    make_reservation(account, "cr-00000000000000003", InstanceType="m5.large", InstanceCount=7)
    account.client("ec2").cancel_capacity_reservation(
        CapacityReservationId=make_reservation(account, "cr-00000000000000004")["CapacityReservationId"]
    )
    in_use = 2 * 128 + 3 * 8
    assert says(account, "trn-on-demand") == f"{in_use} of 300,000 vCPUs in use, 1,024 more needed"
    launch(account, 3, {"CapacityReservationId": RESERVATION}, **{"parallelcluster:cluster-name": "reserved"})
    assert says(account, "trn-on-demand") == f"{in_use + 3 * 128} of 300,000 vCPUs in use, 640 more needed"


def test_reservations_of_a_group_count_only_once(good_account: MakeAccount) -> None:
    account = good_account("reserved", edited("reserved", grouped))
    made = make_reservation(account, "cr-00000000000000001", InstanceCount=6)
    account.client("resource-groups").group_resources(Group="pool", ResourceArns=[made["CapacityReservationArn"]])
    assert says(account, "trn-on-demand") == f"{(8 + 6 - 8) * 128} of 300,000 vCPUs in use, 1,024 more needed"


@pytest.mark.parametrize(("state", "count"), [("active", 5), ("cancelled", 0), ("expired", 0)])
def test_only_active_reservations_hold_capacity(monkeypatch: pytest.MonkeyPatch, state: str, count: int) -> None:
    deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
    reservation = {
        "CapacityReservationId": "cr-1",
        "InstanceType": "m5.large",
        "AvailableInstanceCount": 5,
        "State": state,
    }
    monkeypatch.setattr(deployment.account, "list", lambda *_: [reservation])
    assert unused_by_type(deployment).total() == count


def test_capacity_blocks_of_others_count_while_they_last(good_account: MakeAccount) -> None:
    account = good_account("reserved")
    make_reservation(account, "cr-00000000000000001", InstanceCount=60, block=True)
    make_reservation(account, "cr-00000000000000002", InstanceType="trn2.48xlarge", InstanceCount=2, block=True)
    make_reservation(account, "cr-00000000000000003", InstanceCount=7)
    over = datetime.now(UTC) - timedelta(days=1)
    make_reservation(account, "cr-00000000000000004", InstanceCount=9, block=True, EndDate=over)
    assert says(account, "capacity-block-instances").startswith("66 of 256")
    assert says(account, "trn1-capacity-blocks").startswith("8,192 of 32,768")


def test_a_capacity_block_that_is_over_does_not_count_for_its_replacement(good_account: MakeAccount) -> None:
    account = good_account("reserved")
    assert says(account, "capacity-block-instances") == "4 of 256 instances in use, 0 more needed"
    make_reservation(account, BLOCK, InstanceCount=4, block=True, EndDate=datetime.now(UTC) - timedelta(days=1))
    assert says(account, "capacity-block-instances") == "0 of 256 instances in use, 4 more needed"


def test_interfaces_of_the_zone_are_counted_from_all_pages(
    good_account: MakeAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = good_account()
    for zone_id, count in (("usw2-az4", 250), ("usw2-az1", 20)):
        in_zone = subnet_id(account, zone_id)
        for _ in range(count):
            account.client("ec2").create_network_interface(SubnetId=in_zone)
    monkeypatch.setattr(usage, "PAGE_SIZE", 100)
    assert says(account, "interfaces") == "250 of 25,000 interfaces in use, 150 more needed"


def test_nat_gateways_of_another_zone_do_not_count(good_account: MakeAccount) -> None:
    account = good_account()
    add_nat_gateways(account, "usw2-az1")
    assert says(account, "nat-gateways") == "0 of 5 gateways in use, 1 more needed"


def test_scratch_file_systems_of_both_kinds_share_a_quota(good_account: MakeAccount) -> None:
    account = good_account("trn1-16", file_system("SCRATCH_2", None))
    for deployment_type, throughput in (("SCRATCH_1", {}), ("PERSISTENT_2", {"PerUnitStorageThroughput": 125})):
        account.client("fsx").create_file_system(
            FileSystemType="LUSTRE",
            StorageCapacity=2400,
            SubnetIds=[subnet_id(account)],
            LustreConfiguration={"DeploymentType": deployment_type, **throughput},
        )
    assert says(account, "lustre-storage") == "2,400 of 100,800 GiB in use, 4,800 more needed"
    assert says(account, "lustre-file-systems") == "1 of 100 file systems in use, 1 more needed"


def test_other_volumes_count_if_they_are_gp3(good_account: MakeAccount) -> None:
    account = good_account()
    for volume_type in ("gp2", "gp3"):
        account.client("ec2").create_volume(AvailabilityZone="us-west-2a", Size=5120, VolumeType=volume_type)
    assert says(account, "gp3") == "5 of 500 TiB in use, 4 more needed"


def test_instance_types_are_asked_for_by_the_hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
    asked = []

    def listed(*_: str, InstanceTypes: list[str]) -> list[dict[str, Any]]:
        asked.append(len(InstanceTypes))
        return [{"InstanceType": name, "VCpuInfo": {"DefaultVCpus": 2}} for name in InstanceTypes]

    monkeypatch.setattr(deployment.account, "list", listed)
    names = {f"m5.{number}xlarge" for number in range(250)}
    assert usage._vcpus_by_type(deployment, names) == dict.fromkeys(names, 2)
    assert asked == [100, 100, 50]
