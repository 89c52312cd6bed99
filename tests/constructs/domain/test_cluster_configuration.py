"""The ParallelCluster configuration that comes out of a cluster's facts."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ultracluster.domain import slurm
from ultracluster.domain.cluster import (
    AcceptedWarning,
    ClusterSpec,
    ComputeResourceSpec,
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

TRN1 = ComputeResourceSpec(name="trn1-32xl", instance_type="trn1.32xlarge", max_count=16)
QUEUE = QueueSpec(name="trn1", compute_resources=[TRN1])
MINIMAL = ClusterSpec(
    name="trn1-16",
    region="us-west-2",
    version="3.16.1",
    head_node=HeadNodeSpec(instance_type="c6i.4xlarge"),
    queues=[QUEUE],
)
SUBNETS = Bindings(public_subnet_id="subnet-public", private_subnet_id="subnet-private")
RESERVATION = "cr-0123456789abcdef0"
POLICIES = "arn:aws:iam::123456789012:policy/parallelcluster"


def script(name: str, *arguments: str) -> Action:
    return Action(f"s3://assets/{name}.sh", "assets", f"{name}.sh", arguments)


FULL = replace(
    MINIMAL,
    custom_ami="ami-0123456789abcdef0",
    tags={"project": "x", "owner": "y"},
    head_node=HeadNodeSpec(
        instance_type="m6i.16xlarge", public=False, root_volume_gib=500, ssh_key_name="mine", ssh_cidr="10.0.0.0/8"
    ),
    login_pools=[LoginPoolSpec(name="login", instance_type="c6i.2xlarge", count=2, public=True, grace_minutes=5)],
    queues=[
        replace(
            QUEUE,
            root_volume_gib=200,
            scratch_dir="/local",
            exclusive_jobs=False,
            custom_slurm_settings={"MaxNodes": "4"},
            compute_resources=[replace(TRN1, min_count=2, simultaneous_multithreading=False)],
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


def queue_of(spec: QueueSpec, bindings: Bindings = SUBNETS) -> dict[str, Any]:
    (queue,) = render(replace(MINIMAL, queues=[spec]), bindings)["Scheduling"]["SlurmQueues"]
    return dict(queue)


def test_a_minimal_cluster_says_what_it_must_and_no_more() -> None:
    assert render(MINIMAL, SUBNETS) == {
        "Region": "us-west-2",
        "Image": {"Os": "ubuntu2404"},
        "Imds": {"ImdsSupport": "v2.0"},
        "HeadNode": {
            "InstanceType": "c6i.4xlarge",
            "Networking": {"SubnetId": "subnet-public"},
            "Ssh": {"AllowedIps": "127.0.0.1/32"},
            "LocalStorage": {"RootVolume": {"Encrypted": True, "VolumeType": "gp3"}},
            "Imds": {"Secured": True},
        },
        "Scheduling": {
            "Scheduler": "slurm",
            "ScalingStrategy": "all-or-nothing",
            "SlurmSettings": {
                "ScaledownIdletime": 10,
                "QueueUpdateStrategy": "DRAIN",
                "CustomSlurmSettings": [slurm.custom_settings({})],
            },
            "SlurmQueues": [
                {
                    "Name": "trn1",
                    "CapacityType": "ONDEMAND",
                    "JobExclusiveAllocation": True,
                    "Networking": {"SubnetIds": ["subnet-private"], "PlacementGroup": {"Name": "fleet"}},
                    "ComputeSettings": {
                        "LocalStorage": {
                            "RootVolume": {"Encrypted": True, "VolumeType": "gp3"},
                            "EphemeralVolume": {"MountDir": "/scratch"},
                        }
                    },
                    "ComputeResources": [
                        {
                            "Name": "trn1-32xl",
                            "InstanceType": "trn1.32xlarge",
                            "MinCount": 0,
                            "MaxCount": 16,
                            "Efa": {"Enabled": True},
                            "DisableSimultaneousMultithreading": False,
                        }
                    ],
                }
            ],
        },
        "SharedStorage": [],
        "Monitoring": {
            "DetailedMonitoring": False,
            "Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": 180, "DeletionPolicy": "Retain"}},
            "Dashboards": {"CloudWatch": {"Enabled": True}},
            "Alarms": {"Enabled": True},
        },
        "Tags": [],
        "DevSettings": {"EfaInterfaceType": "efa-only"},
    }


def test_a_full_cluster_says_everything() -> None:
    full = render(FULL, FULL_BINDINGS)
    assert full["Image"] == {"Os": "ubuntu2404", "CustomAmi": "ami-0123456789abcdef0"}
    assert full["Tags"] == [{"Key": "project", "Value": "x"}, {"Key": "owner", "Value": "y"}]
    assert full["SharedStorage"] == [
        {
            "Name": "fsx-0123456789ab",
            "MountDir": "/fsx",
            "StorageType": "FsxLustre",
            "FsxLustreSettings": {"FileSystemId": "fs-1"},
        }
    ]
    assert full["HeadNode"] == {
        "InstanceType": "m6i.16xlarge",
        "Networking": {"SubnetId": "subnet-private", "AdditionalSecurityGroups": ["sg-1"]},
        "Ssh": {"KeyName": "mine", "AllowedIps": "10.0.0.0/8"},
        "LocalStorage": {"RootVolume": {"Size": 500, "Encrypted": True, "VolumeType": "gp3"}},
        "CustomActions": {
            "OnNodeConfigured": {"Script": "s3://assets/launcher.sh", "Args": ["p"]},
            "OnNodeUpdated": {"Script": "s3://assets/head.sh", "Args": ["a=1", "b=2"]},
        },
        "Iam": {
            "AdditionalIamPolicies": [
                {"Policy": f"{POLICIES}-head"},
                {"Policy": f"{POLICIES}-bundle"},
            ],
            "S3Access": [{"BucketName": "assets", "KeyName": "launcher.sh"}],
        },
        "Imds": {"Secured": True},
    }
    assert full["Scheduling"]["ScalingStrategy"] == "best-effort"
    assert full["Scheduling"]["SlurmSettings"] == {
        "ScaledownIdletime": -1,
        "QueueUpdateStrategy": "TERMINATE",
        "CustomSlurmSettings": [slurm.custom_settings({}), {"MessageTimeout": "60"}, {"TCPTimeout": "30"}],
    }
    assert full["Monitoring"] == {
        "DetailedMonitoring": True,
        "Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": 7, "DeletionPolicy": "Delete"}},
        "Dashboards": {"CloudWatch": {"Enabled": False}},
        "Alarms": {"Enabled": False},
    }


def test_beside_an_included_file_there_are_no_slurm_settings_of_the_stack() -> None:
    overrides = {"Scheduling": {"SlurmSettings": {"CustomSlurmSettingsIncludeFile": "s3://b/slurm.conf"}}}
    settings = render(replace(MINIMAL, overrides=overrides), SUBNETS)["Scheduling"]["SlurmSettings"]
    assert settings["CustomSlurmSettingsIncludeFile"] == "s3://b/slurm.conf"
    assert "CustomSlurmSettings" not in settings


def test_the_queue_of_a_full_cluster() -> None:
    (queue,) = render(FULL, FULL_BINDINGS)["Scheduling"]["SlurmQueues"]
    assert queue["JobExclusiveAllocation"] is False
    assert queue["CustomSlurmSettings"] == {"MaxNodes": "4"}
    assert queue["ComputeSettings"]["LocalStorage"] == {
        "RootVolume": {"Size": 200, "Encrypted": True, "VolumeType": "gp3"},
        "EphemeralVolume": {"MountDir": "/local"},
    }
    assert queue["Networking"] == {
        "SubnetIds": ["subnet-private"],
        "AdditionalSecurityGroups": ["sg-1"],
        "PlacementGroup": {"Name": "group-of-cloudformation"},
    }
    assert queue["CustomActions"] == {
        "OnNodeConfigured": {"Script": "s3://assets/compute.sh", "Args": ["queue=trn1"]},
    }
    assert queue["Iam"] == {
        "AdditionalIamPolicies": [{"Policy": f"{POLICIES}-bundle"}],
        "S3Access": [{"BucketName": "assets", "KeyName": "compute.sh"}],
    }
    (resource,) = queue["ComputeResources"]
    assert (resource["MinCount"], resource["MaxCount"]) == (2, 16)
    assert resource["DisableSimultaneousMultithreading"] is True


def test_login_nodes() -> None:
    assert render(FULL, FULL_BINDINGS)["LoginNodes"] == {
        "Pools": [
            {
                "Name": "login",
                "InstanceType": "c6i.2xlarge",
                "Count": 2,
                "GracetimePeriod": 5,
                "Networking": {"SubnetIds": ["subnet-public"], "AdditionalSecurityGroups": ["sg-1"]},
                "Ssh": {"AllowedIps": NOBODY},
                "CustomActions": {"OnNodeConfigured": {"Script": "s3://assets/login.sh"}},
                "Iam": {
                    "AdditionalIamPolicies": [
                        {"Policy": f"{POLICIES}-login"},
                    ]
                },
            }
        ]
    }
    private = replace(FULL, login_pools=[replace(FULL.login_pools[0], public=False)])
    assert render(private, FULL_BINDINGS)["LoginNodes"]["Pools"][0]["Networking"]["SubnetIds"] == ["subnet-private"]


def test_port_22_is_open_to_nobody_unless_told() -> None:
    for key in (None, "mine"):
        head = render(replace(MINIMAL, head_node=replace(MINIMAL.head_node, ssh_key_name=key)), SUBNETS)["HeadNode"]
        assert head["Ssh"]["AllowedIps"] == NOBODY
        assert head["Ssh"].get("KeyName") == key
    for cidr, allowed in ((None, NOBODY), ("10.0.0.0/8", "10.0.0.0/8")):
        pool = replace(FULL.login_pools[0], ssh_cidr=cidr)
        (rendered,) = render(replace(FULL, login_pools=[pool]), FULL_BINDINGS)["LoginNodes"]["Pools"]
        assert rendered["Ssh"] == {"AllowedIps": allowed}


def test_the_placement_group_of_a_queue() -> None:
    """Stated whenever there is EFA, which ParallelCluster demands; never for a Capacity Block."""
    groups: list[tuple[QueueSpec, dict[str, Any] | None]] = [
        (QUEUE, {"Name": "fleet"}),
        (replace(QUEUE, placement_group="other"), {"Name": "other"}),
        (replace(QUEUE, placement_group="none"), {"Enabled": False}),
        (replace(QUEUE, existing_placement_group="mine"), {"Name": "mine"}),
        (replace(QUEUE, compute_resources=[replace(TRN1, capacity_reservation_id=RESERVATION)]), {"Enabled": False}),
        (
            replace(
                QUEUE,
                existing_placement_group="r",
                compute_resources=[replace(TRN1, capacity_reservation_id=RESERVATION)],
            ),
            {"Name": "r"},
        ),
        (replace(QUEUE, capacity_type="CAPACITY_BLOCK"), None),
        (replace(QUEUE, placement_group="none", compute_resources=[replace(TRN1, efa=False)]), None),
        (replace(QUEUE, compute_resources=[replace(TRN1, instance_type="trn1.2xlarge")]), None),
    ]
    for queue, group in groups:
        assert queue_of(queue)["Networking"].get("PlacementGroup") == group, queue


def test_the_reservation_of_nodes() -> None:
    targets: list[tuple[ComputeResourceSpec, dict[str, str] | None]] = [
        (TRN1, None),
        (replace(TRN1, capacity_reservation_id=RESERVATION), {"CapacityReservationId": RESERVATION}),
        (replace(TRN1, capacity_reservation_group_arn="arn:x"), {"CapacityReservationResourceGroupArn": "arn:x"}),
    ]
    for spec, target in targets:
        (resource,) = queue_of(replace(QUEUE, compute_resources=[spec]))["ComputeResources"]
        assert resource.get("CapacityReservationTarget") == target


def test_efa_is_on_where_the_type_has_it_unless_told() -> None:
    for instance_type, efa, enabled in (
        ("trn1.32xlarge", None, True),
        ("trn1.32xlarge", False, False),
        ("trn1.2xlarge", None, False),
    ):
        spec = replace(TRN1, instance_type=instance_type, efa=efa)
        (resource,) = queue_of(replace(QUEUE, compute_resources=[spec]))["ComputeResources"]
        assert resource["Efa"] == {"Enabled": enabled}, spec


def test_the_interface_type_is_a_development_setting_that_is_always_there() -> None:
    assert render(replace(MINIMAL, efa_interface_type="efa"), SUBNETS)["DevSettings"] == {"EfaInterfaceType": "efa"}
    assert render(MINIMAL, SUBNETS)["DevSettings"] == {"EfaInterfaceType": "efa-only"}


def test_a_shared_home_on_efs_is_encrypted() -> None:
    head = render(replace(MINIMAL, head_node=replace(MINIMAL.head_node, shared_storage="efs")), SUBNETS)["HeadNode"]
    assert (head["SharedStorageType"], head["SharedStorageEfsSettings"]) == ("Efs", {"Encrypted": True})


def scalars(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield from scalars(child, (*place, key))
    elif isinstance(value, list):
        for child in value:
            yield from scalars(child, place)
    else:
        yield place, value


def test_what_parallelcluster_does_not_read_back_from_strings_is_a_string() -> None:
    free = [
        value
        for place, value in scalars(render(FULL, FULL_BINDINGS))
        if {"CustomSlurmSettings", "Args", "Tags"} & set(place)
    ]
    assert len(free) == 3 + 5 + 4
    assert all(isinstance(value, str) for value in free)


def test_nothing_is_said_by_null() -> None:
    values = [
        value
        for spec, bindings in ((MINIMAL, SUBNETS), (FULL, FULL_BINDINGS))
        for _, value in scalars(render(spec, bindings))
    ]
    assert all(value is not None for value in values)


def test_overrides_are_merged_last() -> None:
    spec = replace(
        FULL,
        efa_interface_type="efa",
        overrides={
            "Iam": {"ResourcePrefix": "mine"},
            "DevSettings": {"Timeouts": {"HeadNodeBootstrapTimeout": 3000}},
            "HeadNode": {"Dcv": {"Enabled": True}, "LocalStorage": {"RootVolume": {"Size": 700}}},
            "Monitoring": {"Logs": {"Rotation": {"Enabled": False}}},
        },
    )
    merged = render(spec, FULL_BINDINGS)
    assert merged["Iam"] == {"ResourcePrefix": "mine"}
    assert merged["DevSettings"] == {"EfaInterfaceType": "efa", "Timeouts": {"HeadNodeBootstrapTimeout": 3000}}
    assert merged["HeadNode"]["Dcv"] == {"Enabled": True}
    assert merged["HeadNode"]["InstanceType"] == "m6i.16xlarge"
    assert merged["HeadNode"]["LocalStorage"] == {"RootVolume": {"Size": 700, "Encrypted": True, "VolumeType": "gp3"}}
    assert merged["Monitoring"]["Logs"].keys() == {"CloudWatch", "Rotation"}


def test_overrides_of_queues_and_compute_resources_are_merged_by_name() -> None:
    other = replace(TRN1, name="other")
    queues = [replace(QUEUE, compute_resources=[TRN1, other]), replace(QUEUE, name="second")]
    overrides = {
        "Scheduling": {
            "SlurmQueues": [
                {"Name": "second", "Tags": [{"Key": "a", "Value": "b"}]},
                {"Name": "trn1", "ComputeResources": [{"Name": "other", "SchedulableMemory": 400_000}]},
            ]
        }
    }
    plain = render(replace(MINIMAL, queues=queues), SUBNETS)["Scheduling"]["SlurmQueues"]
    merged = render(replace(MINIMAL, queues=queues, overrides=overrides), SUBNETS)["Scheduling"]["SlurmQueues"]
    assert [queue["Name"] for queue in merged] == ["trn1", "second"]
    assert merged[1] == {**plain[1], "Tags": [{"Key": "a", "Value": "b"}]}
    assert merged[0]["ComputeResources"] == [
        plain[0]["ComputeResources"][0],
        {**plain[0]["ComputeResources"][1], "SchedulableMemory": 400_000},
    ]


def test_overrides_of_other_lists_replace_them() -> None:
    spec = replace(FULL, overrides={"HeadNode": {"Iam": {"S3Access": [{"BucketName": "mine"}]}}})
    assert render(spec, FULL_BINDINGS)["HeadNode"]["Iam"]["S3Access"] == [{"BucketName": "mine"}]


def test_policies_of_overrides_are_added_to_those_that_nodes_need() -> None:
    mine = {"Policy": "arn:aws:iam::123456789012:policy/parallelcluster-mine"}
    iam = {"Iam": {"AdditionalIamPolicies": [mine]}}
    overrides = {"HeadNode": iam, "Scheduling": {"SlurmQueues": [{"Name": "trn1", **iam}]}}
    plain, merged = render(FULL, FULL_BINDINGS), render(replace(FULL, overrides=overrides), FULL_BINDINGS)
    nodes = [(each["HeadNode"], each["Scheduling"]["SlurmQueues"][0]) for each in (plain, merged)]
    for before, after in zip(*nodes, strict=True):
        assert after["Iam"]["AdditionalIamPolicies"] == [*before["Iam"]["AdditionalIamPolicies"], mine]
        assert after["Iam"]["S3Access"] == before["Iam"]["S3Access"]


def test_rendering_leaves_its_input_as_it_is() -> None:
    overrides = {"HeadNode": {"Iam": {"S3Access": [{"BucketName": "mine"}]}}}
    spec = replace(FULL, overrides=overrides)
    assert render(spec, FULL_BINDINGS) == render(spec, FULL_BINDINGS)
    assert overrides == {"HeadNode": {"Iam": {"S3Access": [{"BucketName": "mine"}]}}}


def test_only_warnings_that_are_meant_are_suppressed() -> None:
    no_efa, no_group = [replace(TRN1, efa=False)], ["EfaPlacementGroupValidator"]
    cases: list[tuple[QueueSpec, list[str]]] = [
        (QUEUE, []),
        (replace(QUEUE, existing_placement_group="mine"), []),
        (replace(QUEUE, placement_group="none"), no_group),
        (replace(QUEUE, capacity_type="CAPACITY_BLOCK"), []),
        (replace(QUEUE, compute_resources=no_efa), ["EfaValidator"]),
        (replace(QUEUE, placement_group="none", compute_resources=no_efa), ["EfaValidator"]),
        (replace(QUEUE, placement_group="none", compute_resources=[TRN1, *no_efa]), [*no_group, "EfaValidator"]),
        # The type has none: ParallelCluster does not warn.
        (replace(QUEUE, compute_resources=[replace(TRN1, instance_type="trn1.2xlarge")]), []),
    ]
    for queue, validators in cases:
        for key in (None, "mine"):
            for detailed in (False, True):
                spec = replace(
                    MINIMAL,
                    queues=[queue],
                    head_node=replace(MINIMAL.head_node, ssh_key_name=key),
                    monitoring=MonitoringSpec(detailed_monitoring=detailed),
                )
                expected = ["AsyncTimedUrlValidator", *([] if key else ["KeyPairValidator"]), *validators]
                expected += ["DetailedMonitoringValidator"] if detailed else []
                assert suppressed(spec) == [f"type:{validator}" for validator in expected], spec


def test_what_the_settings_accept_is_suppressed_once() -> None:
    names = ("UrlValidator", "KeyPairValidator")
    spec = replace(MINIMAL, accepted_warnings=[AcceptedWarning(validator=name, reason="meant") for name in names])
    assert suppressed(spec) == ["type:AsyncTimedUrlValidator", "type:KeyPairValidator", "type:UrlValidator"]


def test_every_secret_is_found() -> None:
    overrides = {
        "DirectoryService": {"PasswordSecretArn": "a", "DomainName": "d"},
        "Scheduling": {"SlurmSettings": {"MungeKeySecretArn": "b", "Database": {"PasswordSecretArn": "c"}}},
    }
    assert {".".join(map(str, place)): arn for place, arn in secret_arns(overrides)} == {
        "DirectoryService.PasswordSecretArn": "a",
        "Scheduling.SlurmSettings.MungeKeySecretArn": "b",
        "Scheduling.SlurmSettings.Database.PasswordSecretArn": "c",
    }
