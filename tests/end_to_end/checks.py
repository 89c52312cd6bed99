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

    def outputs(self, part: str) -> dict[str, str]:
        """Return the outputs of a stack: network, storage, cluster or monitoring."""
        outputs = self.stacks()[self.settings.stack_name(part)]["Outputs"]
        return {each["OutputKey"]: each["OutputValue"] for each in outputs}

    def subnets(self) -> tuple[str, str]:
        """Return the ids of the public and the private subnet, which are all that the VPC has."""
        network = self.outputs("network")
        vpc = {"Name": "vpc-id", "Values": [network["VpcId"]]}
        listed = {each["SubnetId"] for each in self.client("ec2").describe_subnets(Filters=[vpc])["Subnets"]}
        [public] = listed - {network["PrivateSubnetId"]}
        return public, network["PrivateSubnetId"]

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
    check_resources(deployment)
    check_scripts(deployment)
    check_monitoring(deployment, [])


def check_configuration(deployment: Deployed) -> None:
    """The references between stacks have arrived in what ParallelCluster keeps."""
    stored, cluster, (public, private) = deployment.stored(), deployment.settings.cluster_spec, deployment.subnets()
    [storage] = stored["SharedStorage"]
    assert storage["FsxLustreSettings"]["FileSystemId"] == deployment.outputs("storage")["FileSystemId"]
    assert stored["HeadNode"]["Networking"]["SubnetId"] in (public, private)
    for queue, expected in zip(stored["Scheduling"]["SlurmQueues"], cluster.queues, strict=True):
        assert queue["Networking"]["SubnetIds"] == [private]
        counts = [int(each["MaxCount"]) for each in queue["ComputeResources"]]
        assert counts == [each.max_count for each in expected.compute_resources]


def check_resources(deployment: Deployed) -> None:
    """What the outputs name exists, and is as the settings want it."""
    settings, (public, private) = deployment.settings, deployment.subnets()
    ec2, fsx = deployment.client("ec2"), deployment.client("fsx")
    subnets = ec2.describe_subnets(SubnetIds=[public, private])["Subnets"]
    assert [each["AvailabilityZoneId"] for each in subnets] == [settings.zone_id] * 2
    [gateway] = ec2.describe_nat_gateways()["NatGateways"]
    assert (gateway["State"], gateway["SubnetId"]) == ("available", public)

    [system] = fsx.describe_file_systems(FileSystemIds=[deployment.outputs("storage")["FileSystemId"]])["FileSystems"]
    assert (system["Lifecycle"], system["SubnetIds"]) == ("AVAILABLE", [private])
    assert system["StorageCapacity"] == settings.storage.file_system.capacity_gib

    head_node_id = deployment.outputs("cluster")["HeadNodeInstanceId"]
    [reservation] = ec2.describe_instances(InstanceIds=[head_node_id])["Reservations"]
    [head_node] = reservation["Instances"]
    expected = settings.cluster.head_node
    assert (head_node["State"]["Name"], head_node["InstanceType"]) == ("running", expected.instance_type)
    assert head_node["SubnetId"] == (public if expected.public else private)
    groups = ec2.describe_placement_groups()["PlacementGroups"]
    assert {(each["GroupName"], each["Strategy"]) for each in groups} == {
        (queue["Networking"]["PlacementGroup"]["Name"], "cluster")
        for queue in deployment.stored()["Scheduling"]["SlurmQueues"]
        if "PlacementGroup" in queue["Networking"]
    }


def check_monitoring(deployment: Deployed, emails: Sequence[str]) -> None:
    outputs, sns = deployment.outputs("monitoring"), deployment.client("sns")
    cloudwatch = deployment.client("cloudwatch")
    prefix = f"{deployment.settings.stack_name('monitoring')}-"
    alarms = cloudwatch.describe_alarms(AlarmNamePrefix=prefix)["MetricAlarms"]
    assert all(alarm["AlarmActions"] == [outputs["AlarmTopic"]] for alarm in alarms)
    dimensions = {each["Name"]: each["Value"] for alarm in alarms for each in alarm["Dimensions"]}
    [gateway] = deployment.client("ec2").describe_nat_gateways()["NatGateways"]
    assert dimensions["Cluster"] == deployment.cluster_name
    assert dimensions["FileSystemId"] == deployment.outputs("storage")["FileSystemId"]
    assert dimensions["NatGatewayId"] == gateway["NatGatewayId"]
    body = cloudwatch.get_dashboard(DashboardName=outputs["Dashboard"].rpartition("/")[2])["DashboardBody"]
    assert dimensions["FileSystemId"] in json.dumps(json.loads(body))
    subscriptions = sns.list_subscriptions_by_topic(TopicArn=outputs["AlarmTopic"])["Subscriptions"]
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
