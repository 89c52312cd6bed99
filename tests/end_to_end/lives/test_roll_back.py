"""Updates that fail on the head node: what is in force then, and the commands that are printed lead out."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from emulator.faults import FAULTS
from tests.end_to_end.lives.life import END, Deployed, assert_in_order, deployed, rehearse

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system, pytest.mark.validation]

NAME = "trn1-16"
SEEN = {
    # aws/aws-parallelcluster 7203: a node of another queue keeps its configuration
    "stale-node": r"\$ ./ultracluster diagnose dev\n.*?Nodes did not take over the new configuration\n",
    # aws/aws-parallelcluster 7519: Chef gives the script up
    "launch-templates": r"Reading the launch templates took the head node more than 30 seconds\n.*?timed out after 30s",
}
"""What diagnose says, as a pattern; beside it is a public issue whose reporter saw the same on AWS."""
LIMITS = "/etc/security/limits.d"
BREAK = f"mv {LIMITS} {LIMITS}.away && touch {LIMITS}"
"""Lets the script of the head node fail, which writes a file into the directory."""
REPAIR = f"rm {LIMITS} && mv {LIMITS}.away {LIMITS}"


class Updated:
    """A deployment with nodes whose updates may fail."""

    def __init__(self, life: Deployed) -> None:
        self.life = life
        self._good = life.file.with_suffix(".good")

    def change(self, **settings: str) -> None:
        shutil.copy(self.life.file, self._good)
        raw = yaml.safe_load(self.life.file.read_text(encoding="utf-8"))
        raw["cluster"].setdefault("slurm", {})["custom_settings"] = settings
        self.life.file.write_text(yaml.safe_dump(raw), encoding="utf-8")

    def tag(self, **tags: str) -> None:
        raw = yaml.safe_load(self.life.file.read_text(encoding="utf-8"))
        self.life.file.write_text(yaml.safe_dump({**raw, "tags": tags}), encoding="utf-8")

    def take_back(self) -> None:
        shutil.copy(self._good, self.life.file)

    def fails(self) -> str:
        """Deploy, which fails, and return the command that is printed as the way out, as arguments of deploy."""
        said = self.life.run("deploy", NAME, "--yes", code=1)
        assert "before the update is in force" in said
        assert self.stack == "UPDATE_ROLLBACK_FAILED"
        for command in (
            ("status", NAME),
            ("diagnose", NAME),
            ("preflight", NAME, "--only", "stack-names"),
            ("plan", NAME),
        ):
            text = " ".join(self.life.run(*command, code=1).split())
            assert "before the update is in force" in text, command
            assert f"./ultracluster deploy {NAME}" in text, command
        [printed] = set(re.findall(r"`./ultracluster (deploy [\w-]+)`", " ".join(said.split())))
        return str(printed)

    @property
    def stack(self) -> str:
        return self.life.statuses()[f"{NAME}-cluster"]

    def is_healthy(self) -> bool:
        """Whether the state is healthy once the head node has done what it does after an update."""
        return "Healthy." in self.life.stage.ask("status", NAME)


def test_an_update_that_a_node_or_the_head_node_does_not_follow() -> None:
    said = rehearse("dev", faults=SEEN)
    for fault, seen in SEEN.items():
        again = r"continue-update-rollback.*?\$ ./ultracluster deploy dev --yes .*?exit code 0\n"
        assert_in_order((f"A change, while {FAULTS[fault].what}", seen, again), said)
    assert_in_order(END, said)


def test_the_printed_commands_lead_out_of_a_roll_back(
    tmp_path: Path, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    with deployed(tmp_path) as life:
        life.run("bootstrap", NAME)
        life.run("deploy", NAME, "--yes")
        updated = Updated(life)

        updated.change(KillWait="31")  # the script of the head node fails
        life.on_head_node(BREAK)
        way_out = updated.fails().split()
        life.on_head_node(REPAIR)
        assert life.on_head_node("grep -rl 'Failed to execute OnNodeUpdated script' /var/log")
        life.run(*way_out, "--yes")
        assert updated.stack == "UPDATE_COMPLETE"
        wait_for(updated.is_healthy)

        updated.tag(project="bert")  # a resource of ParallelCluster's stack refuses its change, as by a tag policy
        life.aws.inject("resource", "AWS::CloudFormation::WaitCondition")
        way_out = updated.fails().split()
        life.aws.clear_faults()
        life.run(*way_out, "--yes")
        assert updated.stack == "UPDATE_COMPLETE"
        wait_for(updated.is_healthy)

        updated.change(
            JobSubmitPlugins="acme"
        )  # a plugin that is not on the head node: Slurm's controller does not start
        way_out = updated.fails().split()
        assert "trn1" in life.on_head_node("/opt/slurm/bin/sinfo"), "the configuration from before is in force"
        updated.take_back()
        life.run(*way_out, "--yes")
        assert updated.stack == "UPDATE_ROLLBACK_COMPLETE", "there was nothing to change"
        wait_for(updated.is_healthy)
        assert "Note: the last change of" in life.run("status", NAME)


def test_login_nodes_end_before_an_update_has_waited_for_them(
    tmp_path: Path, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    with deployed(tmp_path) as life:

        def login_pool(**settings: int) -> None:
            raw = yaml.safe_load(life.file.read_text(encoding="utf-8"))
            raw["cluster"]["login_nodes"] = [{"name": "login", **settings}]
            life.file.write_text(yaml.safe_dump(raw), encoding="utf-8")

        life.run("bootstrap", NAME)
        login_pool(count=1, grace_minutes=120)
        life.run("deploy", NAME, "--yes")
        login_pool(count=0, grace_minutes=120)
        said = life.run("plan", NAME)
        assert "login pool login goes from 1 to 0 nodes, of which one may take 120 minutes to end" in said
        login_pool(count=1, grace_minutes=10)
        life.run("deploy", NAME, "--yes")
        login_pool(count=0, grace_minutes=10)
        life.run("deploy", NAME, "--yes")
        wait_for(lambda: "Healthy." in life.stage.ask("status", NAME))
