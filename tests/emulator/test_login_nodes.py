"""A cluster with login nodes: they stand behind a load balancer, stay through an update, and go with the cluster."""

from collections.abc import Callable

import pytest

from tests.deployed import DeployedAccount
from tests.emulator.clusters import REGION, Clusters

pytestmark = [pytest.mark.validation, pytest.mark.slow]


def test_login_nodes(
    deployed: Callable[[str], DeployedAccount], wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    with deployed("trn1-16").clone() as aws:
        clusters = Clusters(aws)
        configuration = clusters.configuration()
        head_node = configuration["HeadNode"]
        pool = {
            "Name": "login",
            "Count": 2,
            "InstanceType": head_node["InstanceType"],
            "Networking": {"SubnetIds": [head_node["Networking"]["SubnetId"]]},
            "GracetimePeriod": 3,
        }
        configuration["LoginNodes"] = {"Pools": [pool]}

        def login_nodes() -> set[str]:
            tagged = {"Name": "tag:parallelcluster:node-type", "Values": ["LoginNode"]}
            running = {"Name": "instance-state-name", "Values": ["running"]}
            answer = aws.client("ec2", REGION).describe_instances(Filters=[tagged, running])
            return {each["InstanceId"] for reservation in answer["Reservations"] for each in reservation["Instances"]}

        clusters.create(configuration)
        assert clusters.stacks.status("parent") == "CREATE_COMPLETE"
        before = login_nodes()
        assert len(before) == 2
        configuration["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"] = 20
        clusters.update(configuration)
        assert clusters.stacks.status("parent") == "UPDATE_COMPLETE"
        assert login_nodes() == before
        pool["Count"] = 0
        clusters.update(configuration)
        groups = aws.client("autoscaling", REGION).describe_auto_scaling_instances()["AutoScalingInstances"]
        assert {each["LifecycleState"] for each in groups} == {"Terminating:Wait"}, "they run on for the grace time"
        wait_for(lambda: not login_nodes())
        targets = aws.client("elbv2", REGION)
        [group] = targets.describe_target_groups()["TargetGroups"]
        health = targets.describe_target_health(TargetGroupArn=group["TargetGroupArn"])["TargetHealthDescriptions"]
        states = {each["TargetHealth"]["State"] for each in health}
        assert not states & {"healthy", "unhealthy"}, "ParallelCluster counts these as nodes that run"
        clusters.delete()
