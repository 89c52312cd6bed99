"""Accounts in which deployments are destroyed, clocks, and interruptions."""

import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.client import BaseClient

from config.settings import load
from emulator.aws import EmulatedAws
from scripts.account.deployment import Deployment
from scripts.change.destroy import stacks as destroy_stacks
from scripts.change.fleet import control as fleet
from scripts.core.clock import Clock
from scripts.core.options import CONFIG

_READING = ("Describe", "Get", "Head", "List", "SendCommand")  # the last asks Slurm for its jobs


class FastClock(Clock):
    """A clock on which a moment passes for any sleep.

    Args:
        moment: Seconds that a sleep takes; operations in the emulated AWS take about as long.
    """

    def __init__(self, moment: float = 0.1) -> None:
        self._moment = moment
        self._ahead = timedelta()

    def now(self) -> datetime:
        return super().now() + self._ahead

    def sleep(self, seconds: float) -> None:
        time.sleep(self._moment)
        self._ahead += timedelta(seconds=seconds)


class KilledError(BaseException):
    pass


class Killer:
    """Kills the work of this process at each kind of point once.

    After a call that changes something in AWS; after the request to stop the fleet, which ParallelCluster makes in a
    process of its own; and in a long wait, after the first check: waits of one interval are of one kind.

    Attributes:
        calls: The calls that changed something.
        points: Where it killed.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.points: list[str] = []

    @contextmanager
    def at_work(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[FastClock]:
        """Kill what is done meanwhile; yield the clock for it."""
        call, request = BaseClient._make_api_call, fleet.request
        kill = self._kill

        def deadly(client: BaseClient, operation: str, parameters: Mapping[str, Any]) -> Any:
            answer = call(client, operation, parameters)
            if not operation.startswith(_READING):
                self.calls.append(operation)
                kill(operation)
            return answer

        def requested(deployment: Deployment, wanted: str) -> None:
            request(deployment, wanted)
            kill(wanted)

        class Mortal(FastClock):
            def until(self, condition: Callable[[], bool], *, every: float, limit: float) -> bool:
                is_true = condition()
                if limit > 900:
                    kill(f"check every {every:.0f} s")
                return is_true or super().until(condition, every=every, limit=limit)

        with monkeypatch.context() as patch:
            patch.setattr(BaseClient, "_make_api_call", deadly)
            patch.setattr(fleet, "request", requested)
            yield Mortal()

    def _kill(self, point: str) -> None:
        if point not in self.points:
            self.points.append(point)
            raise KilledError(point)


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        return True


class Account:
    """An account in which a test creates the stacks of config/trn1-16.yaml that it needs."""

    def __init__(self, aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            monkeypatch.delenv(name)
        for name, value in aws.settings.items():
            monkeypatch.setenv(name, value)
        self.aws = aws
        self.deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
        self.said: list[str] = []

    def client(self, service: str) -> Any:
        return self.aws.client(service, self.deployment.settings.region)

    def create(self, name: str, *, protected: bool = False, description: str = "-", **resources: Any) -> dict[str, str]:
        """Create a stack, and return the physical ids of its resources."""
        self.client("cloudformation").create_stack(
            StackName=name,
            TemplateBody=json.dumps({"Description": description, "Resources": resources}),
            Capabilities=["CAPABILITY_NAMED_IAM"],
            EnableTerminationProtection=protected,
        )
        waiter = self.client("cloudformation").get_waiter("stack_create_complete")
        waiter.wait(StackName=name, WaiterConfig={"Delay": 0.1, "MaxAttempts": 600})
        self.deployment.account.forget()
        return self.deployment.physical_ids(name)

    def create_network(self, name: str) -> dict[str, str]:
        vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.8.0.0/16"}}
        subnet = {"Type": "AWS::EC2::Subnet", "Properties": {"CidrBlock": "10.8.0.0/24", "VpcId": {"Ref": "Vpc"}}}
        return self.create(name, Vpc=vpc, Subnet=subnet)

    def delete(self, name: str, clock: FastClock, *, unprotect: bool = False) -> None:
        """Delete a stack as a destruction does it."""
        destroy_stacks.delete(self.deployment, name, clock=clock, say=self.said.append, unprotect=unprotect)
