"""What AWS's APIs say of a deployment, compared with its settings and templates."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from config.settings import Settings
from emulator.aws import EmulatedAws
from tests.stacks.deployments import PARTS

ROOT = Path(__file__).parents[2]
NODE_SCRIPTS = ROOT / "nodes"
RUNNER = ROOT / "constructs" / "ultracluster" / "run_bundle.sh"


class Deployed:
    """A deployment, as AWS's APIs show it."""

    def __init__(self, aws: EmulatedAws, settings: Settings) -> None:
        self.settings = settings
        self.cluster_name = self.settings.cluster_spec.name
        self._aws = aws

    def client(self, service: str) -> Any:
        return self._aws.client(service, self.settings.region)

    def stacks(self) -> dict[str, dict[str, Any]]:
        return {stack["StackName"]: stack for stack in self.client("cloudformation").describe_stacks()["Stacks"]}

    def summary(self, part: str) -> dict[str, Any]:
        """Return what a stack tells scripts: network, storage, cluster or monitoring."""
        outputs = self.stacks()[self.settings.stack_name(part)]["Outputs"]
        [text] = [each["OutputValue"] for each in outputs if each["OutputKey"] == "Summary"]
        return dict(json.loads(text))

    def stored(self) -> dict[str, Any]:
        """Return the configuration that ParallelCluster keeps of the cluster."""
        parameters = {
            each["ParameterKey"]: each["ParameterValue"] for each in self.stacks()[self.cluster_name]["Parameters"]
        }
        key = f"{parameters['ArtifactS3RootDirectory']}/configs/cluster-config.yaml"
        return dict(yaml.safe_load(self.content(f"s3://{parameters['ResourcesS3Bucket']}/{key}")))

    def content(self, address: str) -> bytes:
        """Return the object at an S3 address."""
        bucket, _, key = address.removeprefix("s3://").partition("/")
        return bytes(self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())


def check_deployment(deployment: Deployed) -> None:
    stacks = deployment.stacks()
    statuses = [stacks[deployment.settings.stack_name(part)]["StackStatus"] for part in PARTS]
    assert statuses == ["CREATE_COMPLETE"] * len(PARTS)
    check_configuration(deployment)
    check_summary(deployment)
    check_scripts(deployment)
    check_monitoring(deployment, [])


def check_configuration(deployment: Deployed) -> None:
    """The references between stacks have arrived in what ParallelCluster keeps."""
    stored, summary, cluster = deployment.stored(), deployment.summary("cluster"), deployment.settings.cluster_spec
    [storage] = stored["SharedStorage"]
    assert storage["FsxLustreSettings"]["FileSystemId"] == summary["file_system_id"]
    assert stored["HeadNode"]["Networking"]["SubnetId"] in (summary["public_subnet_id"], summary["private_subnet_id"])
    for queue, expected in zip(stored["Scheduling"]["SlurmQueues"], cluster.queues, strict=True):
        assert queue["Networking"]["SubnetIds"] == [summary["private_subnet_id"]]
        counts = [int(each["MaxCount"]) for each in queue["ComputeResources"]]
        assert counts == [each.max_count for each in expected.compute_resources]


def check_summary(deployment: Deployed) -> None:
    """What the cluster's stack tells scripts exists, and is as the settings want it."""
    settings, summary = deployment.settings, deployment.summary("cluster")
    ec2, fsx = deployment.client("ec2"), deployment.client("fsx")
    subnets = ec2.describe_subnets(SubnetIds=[summary["public_subnet_id"], summary["private_subnet_id"]])["Subnets"]
    assert [each["AvailabilityZoneId"] for each in subnets] == [settings.zone_id] * 2
    assert {each["VpcId"] for each in subnets} == {summary["vpc_id"]}
    [gateway] = ec2.describe_nat_gateways()["NatGateways"]
    assert (gateway["State"], gateway["SubnetId"]) == ("available", summary["public_subnet_id"])

    [system] = fsx.describe_file_systems(FileSystemIds=[summary["file_system_id"]])["FileSystems"]
    assert (system["Lifecycle"], system["SubnetIds"]) == ("AVAILABLE", [summary["private_subnet_id"]])
    assert system["StorageCapacity"] == settings.storage.file_system.capacity_gib
    assert system["LustreConfiguration"]["MountName"] == summary["mount_name"]

    [reservation] = ec2.describe_instances(InstanceIds=[summary["head_node_instance_id"]])["Reservations"]
    [head_node] = reservation["Instances"]
    expected = settings.cluster.head_node
    assert (head_node["State"]["Name"], head_node["InstanceType"]) == ("running", expected.instance_type)
    assert head_node["PrivateIpAddress"] == summary["head_node_private_ip"]
    assert head_node["SubnetId"] == summary["public_subnet_id" if expected.public else "private_subnet_id"]
    groups = ec2.describe_placement_groups()["PlacementGroups"]
    assert {(each["GroupName"], each["Strategy"]) for each in groups} == {
        (name, "cluster") for name in summary["placement_groups"].values()
    }


def check_monitoring(deployment: Deployed, emails: Sequence[str]) -> None:
    summary, sns = deployment.summary("monitoring"), deployment.client("sns")
    cloudwatch = deployment.client("cloudwatch")
    alarms = cloudwatch.describe_alarms(AlarmNamePrefix=summary["alarm_prefix"])["MetricAlarms"]
    assert all(alarm["AlarmActions"] == [summary["topic_arn"]] for alarm in alarms)
    dimensions = {each["Name"]: each["Value"] for alarm in alarms for each in alarm["Dimensions"]}
    [gateway] = deployment.client("ec2").describe_nat_gateways()["NatGateways"]
    assert dimensions["Cluster"] == deployment.cluster_name
    assert dimensions["FileSystemId"] == deployment.summary("storage")["file_system_id"]
    assert dimensions["NatGatewayId"] == gateway["NatGatewayId"]
    body = cloudwatch.get_dashboard(DashboardName=summary["dashboard"])["DashboardBody"]
    assert dimensions["FileSystemId"] in json.dumps(json.loads(body))
    subscriptions = sns.list_subscriptions_by_topic(TopicArn=summary["topic_arn"])["Subscriptions"]
    assert [each["Endpoint"] for each in subscriptions] == list(emails)


def check_scripts(deployment: Deployed) -> None:
    """What was uploaded is what nodes fetch: the runner, and the scripts of this project."""
    configuration = deployment.stored()
    for node in (configuration["HeadNode"], *configuration["Scheduling"]["SlurmQueues"]):
        action = node["CustomActions"].get("OnNodeUpdated") or node["CustomActions"]["OnNodeConfigured"]
        address, _, entry, *_ = action["Args"]
        assert deployment.content(action["Script"]) == RUNNER.read_bytes()
        with zipfile.ZipFile(io.BytesIO(deployment.content(address))) as bundle:
            assert {name: bundle.read(name) for name in bundle.namelist()} == {
                str(path.relative_to(NODE_SCRIPTS)): path.read_bytes()
                for path in NODE_SCRIPTS.rglob("*")
                if path.is_file() and "__pycache__" not in path.parts
            }
            assert entry in bundle.namelist()
