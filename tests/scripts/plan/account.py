"""The trn1-16 cluster, deployed to an emulated AWS, and changes of its settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from emulator.aws import EmulatedAws
from emulator.cdk import CommandLine
from scripts import emulated
from scripts.plan import plan
from scripts.plan.model import Plan
from tests.deployed import create_stacks
from tests.stacks.deployments import Deployment, deploy, edited
from toolchain.parallelcluster import ParallelCluster

ENVIRONMENT = "trn1-16"
REGION = "us-west-2"
PARTS = ("network", "storage", "cluster", "monitoring")

Edit = Callable[[dict[str, Any]], object]


def unchanged(_: dict[str, Any]) -> None:
    """Leave the settings as they are."""


def compute_resource(settings: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = settings["cluster"]["queues"][0]["compute_resources"][0]
    return found


def file_system(settings: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = settings["storage"]["file_system"]
    return found


class DeployedCluster:
    """An account in which config/trn1-16.yaml is deployed."""

    def __init__(self, aws: EmulatedAws, directory: Path) -> None:
        self.aws = aws
        self._directory = directory
        self._parallelcluster = ParallelCluster(aws.environment)
        self.cdk = CommandLine(aws)
        settings, directory = self.assembly("deployed", unchanged)
        emulated.create_prerequisites(aws, settings)
        assert self.cdk.bootstrap(REGION) == 0
        create_stacks(aws, Deployment(settings, directory))

    def act_as(self, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        """Give this process the credentials of an environment."""
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(plan, "ParallelCluster", ParallelCluster)

    def act_as_owner(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give this process credentials that may do everything, and ParallelCluster's code as it is loaded already."""
        self.act_as(self.cdk.environment, monkeypatch)
        monkeypatch.setattr(plan, "ParallelCluster", lambda _: nullcontext(self._parallelcluster))

    def close(self) -> None:
        """Give up what runs for it."""
        self._parallelcluster.stop()
        self.cdk.close()

    def client(self, service: str) -> Any:
        return self.aws.client(service, REGION)

    def assembly(self, name: str, edit: Edit) -> tuple[Settings, Path]:
        """Return edited settings, and their assembly, under a name."""
        settings = edited(ENVIRONMENT, edit)
        directory = self._directory / name
        if not directory.exists():
            deploy(settings, directory)
        return settings, directory

    def plan(self, name: str, edit: Edit, *, accepted: bool = False) -> Plan:
        """Return the change plan of edited settings."""
        settings, directory = self.assembly(name, edit)
        return plan.plan_of_account(ENVIRONMENT, settings, directory, accepted=accepted)

    def traces(self) -> dict[str, Any]:
        """Return what looking must not change: statuses, protection and change sets."""
        cloudformation = self.client("cloudformation")
        return {
            stack["StackName"]: (
                stack["StackStatus"],
                stack["EnableTerminationProtection"],
                cloudformation.list_change_sets(StackName=stack["StackName"])["Summaries"],
            )
            for stack in cloudformation.describe_stacks()["Stacks"]
        }

    def set_fleet(self, status: str) -> None:
        """Have the cluster's fleet in a status."""
        self.client("dynamodb").put_item(
            TableName=f"parallelcluster-{ENVIRONMENT}",
            Item={"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": {"status": {"S": status}}}},
        )
