"""A second cluster in a clone of the account in which config/trn1-16.yaml is deployed, and what it leads to."""

import json
from typing import Any

from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from tests.emulator.stacks import Stacks

REGION = "us-west-2"
LEFT_ON_AWS = ("/aws/lambda/", "/aws/parallelcluster/", "parallelcluster-")
"""Beginnings of what outlives a cluster: log groups, and ParallelCluster's bucket of the account and Region."""


class Clusters:
    """A stack with nothing but a cluster. Network, file system and provider are those of the first one.

    Attributes:
        properties: What the provider was asked for the first cluster.
    """

    def __init__(self, aws: EmulatedAws) -> None:
        self.aws = aws
        self.stacks = Stacks(aws, REGION)
        events = self.stacks.client.describe_stack_events(StackName="trn1-16-cluster")["StackEvents"]
        [text] = {each["ResourceProperties"] for each in events if each["ResourceType"] == "Custom::PclusterCluster"}
        self.properties: dict[str, Any] = json.loads(text)
        self._before = inventory(aws, REGION)

    def configuration(self) -> dict[str, Any]:
        """Return a copy of the first cluster's configuration."""
        configuration: dict[str, Any] = json.loads(json.dumps(self.properties["ClusterConfiguration"]))
        return configuration

    def changed(self, kill_wait: int, **nodes: Any) -> dict[str, Any]:
        """Return the first cluster's configuration where Slurm has another setting, and nodes have other keys."""
        configuration = self.configuration()
        scheduling = configuration["Scheduling"]
        scheduling["SlurmSettings"]["CustomSlurmSettings"] = [{"KillWait": kill_wait}]
        scheduling["SlurmQueues"][0]["ComputeResources"][0] |= nodes
        return configuration

    def deployed(self) -> dict[str, Any]:
        """Return the configuration that the template of the second cluster has."""
        template = self.stacks.client.get_template(StackName="parent")["TemplateBody"]
        return dict(template["Resources"]["Cluster"]["Properties"]["ClusterConfiguration"])

    def create(self, configuration: dict[str, Any]) -> None:
        self.stacks.create("parent", self._resources(configuration))

    def update(self, configuration: dict[str, Any], **properties: Any) -> None:
        self.stacks.update("parent", self._resources(configuration, **properties))

    def roll_back(self, *skipped: str) -> None:
        """Continue the roll-back of an update, without some resources."""
        self.stacks.client.continue_update_rollback(StackName="parent", ResourcesToSkip=skipped)
        self.stacks.follow("parent")

    def stop_head_node(self) -> None:
        self.aws.client("ec2", REGION).stop_instances(InstanceIds=[self._head_node])

    def start_head_node(self) -> None:
        self.aws.client("ec2", REGION).start_instances(InstanceIds=[self._head_node])

    @property
    def _head_node(self) -> str:
        return str(self.stacks.output("second", "HeadNodeInstanceID"))

    def delete(self) -> None:
        """Delete the cluster; nothing is left of it."""
        stack_id = self.stacks.describe("parent")["StackId"]
        self.stacks.delete("parent")
        assert self.stacks.status(stack_id) == "DELETE_COMPLETE"
        made = inventory(self.aws, REGION) - self._before
        left = [each for each in made if not each[1].startswith(LEFT_ON_AWS)]
        assert not left, left
        logs = self.aws.client("logs", REGION)
        groups = logs.describe_log_groups(logGroupNamePrefix="/aws/parallelcluster/second-")["logGroups"]
        for group in groups:  # its name has the minute: the next cluster may be of the same one
            logs.delete_log_group(logGroupName=group["logGroupName"])

    def _resources(self, configuration: dict[str, Any], **more: Any) -> dict[str, Any]:
        properties = {**self.properties, "ClusterName": "second", "ClusterConfiguration": configuration, **more}
        return {"Cluster": {"Type": "Custom::PclusterCluster", "Properties": properties}}
