"""The ParallelCluster configuration that a spec becomes; the golden templates have those of whole deployments."""

from __future__ import annotations

from itertools import product
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
    HeadNodeSpec,
    LoginPoolSpec,
    MonitoringSpec,
    QueueSpec,
    SlurmSpec,
)
from ultracluster.domain.cluster_configuration import (
    NOBODY,
    Action,
    Bindings,
    LustreMount,
    NodeActions,
    render,
    secret_arns,
)
from ultracluster.domain.validator_warnings import suppressed

POLICIES = "arn:aws:iam::123456789012:policy/parallelcluster"
NODES_OF_QUEUE = "Scheduling.SlurmQueues[0].ComputeResources[0]"
SUBNETS = Bindings(public_subnet_id="subnet-public", private_subnet_id="subnet-private")


def script(name: str, *arguments: str) -> Action:
    return Action(f"s3://assets/{name}.sh", "assets", f"{name}.sh", arguments)


FULL = cluster(
    custom_ami="ami-0123456789abcdef0",
    tags={"project": "x", "owner": "y"},
    head_node=HeadNodeSpec(
        instance_type="m6i.16xlarge", public=False, root_volume_gib=500, ssh_key_name="mine", ssh_cidr="10[0].0.0/8"
    ),
    login_nodes=[LoginPoolSpec(name="login", count=2, public=True, grace_minutes=5)],
    queues=[
        changed(
            QUEUE,
            root_volume_gib=None,
            scratch_dir="/local",
            exclusive_jobs=False,
            custom_slurm_settings={"MaxNodes": "4"},
            compute_resources=[changed(NODES, min_count=2, simultaneous_multithreading=False)],
        )
    ],
    slurm=SlurmSpec(
        idle_minutes=-1,
        queue_update_strategy="TERMINATE",
        scaling_strategy="best-effort",
        custom_settings={"MessageTimeout": "60", "TCPTimeout": "30"},
    ),
    monitoring=MonitoringSpec(
        log_retention_days=7, retain_logs=False, dashboard=False, alarms=False, detailed_monitoring=True
    ),
)
FULL_BINDINGS = Bindings(
    public_subnet_id="subnet-public",
    private_subnet_id="subnet-private",
    security_group_ids=["sg-1"],
    placement_groups={"fleet": "group-of-cloudformation"},
    shared_storage=[LustreMount("fsx-0123456789ab", "/fsx", "fs-1")],
    head_node_actions=NodeActions(
        on_configured=script("launcher", "p"),
        on_updated=script("head", "a=1", "b=2"),
        policy_arns=[f"{POLICIES}-head", f"{POLICIES}-bundle"],
    ),
    queue_actions={
        "trn1": NodeActions(on_configured=script("compute", "queue=trn1"), policy_arns=[f"{POLICIES}-bundle"])
    },
    login_actions=NodeActions(on_configured=script("login"), policy_arns=[f"{POLICIES}-login"]),
)


def queue_of(spec: ClusterSpec) -> dict[str, Any]:
    [queue] = render(spec, SUBNETS)["Scheduling"]["SlurmQueues"]
    return dict(queue)


def test_a_cluster_with_every_choice_made() -> None:
    assert render(FULL, FULL_BINDINGS) == {
        "Region": "us-west-2",
        "Image": {"Os": "ubuntu2404", "CustomAmi": "ami-0123456789abcdef0"},
        "Imds": {"ImdsSupport": "v2.0"},
        "HeadNode": {
            "InstanceType": "m6i.16xlarge",
            "Networking": {"SubnetId": "subnet-private", "AdditionalSecurityGroups": ["sg-1"]},
            "Ssh": {"KeyName": "mine", "AllowedIps": "10[0].0.0/8"},
            "LocalStorage": {"RootVolume": {"Size": 500, "Encrypted": True, "VolumeType": "gp3"}},
            "CustomActions": {
                "OnNodeConfigured": {"Script": "s3://assets/launcher.sh", "Args": ["p"]},
                "OnNodeUpdated": {"Script": "s3://assets/head.sh", "Args": ["a=1", "b=2"]},
            },
            "Iam": {
                "AdditionalIamPolicies": [{"Policy": f"{POLICIES}-head"}, {"Policy": f"{POLICIES}-bundle"}],
                "S3Access": [{"BucketName": "assets", "KeyName": "launcher.sh"}],
            },
            "Imds": {"Secured": True},
        },
        "LoginNodes": {
            "Pools": [
                {
                    "Name": "login",
                    "InstanceType": "c6i.2xlarge",
                    "Count": 2,
                    "GracetimePeriod": 5,
                    "Networking": {"SubnetIds": ["subnet-public"], "AdditionalSecurityGroups": ["sg-1"]},
                    "Ssh": {"AllowedIps": NOBODY},
                    "CustomActions": {"OnNodeConfigured": {"Script": "s3://assets/login.sh"}},
                    "Iam": {"AdditionalIamPolicies": [{"Policy": f"{POLICIES}-login"}]},
                }
            ]
        },
        "Scheduling": {
            "Scheduler": "slurm",
            "ScalingStrategy": "best-effort",
            "SlurmSettings": {
                "ScaledownIdletime": -1,
                "QueueUpdateStrategy": "TERMINATE",
                "CustomSlurmSettings": [slurm.custom_settings({}), {"MessageTimeout": "60"}, {"TCPTimeout": "30"}],
            },
            "SlurmQueues": [
                {
                    "Name": "trn1",
                    "CapacityType": "ONDEMAND",
                    "JobExclusiveAllocation": False,
                    "Networking": {
                        "SubnetIds": ["subnet-private"],
                        "AdditionalSecurityGroups": ["sg-1"],
                        "PlacementGroup": {"Name": "group-of-cloudformation"},
                    },
                    "ComputeSettings": {
                        "LocalStorage": {
                            "RootVolume": {"Encrypted": True, "VolumeType": "gp3"},
                            "EphemeralVolume": {"MountDir": "/local"},
                        }
                    },
                    "CustomActions": {
                        "OnNodeConfigured": {"Script": "s3://assets/compute.sh", "Args": ["queue=trn1"]},
                    },
                    "Iam": {
                        "AdditionalIamPolicies": [{"Policy": f"{POLICIES}-bundle"}],
                        "S3Access": [{"BucketName": "assets", "KeyName": "compute.sh"}],
                    },
                    "CustomSlurmSettings": {"MaxNodes": "4"},
                    "ComputeResources": [
                        {
                            "Name": "trn1-32xl",
                            "InstanceType": "trn1.32xlarge",
                            "MinCount": 2,
                            "MaxCount": 16,
                            "Efa": {"Enabled": True},
                            "DisableSimultaneousMultithreading": True,
                        }
                    ],
                }
            ],
        },
        "SharedStorage": [
            {
                "Name": "fsx-0123456789ab",
                "MountDir": "/fsx",
                "StorageType": "FsxLustre",
                "FsxLustreSettings": {"FileSystemId": "fs-1"},
            }
        ],
        "Monitoring": {
            "DetailedMonitoring": True,
            "Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": 7, "DeletionPolicy": "Delete"}},
            "Dashboards": {"CloudWatch": {"Enabled": False}},
            "Alarms": {"Enabled": False},
        },
        "Tags": [{"Key": "project", "Value": "x"}, {"Key": "owner", "Value": "y"}],
        "DevSettings": {"EfaInterfaceType": "efa-only"},
    }


RESERVED = changed(NODES, capacity_reservation_id=RESERVATION)


@pytest.mark.parametrize(
    ("spec", "group"),
    [
        (CLUSTER, {"Name": "fleet"}),
        (with_queue(placement_group="other"), {"Name": "other"}),
        (with_queue(placement_group="none"), {"Enabled": False}),
        (with_queue(existing_placement_group="mine"), {"Name": "mine"}),
        (with_queue(RESERVED), {"Enabled": False}),
        (with_queue(RESERVED, existing_placement_group="r"), {"Name": "r"}),
        (with_queue(capacity_type="CAPACITY_BLOCK"), None),
        (with_queue(changed(NODES, efa=False), placement_group="none"), None),
        (with_nodes(instance_type="trn1.2xlarge"), None),
    ],
)
def test_the_placement_group_of_a_queue(spec: ClusterSpec, group: dict[str, Any] | None) -> None:
    """ParallelCluster demands a statement for EFA, and refuses one for a Capacity Block."""
    assert queue_of(spec)["Networking"].get("PlacementGroup") == group


INCLUDED = {"Scheduling": {"SlurmSettings": {"CustomSlurmSettingsIncludeFile": "s3://b/slurm.conf"}}}
PRIVATE_LOGINS = LoginPoolSpec(name="login", ssh_cidr="10[0].0.0/8")


@pytest.mark.parametrize(
    ("spec", "path", "expected"),
    [
        (CLUSTER, "HeadNode.Ssh", {"AllowedIps": NOBODY}),
        (with_head(ssh_key_name="mine"), "HeadNode.Ssh", {"AllowedIps": NOBODY, "KeyName": "mine"}),
        (with_head(shared_storage="efs"), "HeadNode.SharedStorageType", "Efs"),
        (with_head(shared_storage="efs"), "HeadNode.SharedStorageEfsSettings.Encrypted", True),
        (cluster(login_nodes=[PRIVATE_LOGINS]), "LoginNodes.Pools[0].Networking.SubnetIds", ["subnet-private"]),
        (cluster(login_nodes=[PRIVATE_LOGINS]), "LoginNodes.Pools[0].Ssh", {"AllowedIps": "10[0].0.0/8"}),
        (cluster(efa_interface_type="efa"), "DevSettings", {"EfaInterfaceType": "efa"}),
        (cluster(overrides=INCLUDED), "Scheduling.SlurmSettings.CustomSlurmSettings", None),
        (cluster(overrides=INCLUDED), "Scheduling.SlurmSettings.CustomSlurmSettingsIncludeFile", "s3://b/slurm.conf"),
        (with_nodes(efa=False), f"{NODES_OF_QUEUE}.Efa.Enabled", False),
        (with_nodes(instance_type="trn1.2xlarge"), f"{NODES_OF_QUEUE}.Efa.Enabled", False),
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
    assert jmespath.search(path, render(spec, SUBNETS)) == expected


def test_overrides_are_merged_last() -> None:
    overrides: dict[str, Any] = {
        "DevSettings": {"Timeouts": {"HeadNodeBootstrapTimeout": 3000}},
        "HeadNode": {
            "LocalStorage": {"RootVolume": {"Size": 700}},
            "Iam": {"AdditionalIamPolicies": [{"Policy": "mine"}], "S3Access": [{"BucketName": "mine"}]},
        },
    }
    plain, merged = render(FULL, FULL_BINDINGS), render(changed(FULL, overrides=overrides), FULL_BINDINGS)
    head = merged["HeadNode"]
    assert merged["DevSettings"] == {**plain["DevSettings"], **overrides["DevSettings"]}
    assert head["LocalStorage"] == {"RootVolume": {"Size": 700, "Encrypted": True, "VolumeType": "gp3"}}
    assert head["Iam"]["S3Access"] == [{"BucketName": "mine"}], "other lists are replaced"
    policies = [*plain["HeadNode"]["Iam"]["AdditionalIamPolicies"], {"Policy": "mine"}]
    assert head["Iam"]["AdditionalIamPolicies"] == policies, "policies are added"
    assert merged["HeadNode"]["InstanceType"] == plain["HeadNode"]["InstanceType"]


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


def test_only_warnings_that_the_settings_imply_are_suppressed() -> None:
    without_efa, no_group = changed(NODES, efa=False), "EfaPlacementGroupValidator"
    cases: list[tuple[QueueSpec, list[str]]] = [
        (QUEUE, []),
        (changed(QUEUE, existing_placement_group="mine"), []),
        (changed(QUEUE, placement_group="none"), [no_group]),
        (changed(QUEUE, capacity_type="CAPACITY_BLOCK"), []),
        (changed(QUEUE, compute_resources=[without_efa]), ["EfaValidator"]),
        (changed(QUEUE, placement_group="none", compute_resources=[without_efa]), ["EfaValidator"]),
        (changed(QUEUE, placement_group="none", compute_resources=[NODES, without_efa]), [no_group, "EfaValidator"]),
        # The type has none: ParallelCluster does not warn.
        (changed(QUEUE, compute_resources=[changed(NODES, instance_type="trn1.2xlarge")]), []),
    ]
    for (queue, validators), key, detailed in product(cases, (None, "mine"), (False, True)):
        head_node, monitoring = HeadNodeSpec(ssh_key_name=key), MonitoringSpec(detailed_monitoring=detailed)
        spec = cluster(queues=[queue], head_node=head_node, monitoring=monitoring)
        expected = ["AsyncTimedUrlValidator", *([] if key else ["KeyPairValidator"]), *validators]
        expected += ["DetailedMonitoringValidator"] if detailed else []
        assert suppressed(spec) == [f"type:{validator}" for validator in expected], spec


def test_what_the_settings_accept_is_suppressed_once() -> None:
    names = ("UrlValidator", "KeyPairValidator")
    spec = cluster(accepted_warnings=[AcceptedWarning(validator=name, reason="meant") for name in names])
    assert suppressed(spec) == ["type:AsyncTimedUrlValidator", "type:KeyPairValidator", "type:UrlValidator"]


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
