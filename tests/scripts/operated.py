"""A deployment in an emulated account, for tests of commands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from emulator.aws import EmulatedAws
from scripts.account.deployment import Deployment
from scripts.account.remote import nodes
from scripts.emulated import accounts
from tests.deployed import create_stacks
from tests.stacks import deployments


class Operated:
    """An account in which a configuration is deployed.

    Attributes:
        aws: The emulated AWS, its own.
        settings: Those of the deployment.
        synthesized: What was deployed.
    """

    def __init__(self, aws: EmulatedAws, settings: Settings, directory: Path) -> None:
        self.aws = aws
        self.settings = settings
        self.synthesized = deployments.deploy(settings, directory)
        accounts.create_prerequisites(aws, settings)
        accounts.bootstrap(aws, settings)
        create_stacks(aws, self.synthesized)

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of a user of the deployment, whose calls are counted."""
        return self.aws.settings_of_user

    def act_as(self, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)

    def client(self, service: str) -> Any:
        """Return a client of the deployment's Region with all permissions."""
        return self.aws.client(service, self.settings.region)

    def deployment(self) -> Deployment:
        """Return the deployment, with nothing fetched yet."""
        return Deployment(self.settings.name, self.settings)

    @property
    def cluster_name(self) -> str:
        return self.settings.cluster_spec.name

    @property
    def head_node(self) -> str:
        [instance_id] = [
            each["InstanceId"]
            for each in self.deployment().nodes()
            if {"Key": "parallelcluster:node-type", "Value": "HeadNode"} in each["Tags"]
        ]
        return str(instance_id)

    def head_node_stream(self, kind: str) -> str:
        """Return the name of the head node's log stream of a kind, such as ``slurmctld``."""
        [head] = [each for each in nodes.list_present(self.deployment()) if each.name == nodes.HEAD_NODE]
        return f"{head.prefix}{kind}"

    @property
    def log_group(self) -> str:
        groups = self.client("logs").describe_log_groups(logGroupNamePrefix=f"/aws/parallelcluster/{self.cluster_name}")
        [name] = [each["logGroupName"] for each in groups["logGroups"]]
        return str(name)

    def launch(self, count: int) -> list[str]:
        """Launch compute nodes as ParallelCluster does, by the cluster's launch template, and return their ids."""
        template = {"LaunchTemplateName": f"{self.cluster_name}-trn1-trn1-32xl", "Version": "$Latest"}
        launched = self.client("ec2").run_instances(LaunchTemplate=template, MinCount=count, MaxCount=count)
        return [str(each["InstanceId"]) for each in launched["Instances"]]

    def log(self, stream: str, *messages: str, group: str | None = None) -> None:
        """Write events into a log stream, a millisecond apart, the last one now.

        Args:
            stream: Its name, such as ``ip-10-0-1-2.i-0123.slurmctld``; it is created if there is none.
            messages: The messages of the events.
            group: The log group; None: that of the cluster.
        """
        logs, group = self.client("logs"), group or self.log_group
        if not logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=stream)["logStreams"]:
            logs.create_log_stream(logGroupName=group, logStreamName=stream)
        started = int(datetime.now(UTC).timestamp() * 1000) - len(messages)
        events = [{"timestamp": started + number, "message": text} for number, text in enumerate(messages)]
        logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)

    def shell(self, program: str) -> None:
        """Have a bash program answer each command that Systems Manager sends to a node: the script is on its input."""
        self.aws.set_shell(program)

    def calls(self) -> list[str]:
        """Return the calls of this process since the last time, such as ``ec2:DescribeInstances``."""
        return self.aws.calls()

    def set_fleet(self, status: str) -> None:
        item = {"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": {"status": {"S": status}}}}
        self.client("dynamodb").put_item(TableName=f"parallelcluster-{self.cluster_name}", Item=item)


class OperatedClone(Operated):
    """A clone of an account in which a configuration is deployed."""

    def __init__(self, aws: EmulatedAws, synthesized: deployments.Deployment) -> None:
        self.aws = aws
        self.settings = synthesized.settings
        self.synthesized = synthesized
