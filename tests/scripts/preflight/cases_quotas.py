"""What the checks of quotas must say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scripts.preflight.check import Check, Status
from scripts.preflight.quotas import CHECKS
from tests.scripts.preflight.cases import Case, Edit
from tests.scripts.preflight.conftest import GoodAccount

BY_ID = {each.id: each for each in CHECKS}


def quota(name: str) -> Check:
    return BY_ID[f"quota-{name}"]


def only_queue(nodes: Mapping[str, Any] | None = None, **keys: Any) -> Edit:
    """Change keys of the only queue, and of its nodes."""

    def edit(raw: dict[str, Any]) -> None:
        [found] = raw["cluster"]["queues"]
        found |= keys
        found["compute_resources"][0] |= nodes or {}

    return edit


def new_account(account: GoodAccount) -> None:
    """Take everything away, the raised quotas too."""
    account.aws.reset()


def subnet_id(account: GoodAccount, zone_id: str | None = None) -> str:
    """Return a subnet of the default VPC in a zone, that of the deployment unless told otherwise."""
    zone = {"Name": "availability-zone-id", "Values": [zone_id or account.settings.zone_id]}
    found: str = account.client("ec2").describe_subnets(Filters=[zone])["Subnets"][0]["SubnetId"]
    return found


def add_nat_gateways(account: GoodAccount, zone_id: str | None = None) -> None:
    for _ in range(5):
        account.client("ec2").create_nat_gateway(SubnetId=subnet_id(account, zone_id), ConnectivityType="private")


def add_vpcs(count: int) -> Callable[[GoodAccount], None]:
    def spoil(account: GoodAccount) -> None:
        for _ in range(count):
            account.client("ec2").create_vpc(CidrBlock="10.0.0.0/16")

    return spoil


def add_file_systems(gib: int, count: int) -> Callable[[GoodAccount], None]:
    def spoil(account: GoodAccount) -> None:
        for _ in range(count):
            account.client("fsx").create_file_system(
                FileSystemType="LUSTRE",
                StorageCapacity=gib,
                SubnetIds=[subnet_id(account)],
                LustreConfiguration={"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
            )

    return spoil


SPOT = only_queue(capacity_type="SPOT")
STANDARD_SPOT = only_queue(
    capacity_type="SPOT", placement_group="none", nodes={"instance_type": "c6i.2xlarge", "efa": None}
)


def trn2_block(raw: dict[str, Any]) -> None:
    raw["cluster"]["queues"][1]["compute_resources"][0]["instance_type"] = "trn2.48xlarge"


def large_block(raw: dict[str, Any]) -> None:
    raw["cluster"]["queues"][1]["compute_resources"][0] |= {"min_count": 300, "max_count": 300}


def increase(service: str, code: str, value: int) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} "
        f"--desired-value {value} --region us-west-2; approval can take days"
    )


CASES = (
    Case(quota("trn-on-demand"), Status.PASS, ("0 of 300,000 vCPUs in use, 2,048 more needed",)),
    Case(
        quota("trn-on-demand"),
        Status.FAIL,
        (
            "0 of 0 vCPUs in use, 2,048 more needed; room for 0 of 16 nodes",
            increase("ec2", "L-2C3B7624", 2048),
            "aws service-quotas get-aws-default-service-quota --service-code ec2 --quota-code L-2C3B7624",
        ),
        new_account,
        name="new",
    ),
    Case(quota("trn-spot"), Status.SKIP),
    Case(quota("trn-spot"), Status.PASS, ("0 of 300,000 vCPUs in use, 2,048 more needed",), edit=SPOT, name="spot"),
    Case(
        quota("trn-spot"),
        Status.FAIL,
        ("0 of 0 vCPUs", increase("ec2", "L-6B0D517C", 2048)),
        new_account,
        edit=SPOT,
        name="new",
    ),
    Case(quota("standard-on-demand"), Status.PASS, ("0 of 5,000 vCPUs in use, 16 more needed", "get-service-quota")),
    Case(
        quota("standard-on-demand"),
        Status.FAIL,
        ("0 of 5 vCPUs in use, 16 more needed", increase("ec2", "L-1216C47A", 16)),
        new_account,
        name="new",
    ),
    Case(quota("standard-spot"), Status.PASS, ("0 of 5,000 vCPUs in use, 128 more",), edit=STANDARD_SPOT, name="spot"),
    Case(
        quota("standard-spot"),
        Status.FAIL,
        ("0 of 5 vCPUs in use, 128 more needed; room for 0 of 16 nodes", increase("ec2", "L-34B43A08", 128)),
        new_account,
        edit=STANDARD_SPOT,
        name="new",
    ),
    Case(
        quota("trn1-capacity-blocks"),
        Status.PASS,
        ("512 of 32,768 vCPUs in use, 0 more needed",),
        environment="reserved",
    ),
    Case(
        quota("trn1-capacity-blocks"),
        Status.FAIL,
        ("0 of 0 vCPUs in use, 512 more needed; room for 0 of 4 nodes", increase("ec2", "L-2E30FD7D", 512)),
        new_account,
        environment="reserved",
        name="new",
    ),
    Case(
        quota("trn2-capacity-blocks"),
        Status.PASS,
        ("768 of 49,152 vCPUs in use, 0 more needed",),
        environment="reserved",
        edit=trn2_block,
    ),
    Case(
        quota("trn2-capacity-blocks"),
        Status.FAIL,
        ("0 of 0 vCPUs in use, 768 more needed", increase("ec2", "L-64569A79", 768)),
        new_account,
        environment="reserved",
        edit=trn2_block,
        name="new",
    ),
    Case(
        quota("capacity-block-instances"),
        Status.PASS,
        ("4 of 256 instances in use, 0 more needed",),
        environment="reserved",
    ),
    Case(
        quota("capacity-block-instances"),
        Status.FAIL,
        ("0 of 256 instances in use, 300 more needed; room for 256 of 300 nodes", "smaller min_count and max_count"),
        new_account,
        environment="reserved",
        edit=large_block,
        name="too-many",
    ),
    Case(quota("interfaces"), Status.PASS, ("0 of 25,000 interfaces in use, 150 more needed",)),
    Case(
        quota("interfaces"),
        Status.FAIL,
        (
            "0 of 5,000 interfaces in use, 16,958 more needed; room for 546 of 1,875 nodes",
            increase("vpc", "L-DF5E4CA3", 16_958),
        ),
        new_account,
        environment="ultracluster",
        name="new",
    ),
    Case(quota("elastic-ips"), Status.PASS, ("0 of 20 addresses in use, 1 more needed",)),
    Case(
        quota("elastic-ips"),
        Status.FAIL,
        ("20 of 20 addresses in use, 1 more needed", increase("ec2", "L-0263D0A3", 21)),
        lambda account: [account.client("ec2").allocate_address(Domain="vpc") for _ in range(20)],
        name="full",
    ),
    Case(
        quota("addresses-per-nat"),
        Status.PASS,
        ("0 of 8 addresses in use, 8 more needed",),
        environment="ultracluster",
    ),
    Case(
        quota("addresses-per-nat"),
        Status.FAIL,
        ("0 of 2 addresses in use, 8 more needed", increase("vpc", "L-5F53652F", 8)),
        new_account,
        environment="ultracluster",
        name="new",
    ),
    Case(quota("nat-gateways"), Status.PASS, ("0 of 5 gateways in use, 1 more needed",)),
    Case(
        quota("nat-gateways"),
        Status.FAIL,
        ("5 of 5 gateways in use, 1 more needed", increase("vpc", "L-FE5A380F", 6)),
        add_nat_gateways,
        name="full",
    ),
    Case(quota("vpcs"), Status.PASS, ("1 of 5 VPCs in use, 1 more needed",)),
    Case(
        quota("vpcs"),
        Status.FAIL,
        ("5 of 5 VPCs in use, 1 more needed", increase("vpc", "L-F678F1CE", 6)),
        add_vpcs(4),  # beside the default one
        name="full",
    ),
    Case(quota("vpcs"), Status.PASS, ("4 of 5 VPCs in use, 1 more needed",), add_vpcs(3), name="just-enough"),
    Case(quota("lustre-storage"), Status.PASS, ("0 of 100,800 GiB in use, 4,800 more needed",)),
    Case(
        quota("lustre-storage"),
        Status.FAIL,
        ("98,400 of 100,800 GiB in use, 4,800 more needed", increase("fsx", "L-8F1B9C74", 103_200)),
        add_file_systems(98_400, 1),
        name="full",
    ),
    Case(quota("lustre-file-systems"), Status.PASS, ("0 of 100 file systems in use, 1 more needed",)),
    Case(
        quota("lustre-file-systems"),
        Status.FAIL,
        ("100 of 100 file systems in use, 1 more needed", increase("fsx", "L-FD6F2F22", 101)),
        add_file_systems(1200, 100),
        name="full",
    ),
    Case(quota("gp3"), Status.PASS, ("0 of 500 TiB in use, 4 more needed",)),
    Case(
        quota("gp3"),
        Status.FAIL,
        ("0 of 50 TiB in use, 367 more needed; room for 255 of 1,875 nodes", increase("ebs", "L-7A658B76", 367)),
        new_account,
        environment="ultracluster",
        name="new",
    ),
)
