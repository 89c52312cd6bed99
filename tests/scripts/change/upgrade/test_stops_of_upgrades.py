"""An upgrade and a recovery, interrupted at each step in an account: what exists is what was printed, and no more."""

from __future__ import annotations

import itertools
import re
import shutil
import signal
from pathlib import Path
from typing import IO

import pytest

from config.settings import load
from scripts.change.upgrade.backend import UpgradeBackend
from scripts.check.plan import cdk
from scripts.core import interrupts, options, terminal
from scripts.core.clock import LONGEST_PAUSE, Clock
from scripts.core.errors import ExitCode
from tests.command_line import Call
from tests.deployed import create_stack, update_stack
from tests.scripts.change.upgrade.test_upgrade import OTHER_OS
from tests.scripts.operated import Operated
from tests.scripts.slurm_samples import answer
from tests.scripts.test_stops import FROM_STEP_TO_STEP, Interruption, interrupted, tag_snapshot
from tests.stacks.deployments import Deployment, deploy

HEAD_NODE = f"""
script=$(cat)
case $script in
*'"state": state()'*) echo '{answer()}' ;;
*ultracluster-restore*) touch @/restored; echo "Number of regular files transferred: 1" ;;
*findmnt*) echo fs-1.fsx.us-west-2.amazonaws.com@tcp:/abc ;;
*) sh <<<"$script" ;;
esac
"""
"""The shell of a head node without jobs, that mounts a file system, and notes what it restored."""
WORDS = {"upgrade": ("--set", OTHER_OS), "recover": ()}


FACTS = ("settings", "deploy", "destroy", "restore", "monitoring")
"""Steps after which something else exists."""
PASSING = ("CreateChangeSet", "DeleteChangeSet", "AttachVolume", "DetachVolume", "DeleteVolume")
"""What is done again until it is done whole: a plan, and the copy of a snapshot from the volume made of it."""


class Cdk:
    """The CDK's command line, in this process. Interrupted, it ends, and CloudFormation continues."""

    def __init__(self, account: Operated, directory: Path) -> None:
        self._account = account
        self._directory = directory
        self.work = Interruption("")

    def synthesize(self, name: str, directory: Path) -> None:
        settings = load(Path(f"{name}.yaml"))
        made = self._directory / str(settings.cluster.generation)
        if not made.exists():
            deploy(settings, made)
        shutil.copytree(made, directory)

    def run(self, *words: str, **_: IO[str] | None) -> int:
        interrupts.check()
        assembly = Path(words[words.index("--app") + 1])
        settings = load(options.CONFIG / "trn1-16.yaml")
        stacks = self._account.client("cloudformation").describe_stacks()["Stacks"]
        parts = [part for part in settings.parts if "--all" in words or part != "monitoring"]
        with self.work.ignored():
            for part in parts:
                exists = settings.stack_name(part) in {each["StackName"] for each in stacks}
                (update_stack if exists else create_stack)(self._account.aws, Deployment(settings, assembly), part)
        self.work.changed.append(" ".join(words[:2]))
        if self.work.at("during", lambda: interrupts._remember(signal.SIGINT)):
            return ExitCode.INTERRUPTED
        self.work.at("just after")
        return ExitCode.DONE


def done(account: Operated, folder: Path) -> set[str]:
    """Return the steps that were done, or that AWS continues, by what there is."""
    settings = load(folder / "trn1-16.yaml")
    backend = UpgradeBackend("trn1-16", terminal.console(), Clock(), print)
    stacks = {each["StackName"]: each for each in account.client("cloudformation").describe_stacks()["Stacks"]}
    states = {name: each["StackStatus"] for name, each in stacks.items()}
    holds = {
        "settings": settings.cluster.generation == 2,
        "deploy": states.get("trn1-16-cluster-2", "").endswith("_COMPLETE"),
        "destroy": states.get("trn1-16-cluster", "DELETE_").startswith("DELETE_"),
        "restore": (folder / "restored").exists(),
        "monitoring": backend.metric_sources(settings) == {"trn1-16-2"},
    }
    return {name for name in FACTS if holds[name]}


@pytest.mark.scenario
@pytest.mark.parametrize("command", WORDS)
def test_interrupted_at_each_step_it_does_no_other_and_says_what_was_done(
    command: str, operated: Operated, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each run is interrupted at its first change, so that all of them together get to the end."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "trn1-16.yaml").write_bytes((options.CONFIG / "trn1-16.yaml").read_bytes())
    made = Cdk(operated, tmp_path)
    monkeypatch.setattr(options, "CONFIG", folder)
    monkeypatch.setenv(LONGEST_PAUSE, "0.1")
    monkeypatch.setattr(cdk, "synthesize", made.synthesize)
    monkeypatch.setattr(cdk, "run", made.run)
    operated.shell(HEAD_NODE.replace("@", str(folder)))
    if command == "recover":
        tag_snapshot(operated)
        operated.client("ec2").terminate_instances(InstanceIds=[operated.head_node])
    seen = set[str]()
    for mode in itertools.islice(itertools.cycle(FROM_STEP_TO_STEP[1:]), 25):
        before = done(operated, folder)
        with interrupted(monkeypatch, mode, passing=PASSING) as made.work:
            printed = call(command, "trn1-16", "--confirm", "trn1-16", *WORDS[command])
        changed, after = made.work.changed, done(operated, folder)
        seen |= {each.partition(" ")[0] for each in changed}
        if printed.code == ExitCode.DONE:
            break
        assert printed.code == ExitCode.INTERRUPTED, printed
        assert len(changed) <= 1, (mode, changed)
        said = re.search(r"Done so far: ([\w, ]+)\. What AWS has started continues", printed.error)
        steps = set(said[1].split(", ")) & set(FACTS) if said else set[str]()
        assert steps <= after, (printed, after)
        announced = re.findall(r"^\d+\. (.*)$", printed.output, re.MULTILINE)
        assert len(after - before - steps) <= (1 if announced else 0), (printed, before, after)
    else:
        pytest.fail("it never ended")
    expected = {*FACTS} - ({"restore"} if command == "upgrade" else set())
    assert done(operated, folder) == expected
    assert {"trn1-16.yaml", "deploy", "DeleteStack"} <= seen
