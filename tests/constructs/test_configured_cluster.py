"""A cluster by a configuration of ParallelCluster's, and grants to clusters whose roles are elsewhere."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

import ultracluster as uc
from ultracluster.domain.overrides import merged

pytestmark = pytest.mark.slow

PASSWORD = "arn:aws:secretsmanager:us-west-2:123456789012:secret:ldap-AbCdEf"  # noqa: S105 - no password
CONFIGURATION: dict[str, Any] = {
    "Region": "us-west-2",
    "Image": {"Os": "alinux2023"},
    "HeadNode": {"InstanceType": "c7i.large", "Networking": {"SubnetId": "subnet-0123456789abcdef0"}},
    "Scheduling": {
        "Scheduler": "slurm",
        "SlurmQueues": [
            {
                "Name": "cpu",
                "Networking": {"SubnetIds": ["subnet-0123456789abcdef1"]},
                "ComputeResources": [{"Name": "c7i", "Instances": [{"InstanceType": "c7i.large"}], "MaxCount": 2}],
            }
        ],
    },
}


def stack() -> cdk.Stack:
    return cdk.Stack(cdk.App(analytics_reporting=False), "Training", env=cdk.Environment(region="us-west-2"))


def properties(made: cdk.Stack) -> dict[str, Any]:
    [resource] = assertions.Template.from_stack(made).find_resources("Custom::PclusterCluster").values()
    return dict(resource["Properties"])


def test_a_configuration_arrives_as_it_is() -> None:
    made = stack()
    uc.ParallelCluster.from_configuration(
        made,
        "It",
        configuration=CONFIGURATION,
        cluster_name="it",
        suppress_validators=["type:UrlValidator"],
        validation_failure_level="INFO",
    )
    assert properties(made) | {"ServiceToken": ""} == {
        "ServiceToken": "",
        "ClusterName": "it",
        "ClusterConfiguration": CONFIGURATION,
        "SuppressValidators": ["type:UrlValidator"],
        "ValidationFailureLevel": "INFO",
    }


def test_tags_and_a_boundary_of_the_app_are_added_unless_it_has_its_own() -> None:
    own = {"Tags": [{"Key": "team", "Value": "theirs"}], "Iam": {"ResourcePrefix": "/parallelcluster/lab/"}}
    made = stack()
    uc.ParallelCluster.from_configuration(made, "It", configuration=CONFIGURATION | own)
    cdk.Tags.of(made).add("team", "ours", exclude_resource_types=["aws:cdk:stack"])
    cdk.Tags.of(made).add("cost", "1", exclude_resource_types=["aws:cdk:stack"])
    boundary = "arn:aws:iam::123456789012:policy/boundary"
    iam.PermissionsBoundary.of(made).apply(iam.ManagedPolicy.from_managed_policy_arn(made, "Boundary", boundary))
    completed = properties(made)["ClusterConfiguration"]
    assert completed["Tags"] == [*own["Tags"], {"Key": "cost", "Value": "1"}]
    assert completed["Iam"] == {"PermissionsBoundary": boundary, "ResourcePrefix": "/parallelcluster/lab/"}


def test_tags_that_aws_refuses_are_named_wherever_they_are() -> None:
    """ParallelCluster's schema takes them, and the cluster would fail when it is made; an empty value is right."""
    made = stack()
    right = [{"Key": "a", "Value": ""}, {"Key": cdk.Fn.import_value("k"), "Value": cdk.Fn.import_value("v")}]
    wrong = [{"Key": "", "Value": "1"}, {"Key": "b", "Value": "1"}, {"Key": "b", "Value": "2"}]
    wrong += [{"Key": "aws:c", "Value": "1"}, {"Key": "d", "Value": "<"}]
    scheduling = deepcopy(CONFIGURATION["Scheduling"])
    scheduling["SlurmQueues"][0]["Tags"] = [{"Key": "", "Value": "1"}]
    configuration = CONFIGURATION | {"Tags": [*right, *wrong], "Scheduling": scheduling}
    with pytest.raises(uc.InvalidArguments) as refused:
        uc.ParallelCluster.from_configuration(made, "It", configuration=configuration)
    assert {each.path[1:] for each in refused.value.violations} == {
        ("Scheduling", "SlurmQueues", 0, "Tags", 0, "Key"),
        *(("Tags", index, "Key") for index in (2, 3, 4, 5)),
        ("Tags", 6, "Value"),
    }
    many = [*right, *({"Key": f"k{index}", "Value": "v"} for index in range(37))]
    uc.ParallelCluster.from_configuration(made, "It", configuration=CONFIGURATION | {"Tags": many})
    cdk.Tags.of(made).add("cost", "1", exclude_resource_types=["aws:cdk:stack"])
    with pytest.raises(RuntimeError, match="tags: got 40; allowed: at most 39"):
        properties(made)


def test_its_provider_sees_its_secrets() -> None:
    made = stack()
    directory = {"DomainName": "a.example", "DomainAddr": "ldaps://a.example", "DomainReadOnlyUser": "cn=a"}
    scheduling = merged(CONFIGURATION["Scheduling"], {"SlurmSettings": {"MungeKeySecretArn": {"Ref": "Key"}}})
    cdk.CfnParameter(made, "Key")
    configuration = CONFIGURATION | {"DirectoryService": directory | {"PasswordSecretArn": PASSWORD}}
    configuration["Scheduling"] = scheduling
    uc.ParallelCluster.from_configuration(made, "It", configuration=configuration)
    [policy] = assertions.Template.from_stack(made).find_resources("AWS::IAM::ManagedPolicy").values()
    statements = policy["Properties"]["PolicyDocument"]["Statement"]
    may = {each["Action"]: each["Resource"] for each in statements}
    assert may == {"secretsmanager:DescribeSecret": PASSWORD, "secretsmanager:GetSecretValue": {"Ref": "Key"}}


def with_boundary(own: str | None, of_app: str) -> Any:
    """Return what a configuration with a boundary says of roles in an app with one, or why that is refused."""
    made = stack()
    uc.ParallelCluster.from_configuration(
        made, "It", configuration=CONFIGURATION | {"Iam": {"PermissionsBoundary": own}}
    )
    iam.PermissionsBoundary.of(made).apply(iam.ManagedPolicy.from_managed_policy_arn(made, "Boundary", of_app))
    return properties(made)["ClusterConfiguration"]["Iam"]


def test_a_boundary_is_one_that_the_provider_can_give() -> None:
    ours, theirs = (f"arn:aws:iam::123456789012:policy/{name}" for name in ("ours", "theirs"))
    assert with_boundary(None, ours) == with_boundary(ours, ours) == {"PermissionsBoundary": ours}
    with pytest.raises(
        RuntimeError, match=rf"configuration\.Iam\.PermissionsBoundary: got '{theirs}'; allowed: {ours}"
    ):
        with_boundary(theirs, ours)
    with pytest.raises(RuntimeError, match="permissions boundary: got"):
        with_boundary(None, f"{ours}/with/a/path")


def test_a_name_that_would_let_other_roles_in_is_refused() -> None:
    with pytest.raises(uc.InvalidArguments) as refused:
        uc.ParallelCluster.from_cluster_attributes(
            stack(), "It", cluster_name="*", role_path="/", head_node_instance_id="node"
        )
    paths = [each.path for each in refused.value.violations]
    assert paths == [("cluster_name",), ("role_path",), ("head_node_instance_id",)]


def test_an_alarm_in_another_region_than_its_metric_is_refused_by_the_cdk() -> None:
    app = cdk.App(analytics_reporting=False)
    made, elsewhere = (cdk.Stack(app, each, env=cdk.Environment(region=each)) for each in ("us-west-2", "us-east-1"))
    cluster = uc.ParallelCluster.from_configuration(made, "It", configuration=CONFIGURATION)
    with pytest.raises(RuntimeError, match="Cannot create an Alarm in region 'us-east-1'"):
        cluster.metric_longest_idle().create_alarm(elsewhere, "Idle", threshold=3600, evaluation_periods=1)


def test_all_that_is_wrong_is_said_at_once() -> None:
    made = stack()
    uc.ParallelCluster.from_configuration(made, "First", configuration=CONFIGURATION, cluster_name="it")
    wrong = merged(CONFIGURATION, {"Region": "us-east-1", "HeadNode": {"InstanceTyp": "c7i.large"}, "Image": None})
    with pytest.raises(uc.InvalidArguments) as refused:
        uc.ParallelCluster.from_configuration(
            made, "It", configuration=wrong, cluster_name="it", parallelcluster_version="3.0.0"
        )
    found = {(*map(str, each.path),) for each in refused.value.violations}
    assert found == {
        ("cluster_name",),
        ("parallelcluster_version",),
        ("configuration", "Region"),
        ("configuration", "Image"),
        ("configuration", "HeadNode", "InstanceTyp"),
    }
    assert [each.node.id for each in made.node.children if each.node.id == "It"] == []


def clusters(made: cdk.Stack) -> dict[str, uc.IParallelCluster]:
    """Return clusters whose roles are in a place of their own."""
    nodes = uc.ComputeResource(name="c7i", instance_type="c7i.large", max_count=2)
    vpc = uc.UltraClusterNetwork(made, "Network", zone_id="usw2-az4").vpc
    prefix = CONFIGURATION | {"Iam": {"ResourcePrefix": "/parallelcluster/lab/ab-"}}
    return {
        "defined": uc.ParallelCluster(
            made,
            "Defined",
            vpc=vpc,
            cluster_name="it",
            queues=[uc.Queue(name="cpu", compute_resources=[nodes])],
            roles=uc.Roles(path="/parallelcluster/lab/"),
        ),
        "imported": uc.ParallelCluster.from_cluster_attributes(
            made, "Imported", cluster_name="it", role_path="/parallelcluster/lab/"
        ),
        "configured": uc.ParallelCluster.from_configuration(
            made, "Configured", cluster_name="itself", configuration=prefix
        ),
    }


@pytest.mark.parametrize("kind", ["defined", "imported", "configured"])
def test_a_bucket_lets_roles_in_where_they_are(kind: str) -> None:
    made = stack()
    cluster = clusters(made)[kind]
    bucket = s3.Bucket(made, "Bucket")
    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["s3:GetObject"], principals=[cluster.grant_principal], resources=[bucket.bucket_arn]
        )
    )
    [policy] = assertions.Template.from_stack(made).find_resources("AWS::S3::BucketPolicy").values()
    name = "itself" if kind == "configured" else "it"
    assert f":role/parallelcluster/lab/{name}/*" in json.dumps(policy)


ROLE = "arn:aws:iam::123456789012:role/parallelcluster/own"


def unreached(made: cdk.Stack) -> list[str]:
    """Return the warnings of grants that reach no nodes."""
    found = assertions.Annotations.from_stack(made).find_warning("*", assertions.Match.any_value())
    return [str(each.entry.data) for each in found if "grants do not reach" in str(each.entry.data)]


@pytest.mark.parametrize(
    ("granted", "told"), [("compute_nodes", True), ("grant_principal", True), ("head_node", False)]
)
def test_a_queue_with_a_role_of_its_own_that_comes_after_a_grant_is_told_of_as_one_before(
    granted: str, told: bool
) -> None:
    made = stack()
    nodes = uc.ComputeResource(name="c7i", instance_type="c7i.large", max_count=2)
    vpc = uc.UltraClusterNetwork(made, "Network", zone_id="usw2-az4").vpc
    cluster = uc.ParallelCluster(made, "It", vpc=vpc, queues=[uc.Queue(name="cpu", compute_resources=[nodes])])
    s3.Bucket(made, "Bucket").grant_read(getattr(cluster, granted))
    cluster.add_queue(uc.Queue(name="own", compute_resources=[nodes], instance_role_arn=ROLE))
    assert ["nodes of queue own: " in each for each in unreached(made)] == [True] * told


def test_a_grant_tells_of_nodes_with_a_role_of_their_own() -> None:
    made = stack()
    nodes = uc.ComputeResource(name="c7i", instance_type="c7i.large", max_count=2)
    cluster = uc.ParallelCluster(
        made,
        "It",
        vpc=uc.UltraClusterNetwork(made, "Network", zone_id="usw2-az4").vpc,
        queues=[
            uc.Queue(name="own", compute_resources=[nodes], instance_role_arn=ROLE),
            uc.Queue(name="not", compute_resources=[nodes]),
        ],
    )
    bucket = s3.Bucket(made, "Bucket")
    bucket.grant_read(cluster.head_node)
    bucket.grant_read(cluster.queue("not"))
    assert unreached(made) == []
    bucket.grant_read(cluster.compute_nodes)
    [warning] = unreached(made)
    assert "grants do not reach nodes of queue own: " in warning


def test_metrics_that_a_cluster_does_not_make_are_refused() -> None:
    made = stack()
    nodes = uc.ComputeResource(name="c7i", instance_type="c7i.large", max_count=2)
    cluster = uc.ParallelCluster(
        made,
        "It",
        vpc=uc.UltraClusterNetwork(made, "Network", zone_id="usw2-az4").vpc,
        queues=[uc.Queue(name="cpu", compute_resources=[nodes])],
        monitoring=uc.MonitoringOptions(dashboard=False, alarms=False),
    )
    for metric in (cluster.metric_launch_failures, cluster.metric_longest_idle, cluster.metric_script_failures):
        with pytest.raises(ValueError, match="with a dashboard, which the cluster does not have"):
            metric()
    with pytest.raises(ValueError, match="with alarms, which"):
        cluster.metric_head_node("ClustermgtdHeartbeat")
    with pytest.raises(ValueError, match=r"\n  metric_name: got 'CPU'; allowed: CPUUtilization, "):
        cluster.metric_head_node("CPU")
    assert cluster.metric_head_node_memory().namespace == "CWAgent"
    imported = uc.ParallelCluster.from_cluster_attributes(made, "Imported", cluster_name="other")
    with pytest.raises(ValueError, match="head_node_instance_id"):
        imported.metric_head_node_cpu()
    assert imported.metric_node_failures().expression == "SUM([m0, m1, m2, m3, m4])"
