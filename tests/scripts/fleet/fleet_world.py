"""A fleet in a world of its own, whose time passes as tests like, and a stand-in for Slurm's programs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from scripts.clock import Clock
from scripts.command import CONFIG
from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.remote.head_node import Answer, HeadNodeError

_SINFO = """\
case "$*" in
*'%R|%a'*) cat {0}/queues ;;
*'%R|%N|%T'*) cat {0}/nodes ;;
*list-reasons*) ;;
*) sed 's/.*/&/; s/|/|idle|1|/' {0}/queues ;;
esac
"""
_SQUEUE = """\
case "$*" in
*--states=all*) cut -d'|' -f3,4 {0}/jobs ;;
*--states=PENDING*) grep PENDING {0}/jobs || true ;;
*) grep -v PENDING {0}/jobs || true ;;
esac
"""
_SCONTROL = """\
echo "$@" >>{0}/commands
if [ -e {0}/refuses ]; then echo 'slurm_update error: Invalid user id' >&2; exit 1; fi
queue=${{2#PartitionName=}} state=${{3#State=}}
sed -i "s/^$queue|.*/$queue|${{state,,}}/" {0}/queues
"""


class Slurm:
    """Slurm's programs, which tell what files say, and write down what they are told.

    Attributes:
        directory: Of the files.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "bin").mkdir(parents=True)
        for name, text in (("sinfo", _SINFO), ("squeue", _SQUEUE), ("scontrol", _SCONTROL)):
            program = directory / "bin" / name
            program.write_text(f"#!/bin/bash\n{text.format(directory)}", encoding="utf-8")
            program.chmod(0o755)
        self.queues(trn1="up")
        self.nodes("trn1|trn1-dy-trn1-32xl-1|idle~")
        self.jobs()

    @property
    def shell(self) -> str:
        """What stands for the shell of a head node with these programs."""
        return f"PATH={self.directory}/bin:$PATH exec bash -s"

    def queues(self, **states: str) -> None:
        """Have queues in these states."""
        self._write("queues", [f"{name}|{state}" for name, state in states.items()])

    def nodes(self, *lines: str) -> None:
        """Have nodes: QUEUE|NAME|STATE."""
        self._write("nodes", lines)

    def jobs(self, *states: str) -> None:
        """Have jobs in these states."""
        lines = [f"{i}|alice|trn1|{state}|4|1:00|None|bert" for i, state in enumerate(states, start=11)]
        self._write("jobs", lines)

    def refuse(self) -> None:
        """Let scontrol fail from now on."""
        self._write("refuses", [])

    def lose_nodes(self) -> None:
        """Let sinfo fail when it is asked for nodes, and for nothing else."""
        (self.directory / "nodes").unlink()

    @property
    def states(self) -> list[str]:
        """The queues and their states."""
        return (self.directory / "queues").read_text(encoding="utf-8").splitlines()

    @property
    def commands(self) -> list[str]:
        """What scontrol was told."""
        path = self.directory / "commands"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []

    def _write(self, name: str, lines: tuple[str, ...] | list[str]) -> None:
        (self.directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


class World(Clock):
    """A cluster's compute nodes, its record in DynamoDB and its head node; time passes when somebody sleeps.

    Attributes:
        deployment: Which looks at this world.
        status: That of the fleet.
        nodes: How many compute nodes there are that are not terminated.
        terminating: How many are gone with each sleep once the fleet stops.
        requests: What ParallelCluster was asked for.
        said: What was told.
        slurm: Slurm on the head node.
        reachable: Whether the head node answers.
        ticks: What happens with a sleep, by its number from 1.
    """

    def __init__(self, slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slurm = slurm
        self.status = fleet.RUNNING
        self.nodes = 16
        self.terminating = 1_000_000
        self.requests: list[str] = []
        self.said: list[str] = []
        self.reachable = True
        self.ticks: dict[int, Callable[[], object]] = {}
        self.sleeps = 0
        self._now = datetime(2026, 1, 1, tzinfo=UTC)
        self.deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
        self.deployment.account = self  # type: ignore[assignment]
        monkeypatch.setattr(fleet, "request", self._request)
        monkeypatch.setattr(fleet, "HeadNode", self._head_node)

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)
        self.sleeps += 1
        self.ticks.get(self.sleeps, lambda: None)()
        self.follow()

    def follow(self) -> None:
        """Do what clustermgtd and EC2 do meanwhile."""
        if self.status == "STOPPING":
            self.status = "STOPPED"
        if self.status in ("STOP_REQUESTED", "STARTING"):
            self.status = {"STOP_REQUESTED": "STOPPING", "STARTING": "RUNNING"}[self.status]
        elif self.status == "START_REQUESTED":
            self.status = "STARTING"
        if self.status in fleet.STOP_STATUSES:
            self.nodes = max(self.nodes - self.terminating, 0)

    def stop(self, **options: Any) -> None:
        """Stop the fleet."""
        fleet.stop(self.deployment, clock=self, say=self.said.append, **options)

    def start(self, **options: Any) -> None:
        """Start the fleet."""
        fleet.start(self.deployment, clock=self, say=self.said.append, **options)

    def drain(self, **options: Any) -> None:
        """Drain the fleet."""
        fleet.drain(self.deployment, clock=self, say=self.said.append, **options)

    def forget(self) -> None:
        """As the account does: there is nothing to forget."""

    def ask(self, service: str, operation: str, **_: Any) -> dict[str, Any]:
        """Answer what the fleet's status is."""
        assert (service, operation) == ("dynamodb", "get_item")
        return {"Item": {"Data": {"M": {"status": {"S": self.status}}}}}

    def list(self, service: str, operation: str, **_: Any) -> list[dict[str, Any]]:
        """Answer which instances there are."""
        assert (service, operation) == ("ec2", "describe_instances")
        state = "running" if self.status in fleet.START_STATUSES else "shutting-down"
        tags = [{"Key": "parallelcluster:node-type", "Value": "Compute"}]
        nodes = [{"InstanceId": f"i-{n:017x}", "State": {"Name": state}, "Tags": tags} for n in range(self.nodes)]
        head_node = {"Tags": [{"Key": "parallelcluster:node-type", "Value": "HeadNode"}]}
        return [{"Instances": [head_node, *nodes]}]

    def run(self, script: str) -> Answer:
        """Run a script as the head node would."""
        if not self.reachable:
            raise HeadNodeError("The head node did not answer")
        done = subprocess.run(
            ["bash", "-c", self.slurm.shell], input=script, capture_output=True, text=True, check=False, timeout=30
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def _head_node(self, *_: object) -> World:
        return self

    def _request(self, _: Deployment, wanted: str) -> None:
        self.requests.append(wanted)
        self.status = wanted
