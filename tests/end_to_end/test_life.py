"""What the programs say of a deployment whose update fails, and whose destruction is interrupted."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings
from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from scripts.change.destroy.stacks import PAUSE
from scripts.core.clock import Clock
from scripts.core.errors import ExitCode
from scripts.emulated import accounts
from scripts.emulated.accounts import reason_to_stay
from tests.command_line import ultracluster
from tests.deployed import DeployedAccount
from tests.emulator.stacks import parameter
from tests.scripts.change.fleet.fakes import FakeSlurm
from tests.scripts.operated import Operated, OperatedClone

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.validation]

CAPABILITIES = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


class Life:
    """A deployment of config/trn1-16.yaml, and the person who has the programs.

    Attributes:
        operated: The account.
        slurm: Slurm on the head node.
    """

    def __init__(self, operated: Operated, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.operated = operated
        self.slurm = FakeSlurm(directory / "slurm")
        self.operated.shell(self.slurm.shell)
        self._capsys = capsys

    def update(self, stack: str, **more: Mapping[str, Any]) -> None:
        """Start to update a stack to what it is, and more resources."""
        cloudformation = self.operated.client("cloudformation")
        template = cloudformation.get_template(StackName=stack)["TemplateBody"]
        template = {**template, "Resources": {**template["Resources"], **more}}
        cloudformation.update_stack(StackName=stack, TemplateBody=json.dumps(template), Capabilities=CAPABILITIES)

    def call(self, *words: str) -> tuple[int, str]:
        """Run a command, and return its exit code and what it says."""
        code = ultracluster(*words)
        printed = self._capsys.readouterr()
        return code, printed.out + printed.err


def left(aws: EmulatedAws, settings: Settings) -> Counter[str]:
    """Return how many resources of each type there are, but for what AWS, too, leaves on purpose."""
    resources = inventory(aws, settings.region)
    return Counter(kind for kind, name in resources if not reason_to_stay(settings, kind, name))


@pytest.fixture
def life(
    deployed: Callable[[str], DeployedAccount],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Life]:
    account = deployed("trn1-16")
    with account.clone() as clone:
        life = Life(OperatedClone(clone, account.synthesized), tmp_path, capsys)
        life.operated.act_as(life.operated.environment, monkeypatch)
        monkeypatch.setattr("rich.console.Console.width", 80)
        yield life


class Hurry:
    """Cuts all waits short.

    Attributes:
        interrupted: Seconds of a wait in which there is Ctrl-C; None: there is none.
    """

    interrupted: float | None = None

    def sleep(self, seconds: float) -> None:
        if seconds == self.interrupted:
            raise KeyboardInterrupt
        time.sleep(min(seconds, 0.1))


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> Hurry:
    hurry = Hurry()
    monkeypatch.setattr(Clock, "sleep", lambda _, seconds: hurry.sleep(seconds))
    return hurry


def test_from_an_update_to_the_last_stack(life: Life, hurry: Hurry, aws: EmulatedAws) -> None:
    operated = life.operated
    operated.launch(2)
    life.update("trn1-16-cluster", One=parameter())
    code, text = life.call("status", "trn1-16", "--watch")
    assert code == ExitCode.DONE
    assert "trn1-16: complete after" in text
    operated.log(operated.head_node_stream("clustermgtd"), "alive")  # it was launched when the first test began
    code, text = life.call("diagnose", "trn1-16")
    assert code == ExitCode.DONE, text

    operated.aws.inject("resource", "Two")
    life.update("trn1-16-cluster", Two=parameter())
    code, text = life.call("status", "trn1-16", "--watch")
    assert code == ExitCode.FAILED
    assert "trn1-16-cluster  UPDATE_ROLLBACK_COMPLETE" in text
    operated.aws.clear_faults()
    code, text = life.call("diagnose", "trn1-16")
    assert code == ExitCode.FAILED
    assert "AWS failed without saying why" in text

    assert life.call("fleet", "stop", "trn1-16")[0] == ExitCode.DONE
    operated.aws.inject("stopping")
    hurry.interrupted = PAUSE
    assert life.call("destroy", "trn1-16", "--confirm", "trn1-16", "--force")[0] == ExitCode.INTERRUPTED
    hurry.interrupted = None
    operated.aws.clear_faults()
    code, text = life.call("diagnose", "trn1-16")
    assert code == ExitCode.FAILED
    assert "Instances still stop in the placement group" in text
    assert life.call("destroy", "trn1-16", "--confirm", "trn1-16", "--force", "--sweep")[0] == ExitCode.DONE

    everything = ("--all", "--no-final-backup", "--unprotect", "--force", "--sweep", "--confirm", "trn1-16")
    assert life.call("destroy", "trn1-16", *everything)[0] == ExitCode.DONE
    accounts.create_prerequisites(aws, operated.settings)
    accounts.bootstrap(aws, operated.settings)
    assert left(operated.aws, operated.settings) == left(aws, operated.settings)
