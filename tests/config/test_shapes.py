"""Values of a wrong type, out of range, or not among the choices, each with a part of what is reported."""

from __future__ import annotations

from typing import Any

import pytest

from config.sections import MonitoringSettings
from tests.config.settings_files import QUEUE, RESOURCE, Write, outcome, with_values

IN_QUOTES = "should be a valid string, put it in quotes"
A_VPC = {"vpc_id": "vpc-01234567", "public_subnet_id": "subnet-01234567", "private_subnet_id": "subnet-76543210"}

WRONG: list[tuple[str, Any, str]] = [
    *[("name", name, "should match pattern '^[a-z][a-z0-9-]{1,39}$' (Name of the") for name in ("Trn1", "a", "a" * 41)],
    ("name", 16, IN_QUOTES),
    ("account", 123456789012, IN_QUOTES),
    ("account", "12345", r"should match pattern '^\d{12}$' (AWS account, in quotes"),
    ("region", "us-west-2a", "should match pattern"),
    ("zone_id", "us-west-2a", "should match pattern"),
    *[("bootstrap.qualifier", each, "should match pattern") for each in ("a" * 11, "-", "-ml", "ml-")],
    ("bootstrap.kms_key_arn", "alias/assets", "should match pattern"),
    ("tags.project", 16, IN_QUOTES),
    ("tags[1]", "trn1", IN_QUOTES),
    ("tags.a", "x" * 257, "should have at most 256 characters"),
    ("tags", ["project"], "should be a mapping"),
    ("termination_protection[0]", "all", "should be 'network', 'storage', 'cluster' or 'monitoring'"),
    ("termination_protection", "network", "should be a list"),
    ("network.nat_addresses", 0, "greater than or equal to 1"),
    ("network.nat_addresses", 9, "less than or equal to 8"),
    *[("network.nat_addresses", each, "should be a valid integer (Public") for each in ("1", 1.0, True)],
    ("network.interface_endpoints", ["SSM"], "should match pattern"),
    ("network.existing", {**A_VPC, "vpc_id": "vpc-1"}, "should match pattern '^vpc-[0-9a-f]{8,17}$' (Id of the VPC"),
    ("network.existing", {**A_VPC, "public_subnet_id": "public"}, "should match pattern '^subnet-"),
    ("network.existing", {**A_VPC, "private_subnet_id": "private"}, "should match pattern '^subnet-"),
    ("monitoring.file_system_full_percent", 49, "greater than or equal to 50"),
    ("monitoring.file_system_full_percent", 100, "less than or equal to 99"),
    ("storage.retain", "keep", "should be a valid boolean"),
    ("storage.file_system.deployment_type", "SCRATCH_1", "'SCRATCH_2', 'PERSISTENT_1' or 'PERSISTENT_2'"),
    ("storage.file_system.compression", "ZSTD", "'LZ4' or 'NONE'"),
    ("storage.file_system.backup_retention_days", -1, "greater than or equal to 0"),
    ("storage.file_system.backup_retention_days", 91, "less than or equal to 90"),
    ("storage.data_repositories", [{"path": "/a", "export_events": ["MOVED"]}], "'NEW', 'CHANGED' or 'DELETED'"),
    *[("cluster.name", each, "'^[a-zA-Z][a-zA-Z0-9-]{1,59}$'") for each in ("1-trn", "a" * 61)],
    ("cluster.pytorch", 2.9, IN_QUOTES),
    ("cluster.neuron_sdk", 2.28, IN_QUOTES),
    ("cluster.parallelcluster_version", "3.16.3", "should be '3.16.1' (Version of ParallelCluster; another one means"),
    ("cluster.os", "rhel9", "or 'alinux2023' (Operating system of all nodes, one that AWS makes the Neuron SDK for)"),
    ("cluster.custom_ami", "ami-1", "should match pattern"),
    ("cluster.efa_interface_type", "ena", "'efa-only' or 'efa'"),
    ("cluster.head_node.snapshots", {"interval_hours": 5}, "1, 2, 3, 4, 6, 8, 12 or 24"),
    ("cluster.head_node.snapshots", {"retained": 1001}, "less than or equal to 1000"),
    ("cluster.head_node.shared_storage", "fsx", "'ebs' or 'efs'"),
    ("cluster.head_node.root_volume_gib", 40, "greater than or equal to 45"),
    ("cluster.head_node.instance_type", "c6i", "should match pattern"),
    ("cluster.login_nodes", [{"name": "login", "grace_minutes": 2}], "greater than or equal to 3"),
    ("cluster.login_nodes", [{"name": "login", "grace_minutes": 121}], "less than or equal to 120"),
    ("cluster.login_nodes", [{"name": "login", "count": -1}], "greater than or equal to 0"),
    (f"{QUEUE}.capacity_type", "on-demand", "'ONDEMAND', 'SPOT' or 'CAPACITY_BLOCK'"),
    (
        f"{QUEUE}.placement_group",
        "Fleet",
        "should match pattern '^[a-z][a-z0-9-]{0,24}$' (Label of a cluster",
    ),
    (f"{QUEUE}.root_volume_gib", 8, "greater than or equal to 45"),
    (f"{QUEUE}.custom_slurm_settings", {"MaxNodes": 4}, IN_QUOTES),
    (f"{RESOURCE}.min_count", -1, "greater than or equal to 0"),
    (f"{RESOURCE}.max_count", 0, "greater than or equal to 1"),
    (f"{RESOURCE}.capacity_reservation_id", "cr-1", "should match pattern"),
    (f"{RESOURCE}.capacity_reservation_group_arn", "trn1", "should match pattern"),
    ("cluster.slurm", [], "should be a mapping"),
    ("cluster.slurm.idle_minutes", -2, "greater than or equal to -1"),
    ("cluster.slurm.queue_update_strategy", "WAIT", "'DRAIN', 'TERMINATE' or 'COMPUTE_FLEET_STOP'"),
    ("cluster.slurm.scaling_strategy", "some", "'all-or-nothing', 'greedy-all-or-nothing' or 'best-effort'"),
    ("cluster.overrides", [], "should be a mapping"),
]


@pytest.mark.parametrize(("place", "value", "expected"), WRONG, ids=range(len(WRONG)))
def test_wrong_shapes(write: Write, place: str, value: Any, expected: str) -> None:
    key = "tags" if place == "tags[1]" else place
    [line] = outcome(write(with_values({key: {1: value} if place == "tags[1]" else value})))
    found, _, text = line.partition("settings.yaml:")[2].partition(": ")[2].partition(": got ")
    assert found == place or (isinstance(value, dict | list) and found.startswith(place))
    assert expected in text


@pytest.mark.parametrize(
    "address",
    [
        *("mailto:a@b.com", "<a@b.com>", "Me <a@b.com>", "a;b@c.de", "a,b@c.de", "mé@x.de", "a@é.de"),
        *("a", "@b.de", "a@b", "a@b.c", "a@b..de", "a@-b.de", "a@b-.de", "a@b.de.", ".a@b.de", "a..b@c.de", "a.@b.de"),
        *("a@b@c.de", "a@b.de ", "a@b.de\n", f"a@{'b' * 250}.de"),
    ],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="emails"):
        MonitoringSettings(emails=[address])


def test_addresses_of_companies_and_lists() -> None:
    addresses = ["a@b.de", "First.Last+trn1@mail.example.co.uk", "on_call-2@x-1.xn--p1ai", f"a@{'b' * 249}.de"]
    assert MonitoringSettings(emails=addresses).emails == addresses
