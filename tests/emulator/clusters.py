"""A stack with a cluster in the emulated AWS, and what it leads to."""

import json
import os
import subprocess
import sys
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

from config.settings import load
from emulator.aws import EmulatedAws
from emulator.functions import PCLUSTER_PYTHON
from emulator.inventory import inventory
from scripts.commands.validate import CONFIG
from scripts.validation import prepare
from tests.emulator.stacks import Stacks
from tests.stacks.deployments import deploy
from toolchain.assembly import Assembly

REGION = "us-west-2"
VERSION = "3.16.1"
PROVIDER_URL = (
    f"https://{REGION}-aws-parallelcluster.s3.{REGION}.amazonaws.com/parallelcluster/{VERSION}"
    "/templates/custom_resource/cluster.yaml"
)
LEFT_ON_AWS = ("/aws/lambda/", "/aws/parallelcluster/", "parallelcluster-")
"""Beginnings of what outlives a cluster: log groups, and ParallelCluster's bucket of the account and Region."""


class Clusters:
    """A stack with a cluster, whose network and file system exist already."""

    def __init__(self, aws: EmulatedAws, directory: Path, settings: Path = CONFIG / "trn1-16.yaml") -> None:
        self.aws = aws
        aws.reset()
        loaded = load(settings)
        request = prepare(aws, loaded, Assembly(deploy(loaded, directory).directory))
        self.name, self.configuration = request.name, request.configuration
        self.before = inventory(aws, REGION)
        self.stacks = Stacks(aws, REGION)
        self.ec2 = aws.client("ec2", REGION)

    def template(self, configuration: dict[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
        return {
            "Provider": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": PROVIDER_URL}},
            "Cluster": {
                "Type": "Custom::PclusterCluster",
                "Properties": {
                    "ServiceToken": {"Fn::GetAtt": ["Provider", "Outputs.ServiceToken"]},
                    "ClusterName": self.name,
                    "ClusterConfiguration": configuration or self.configuration,
                    **properties,
                },
            },
        }

    def create(self, configuration: dict[str, Any] | None = None, **properties: Any) -> None:
        attributes = ("clusterStatus", "headNode.instanceId", "headNode.privateIpAddress", "validationMessages")
        outputs = {name.replace(".", ""): {"Value": {"Fn::GetAtt": ["Cluster", name]}} for name in attributes}
        self.stacks.create(
            "parent",
            self.template(configuration, **properties),
            template={"Outputs": outputs},
            Capabilities=["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
            Tags=[{"Key": "team", "Value": "ml"}],
        )
        self.wait()

    def update(self, configuration: dict[str, Any] | None = None, **properties: Any) -> None:
        self.stacks.update(
            "parent",
            self.template(configuration, **properties),
            Capabilities=["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
            Tags=[{"Key": "team", "Value": "ml"}],
        )
        self.wait()

    def wait(self) -> None:
        while self.stacks.status("parent").endswith("_IN_PROGRESS"):
            time.sleep(0.2)

    def delete(self) -> None:
        stack_id = self.stacks.describe("parent")["StackId"]
        self.stacks.delete("parent")
        while self.stacks.status(stack_id) == "DELETE_IN_PROGRESS":
            time.sleep(0.2)
        assert self.stacks.status(stack_id) == "DELETE_COMPLETE"

    def with_max_count(self, count: int) -> dict[str, Any]:
        configuration = deepcopy(self.configuration)
        configuration["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]["MaxCount"] = count
        return configuration

    def failure(self, logical_id: str, status: str) -> str:
        """Return the reason of the last event of this kind."""
        events = reversed(self.stacks.events("parent"))
        return next(reason for each, at, reason in events if (each, at) == (logical_id, status))

    def pcluster(self, *arguments: str) -> Any:
        """Run ParallelCluster's own command line and return its answer."""
        environment = self.aws.environment
        environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        command: list[str | Path] = [PCLUSTER_PYTHON.with_name("pcluster"), *arguments, "--region", REGION]
        answer = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        return json.loads(answer.stdout)

    def instances(self, kind: str = "*") -> list[dict[str, Any]]:
        """Return the instances that run, or those of them that ParallelCluster calls so, such as HeadNode."""
        filters = [
            {"Name": "instance-state-name", "Values": ["running"]},
            {"Name": "tag:parallelcluster:node-type", "Values": [kind]},
        ]
        found = self.ec2.describe_instances(Filters=filters)["Reservations"]
        return [instance for reservation in found for instance in reservation["Instances"]]

    def left_over(self) -> set[tuple[str, str]]:
        return {each for each in inventory(self.aws, REGION) - self.before if not each[1].startswith(LEFT_ON_AWS)}
