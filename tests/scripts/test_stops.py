"""A stop is a stop: after a signal no command changes anything, whatever becomes of the exception that it raises."""

from __future__ import annotations

import io
import itertools
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.client import BaseClient

from config import edit
from config.edit import set_values
from scripts import main
from scripts.account import deployment
from scripts.account.deployment import Account
from scripts.change.image import build as images
from scripts.check.plan import cdk
from scripts.core import interrupts, options
from scripts.core.clock import LONGEST_PAUSE
from scripts.core.errors import ExitCode
from scripts.core.interrupts import Terminated, changing, check, listening, stopped, uninterrupted
from scripts.core.options import ROOT
from tests.command_line import Call, leaves
from tests.scripts.operated import Operated
from tests.scripts.slurm_samples import IDLE, shell
from toolchain.parallelcluster import DryRun, ParallelCluster
from ultracluster.domain.names import SNAPSHOT_TAG

STOPS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
WITHOUT_AWS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


def lose(number: int = signal.SIGINT) -> None:
    """Have a signal arrive where its exception goes nowhere: in the end of something like an answer of urllib3."""

    class Answer(io.IOBase):
        def close(self) -> None:
            signal.raise_signal(number)

    answer = Answer()
    del answer


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of operations that AWS is asked for, and answers."""
    made: list[str] = []
    for name, value in WITHOUT_AWS.items():
        monkeypatch.setenv(name, value)

    def call(_: object, operation: str, __: object) -> dict[str, Any]:
        made.append(operation)
        return {}

    monkeypatch.setattr(BaseClient, "_make_api_call", call)
    return made


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Signals as a terminal's programs have them: in the background, a shell has them ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in STOPS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOPS)
def test_after_a_signal_that_was_lost_aws_is_only_read(number: signal.Signals, calls: list[str]) -> None:
    ec2 = Account("us-west-2").client("ec2")
    with listening():
        lose(number)
        ec2.describe_instances()
        with pytest.raises(KeyboardInterrupt) as raised:
            ec2.terminate_instances(InstanceIds=["i-1"])
        with uninterrupted():
            ec2.delete_volume(VolumeId="vol-1")
        with pytest.raises(KeyboardInterrupt):
            ec2.terminate_instances(InstanceIds=["i-1"])
    assert calls == ["DescribeInstances", "DeleteVolume"]
    assert main.exit_code_of(raised.value) == STOPS[number]
    assert stopped() is None


def test_every_operation_that_may_change_something_counts_as_one() -> None:
    account = Account("us-west-2")
    named = {
        operation
        for service in ("cloudformation", "dynamodb", "ec2", "efs", "fsx", "iam", "logs", "rds", "s3", "ssm", "sts")
        for operation in account.client(service).meta.service_model.operation_names
    }
    with listening():
        lose()
        let_through = set()
        for each in named:
            try:
                with changing(each):
                    let_through.add(each)
            except KeyboardInterrupt:
                pass
    verbs = ("Create", "Delete", "Put", "Terminate", "Start", "Stop", "Send", "Run", "Modify", "Update", "Execute")
    assert not [each for each in let_through if each.startswith(verbs)]
    assert {"DescribeStacks", "GetItem", "ListObjectsV2", "HeadObject", "FilterLogEvents"} <= let_through


def test_a_change_is_not_cut_off_and_its_answer_is_recorded_before_the_stop(
    calls: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    answer, recorded = BaseClient._make_api_call, list[str]()

    def interrupted(client: BaseClient, operation: str, parameters: Mapping[str, Any]) -> Any:
        if operation == "CreateVolume":
            signal.raise_signal(signal.SIGINT)
        return answer(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", interrupted)
    ec2 = Account("us-west-2").client("ec2")
    with listening():
        ec2.create_volume(AvailabilityZone="us-west-2a")
        recorded.append("a volume")
        with pytest.raises(KeyboardInterrupt):
            ec2.describe_volumes()
    assert (calls, recorded) == (["CreateVolume"], ["a volume"])
    assert "the same again stops now" in capfd.readouterr().err


def test_a_signal_just_after_a_change_waits_until_that_is_recorded(calls: list[str]) -> None:
    ec2, recorded = Account("us-west-2").client("ec2"), list[str]()
    with listening():
        ec2.create_volume(AvailabilityZone="us-west-2a")
        signal.raise_signal(signal.SIGINT)
        recorded.append("a volume")
        with pytest.raises(KeyboardInterrupt):
            ec2.describe_volumes()
    assert (calls, recorded) == (["CreateVolume"], ["a volume"])


@pytest.mark.usefixtures("calls")
def test_the_second_signal_ends_a_change_at_once() -> None:
    with listening(), changing("CreateVolume"):
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)


def test_a_signal_during_what_was_promised_is_honoured_after_it(calls: list[str]) -> None:
    ec2 = Account("us-west-2").client("ec2")
    with listening():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            ec2.describe_volumes()
            ec2.delete_volume(VolumeId="vol-1")
        with pytest.raises(KeyboardInterrupt):
            ec2.describe_volumes()
        ec2.describe_volumes()  # once raised, it is for clean-up to look at what there is
    assert calls == ["DescribeVolumes", "DeleteVolume", "DescribeVolumes"]


def test_no_program_is_started_after_one_that_got_the_signal(tmp_path: Path) -> None:
    program = f"import os; os.kill(os.getppid(), {int(signal.SIGINT)})"
    with listening():
        assert interrupts.run([sys.executable, "-c", program], tmp_path) == 0
        with pytest.raises(KeyboardInterrupt):
            interrupts.run(["touch", "started"], tmp_path)
        with pytest.raises(KeyboardInterrupt):
            check()
    assert not (tmp_path / "started").exists()


def test_clients_of_aws_come_from_the_session_that_honours_signals() -> None:
    reading = {"check/estimate/prices.py", "check/preflight/images.py"}  # prices, and an anonymous client
    sources = {path.relative_to(ROOT / "scripts").as_posix(): path for path in (ROOT / "scripts").rglob("*.py")}
    using = {name for name, path in sources.items() if "import boto3" in path.read_text(encoding="utf-8")}
    assert using == {"account/deployment.py"} | reading


# --- commands ---


def tag_snapshot(operated: Operated) -> None:
    """Make a snapshot of an earlier head node."""
    ec2, tags = operated.client("ec2"), [{"Key": SNAPSHOT_TAG, "Value": operated.settings.name}]
    volume = ec2.create_volume(AvailabilityZone=f"{operated.settings.region}a", Size=50)["VolumeId"]
    ec2.create_snapshot(VolumeId=volume, TagSpecifications=[{"ResourceType": "snapshot", "Tags": tags}])


CHANGING: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "bootstrap": ((), False),
    "deploy": (("--yes",), False),
    "destroy": (("--confirm", "trn1-16", "--all", "--unprotect", "--force"), True),
    "env create": ((str(ROOT / "requirements.txt"),), False),
    "env remove": (("a.env-0123456789ab",), False),
    "fleet scale": (("--max", "4", "--yes", "--no-preflight"), True),
    "fleet start": ((), True),
    "fleet stop": (("--yes", "--force"), True),
    "image build": (("--yes",), False),
    "jobs cancel": (("12", "--yes"), False),
    "pipeline deploy": ((), False),
    "recover": (("--confirm", "trn1-16"), False),
    "restore": ((), True),
    "runs export": (("/fsx/runs/a", "/fsx/models/a"), False),
    "submit": (("--nodes", "1", "--output", "/fsx/runs/a"), False),
    "upgrade": (("--confirm", "trn1-16", "--anyway"), True),
}
"""Words with which each command changes something, and whether it asks Slurm before, which is allowed here."""


@contextmanager
def observed(monkeypatch: pytest.MonkeyPatch, *, asks_slurm: bool) -> Iterator[tuple[list[str], list[str]]]:
    """Yield what is changed meanwhile, and what was refused for a signal."""
    changed, refused = list[str](), list[str]()
    call, interruption, reading = BaseClient._make_api_call, interrupts._interruption, interrupts._READING
    read = (*reading, *(["SendCommand"] if asks_slurm else []))

    def observe(client: BaseClient, operation: str, parameters: Mapping[str, Any]) -> Any:
        if not operation.startswith(read):
            changed.append(operation)
        return call(client, operation, parameters)

    def refuse(number: int) -> KeyboardInterrupt:
        refused.append(str(number))
        return interruption(number)

    def started(words: Sequence[str], **more: Any) -> subprocess.Popen[str]:
        changed.append(words[0])
        return subprocess.Popen(["true"], **more)

    def write(path: Path, *values: Any) -> None:
        if path.parent == options.CONFIG:
            changed.append(path.name)
        else:  # a candidate
            set_values(path, *values)

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", observe)
        patch.setattr(interrupts, "_READING", read)
        patch.setattr(interrupts, "_interruption", refuse)
        patch.setattr(interrupts, "subprocess", SimpleNamespace(Popen=started, PIPE=subprocess.PIPE))
        patch.setattr(edit, "set_values", write)
        patch.setattr(ParallelCluster, "update_compute_fleet", lambda *_: changed.append("fleet"))
        yield changed, refused


def test_the_table_has_every_command_that_changes_something() -> None:
    """`prove` starts these, and none after a signal: tests/scripts/rehearse/prove/test_walk.py."""
    assert {name for name, command in leaves() if getattr(command, "is_changing", False)} == {*CHANGING, "prove"}


def test_no_command_changes_anything_after_a_signal_that_was_lost(
    operated: Operated, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    operated.shell(shell(IDLE))
    tag_snapshot(operated)
    monkeypatch.setenv(LONGEST_PAUSE, "0.2")
    start = main.cli.main

    def interrupted(*arguments: Any, **more: Any) -> Any:
        lose()
        return start(*arguments, **more)

    def synthesize(_: str, directory: Path) -> None:
        shutil.copytree(operated.synthesized.directory, directory)

    monkeypatch.setattr(main.cli, "main", interrupted)
    monkeypatch.setattr(cdk, "synthesize", synthesize)
    monkeypatch.setattr(images, "EmulatedAws", lambda: nullcontext(operated.aws))
    monkeypatch.setattr(images, "ParallelCluster", lambda _: nullcontext())
    monkeypatch.setattr(images, "validate", lambda *_: DryRun(accepted=True, messages=(), reason=""))
    for name, (words, asks_slurm) in CHANGING.items():
        operated.set_fleet("STOPPED" if name == "fleet start" else "RUNNING")
        with observed(monkeypatch, asks_slurm=asks_slurm) as (changed, refused):
            printed = call(*name.split(), *([] if name == "pipeline deploy" else ["trn1-16"]), *words)
        assert printed.code == ExitCode.INTERRUPTED, (name, printed)
        assert changed == [], name
        assert len(refused) > 0, f"{name} came to nothing that changes something: {printed}"
        assert "Traceback" not in printed.error, name


# --- each step of a command ---

STEPS: Mapping[str, tuple[str, ...]] = {
    "destroy": ("--confirm", "trn1-16", "--all", "--unprotect", "--force"),
    "fleet stop": ("--yes", "--force"),
}
FROM_STEP_TO_STEP = ("lost before", "during", "just after")


class Interruption:
    """Ctrl-C, sent once at the first change.

    Attributes:
        mode: When, one of `FROM_STEP_TO_STEP`.
        changed: All changes, and what they concern.
    """

    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.changed: list[str] = []
        self._is_sent = False
        self.is_ignored = False

    def at(self, mode: str, how: Callable[[], object] = lambda: signal.raise_signal(signal.SIGINT)) -> bool:
        """Send it, if this is the time; return whether it is."""
        is_time = mode == self.mode and not self._is_sent and not self.is_ignored
        if is_time:
            self._is_sent = True
            how()
        return is_time

    @contextmanager
    def ignored(self) -> Iterator[None]:
        """Let what is done meanwhile count as no change: it is another program's."""
        self.is_ignored = True
        yield
        self.is_ignored = False


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, mode: str, *, passing: Sequence[str] = ()) -> Iterator[Interruption]:
    """Send Ctrl-C once at the first change: of AWS but for some operations, of the fleet, of a settings file."""
    work = Interruption(mode)
    call, guarded = BaseClient._make_api_call, deployment._Interruptible._make_api_call
    update_fleet = ParallelCluster.update_compute_fleet

    def changes(operation: str) -> bool:
        return not operation.startswith((*interrupts._READING, "SendCommand", *passing))

    def within(client: BaseClient, operation: str, parameters: Mapping[str, Any]) -> Any:
        work.at("lost before", lose)
        answer = call(client, operation, parameters)
        if changes(operation) and not work.is_ignored:
            work.changed.append(f"{operation} {parameters} {answer}")
            work.at("during")
        return answer

    def around(self: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        answer = guarded(self, operation, parameters)
        if changes(operation):
            work.at("just after")
        return answer

    def of_fleet(*arguments: Any) -> None:
        update_fleet(*arguments)
        work.changed.append("STOP_REQUESTED")
        _ = work.at("during") or work.at("just after")

    def write(path: Path, *values: Any) -> None:
        set_values(path, *values)
        if path.parent == options.CONFIG:  # no candidate
            work.changed.append(path.name)
            _ = work.at("during") or work.at("just after")

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", within)
        patch.setattr(deployment._Interruptible, "_make_api_call", around)
        patch.setattr(ParallelCluster, "update_compute_fleet", of_fleet)
        patch.setattr(edit, "set_values", write)
        yield work


@pytest.mark.parametrize("name", STEPS)
def test_interrupted_at_each_step_it_does_no_other_and_says_what_was_done(
    name: str, operated: Operated, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run is interrupted at its first change, so that all of them together get to the end."""
    operated.shell(shell(IDLE))
    operated.launch(2)
    monkeypatch.setenv(LONGEST_PAUSE, "0.1")
    operations = set[str]()
    for mode in itertools.islice(itertools.cycle(FROM_STEP_TO_STEP), 200):
        before = stacks(operated)
        with interrupted(monkeypatch, mode) as work:
            printed = call(*name.split(), "trn1-16", *STEPS[name])
        changed = work.changed
        operations |= {each.partition(" ")[0] for each in changed}
        if printed.code == ExitCode.DONE:
            assert (mode, changed) != ("lost before", [])
            break
        assert printed.code == ExitCode.INTERRUPTED, printed
        assert len(changed) == (0 if mode == "lost before" else 1), (mode, changed)
        said = " ".join((printed.output + printed.error).split())
        for each in re.findall(r"\b(?:backup|snap)-[0-9a-f]{8,}", " ".join(changed)):
            assert each in said
        assert "The same command continues where it stopped." in said or name != "destroy"
        left = stacks(operated)
        for stack in before - left:
            assert re.search(rf"(Deleted in|AWS continues to delete)[^.]*\b{stack}\b", said), (stack, said)
    else:
        pytest.fail("it never ended")
    assert "STOP_REQUESTED" in operations
    if name == "destroy":
        assert {"CreateSnapshot", "CreateBackup", "DeleteStack", "UpdateTerminationProtection"} <= operations
        assert stacks(operated) == set()


def stacks(operated: Operated) -> set[str]:
    """Return the names of the deployment's own stacks of which nothing is deleted; others go with them."""
    listed = operated.client("cloudformation").describe_stacks()["Stacks"]
    there = {each["StackName"] for each in listed if not each["StackStatus"].startswith("DELETE_")}
    return there & {operated.settings.stack_name(part) for part in operated.settings.parts}
