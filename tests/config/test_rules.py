"""Rules of settings files: those of config.rules, and one of each group that the construct library checks."""

from __future__ import annotations

from typing import Any

import pytest

from config.settings import load
from tests.config.settings_files import QUEUE, RESOURCE, Write, outcome, with_values

KEY = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
KEY_ELSEWHERE = KEY.replace("us-west-2", "us-east-1")
GROUP = "arn:aws:resource-groups:us-west-2:123456789012:group/trn1"
VPC = {"vpc_id": "vpc-01234567", "public_subnet_id": "subnet-01234567", "private_subnet_id": "subnet-76543210"}
BUDGET: dict[str, Any] = {"monthly_usd": 9000, "emails": ["a@example.com"]}
IN_VPC = {"network.existing": VPC}
DATABASE_ARN = "arn:aws:secretsmanager:us-west-2:123456789012:secret:db-AbCdEf"
DATABASE = {"host": "db", "user": "slurm", "password_secret_arn": DATABASE_ARN, "security_group_id": "sg-01234567"}
LEAVE_OUT = "leave it out (an existing VPC is not changed)"
STACKS = "another name than trn1-network, trn1-storage, trn1-team, trn1-cluster, trn1-monitoring"


def stored(*storage: dict[str, Any]) -> dict[str, Any]:
    """Return settings with storage, of names and directories of their own unless they say so."""
    named = [{"name": f"s{index}", "mount_dir": f"/s{index}", **each} for index, each in enumerate(storage)]
    return {"cluster.shared_storage": named}


VIOLATIONS: list[tuple[dict[str, Any], str, str]] = [
    (stored({}), "cluster.shared_storage[0]", "one of efs, fsx_lustre, fsx_openzfs, fsx_ontap, ebs"),
    (stored({"efs": {"file_system_id": "fs-01234567"}, "ebs": {}}), "cluster.shared_storage[0]", "one of efs"),
    (stored({"ebs": {"type": "gp2", "iops": 3000}}), "cluster.shared_storage[0].ebs.iops", "null"),
    (
        stored({"ebs": {"type": "io2", "throughput_mibps": 500}}),
        "cluster.shared_storage[0].ebs.throughput_mibps",
        "null",
    ),
    (
        stored({"ebs": {"volume_id": "vol-01234567", "size_gib": 9}}),
        "cluster.shared_storage[0].ebs.size_gib",
        "leave it out with volume_id",
    ),
    (stored({"ebs": {"snapshot_id": "snap-01234567"}}), "cluster.shared_storage[0].ebs.size_gib", "the size of the"),
    (stored({"ebs": {"kms_key_arn": KEY_ELSEWHERE}}), "cluster.shared_storage[0].ebs.kms_key_arn", "one in us-west-2"),
    (stored(*({"ebs": {}} for _ in range(6))), "cluster.shared_storage", "at most 5 EBS volumes"),
    (stored({"mount_dir": "data", "ebs": {}}), "cluster.shared_storage[0].mount_dir", "an absolute path"),
    (stored({"mount_dir": "/home/x", "ebs": {}}), "cluster.shared_storage[0].mount_dir", "a directory outside /home"),
    (stored({"mount_dir": "/fsx/x", "ebs": {}}), "cluster.shared_storage[0].mount_dir", "a path neither above nor"),
    (
        stored({"ebs": {}}, {"mount_dir": "/s0/x", "ebs": {}}),
        "cluster.shared_storage[1].mount_dir",
        "a path neither above nor below /s0",
    ),
    (stored({"ebs": {}}, {"name": "s0", "ebs": {}}), "cluster.shared_storage[1].name", "a name of its own"),
    ({"homes": "efs", **stored({"name": "homes", "ebs": {}})}, "cluster.shared_storage[0].name", "a name of its own"),
    (stored({"mount_dir": "/scratch", "ebs": {}}), f"{QUEUE}.scratch_dir", "a path neither above nor below /scratch"),
    ({"region": "us-gov-west-1"}, "region", "a Region of AWS's standard partition"),
    ({"zone_id": "use1-az4"}, "zone_id", "usw2-az1, usw2-az2, ..."),
    ({"bootstrap": {"kms_key_arn": KEY_ELSEWHERE}}, "bootstrap.kms_key_arn", "one in us-west-2"),
    (
        {"account": "210987654321", "roles": {"permissions_boundary_arn": "arn:aws:iam::123456789012:policy/b"}},
        "roles.permissions_boundary_arn",
        "one of account 210987654321",
    ),
    (
        {"account": "210987654321", "bootstrap": {"kms_key_arn": KEY}},
        "bootstrap.kms_key_arn",
        "one of account 210987654321",
    ),
    ({"network.cidr": "10.0.0.0/15"}, "network.cidr", "a prefix from /16 to /28"),
    ({"network.existing": VPC, "network.nat_addresses": 2}, "network.nat_addresses", LEAVE_OUT),
    ({"network.existing": VPC, "network.interface_endpoints": ["ssm"]}, "network.interface_endpoints", LEAVE_OUT),
    ({"network.existing": VPC, "network.flow_log_retention_days": 30}, "network.flow_log_retention_days", LEAVE_OUT),
    ({"network": {"existing": VPC}}, "network.public_subnet_cidr", "the block of the existing VPC or subnet"),
    (
        {"network.existing": {**VPC, "private_subnet_id": VPC["public_subnet_id"]}},
        "network.existing.private_subnet_id",
        "another subnet",
    ),
    ({"storage.file_system.capacity_gib": 3600}, "storage.file_system.capacity_gib", "1200, 2400 or a multiple"),
    ({"storage.file_system.kms_key_arn": KEY_ELSEWHERE}, "storage.file_system.kms_key_arn", "one in us-west-2"),
    (
        {"storage.data_repositories": [{"path": "/data"}]},
        "storage.file_system.backup_retention_days",
        "0 with data repositories",
    ),
    ({"tags": {"Cost Center": "y"}}, "tags.Cost Center", "a key of letters a to z, digits and _ . : / = + - with"),
    ({"tags": {"aws:x": "y"}}, "tags.aws:x", "no key that begins with"),
    ({"cluster.head_node.ssh_cidr": "0.0.0.0/0"}, "cluster.head_node.ssh_cidr", "a block of /8 or smaller"),
    (
        {f"{RESOURCE}.capacity_reservation_group_arn": GROUP.replace("us-west-2", "us-east-1")},
        f"{RESOURCE}.capacity_reservation_group_arn",
        "one in us-west-2",
    ),
    ({"cluster.name": "trn1-network"}, "cluster.name", STACKS),
    ({"cluster.name": "trn1-cluster", "cluster.generation": 2}, "cluster.name", STACKS),
    # queue-dy-resource-number.cluster.pcluster, of the tenth generation
    ({"cluster.name": "a" * 31, "cluster.generation": 10}, f"{RESOURCE}.name", "shorter names: "),
    ({"monitoring.emails": ["a@example.com", "A@example.com"]}, "monitoring.emails[1]", "each address once"),
    ({"budget": {**BUDGET, "monthly_usd": 21}}, "budget.monthly_usd", "at least 21.50 (an hour of one trn1.32xlarge"),
    ({"budget": {**BUDGET, "max_usd_per_hour": 20}}, "budget.max_usd_per_hour", "at least 21.50"),
    ({"budget": {"monthly_usd": 9000}}, "budget.emails", "an address, here or for alarms"),
    ({"budget": {**BUDGET, "emails": ["a@x.org", "A@x.org"]}}, "budget.emails[1]", "each address once"),
    ({"budget": {**BUDGET, "emails": [f"{n}@x.org" for n in range(11)]}}, "budget.emails", "at most 10 addresses"),
    ({"budget": {**BUDGET, "actual_percent": [50, 50]}}, "budget.actual_percent[1]", "each percentage once"),
    ({"budget": {**BUDGET, "actual_percent": [50, 60, 70, 80, 90]}}, "budget.actual_percent", "at most 5 percentages"),
    (
        {"budget": BUDGET, f"{RESOURCE}.instance_type": "g77.xlarge"},
        "budget.usd_per_hour",
        "a price of g77.xlarge (there is no list price of it in us-west-2)",
    ),
    ({"budget": BUDGET, "tags": {"ultracluster:deployment": "x"}}, "tags.ultracluster:deployment", "no such key"),
    ({"budget": {**BUDGET, "action": "stop"}, "monitoring.node_metrics": False}, "budget.action", "none"),
    (
        {"budget": {**BUDGET, "max_usd_per_hour": 50}, "monitoring.node_metrics": False},
        "budget.max_usd_per_hour",
        "null (monitoring.node_metrics is false",
    ),
    ({f"{QUEUE}.scratch_dir": "/fsx/scratch"}, f"{QUEUE}.scratch_dir", "a path neither above nor below /fsx"),
    ({"accounting": {"accounts": [{"name": "a", "parent": "b"}]}}, "accounting.accounts[0].parent", "none, as there"),
    (
        {"accounting": {"database": {"subnet_cidrs": ["10.1.0.0/28"] * 2}}},
        "accounting.database.subnet_cidrs[0]",
        "a bl",
    ),
    ({**IN_VPC, "accounting": {}}, "accounting.database.subnet_cidrs", "two blocks of the existing VPC"),
    (
        {
            "accounting": {
                "existing": {**DATABASE, "password_secret_arn": DATABASE_ARN.replace("us-west-2", "us-east-1")}
            }
        },
        "accounting.existing.password_secret_arn",
        "one in us-west-2",
    ),
    (
        {"accounting": {"existing": {**DATABASE, "host": "mysql://db.example.com/x"}}},
        "accounting.existing.host",
        "a host name without https:// or a path",
    ),
    (
        {"accounting": {}, "users": [{"name": "ann", "uid": 3000, "account": "lab"}]},
        "users[0].account",
        "pcdefault (accounts of accounting)",
    ),
    ({"accounting": {}, "cluster.name": "a" * 41}, "cluster.name", "at most 40 characters"),
    (
        {"accounting": {}, "cluster.slurm.custom_settings": {"AccountingStorageHost": "x"}},
        "cluster.slurm.custom_settings.AccountingStorageHost",
        "any parameter that ParallelCluster does not set itself",
    ),
    (
        {"accounting": {}, "cluster.overrides": {"Scheduling": {"SlurmSettings": {"Database": {"Uri": "x"}}}}},
        "cluster.overrides.Scheduling.SlurmSettings.Database",
        "UserName",
    ),
    # 1875 nodes, 32 + 4 other things
    (
        {
            "network.private_subnet_cidr": "10.0.128.0/22",
            "cluster.head_node.instance_type": "m6i.16xlarge",
            f"{RESOURCE}.max_count": 1875,
        },
        "network.private_subnet_cidr",
        "a /21 or larger (1875 nodes take 1875 addresses with EFA interface type efa-only, other things 36",
    ),
    # 32, file servers, login nodes that are not public, interface endpoints
    (
        {
            "network.private_subnet_cidr": "10.0.64.0/26",
            "network.interface_endpoints": ["ssm", "parallelcluster", "logs"],
            "storage.file_system.capacity_gib": 96_000,
            "cluster.login_nodes": [
                {"name": "a", "count": 3},
                {"name": "b", "count": 4},
                {"name": "c", "public": True},
            ],
        },
        "network.private_subnet_cidr",
        f"a /24 or larger (16 nodes take 16 addresses with EFA interface type efa-only, other things {32 + 80 + 7 + 6}",
    ),
    ({"homes": {"type": "efs", "openzfs": {"capacity_gib": 64}}}, "homes.openzfs", "leave it out (EFS has no such"),
    *[
        (
            {
                **place,
                "homes": {"type": "fsx-openzfs", "openzfs": {"deployment_type": kind, "throughput_mbps": throughput}},
            },
            "homes.openzfs.deployment_type",
            f"{allowed} (what FSx for OpenZFS has in ",
        )
        for place, kind, throughput, allowed in (
            ({}, "SINGLE_AZ_HA_1", 64, "SINGLE_AZ_1 or SINGLE_AZ_2 or SINGLE_AZ_HA_2"),
            (
                {"region": "ap-southeast-4", "zone_id": "apse4-az1"},
                "SINGLE_AZ_HA_2",
                160,
                "SINGLE_AZ_1 or SINGLE_AZ_HA_1",
            ),
        )
    ],
    (
        {"homes": {"type": "fsx-openzfs", "openzfs": {"throughput_mbps": 100}}},
        "homes.openzfs.throughput_mbps",
        "64, 128, 256, 512, 1024, 2048, 3072 or 4096 (the MB/s of SINGLE_AZ_1",
    ),
    (
        {"homes": {"type": "fsx-openzfs", "openzfs": {"deployment_type": "SINGLE_AZ_2"}}},
        "homes.openzfs.throughput_mbps",
        "160, 320,",
    ),
    (
        {"homes": {"type": "fsx-openzfs", "openzfs": {"quota_gib_per_user": 10}}},
        "homes.openzfs.quota_gib_per_user",
        "null without users",
    ),
    (
        {
            "homes": {"type": "fsx-openzfs", "openzfs": {"quota_gib_per_user": 10}},
            "users": [{"name": f"u{index}", "uid": 2000 + index} for index in range(501)],
        },
        "homes.openzfs.quota_gib_per_user",
        "null with 501 users (a volume has at most 500",
    ),
    (
        {"homes": {"type": "fsx-openzfs", "file_system_id": "fs-0123456789abcdef0"}},
        "homes.file_system_id",
        "the id of an OpenZFS volume such as fsvol-",
    ),
    (
        {"homes": {"type": "efs", "file_system_id": "fs-01234567", "kms_key_arn": KEY}},
        "homes.kms_key_arn",
        "null with file_system_id",
    ),
    (
        {"homes": {"type": "efs", "kms_key_arn": KEY.replace("us-west-2", "eu-west-1")}},
        "homes.kms_key_arn",
        "one in us-west-2",
    ),
    (
        {
            "homes": "efs",
            "cluster.overrides": {"SharedStorage": [{"Name": "x", "MountDir": "home", "StorageType": "Ebs"}]},
        },
        "cluster.overrides.SharedStorage[0].MountDir",
        "a directory outside /home (homes are mounted there)",
    ),
    # 32, file servers, 3 of OpenZFS
    (
        {"network.private_subnet_cidr": "10.0.64.0/27", "homes": "fsx-openzfs"},
        "network.private_subnet_cidr",
        f"a /26 or larger (16 nodes take 16 addresses with EFA interface type efa-only, other things {32 + 4 + 3}",
    ),
    # head node, addresses of the NAT gateway, public login nodes, a load balancer for each pool
    (
        {
            "network.public_subnet_cidr": "10.0.0.0/28",
            "network.nat_addresses": 3,
            "cluster.login_nodes": [{"name": "a", "public": True, "count": 6}, {"name": "b", "count": 9}],
        },
        "network.public_subnet_cidr",
        "a /27 or larger (head node, NAT gateway and login nodes take 12 addresses; this subnet has 11)",
    ),
]


@pytest.mark.parametrize(("values", "place", "allowed"), VIOLATIONS, ids=range(len(VIOLATIONS)))
def test_violations(write: Write, values: dict[str, Any], place: str, allowed: str) -> None:
    lines = [line.partition("settings.yaml:")[2].partition(": ")[2] for line in outcome(write(with_values(values)))]
    assert any(each.startswith(f"{place}: got ") and f"; allowed: {allowed}" in each for each in lines), lines


ALLOWED: list[dict[str, Any]] = [
    stored(
        *({"ebs": {}} for _ in range(5)),
        {"mount_dir": "/data", "name": "data", "efs": {"file_system_id": "fs-01234567"}},
    ),
    {"network.existing": VPC},
    {"network.flow_log_retention_days": None},
    {"homes": "efs", "cluster.head_node.shared_storage": "efs"},
    {"homes": {"type": "fsx-openzfs", "file_system_id": "fsvol-0123456789abcdef0"}},
    {"monitoring.emails": ["a@example.com", "b@example.com"]},
    {"budget": {**BUDGET, "monthly_usd": 21.5, "max_usd_per_hour": 21.5, "action": "stop"}},
    {"budget": {"monthly_usd": 9000}, "monitoring.emails": ["a@example.com"]},
    {"budget": {"monthly_usd": 9000, "actual_percent": [], "forecast_percent": []}},
    {"budget": {**BUDGET, "usd_per_hour": {"g77.xlarge": 1}}, f"{RESOURCE}.instance_type": "g77.xlarge"},
    {"region": "us-moon-2", "zone_id": "usm2-az1"},  # a name without known zones
    {"storage.file_system.kms_key_arn": KEY, f"{RESOURCE}.capacity_reservation_group_arn": GROUP},
    {"cluster.name": "a" * 30, "cluster.generation": 10},
    {"accounting": {"existing": DATABASE}, **IN_VPC},
    {"accounting": {}, "cluster.name": "a" * 31},
    {
        "network.public_subnet_cidr": "10.0.0.0/28",
        "network.nat_addresses": 3,
        "cluster.login_nodes": [{"name": "a", "public": True, "count": 5}, {"name": "b", "count": 9}],
    },
]


@pytest.mark.parametrize("values", ALLOWED, ids=range(len(ALLOWED)))
def test_allowed(write: Write, values: dict[str, Any]) -> None:
    load(write(with_values(values)))


LARGE = {f"{RESOURCE}.max_count": 65}
IMAGE = "ami-0123456789abcdef0"
ACCELERATED = ("p5.48xlarge", "g6e.12xlarge", "inf2.48xlarge", "dl1.24xlarge")
TOLD = {"monitoring.emails": ["a@example.com"]}
OWN_IMAGE = {"Name": "trn1", "Image": {"CustomAmi": IMAGE}}


@pytest.mark.parametrize(
    ("values", "warnings"),
    [
        ({}, []),
        (LARGE, ["cluster.custom_ami"]),
        ({**LARGE, f"{RESOURCE}.instance_type": "c6i.4xlarge"}, []),
        ({**LARGE, "cluster.custom_ami": IMAGE}, []),
        ({**LARGE, "cluster.overrides": {"Scheduling": {"SlurmQueues": [OWN_IMAGE]}}}, []),
        ({"zone_id": "usw2-az2"}, [f"{RESOURCE}.instance_type"]),
        *(({f"{RESOURCE}.instance_type": each}, [f"{RESOURCE}.instance_type"]) for each in ACCELERATED),
        *(({f"{RESOURCE}.instance_type": each, "cluster.custom_ami": IMAGE}, []) for each in ACCELERATED),
        *(({f"{RESOURCE}.instance_type": each}, []) for each in ("c7i.4xlarge", "hpc7a.96xlarge", "x2idn.16xlarge")),
        ({f"{RESOURCE}.instance_type": "c7i.3xlarge"}, [f"{RESOURCE}.instance_type"]),  # maybe a newer one
        ({"cluster.head_node.shared_storage": "efs"}, ["cluster.head_node.snapshots"]),
        ({"cluster.head_node": {"shared_storage": "efs", "snapshots": None}}, []),
        ({"accounting.accounts": [{"name": "a", "max_nodes": 16}]}, []),
        ({"accounting.qos": [{"name": "a", "max_nodes": 17}]}, ["accounting.qos[0].max_nodes"]),
        ({"budget": {**BUDGET, "max_usd_per_hour": 344}, **TOLD}, []),
        ({"budget": {**BUDGET, "max_usd_per_hour": 345}, **TOLD}, ["budget.max_usd_per_hour"]),
        ({"budget": BUDGET}, ["budget.max_idle_minutes"]),
        ({"budget": {**BUDGET, "max_idle_minutes": None}}, []),
        ({"budget": BUDGET, **TOLD, "monitoring.node_metrics": False}, ["budget.max_idle_minutes"]),
    ],
    ids=range(27),
)
def test_warnings(write: Write, values: dict[str, Any], warnings: list[str]) -> None:
    settings = load(write(with_values(values)))
    assert [each.partition(": got ")[0] for each in settings.warnings] == ["name", *warnings]  # of settings.yaml: trn1


def test_a_budget_with_a_wrong_limit_is_checked_for_the_rest(write: Write) -> None:
    lines = outcome(write(with_values({"budget": {**BUDGET, "monthly_usd": 0, "max_usd_per_hour": 1}})))
    assert ["budget.monthly_usd" in lines[0], "budget.max_usd_per_hour" in lines[1], len(lines)] == [True, True, 2]
