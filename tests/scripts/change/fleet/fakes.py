"""A fake of Slurm on a head node, and of a cluster whose time passes when something sleeps."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from scripts.account import compute_fleet
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import Answer
from scripts.change.fleet import control as fleet
from scripts.change.fleet import scaling
from scripts.core.clock import Clock
from scripts.core.errors import HeadNodeError
from scripts.core.options import CONFIG
from tests.scripts.slurm_samples import answer

_SHELL = """\
cd {0}
script=$(cat)
case $script in
*" spending "*) runuser() {{ shift 2; "$@"; }}; eval "$script" ;;
*/spending/*) eval "$script" ;;
*"scontrol update"*) PATH=$PWD:$PATH bash -c "$script" ;;
*) cat answer ;;
esac
"""
_SCONTROL = """\
#!/bin/bash
cd {0}
echo "scontrol $*" >>commands
[ ! -e refuses ] || {{ echo 'slurm_update error: Invalid user id' >&2; exit 1; }}
queue=${{2#PartitionName=}} state=${{3#State=}}
sed -i 's/"'"$queue"'":"[a-z]*"/"'"$queue"'":"'"${{state,,}}"'"/' answer
"""


class FakeSlurm:
    """Slurm on a head node: it prints what the test says, and records the commands that it gets."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        (directory / "commands").touch()
        (directory / "scontrol").write_text(_SCONTROL.format(directory), encoding="utf-8")
        (directory / "scontrol").chmod(0o755)
        self._written: dict[str, Any] = {}
        self.queues(trn1="up")
        self.nodes("trn1|trn1-dy-trn1-32xl-1|idle+powered_down")
        self.jobs()

    @property
    def shell(self) -> str:
        """The shell of a head node with this Slurm: its input is a script."""
        return _SHELL.format(self.directory)

    def queues(self, **states: str) -> None:
        self._write(queues=states)

    def nodes(self, *lines: str) -> None:
        nodes: dict[str, dict[str, Counter[str]]] = {}
        for queue, name, state in (line.split("|") for line in lines):
            kind = name.rpartition("-")[0].removeprefix(f"{queue}-")
            nodes.setdefault(queue, {}).setdefault(kind, Counter())[state] += 1
        self._write(nodes=nodes)

    def jobs(self, *states: str) -> None:
        listed = [[i, "alice", "trn1", state, 4, "1:00", "None", "bert"] for i, state in enumerate(states, start=11)]
        counts = [[count, "trn1", state] for state, count in Counter(states).items()]
        self._write(jobs=listed[:40], counts=counts)

    def refuse(self) -> None:
        (self.directory / "refuses").touch()

    @property
    def states(self) -> list[str]:
        return [f"{queue}|{state}" for queue, state in self._now["queues"].items()]

    @property
    def commands(self) -> list[str]:
        return (self.directory / "commands").read_text(encoding="utf-8").splitlines()

    @property
    def _now(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads((self.directory / "answer").read_text(encoding="utf-8"))["state"]
        return state

    def _write(self, **changed: Any) -> None:
        self._written.update(changed)
        queues = self._now["queues"] if (self.directory / "answer").exists() else {}  # what was set since stays
        (self.directory / "answer").write_text(answer(**{"queues": queues, **self._written}), encoding="utf-8")
        self._written.pop("queues", None)


class FakeCluster(Clock):
    """A cluster's compute nodes, its record in DynamoDB and its head node; time passes when something sleeps."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slurm = FakeSlurm(directory / "slurm")
        self.status = compute_fleet.RUNNING
        self.nodes = 16
        self.terminating = 1_000_000  # with each sleep once the fleet stops
        self.requests: list[str] = []
        self.said: list[str] = []
        self.error: Exception | None = None  # of the head node
        self.ask_error: Exception | None = None  # of AWS
        self.ticks: dict[int, Callable[[], object]] = {}  # what happens with a sleep, by its number from 1
        self.sleeps = 0
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self.deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
        self.deployment.account = self  # type: ignore[assignment]
        monkeypatch.setattr("scripts.account.operations.check", lambda _: [])
        monkeypatch.setattr(fleet, "request", self._request)
        for module in (fleet, scaling):
            monkeypatch.setattr(module, "HeadNode", lambda *_: self)

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self.sleeps += 1
        self.ticks.get(self.sleeps, lambda: None)()
        self.follow()

    def at(self, tick: int, **attributes: Any) -> None:
        """Set attributes when something sleeps for the tick-th time."""
        self.ticks[tick] = lambda: self.__dict__.update(attributes)

    def follow(self) -> None:
        """Do what clustermgtd and EC2 do meanwhile."""
        next_status = {"STOP_REQUESTED": "STOPPING", "STOPPING": "STOPPED", "START_REQUESTED": "STARTING"}
        self.status = {**next_status, "STARTING": "RUNNING"}.get(self.status, self.status)
        if self.status in compute_fleet.STOP_STATUSES:
            self.nodes = max(self.nodes - self.terminating, 0)

    def stop(self, **options: Any) -> None:
        fleet.stop(self.deployment, clock=self, say=self.said.append, **options)

    def start(self, **options: Any) -> None:
        fleet.start(self.deployment, clock=self, say=self.said.append, **options)

    def drain(self, **options: Any) -> None:
        fleet.drain(self.deployment, clock=self, say=self.said.append, **options)

    def forget(self) -> None:
        """As the account does: there is nothing to forget."""

    def ask(self, service: str, operation: str, **_: Any) -> dict[str, Any]:
        assert (service, operation) == ("dynamodb", "get_item")
        if self.ask_error:
            raise self.ask_error
        return {"Item": {"Data": {"M": {"status": {"S": self.status}}}}}

    find = ask

    def list(self, service: str, operation: str, **_: Any) -> list[dict[str, Any]]:
        assert (service, operation) == ("ec2", "describe_instances")
        state = "running" if self.status in compute_fleet.START_STATUSES else "shutting-down"
        tags = [{"Key": "parallelcluster:node-type", "Value": "Compute"}]
        nodes = [{"InstanceId": f"i-{n:017x}", "State": {"Name": state}, "Tags": tags} for n in range(self.nodes)]
        head_node = {"Tags": [{"Key": "parallelcluster:node-type", "Value": "HeadNode"}]}
        return [{"Instances": [head_node, *nodes]}]

    def run(self, script: str, **_: Any) -> Answer:
        if self.error:
            raise self.error
        done = subprocess.run(
            ["bash", "-c", self.slurm.shell], input=script, capture_output=True, text=True, check=False, timeout=30
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def _request(self, _: Deployment, wanted: str) -> None:
        self.requests.append(wanted)
        self.status = wanted


SILENCE = HeadNodeError("The head node did not answer")
