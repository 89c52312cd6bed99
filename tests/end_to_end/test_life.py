"""The life of a deployment through the programs: scaled, failed, diagnosed, destroyed, made again."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, WaiterError

from config.settings import Settings, load
from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from scripts import emulate, options
from scripts.clock import Clock
from scripts.deployment import PARTS
from scripts.destroy.stacks import PAUSE
from scripts.emulate import reason_to_stay
from scripts.errors import ExitCode
from scripts.fleet import scaling
from tests.command_line import ultracluster
from tests.deployed import DeployedAccount, create_stack
from tests.emulator.stacks import parameter
from tests.scripts.account import Operated, OperatedClone
from tests.scripts.fleet.fakes import FakeSlurm

pytestmark = [pytest.mark.slow, pytest.mark.validation]

CAPABILITIES = ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]


class Life:
    """A deployment of a copy of config/trn1-16.yaml, and the person who has the programs.

    Attributes:
        operated: The account.
        slurm: Slurm on the head node.
        path: The settings file.
    """

    def __init__(self, operated: Operated, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.operated = operated
        self.path = directory / "config" / "trn1-16.yaml"
        self.path.parent.mkdir()
        shutil.copy(options.CONFIG / "trn1-16.yaml", self.path)
        self.slurm = FakeSlurm(directory / "slurm")
        self.operated.shell(self.slurm.shell)
        self._capsys = capsys

    def create_cluster(self) -> threading.Thread:
        """Start to create the cluster's stack, which fails."""

        def create() -> None:
            with suppress(WaiterError):
                create_stack(self.operated.aws, self.operated.synthesized, "cluster")

        running = threading.Thread(target=create)
        running.start()
        return running

    def deploy(self, _: str, assembly: Path, __: Sequence[str], **___: object) -> int:
        """Update the stacks as the CDK command line does it, but without that."""
        settings = load(self.path)
        for part in PARTS:
            stack = settings.stack_name(part)
            self._update(stack, (assembly / f"{stack}.template.json").read_text(encoding="utf-8"))
        [queue] = settings.cluster.queues
        [resource] = queue.compute_resources
        numbers = range(1, resource.max_count + 1)
        self.slurm.nodes(*(f"trn1|trn1-dy-trn1-32xl-{number}|idle~" for number in numbers))
        return 0

    def update(self, stack: str, **more: Mapping[str, Any]) -> None:
        """Start to update a stack to what it is, and more resources."""
        cloudformation = self.operated.client("cloudformation")
        template = cloudformation.get_template(StackName=stack)["TemplateBody"]
        template = {**template, "Resources": {**template["Resources"], **more}}
        cloudformation.update_stack(StackName=stack, TemplateBody=json.dumps(template), Capabilities=CAPABILITIES)

    def _update(self, stack: str, template: str) -> None:
        cloudformation = self.operated.client("cloudformation")
        try:
            cloudformation.update_stack(StackName=stack, TemplateBody=template, Capabilities=CAPABILITIES)
        except ClientError as error:
            if "No updates are to be performed" not in str(error):
                raise
        else:
            waiter = cloudformation.get_waiter("stack_update_complete")
            waiter.wait(StackName=stack, WaiterConfig={"Delay": 0.2, "MaxAttempts": 3000})

    def call(self, *words: str) -> tuple[int, str]:
        """Run a command, and return its exit code and what it says."""
        code = ultracluster(*words)
        printed = self._capsys.readouterr()
        return code, printed.out + printed.err

    def forget_logs(self) -> None:
        """Delete the cluster's log groups: the next one's name is that of its minute, which may be the same."""
        logs = self.operated.client("logs")
        for each in logs.describe_log_groups(logGroupNamePrefix="/aws/parallelcluster/")["logGroups"]:
            logs.delete_log_group(logGroupName=each["logGroupName"])


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
        for module in (options, scaling):
            monkeypatch.setattr(module, "CONFIG", life.path.parent)
        monkeypatch.setattr("scripts.deploy.deploy", life.deploy)
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


def test_from_a_change_to_the_last_stack(life: Life, hurry: Hurry, aws: EmulatedAws) -> None:
    operated = life.operated
    operated.launch(2)
    assert life.call("fleet", "scale", "trn1-16", "--max", "21", "--no-preflight", "--yes")[0] == ExitCode.DONE
    assert "max_count: 21 " in life.path.read_text(encoding="utf-8")

    life.update("trn1-16-cluster", One=parameter())
    code, text = life.call("status", "trn1-16", "--watch")
    assert code == ExitCode.DONE
    assert "trn1-16: complete after" in text
    assert life.call("diagnose", "trn1-16")[0] == ExitCode.DONE

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

    life.forget_logs()
    operated.aws.inject("head-node")
    running = life.create_cluster()
    code, text = life.call("status", "trn1-16", "--watch")
    running.join()
    assert code == ExitCode.FAILED
    assert "trn1-16-cluster  ROLLBACK_COMPLETE" in text
    assert "Failed to execute OnNodeConfigured script" in text
    assert "The start-up script of a node failed" in text, "what failed is diagnosed"
    operated.aws.clear_faults()
    operated.log("ip-10-0-0-1.i-0a1b.cfn-init", "head_node.sh: failed (20): /fsx is full. To do: make room.")
    code, text = life.call("diagnose", "trn1-16", "--output", "json")
    assert [each["id"] for each in json.loads(text)["causes"][:2]] == ["node-script", "custom-action"]

    everything = ("--all", "--no-final-backup", "--unprotect", "--force", "--sweep", "--confirm", "trn1-16")
    assert life.call("destroy", "trn1-16", *everything)[0] == ExitCode.DONE
    emulate.create_prerequisites(aws, operated.settings)
    emulate.bootstrap(aws, operated.settings)
    assert left(operated.aws, operated.settings) == left(aws, operated.settings)
