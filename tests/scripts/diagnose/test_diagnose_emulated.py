"""Diagnoses in an emulated account: of injected faults, and by the command."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from botocore.exceptions import WaiterError

from config.settings import load
from emulator.aws import EmulatedAws
from scripts.command import CONFIG
from scripts.commands import diagnose as command
from scripts.diagnose.diagnose import Diagnosis, diagnose
from tests.deployed import create_stack
from tests.scripts.account import Operated

pytestmark = [pytest.mark.slow, pytest.mark.validation]

_OFTEN = {"Delay": 0.2, "MaxAttempts": 3000}


class Attempts(Operated):
    """A deployment whose stacks are made by hand, to fail and to be made again."""

    def __init__(self, aws: EmulatedAws, directory: Path) -> None:
        super().__init__(aws, load(CONFIG / "trn1-16.yaml"), directory, parts=())

    def make(self, part: str, fault: str = "", target: str = "") -> Diagnosis:
        """Make the stack of a part while a fault is in force, if one is named, and diagnose the deployment."""
        if not fault:
            create_stack(self.aws, self.synthesized, part)
            return diagnose(self.deployment())
        self.aws.inject(fault, target)
        with pytest.raises(WaiterError):
            create_stack(self.aws, self.synthesized, part)
        self.aws.mend()
        return diagnose(self.deployment())

    def delete(self, part: str) -> None:
        """Delete the stack of a part, and the cluster's log groups, whose names are those of a minute.

        Raises:
            WaiterError: It cannot be.
        """
        stack, cloudformation = self.settings.stack_name(part), self.client("cloudformation")
        cloudformation.update_termination_protection(StackName=stack, EnableTerminationProtection=False)
        cloudformation.delete_stack(StackName=stack)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack, WaiterConfig=_OFTEN)
        for group in self.log_groups():
            self.client("logs").delete_log_group(logGroupName=group)

    def log_groups(self) -> list[str]:
        """Return the log groups of the cluster, and of those of its name before it."""
        groups = self.client("logs").describe_log_groups(
            logGroupNamePrefix=f"/aws/parallelcluster/{self.cluster_name}-"
        )
        return [each["logGroupName"] for each in groups["logGroups"]]


@pytest.fixture(scope="module")
def attempts(boto3_data: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attempts]:
    with EmulatedAws() as aws, pytest.MonkeyPatch.context() as monkeypatch:
        made = Attempts(aws, tmp_path_factory.mktemp("attempts"))
        made.act_as(made.environment, monkeypatch)
        yield made


def first(found: Diagnosis) -> str:
    assert found.causes, [each.text for each in found.unknown]
    return found.causes[0].id


def test_the_network(attempts: Attempts) -> None:
    found = attempts.make("network", "quota")
    assert (first(found), found.causes[0].evidence[0].place) == ("address-quota", "trn1-16-network")
    attempts.delete("network")
    assert not attempts.make("network").failed
    assert first(attempts.make("storage", "resource", "AWS::FSx::FileSystem")) == "internal-failure"
    attempts.delete("storage")
    assert not attempts.make("storage").failed


def test_the_cluster(attempts: Attempts) -> None:
    name = attempts.cluster_name
    found = attempts.make("cluster", "capacity")
    assert first(found) == "insufficient-capacity"
    assert found.causes[0].evidence[0].place == name, "the cluster's own stack, which is deleted by now"
    attempts.delete("cluster")

    assert first(attempts.make("cluster", "provider")) == "provider-out-of-time"
    attempts.delete("cluster")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["diagnose", "trn1-16", *arguments])
    return command.main()


def test_the_command(operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch) == 0
    assert "Nothing failed" in capsys.readouterr().out
    operated.log(
        "ip-10-0-1-2.i-0123.slurm_resume", "INFO - hello", "ERROR - (InsufficientInstanceCapacity) trn1:free:[b]"
    )
    assert run(monkeypatch) == 1
    assert "trn1:free:[b]" in capsys.readouterr().out
    assert run(monkeypatch, "--json") == 1
    assert [each["id"] for each in json.loads(capsys.readouterr().out)["causes"]] == ["insufficient-capacity"]
    allowed = {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}
    with operated.aws.restricted({"Version": "2012-10-17", "Statement": [allowed]}) as environment:
        operated.act_as(environment, monkeypatch)
        assert run(monkeypatch) == 1
    assert "ec2:DescribeInstances is not allowed" in capsys.readouterr().out
