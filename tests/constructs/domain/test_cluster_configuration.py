"""The ParallelCluster configuration that a spec becomes; the golden templates have those of whole deployments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jmespath
import pytest

from tests.constructs.domain.specs import (
    CLUSTER,
    NODES,
    QUEUE,
    RESERVATION,
    changed,
    cluster,
    with_head,
    with_nodes,
    with_queue,
)
from ultracluster.domain import slurm
from ultracluster.domain.cluster import (
    AcceptedWarning,
    ClusterSpec,
    LoginPoolSpec,
    MonitoringSpec,
    SlurmSpec,
)
from ultracluster.domain.cluster_configuration import (
    NOBODY,
    Bindings,
    render,
    secret_arns,
)
from ultracluster.domain.validator_warnings import suppressed

NODES_OF_QUEUE = "Scheduling.SlurmQueues[0].ComputeResources[0]"
SUBNETS = Bindings(public_subnet_id="subnet-public", private_subnet_id="subnet-private")


def queue_of(spec: ClusterSpec) -> dict[str, Any]:
    [queue] = render(spec, SUBNETS)["Scheduling"]["SlurmQueues"]
    return dict(queue)


RESERVED = changed(NODES, capacity_reservation_id=RESERVATION)


@pytest.mark.parametrize(
    ("spec", "group"),
    [
        (CLUSTER, {"Name": "fleet"}),
        (with_queue(placement_group="other"), {"Name": "other"}),
        (with_queue(placement_group="none"), {"Enabled": False}),
        (with_queue(existing_placement_group="mine"), {"Name": "mine"}),
        (with_queue(RESERVED), {"Enabled": False}),
        (with_queue(capacity_type="CAPACITY_BLOCK"), None),
        (with_queue(RESERVED, placement_group="reserved"), {"Name": "reserved"}),
        (with_nodes(instance_type="trn1.2xlarge"), None),
    ],
)
def test_the_placement_group_of_a_queue(spec: ClusterSpec, group: dict[str, Any] | None) -> None:
    """ParallelCluster demands a statement for EFA, and refuses one for a Capacity Block."""
    assert queue_of(spec)["Networking"].get("PlacementGroup") == group


INCLUDED = {"Scheduling": {"SlurmSettings": {"CustomSlurmSettingsIncludeFile": "s3://b/slurm.conf"}}}
LOGINS = LoginPoolSpec(name="login", count=2, public=True, grace_minutes=5)
PRIVATE_LOGINS = LoginPoolSpec(name="login", ssh_cidr="10.0.0.0/8")
OF_LOGINS = {"CustomActions": {"OnNodeConfigured": {"Script": "s3://x"}}}
OF_HEAD_NODE = {"Iam": {"AdditionalIamPolicies": [{"Policy": "arn"}], "S3Access": [{"BucketName": "b"}]}}
CUSTOM_SETTINGS = {"MessageTimeout": "60", "TCPTimeout": "30"}
SLURM = SlurmSpec(idle_minutes=-1, queue_update_strategy="TERMINATE", scaling_strategy="best-effort")
MONITORING = MonitoringSpec(log_retention_days=7, retain_logs=False, dashboard=False, alarms=False)


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        (cluster(custom_ami="ami-01234567"), "Image", {"Os": "ubuntu2404", "CustomAmi": "ami-01234567"}),
        (cluster(tags={"b": "x", "a": "y"}), "Tags", [{"Key": "b", "Value": "x"}, {"Key": "a", "Value": "y"}]),
        (with_head(public=False), "HeadNode.Networking.SubnetId", "subnet-private"),
        (with_head(root_volume_gib=500), "HeadNode.LocalStorage.RootVolume.Size", 500),
        (with_head(ssh_cidr="10.0.0.0/8"), "HeadNode.Ssh", {"AllowedIps": "10.0.0.0/8"}),
        (with_head(ssh_key_name="mine"), "HeadNode.Ssh", {"AllowedIps": NOBODY, "KeyName": "mine"}),
        (with_head(shared_storage="efs"), "HeadNode.SharedStorageEfsSettings.Encrypted", True),
        (
            cluster(login_nodes=[LOGINS]),
            "LoginNodes.Pools[0]",
            {
                "Name": "login",
                "InstanceType": "c6i.2xlarge",
                "Count": 2,
                "GracetimePeriod": 5,
                "Networking": {"SubnetIds": ["subnet-public"]},
                "Ssh": {"AllowedIps": NOBODY},
                **OF_LOGINS,
            },
        ),
        (cluster(login_nodes=[PRIVATE_LOGINS]), "LoginNodes.Pools[0].Networking.SubnetIds", ["subnet-private"]),
        (cluster(login_nodes=[PRIVATE_LOGINS]), "LoginNodes.Pools[0].Ssh", {"AllowedIps": "10.0.0.0/8"}),
        (cluster(efa_interface_type="efa"), "DevSettings", {"EfaInterfaceType": "efa"}),
        (cluster(overrides=INCLUDED), "Scheduling.SlurmSettings.CustomSlurmSettings", None),
        (cluster(overrides=INCLUDED), "Scheduling.SlurmSettings.CustomSlurmSettingsIncludeFile", "s3://b/slurm.conf"),
        (cluster(slurm=SLURM), "Scheduling.ScalingStrategy", "best-effort"),
        (cluster(slurm=SLURM), "Scheduling.SlurmSettings.ScaledownIdletime", -1),
        (cluster(slurm=SLURM), "Scheduling.SlurmSettings.QueueUpdateStrategy", "TERMINATE"),
        (
            cluster(slurm=SlurmSpec(custom_settings=CUSTOM_SETTINGS)),
            "Scheduling.SlurmSettings.CustomSlurmSettings",
            [slurm.custom_settings({}), {"MessageTimeout": "60"}, {"TCPTimeout": "30"}],
        ),
        (
            cluster(monitoring=MONITORING),
            "Monitoring",
            {
                "DetailedMonitoring": False,
                "Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": 7, "DeletionPolicy": "Delete"}},
                "Dashboards": {"CloudWatch": {"Enabled": False}},
                "Alarms": {"Enabled": False},
            },
        ),
        (
            with_queue(root_volume_gib=None, scratch_dir="/local"),
            "Scheduling.SlurmQueues[0].ComputeSettings.LocalStorage",
            {"RootVolume": {"Encrypted": True, "VolumeType": "gp3"}, "EphemeralVolume": {"MountDir": "/local"}},
        ),
        (with_queue(exclusive_jobs=False), "Scheduling.SlurmQueues[0].JobExclusiveAllocation", False),
        (with_queue(custom_slurm_settings={"A": "4"}), "Scheduling.SlurmQueues[0].CustomSlurmSettings", {"A": "4"}),
        (with_nodes(min_count=2), f"{NODES_OF_QUEUE}.MinCount", 2),
        (with_nodes(simultaneous_multithreading=False), f"{NODES_OF_QUEUE}.DisableSimultaneousMultithreading", True),
        (with_nodes(efa=False), f"{NODES_OF_QUEUE}.Efa.Enabled", False),
        (
            with_nodes(capacity_reservation_id=RESERVATION),
            f"{NODES_OF_QUEUE}.CapacityReservationTarget",
            {"CapacityReservationId": RESERVATION},
        ),
        (
            with_nodes(capacity_reservation_group_arn="arn:x"),
            f"{NODES_OF_QUEUE}.CapacityReservationTarget",
            {"CapacityReservationResourceGroupArn": "arn:x"},
        ),
    ],
)
def test_what_a_choice_becomes(spec: ClusterSpec, path: str, expected: object) -> None:
    assert jmespath.search(path, render(spec, replace(SUBNETS, login_nodes=OF_LOGINS))) == expected


def test_overrides_are_merged_last() -> None:
    overrides: dict[str, Any] = {
        "DevSettings": {"Timeouts": {"HeadNodeBootstrapTimeout": 3000}},
        "HeadNode": {
            "LocalStorage": {"RootVolume": {"Size": 700}},
            "Iam": {"AdditionalIamPolicies": [{"Policy": "mine"}], "S3Access": [{"BucketName": "mine"}]},
        },
    }
    bindings = replace(SUBNETS, head_node=OF_HEAD_NODE)
    plain, merged = render(CLUSTER, bindings), render(cluster(overrides=overrides), bindings)
    head = merged["HeadNode"]
    assert merged["DevSettings"] == {**plain["DevSettings"], **overrides["DevSettings"]}
    assert head["LocalStorage"] == {"RootVolume": {"Size": 700, "Encrypted": True, "VolumeType": "gp3"}}
    assert head["Iam"]["S3Access"] == [{"BucketName": "mine"}], "other lists are replaced"
    assert head["Iam"]["AdditionalIamPolicies"] == [{"Policy": "arn"}, {"Policy": "mine"}], "policies are added"
    assert head["InstanceType"] == plain["HeadNode"]["InstanceType"]


def test_overrides_of_queues_and_compute_resources_are_merged_by_name() -> None:
    queues = [
        changed(QUEUE, compute_resources=[NODES, changed(NODES, name="other")]),
        changed(QUEUE, name="second"),
    ]
    tags = [{"Key": "a", "Value": "b"}]
    resources = [{"Name": "other", "SchedulableMemory": 400_000}]
    changes = [{"Name": "second", "Tags": tags}, {"Name": "trn1", "ComputeResources": resources}]
    spec = cluster(queues=queues)
    plain = render(spec, SUBNETS)["Scheduling"]["SlurmQueues"]
    merged = render(changed(spec, overrides={"Scheduling": {"SlurmQueues": changes}}), SUBNETS)
    first, second = plain
    assert merged["Scheduling"]["SlurmQueues"] == [
        {
            **first,
            "ComputeResources": [
                first["ComputeResources"][0],
                {**first["ComputeResources"][1], "SchedulableMemory": 400_000},
            ],
        },
        {**second, "Tags": tags},
    ]


WITHOUT_EFA = changed(NODES, efa=False)
ACCEPTING = cluster(
    accepted_warnings=[AcceptedWarning(validator=f"{name}Validator", reason="meant") for name in ("Url", "KeyPair")]
)


@pytest.mark.parametrize(
    ("spec", "validators"),
    [
        (CLUSTER, ["KeyPair"]),
        (with_head(ssh_key_name="mine"), []),
        (cluster(monitoring=MonitoringSpec(detailed_monitoring=True)), ["KeyPair", "DetailedMonitoring"]),
        (with_queue(existing_placement_group="mine"), ["KeyPair"]),
        (with_queue(placement_group="none"), ["KeyPair", "EfaPlacementGroup"]),
        (with_queue(capacity_type="CAPACITY_BLOCK"), ["KeyPair"]),
        (with_queue(WITHOUT_EFA, placement_group="none"), ["KeyPair", "Efa"]),
        (with_queue(NODES, WITHOUT_EFA, placement_group="none"), ["KeyPair", "EfaPlacementGroup", "Efa"]),
        # The type has none: ParallelCluster does not warn.
        (with_nodes(instance_type="trn1.2xlarge"), ["KeyPair"]),
        (ACCEPTING, ["KeyPair", "Url"]),
    ],
)
def test_only_warnings_that_the_settings_imply_or_accept_are_suppressed(
    spec: ClusterSpec, validators: list[str]
) -> None:
    assert suppressed(spec) == [f"type:{validator}Validator" for validator in ("AsyncTimedUrl", *validators)]


def test_every_secret_is_found() -> None:
    overrides = {
        "DirectoryService": {"PasswordSecretArn": "a", "DomainName": "d"},
        "Tools": [{"TokenSecretArn": "d"}],
        "Scheduling": {"SlurmSettings": {"MungeKeySecretArn": "b", "Database": {"PasswordSecretArn": "c"}}},
    }
    assert {".".join(map(str, place)): arn for place, arn in secret_arns(overrides)} == {
        "DirectoryService.PasswordSecretArn": "a",
        "Tools.0.TokenSecretArn": "d",
        "Scheduling.SlurmSettings.MungeKeySecretArn": "b",
        "Scheduling.SlurmSettings.Database.PasswordSecretArn": "c",
    }
