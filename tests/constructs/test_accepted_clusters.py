"""Clusters of strangers' stacks, by ParallelCluster's own schema and validators."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import assertions
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3

from emulator import prerequisites
from emulator.aws import EmulatedAws
from emulator.templates import Resolver, publish_files
from scripts.check.validation import examine
from scripts.emulated import accounts
from toolchain.assembly import Assembly
from toolchain.cluster import cluster_request
from toolchain.parallelcluster import ParallelCluster as ParallelClusterCode
from ultracluster import (
    ComputeResource,
    ConfiguredCluster,
    HeadNode,
    LoginPool,
    NeuronSoftware,
    NodeAction,
    ParallelCluster,
    Queue,
    QueueActions,
    SharedStorage,
)
from ultracluster.domain import metrics
from ultracluster.domain.parallelcluster_versions import PINNED
from ultracluster.domain.validator_warnings import accepted

pytestmark = [pytest.mark.slow, pytest.mark.validation]

REGION = "us-west-2"
Build = Callable[[cdk.Stack, ec2.IVpc], ParallelCluster | ConfiguredCluster]


@pytest.fixture(scope="module")
def aws() -> Iterator[EmulatedAws]:
    with EmulatedAws() as server:
        yield server


@pytest.fixture(scope="module")
def parallelcluster(aws: EmulatedAws) -> Iterator[ParallelClusterCode]:
    with ParallelClusterCode(aws.environment) as process:
        yield process


def queue(name: str, instance_type: str) -> Queue:
    return Queue(name=name, compute_resources=[ComputeResource(name="nodes", instance_type=instance_type, max_count=4)])


def trainium(stack: cdk.Stack, vpc: ec2.IVpc) -> ParallelCluster:
    group = ec2.SecurityGroup(stack, "DataGroup", vpc=vpc)
    group.add_ingress_rule(ec2.Peer.ipv4("10.0.0.0/16"), ec2.Port.tcp_range(988, 1023))
    file_system = fsx.LustreFileSystem(
        stack,
        "Data",
        vpc=vpc,
        security_group=group,
        vpc_subnet=vpc.private_subnets[0],
        storage_capacity_gib=1200,
        lustre_configuration=fsx.LustreConfiguration(deployment_type=fsx.LustreDeploymentType.SCRATCH_2),
    )
    return ParallelCluster(
        stack,
        "Cluster",
        vpc=vpc,
        queues=[queue("trn1", "trn1.32xlarge"), queue("gpu", "g6.12xlarge")],
        login_nodes=[LoginPool(name="login")],
        shared_storage=[SharedStorage.lustre(file_system)],
        software=NeuronSoftware(),
    )


def gpu_and_cpu(stack: cdk.Stack, vpc: ec2.IVpc) -> ParallelCluster:
    home = efs.FileSystem(stack, "Home", vpc=vpc)
    home.connections.allow_internally(ec2.Port.NFS)
    cluster = ParallelCluster(
        stack,
        "Cluster",
        vpc=vpc,
        head_node=HeadNode(instance_type="m7i.2xlarge", public=False),
        queues=[queue("p5", "p5.48xlarge"), queue("g6", "g6.12xlarge"), queue("c7i", "c7i.4xlarge")],
        shared_storage=[SharedStorage.efs(home, "/shared")],
        overrides={"Scheduling": {"SlurmQueues": [{"Name": "g6", "HealthChecks": {"Gpu": {"Enabled": True}}}]}},
    )
    scripts = QueueActions(on_node_configured=[NodeAction(script="https://example.com/a.sh")])
    cluster.add_queue(queue("efa", "c7i.48xlarge").model_copy(update={"custom_actions": scripts}))
    return cluster


def configured(stack: cdk.Stack, vpc: ec2.IVpc) -> ConfiguredCluster:
    """As the documentation's first example, for users who want no defaults of this library."""
    nodes = {"Name": "c7i", "Instances": [{"InstanceType": "c7i.large"}], "MaxCount": 2}
    private = {"SubnetIds": [vpc.private_subnets[0].subnet_id]}
    configuration = {
        "Region": REGION,
        "Image": {"Os": "alinux2023"},
        "HeadNode": {
            "InstanceType": "c7i.large",
            "Networking": {"SubnetId": vpc.public_subnets[0].subnet_id},
        },
        "Scheduling": {
            "Scheduler": "slurm",
            "SlurmQueues": [{"Name": "cpu", "Networking": private, "ComputeResources": [nodes]}],
        },
    }
    return ParallelCluster.from_configuration(
        stack,
        "Cluster",
        configuration=configuration,
        cluster_name="plain",
        suppress_validators=["type:KeyPairValidator"],
    )


def arm(stack: cdk.Stack, vpc: ec2.IVpc) -> ParallelCluster:
    head_node = HeadNode(instance_type="c7g.xlarge")
    return ParallelCluster(
        stack, "Cluster", vpc=vpc, os="rhel9", head_node=head_node, queues=[queue("c7g", "c7g.16xlarge")]
    )


@pytest.mark.parametrize("build", [trainium, gpu_and_cpu, arm, configured], ids=lambda build: build.__name__)
def test_parallelcluster_accepts_it(
    build: Build, aws: EmulatedAws, parallelcluster: ParallelClusterCode, tmp_path: Path
) -> None:
    app = cdk.App(outdir=str(tmp_path), analytics_reporting=False)
    stack = cdk.Stack(app, "Training", env=cdk.Environment(region=REGION, account="123456789012"))
    cluster = build(stack, ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2d"]))
    app.synth()

    aws.reset()
    bucket = prerequisites.Bootstrap(
        "/cdk-bootstrap/hnb659fds/version", "99", "cdk-hnb659fds-assets-123456789012-us-west-2"
    )
    prerequisites.create(
        aws,
        prerequisites.Prerequisites(REGION, "usw2-az4", PINNED, "any", "trn1.32xlarge", bucket, accounts.published()),
    )
    prerequisites.bootstrap(aws, REGION, bucket)
    assembly = Assembly(tmp_path)
    publish_files(assembly, aws)
    request = cluster_request(assembly, Resolver(assembly, aws).resolve)
    accepting = accepted(cluster.spec) if isinstance(cluster, ParallelCluster) else {"KeyPairValidator": ""}
    validation = examine(parallelcluster, request, accepting)

    assert validation.problems == ()
    if build is gpu_and_cpu:
        assert_metrics_are_those_of_the_library(
            parallelcluster.build_templates(request.configuration, request.name).root
        )


def assert_metrics_are_those_of_the_library(template: Mapping[str, Any]) -> None:
    """ParallelCluster makes and watches the metrics of which the library knows names and dimensions."""
    resources = template["Resources"].values()
    made = {}
    for each in (each["Properties"] for each in resources if each["Type"] == "AWS::Logs::MetricFilter"):
        [metric] = each["MetricTransformations"]
        assert metric["MetricNamespace"] == metrics.PARALLELCLUSTER
        made[metric["MetricName"]] = {dimension["Key"] for dimension in metric["Dimensions"]}
    assert made.pop(metrics.HEARTBEAT) == {"ClusterName", "InstanceId"}
    assert made == {name: {"ClusterName"} for name in metrics.OF_PARALLELCLUSTER}

    alarms = [each["Properties"] for each in resources if each["Type"] == "AWS::CloudWatch::Alarm"]
    assert len(alarms) == len(["health", "CPU", "memory", "disk", "heartbeat"])
    stack = cdk.Stack(cdk.App(analytics_reporting=False), "Beside")
    imported = ParallelCluster.from_cluster_attributes(stack, "It", cluster_name="it", head_node_instance_id="i-0")
    for alarm in alarms:
        metric = imported.metric_head_node(alarm["MetricName"])
        named = {each["Name"] for each in alarm["Dimensions"]}
        assert (alarm["Namespace"], named) == (metric.namespace, {*(metric.dimensions or {})})


def test_a_running_cluster_takes_grants_and_queues(parallelcluster: ParallelClusterCode) -> None:
    """What is added in a later deployment: ParallelCluster's update check, with nodes running."""

    def configuration(change: Callable[[ParallelCluster], object]) -> dict[str, Any]:
        stack = cdk.Stack(cdk.App(analytics_reporting=False), "Training", env=cdk.Environment(region=REGION))
        vpc = ec2.Vpc.from_vpc_attributes(
            stack,
            "Vpc",
            vpc_id="vpc-0123456789abcdef0",
            availability_zones=["us-west-2d"],
            private_subnet_ids=["subnet-0123456789abcdef0"],
        )
        group = ec2.SecurityGroup.from_security_group_id(stack, "Nodes", "sg-0123456789abcdef0")
        change(ParallelCluster(stack, "Cluster", vpc=vpc, queues=[queue("a", "c7i.large")], security_groups=[group]))
        resources = assertions.Template.from_stack(stack).find_resources("Custom::PclusterCluster")
        [cluster] = resources.values()
        named = json.dumps(cluster["Properties"]["ClusterConfiguration"])
        return dict(
            json.loads(re.sub(r'{"Ref": "(\w+)"}', r'"arn:aws:iam::123456789012:policy/parallelcluster/\1"', named))
        )

    def grow(cluster: ParallelCluster) -> None:
        bucket = s3.Bucket.from_bucket_name(cluster, "Bucket", "my-data")
        bucket.grant_read(cluster.compute_nodes)
        bucket.grant_write(cluster.queue("a"))
        cluster.add_queue(queue("b", "g6.12xlarge"))

    update = parallelcluster.check_update(configuration(lambda cluster: cluster), configuration(grow))

    assert update.allowed, [change for change in update.changes if not change.allowed]
    assert len(update.changes) == len(["policy of the queue", "queue"])
