"""Quotas with room for a deployment, and quotas without; what is in use, by whom."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from config.settings import load
from scripts.account.deployment import Account
from scripts.check.estimate.quotas import quotas
from scripts.check.preflight.check import Check
from scripts.check.preflight.quotas import CHECKS
from scripts.check.preflight.runner import findings
from scripts.core.findings import FAIL, PASS, UNKNOWN
from tests.configurations import CONFIG
from tests.scripts.check.preflight.accounts import (
    AlteredAccount,
    Case,
    Raw,
    case,
    deployment_of,
    everything,
    new_network,
    stacks,
)
from tests.scripts.refusals import refusal

TAGS = [{"Key": "parallelcluster:cluster-name", "Value": "trn1-16"}]
ZONE = "subnet-of-the-zone"


def quota(name: str) -> Check:
    return next(each for each in CHECKS if each.id == f"quota-{name}")


def queue(nodes: dict[str, Any] | None = None, **keys: Any) -> Callable[[Raw], None]:
    """Change keys of the first queue, and of its nodes."""

    def edit(raw: Raw) -> None:
        first = raw["cluster"]["queues"][0]
        first |= keys
        first["compute_resources"][0] |= nodes or {}

    return edit


SPOT = queue(capacity_type="SPOT")
STANDARD_SPOT = queue({"instance_type": "c6i.2xlarge", "efa": None}, capacity_type="SPOT", placement_group="none")


def block(**nodes: Any) -> Callable[[Raw], None]:
    """Change the nodes of the queue in a Capacity Block."""
    return lambda raw: raw["cluster"]["queues"][1]["compute_resources"][0].update(nodes)


def ultracluster() -> Raw:
    raw: Raw = load(CONFIG / "ultracluster.yaml").model_dump(mode="json")
    return raw


def limit(value: float) -> dict[str, Any]:
    return {"Quota": {"Value": value}}


CASES = [
    case(quota("trn-on-demand"), PASS, "2,048 of 300,000 vCPUs in use, 2,048 more needed", base=new_network),
    case(
        quota("trn-on-demand"),
        FAIL,
        "0 of 1,280 vCPUs in use, 2,048 more needed; room for 10 of 16 nodes",
        "aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-2C3B7624 "
        "--desired-value 2048 --region us-west-2; approval can take days",
        base=new_network,
        get_service_quota=limit(1280),
        describe_capacity_reservations=[],
    ),
    case(
        quota("trn-on-demand"),
        FAIL,
        "aws service-quotas get-aws-default-service-quota --service-code ec2 --quota-code L-2C3B7624",
        base=new_network,
        get_service_quota=refusal("NoSuchResourceException"),
        get_aws_default_service_quota=limit(0),
    ),
    case(
        quota("capacity-block-instances"),
        FAIL,
        "0 of 256 instances in use, 300 more needed; room for 256 of 300 nodes",
        edit=block(min_count=300, max_count=300),
        describe_capacity_reservations=[],
    ),
    case(
        quota("standard-on-demand"),
        PASS,
        "16 of 10 vCPUs in use, 0 more needed",
        base=new_network,
        describe_instances=[{"Instances": [{"InstanceId": "i-1", "InstanceType": "c6i.4xlarge", "Tags": TAGS}]}],
        get_service_quota=limit(10),
    ),
    case(quota("vpcs"), PASS, "2 of 3 VPCs in use, 1 more needed", base=new_network, get_service_quota=limit(3)),
]


@pytest.mark.parametrize("each", CASES)
def test_quotas(each: Case, account: Account) -> None:
    each.verify(account)


def lustre(**keys: Any) -> Callable[[Raw], object]:
    changed = {"backup_retention_days": 0, "metadata_iops": None, **keys}
    return lambda raw: raw["storage"]["file_system"].update(changed)


def team(homes: str) -> Callable[[Raw], object]:
    """Have homes and a database of the deployment."""
    return lambda raw: raw.update(homes=homes, accounting={})


SCRATCH = lustre(deployment_type="SCRATCH_2", throughput_mbps_per_tib=None)


@pytest.mark.parametrize(
    ("base", "edit"),
    [
        (ultracluster, bool),
        (new_network, SPOT),
        (new_network, STANDARD_SPOT),
        (everything, block(instance_type="trn2.48xlarge")),
        (new_network, SCRATCH),
        (new_network, lustre(deployment_type="PERSISTENT_1", throughput_mbps_per_tib=100)),
        (new_network, team("efs")),
        (new_network, team("fsx-openzfs")),
    ],
)
def test_every_quota_of_an_estimate_has_one_check(
    base: Callable[[], Raw], edit: Callable[[Raw], object], account: Account
) -> None:
    raw = base()
    edit(raw)
    deployment = deployment_of(raw)
    deployment.account = AlteredAccount(account, {"": refusal("Throttling")})
    asked = [each.id for each in CHECKS if findings(each, deployment)[0].status is UNKNOWN]
    assert len(asked) == len(quotas(deployment.settings))


# What is in use, by the deployment and by others


def instance(name: str, own: bool = False, **facts: Any) -> dict[str, Any]:
    return {"InstanceId": f"i-{name}", "InstanceType": name, "Tags": TAGS if own else [], **facts}


def running(*instances: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"Instances": list(instances)}]


MIXED = running(
    instance("m5.large"),
    instance("t3.xlarge", InstanceLifecycle="spot"),
    instance("trn1.2xlarge"),
    instance("trn1.32xlarge", own=True),
    instance("trn1.32xlarge", InstanceLifecycle="spot"),
    instance("trn1.32xlarge", InstanceLifecycle="capacity-block"),
    instance("inf1.xlarge"),
)
MADE = {
    "describe_stacks": stacks(**{"trn1-16-network": {}, "trn1-16-storage": {}}),
    "list_stack_resources": [
        {"LogicalResourceId": each, "PhysicalResourceId": each, "ResourceStatus": "CREATE_COMPLETE"}
        for each in ("nat-ours", "vpc-ours", "203.0.113.1", "fs-ours", "db-ours")
    ],
}
SUBNETS = {"describe_subnets": [{"SubnetId": ZONE}]}


def interface(subnet_id: str = ZONE, description: str = "", instance_id: str = "") -> dict[str, Any]:
    attachment = {"Attachment": {"InstanceId": instance_id}} if instance_id else {}
    return {"SubnetId": subnet_id, "Description": description, **attachment}


def file_system(name: str, gib: int, kind: str) -> dict[str, Any]:
    facts = {"FileSystemType": "LUSTRE", "LustreConfiguration": {"DeploymentType": kind}}
    return {"FileSystemId": name, "Lifecycle": "AVAILABLE", "StorageCapacity": gib, **facts}


def elastic(name: str) -> dict[str, Any]:
    facts = {"CreationTime": datetime(2026, 11, 22, tzinfo=UTC), "SizeInBytes": {"Value": 1}, "NumberOfMountTargets": 1}
    return {"FileSystemId": name, "LifeCycleState": "available", **facts}


def openzfs(name: str, gib: int, mbps: int, storage: str = "SSD") -> dict[str, Any]:
    facts = {"FileSystemType": "OPENZFS", "OpenZFSConfiguration": {"ThroughputCapacity": mbps}}
    return {"FileSystemId": name, "Lifecycle": "AVAILABLE", "StorageCapacity": gib, "StorageType": storage, **facts}


def volume(gib: int, *instance_ids: str) -> dict[str, Any]:
    return {"Size": gib, "Attachments": [{"InstanceId": each} for each in instance_ids]}


FILE_SYSTEMS = [
    file_system("fs-ours", 4800, "PERSISTENT_2"),
    file_system("fs-1", 1200, "PERSISTENT_2"),
    file_system("fs-2", 600, "SCRATCH_1"),
]


OPENZFS = [*FILE_SYSTEMS, openzfs("fs-1", 1000, 128), openzfs("fs-2", 0, 160, "INTELLIGENT_TIERING")]
ELASTIC = [elastic(name) for name in ("fs-ours", "fs-1", "fs-2")]
DATABASES = [{"DBInstanceIdentifier": each, "DBInstanceStatus": "available"} for each in ("db-ours", "db-1")]


OWN_NODE = {"describe_instances": running(instance("trn1.32xlarge", own=True))}
INTERFACES = [
    interface(instance_id="i-trn1.32xlarge"),
    interface(description="Interface for NAT Gateway nat-ours"),
    interface(description="EFS mount target for fs-ours (fsmt-1)"),
    interface(instance_id="i-other"),
    interface("subnet-elsewhere"),
]
NAT_GATEWAYS = [
    {"NatGatewayId": "nat-ours", "SubnetId": ZONE, "NatGatewayAddresses": [{}, {}]},
    {"NatGatewayId": "nat-1", "SubnetId": ZONE, "NatGatewayAddresses": [{}]},
    {"NatGatewayId": "nat-2", "SubnetId": "subnet-elsewhere", "NatGatewayAddresses": []},
]
VOLUMES = [volume(1024, "i-trn1.32xlarge"), volume(512), volume(512, "i-other")]
ADDRESSES = {"Addresses": [{"PublicIp": f"203.0.113.{end}"} for end in (1, 2, 3)]}
NO_RESERVATIONS: dict[str, Any] = {"describe_instances": MIXED, "describe_capacity_reservations": []}


@pytest.mark.parametrize(
    ("name", "answers", "edit", "expected"),
    [
        ("trn-on-demand", NO_RESERVATIONS, bool, ("136", "1,920")),
        ("trn-spot", {"describe_instances": MIXED}, SPOT, ("128", "2,048")),
        ("interfaces", {**MADE, **SUBNETS, **OWN_NODE, "describe_network_interfaces": INTERFACES}, bool, ("4", "147")),
        ("elastic-ips", {**MADE, "describe_addresses": ADDRESSES}, bool, ("3", "0")),
        ("addresses-per-nat", {**MADE, "describe_nat_gateways": NAT_GATEWAYS}, bool, ("2", "0")),
        ("nat-gateways", {**MADE, **SUBNETS, "describe_nat_gateways": NAT_GATEWAYS}, bool, ("2", "0")),
        ("vpcs", {**MADE, "describe_vpcs": [{"VpcId": "vpc-ours"}, {"VpcId": "vpc-1"}]}, bool, ("2", "0")),
        ("lustre-storage", {**MADE, "describe_file_systems": FILE_SYSTEMS}, bool, ("6,000", "0")),
        ("lustre-storage", {**MADE, "describe_file_systems": FILE_SYSTEMS}, SCRATCH, ("600", "4,800")),
        ("efs-file-systems", {**MADE, "describe_file_systems": ELASTIC}, team("efs"), ("3", "0")),
        ("openzfs-file-systems", {**MADE, "describe_file_systems": OPENZFS}, team("fsx-openzfs"), ("2", "1")),
        ("openzfs-storage", {**MADE, "describe_file_systems": OPENZFS}, team("fsx-openzfs"), ("1,000", "256")),
        ("openzfs-throughput", {**MADE, "describe_file_systems": OPENZFS}, team("fsx-openzfs"), ("288", "64")),
        ("db-instances", {**MADE, "describe_db_instances": DATABASES}, team("efs"), ("2", "0")),
        ("gp3", {**OWN_NODE, "describe_volumes": VOLUMES}, bool, ("2", "2.32")),
    ],
)
def test_what_is_in_use(
    name: str, answers: dict[str, Any], edit: Callable[[Raw], object], expected: tuple[str, str], account: Account
) -> None:
    [finding] = Case(quota(name), PASS, edit=edit, base=new_network, answers=answers).findings(account)
    used, more = expected
    assert finding.sentence.startswith(f"{used} of ")
    assert f" {more} more needed" in finding.sentence


def test_capacity_blocks_count_while_they_last(account: Account) -> None:
    def blocks(listed: list[dict[str, Any]]) -> None:
        [own] = [each for each in listed if each.get("ReservationType") == "capacity-block"]
        later = {"TotalInstanceCount": 60, "Tags": [], "CommitmentInfo": {}}
        listed.append({**own, **later, "CapacityReservationId": "cr-1"})
        listed.append({**own, **later, "CapacityReservationId": "cr-2", "State": "expired"})
        listed.append({**own, **later, "CapacityReservationId": "cr-3", "State": "scheduled"})

    answers = {"describe_capacity_reservations": blocks}
    for name, says in (("trn1-capacity-blocks", "8,192 of"), ("capacity-block-instances", "64 of 256 instances")):
        Case(quota(name), PASS, (says, "0 more needed"), answers=answers).verify(account)
