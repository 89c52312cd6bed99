"""The trn1-16 cluster, deployed to an emulated AWS, and changes of its settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from emulator.cdk import CommandLine
from scripts.check.plan import plan
from scripts.check.plan.report import Plan
from tests.deployed import DeployedAccount
from tests.scripts.operated import OperatedClone
from tests.stacks.deployments import deploy, edited
from toolchain.parallelcluster import ParallelCluster

ENVIRONMENT = "trn1-16"
PARTS = ("network", "storage", "cluster", "monitoring")

Edit = Callable[[dict[str, Any]], object]


def unchanged(_: dict[str, Any]) -> None:
    pass


def faster_file_system(settings: dict[str, Any]) -> None:
    settings["storage"]["file_system"]["throughput_mbps_per_tib"] = 500


class DeployedCluster(OperatedClone):
    """An account in which config/trn1-16.yaml is deployed, to be planned for."""

    def __init__(self, account: DeployedAccount, directory: Path) -> None:
        super().__init__(account.clone(), account.synthesized)
        self._directory = directory
        self._parallelcluster = ParallelCluster(self.aws.environment)
        self.cdk = CommandLine(self.aws)

    def act_as(self, environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        super().act_as(environment, monkeypatch)
        monkeypatch.setattr(plan, "ParallelCluster", ParallelCluster)

    def act_as_owner(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give this process all permissions, and the ParallelCluster process that is loaded already."""
        self.act_as(self.cdk.environment, monkeypatch)
        monkeypatch.setattr(plan, "ParallelCluster", lambda _: nullcontext(self._parallelcluster))

    def close(self) -> None:
        self._parallelcluster.stop()
        self.cdk.close()
        self.aws.stop()

    def assembly(self, name: str, edit: Edit) -> tuple[Settings, Path]:
        """Return edited settings, and their assembly, under a name."""
        settings = edited(ENVIRONMENT, edit)
        directory = self._directory / name
        if not directory.exists():
            deploy(settings, directory)
        return settings, directory

    def plan(self, name: str, edit: Edit, *, accepted: bool = False) -> Plan:
        settings, directory = self.assembly(name, edit)
        return plan.plan_of_account(ENVIRONMENT, settings, directory, accepted=accepted)

    def traces(self) -> dict[str, Any]:
        """Return what a plan must not change: statuses, protection and change sets."""
        cloudformation = self.client("cloudformation")
        return {
            stack["StackName"]: (
                stack["StackStatus"],
                stack["EnableTerminationProtection"],
                cloudformation.list_change_sets(StackName=stack["StackName"])["Summaries"],
            )
            for stack in cloudformation.describe_stacks()["Stacks"]
        }
