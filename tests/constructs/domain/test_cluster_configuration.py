"""The ParallelCluster configuration that a spec becomes; the golden templates have what each setting becomes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

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
from ultracluster.domain.cluster import (
    AcceptedWarning,
    ClusterSpec,
    MonitoringSpec,
)
from ultracluster.domain.cluster_configuration import (
    Bindings,
    render,
    secret_arns,
)
from ultracluster.domain.validator_warnings import suppressed

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


OF_HEAD_NODE = {"Iam": {"AdditionalIamPolicies": [{"Policy": "arn"}], "S3Access": [{"BucketName": "b"}]}}


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
    assert head["Iam"]["S3Access"] == [{"BucketName": "b"}, {"BucketName": "mine"}], "buckets are added"
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


def test_beside_a_file_that_an_override_includes_no_slurm_settings_are_rendered() -> None:
    """ParallelCluster allows one or the other."""
    included = {"CustomSlurmSettingsIncludeFile": "s3://b/slurm.conf"}
    assert "CustomSlurmSettings" in render(CLUSTER, SUBNETS)["Scheduling"]["SlurmSettings"]
    slurm = render(cluster(overrides={"Scheduling": {"SlurmSettings": included}}), SUBNETS)["Scheduling"][
        "SlurmSettings"
    ]
    assert (slurm["CustomSlurmSettingsIncludeFile"], "CustomSlurmSettings" in slurm) == ("s3://b/slurm.conf", False)


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
        "Scheduling": {"SlurmSettings": {"Database": {"PasswordSecretArn": "c"}}},
    }
    spec = changed(CLUSTER, munge_key_secret_arn="b", overrides=overrides)  # noqa: S106 an ARN
    assert {".".join(map(str, place)): arn for place, arn in secret_arns(spec)} == {
        "munge_key_secret_arn": "b",
        "overrides.DirectoryService.PasswordSecretArn": "a",
        "overrides.Tools.0.TokenSecretArn": "d",
        "overrides.Scheduling.SlurmSettings.Database.PasswordSecretArn": "c",
    }
