"""Monitoring as a construct of any CDK app."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Match, Template

from tests.stacks.small_app import flat
from ultracluster import (
    BudgetSpec,
    ClusterMonitoring,
    ComputeResource,
    InvalidArguments,
    LustreFileSystem,
    NeuronSoftware,
    ParallelCluster,
    Queue,
    SharedStorage,
    UltraClusterNetwork,
)
from ultracluster.monitoring import ALARMS


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    return cdk.Stack(app, "Training", env=cdk.Environment(region="us-west-2"))


def test_a_cluster_and_a_file_system_of_the_app_say_what_is_watched(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    queue = Queue(name="trn1", compute_resources=[ComputeResource(name="trn1-32xl", max_count=2)])
    data = LustreFileSystem(stack, "Data", vpc=vpc, capacity_gib=1200)
    cluster = ParallelCluster(
        stack,
        "Cluster",
        vpc=vpc,
        queues=[queue],
        cluster_name="research",
        shared_storage=[SharedStorage.lustre(data)],
        software=NeuronSoftware(),
    )
    topic = sns.Topic(stack, "Topic")
    ClusterMonitoring(stack, "Monitoring", cluster=cluster, file_system=data, topic=topic, emails=["me@example.com"])

    template = Template.from_stack(stack)
    template.has_resource_properties(
        "AWS::CloudWatch::Alarm",
        {"Dimensions": [{"Name": "Cluster", "Value": "research"}, {"Name": "Queue", "Value": "trn1"}]},
    )
    template.has_resource_properties(
        "AWS::CloudWatch::Alarm",
        {
            "Dimensions": [{"Name": "FileSystemId", "Value": {"Ref": Match.string_like_regexp("^Data")}}],
            "Threshold": 1200 * 1024**3 * 0.15,
        },
    )
    template.resource_count_is("AWS::SNS::Topic", 1)
    [dashboard] = template.find_resources("AWS::CloudWatch::Dashboard").values()
    assert "research" in json.dumps(json.loads(flat(dashboard["Properties"]["DashboardBody"])))


def test_nodes_that_send_no_metrics_have_no_alarms(stack: cdk.Stack) -> None:
    queue = Queue(name="trn1", compute_resources=[ComputeResource(name="trn1-32xl", max_count=2)])
    cluster = ParallelCluster(stack, "Cluster", vpc=ec2.Vpc(stack, "Vpc", max_azs=1), queues=[queue])
    assert ClusterMonitoring(stack, "Monitoring", cluster=cluster).alarms == []
    with pytest.raises(InvalidArguments) as refused:
        ClusterMonitoring(stack, "Alarms", cluster=cluster, node_metrics=True)
    assert [each.path for each in refused.value.violations] == [("node_metrics",), ("alarm_prefix",)]
    with pytest.raises(ValueError, match="metric_name: got 'QueueDepth'; allowed: NeuronCoreUtilization, "):
        cluster.metric("QueueDepth")


def test_invalid_arguments_are_named_together(stack: cdk.Stack) -> None:
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
    cluster = ParallelCluster.from_cluster_attributes(stack, "Cluster", cluster_name="research")
    data = LustreFileSystem.from_lustre_file_system_attributes(
        stack, "Data", file_system_id="fs-0123456789abcdef0", security_group=group
    )
    with pytest.raises(InvalidArguments) as refused:
        ClusterMonitoring(stack, "Monitoring", cluster=cluster, file_system=data, file_system_full_percent=100)
    assert [each.path for each in refused.value.violations] == [
        ("file_system_full_percent",),
        ("file_system_capacity_gib",),
    ]
    size = cdk.Size.mebibytes(100)
    with pytest.raises(InvalidArguments, match=r"file_system_capacity_gib: got .* a whole number of gibibytes$"):
        ClusterMonitoring(stack, "Monitoring", cluster=cluster, file_system=data, file_system_capacity_gib=size)
    assert stack.node.try_find_child("Monitoring") is None


def test_names_of_queues_and_alarms_are_those_that_there_are(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    queue = Queue(name="trn1", compute_resources=[ComputeResource(name="trn1-32xl", max_count=2)])
    data = LustreFileSystem(stack, "Data", vpc=vpc)
    budget = BudgetSpec(monthly_usd=5000.0, max_usd_per_hour=100.0)
    cluster = ParallelCluster(
        stack,
        "Cluster",
        vpc=vpc,
        queues=[queue],
        shared_storage=[SharedStorage.lustre(data)],
        software=NeuronSoftware(budget=budget),
    )
    network = UltraClusterNetwork(stack, "Network", zone_id="usw2-az4")
    advice = {each: f"Do {each}." for each in (*ALARMS, "UncorrectableErrors-trn1")}
    watched: dict[str, Any] = {"cluster": cluster, "file_system": data, "network": network, "budget": budget}
    ClusterMonitoring(stack, "Monitoring", **watched, advice=advice)
    with pytest.raises(InvalidArguments) as refused:
        ClusterMonitoring(stack, "Other", **watched, alarm_prefix="a", queues=["trn2"], advice={"NodesDraned": "x"})
    told = [(each.path, each.allowed) for each in refused.value.violations]
    assert [path for path, _ in told] == [("queues", 0), ("advice", "NodesDraned")]
    assert told[0][1] == "trn1"
    assert all(each in told[1][1] for each in ALARMS)
    for metric in (cluster.metric_core_utilization, cluster.metric_nodes_reporting):
        with pytest.raises(ValueError, match="no queue 'trn2'; there are: trn1"):
            metric("trn2")

    alarms = Template.from_stack(stack).find_resources("AWS::CloudWatch::Alarm").values()
    described = {each["Properties"]["AlarmName"]: each["Properties"]["AlarmDescription"] for each in alarms}
    assert {name.removeprefix("Training-") for name in described} == advice.keys()
    assert all(flat(text).endswith(advice[name.removeprefix("Training-")]) for name, text in described.items())


def test_a_budget_that_nothing_would_tell_of_is_refused(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    queue = Queue(name="trn1", compute_resources=[ComputeResource(name="trn1-32xl", max_count=2)])
    storage = [SharedStorage.lustre(LustreFileSystem(stack, "Data", vpc=vpc))]
    budget, low = BudgetSpec(monthly_usd=5000.0), BudgetSpec(monthly_usd=5.0)

    def cluster(software: NeuronSoftware) -> ParallelCluster:
        arguments: dict[str, Any] = {"vpc": vpc, "queues": [queue], "shared_storage": storage, "software": software}
        return ParallelCluster(stack, f"Cluster{len(stack.node.children)}", **arguments)

    for wrong, place in (
        (NeuronSoftware(budget=budget, metrics=False), ("software", "metrics")),
        (NeuronSoftware(budget=low), ("software", "budget", "monthly_usd")),
    ):
        with pytest.raises(InvalidArguments) as refused:
            cluster(wrong)
        assert [each.path for each in refused.value.violations] == [place]
    for software, reason in (
        (NeuronSoftware(), "counts no costs without NeuronSoftware"),
        (NeuronSoftware(metrics=False), "without node_metrics nothing tells"),
    ):
        with pytest.raises(InvalidArguments, match=f"  budget: got a budget; .*{reason}"):
            ClusterMonitoring(stack, "Monitoring", cluster=cluster(software), budget=budget)
    ClusterMonitoring(stack, "Monitoring", cluster=cluster(NeuronSoftware(budget=budget)), budget=budget)
