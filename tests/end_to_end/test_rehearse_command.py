"""`./ultracluster rehearse` shows each step, and its exit code says whether all succeeded."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from config.settings import load
from emulator.aws import EmulatedAws
from emulator.faults import FAULTS
from scripts.core import options
from scripts.emulated import accounts
from scripts.emulated.accounts import Account
from scripts.rehearse.life import too_many
from scripts.rehearse.rehearsal import Rehearsal
from scripts.rehearse.stage import Ran, Relay, Stage
from tests.command_line import ultracluster
from tests.configurations import CONFIG
from toolchain.parallelcluster import PYTHON

ROOT = Path(__file__).parents[2]
STEPS = ("prepare", "deploy", "show", "change", "change_rejected", "destroy")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., int]:
    """Return a function that runs the command and gives its exit code."""

    def main(*arguments: str) -> int:
        monkeypatch.setattr(options, "BUILD", tmp_path)
        return ultracluster("rehearse", *arguments)

    return main


@pytest.fixture
def without_stacks(monkeypatch: pytest.MonkeyPatch, aws: EmulatedAws) -> None:
    """Let the steps that take long do nothing."""
    for step in STEPS:
        monkeypatch.setattr(Rehearsal, step, lambda *_, **__: None)
    monkeypatch.setattr(accounts, "account", lambda *_, **__: nullcontext(Account(aws, machines=False)))


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("dev-network |  0/23 | 10:33:29 PM | CREATE_IN_PROGRESS | AWS::EC2::VPC | Network/Vpc (Network) ", None),
        (
            "dev-network | 1/23 | 10:33:29 PM | UPDATE_ROLLBACK_COMPLET | AWS::EC2::VPC | Network/Vpc",
            f"UPDATE_ROLLBACK_COMPLETE  {'AWS::EC2::VPC':37}  Network/Vpc",
        ),
        ("dev-network: start: Building dev-network Template", None),
        ("dev-network: the stack does not exist yet: 22 resources are added", ...),
        ("  ❌  dev-network failed", ...),
    ],
)
def test_of_what_the_cdk_prints_results_are_shown(line: str, shown: object) -> None:
    assert Relay()(line) == (line if shown is ... else shown)


def test_long_sections_of_a_plan_are_in_the_log_only() -> None:
    lines = [
        "Cluster dev: created",
        "IAM, security groups and the like",
        "  + Allow s3:GetObject",
        "",
        "Nothing blocks",
    ]
    relay = Relay()
    assert [each for each in map(relay, lines) if each] == ["Cluster dev: created", "Nothing blocks"]


@pytest.mark.parametrize(
    ("nodes", "static", "complaint"),
    [
        (2, 0, ""),
        (16, 0, ""),
        (17, 0, "--nodes: got 17; allowed: 1 to 16, max_count of trn1-32xl"),
        (2, 8, ""),
        (2, 9, "the settings keep 9 nodes running (min_count), and 8 run on this computer at once; pass --nodes 9"),
        (9, 9, ""),
    ],
)
def test_how_many_nodes_run_here(nodes: int, static: int, complaint: str) -> None:
    settings = load(CONFIG / "trn1-16.yaml")
    resource = settings.cluster.queues[0].compute_resources[0]
    resource = resource.model_copy(update={"min_count": static})
    queue = settings.cluster.queues[0].model_copy(update={"compute_resources": [resource]})
    cluster = settings.cluster.model_copy(update={"queues": [queue]})
    why = too_many(settings.model_copy(update={"cluster": cluster}), nodes)
    assert why.startswith(complaint)
    assert bool(why) == bool(complaint)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nowhere"], "got nowhere; allowed: files in config/"),
        (["dev", "--fault", "fire"], f"got fire; allowed: {', '.join(FAULTS)}"),
        (["dev", "--fault", "resource"], "resource takes a logical id or a resource type after a colon"),
        (["dev", "--fault", "warning:Nobody"], "got Nobody; allowed: AmiOsCompatibleValidator, "),
        (["dev", "--fault", "quota", "--fault", "provider"], "got quota and provider; allowed: one of the deployment"),
        (["dev", "--nodes", "3"], "--nodes: got 3; allowed: 1 to 2, max_count of trn1-32xl"),
    ],
)
def test_what_cannot_be_rehearsed(
    arguments: list[str], complaint: str, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.usefixtures("without_stacks")
def test_what_is_left_behind_is_named(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget_something(running: Rehearsal, **_: bool) -> None:
        ec2 = running.aws.client("ec2", "us-west-2")
        ec2.create_placement_group(GroupName="forgotten", Strategy="cluster")
        running.aws.client("logs", "us-west-2").create_log_group(logGroupName="/aws/lambda/dev-f")

    monkeypatch.setattr(Rehearsal, "destroy", forget_something)
    assert run("dev") == 1
    captured = capsys.readouterr()
    said = captured.out
    assert "AWS::EC2::PlacementGroup forgotten: LEFT BEHIND" in said
    assert "AWS::Logs::LogGroup /aws/lambda/dev-f: the log of a Lambda function, which outlives it" in said
    assert "error: destroyed, but left behind: forgotten\n" in captured.err


@pytest.mark.usefixtures("without_stacks")
@pytest.mark.parametrize("arguments", [["--fault", "clock"], ["--fault", "capacity:trn1.32xlarge/1"]])
def test_a_fault_of_nodes_needs_nodes(
    arguments: list[str], run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("dev", *arguments) == 1
    name = arguments[1].partition(":")[0]
    assert f"error: --fault {name}: needs nodes, which do not run here\n" in capsys.readouterr().err


@pytest.mark.usefixtures("without_stacks")
@pytest.mark.parametrize(
    ("fault", "code"), [("resource:Nothing", 1), ("warning:AsyncTimedUrlValidator", 0), ("warning:DcvValidator", 1)]
)
def test_a_fault_that_strikes_nothing_is_no_success_unless_it_is_harmless(
    fault: str, code: int, run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stage, "run", lambda *_, **__: Ran(0, ""))
    assert run("dev", "--fault", fault) == code
    complaint = f"error: nothing failed: the fault {fault} concerns nothing"
    assert (complaint in capsys.readouterr().err) == (code == 1)


KEPT = """
import sys
from emulator.machines import support
from scripts.main import main
from scripts.rehearse.rehearsal import Rehearsal

support.reason = lambda: "of a test"
for step in ("deploy", "show", "change", "change_rejected"):
    setattr(Rehearsal, step, lambda *_: None)
sys.exit(main(["rehearse", *sys.argv[1:]]))
"""
"""A rehearsal that is kept once the account is bootstrapped."""


@pytest.mark.slow
def test_it_can_be_kept_and_ends_without_a_trace() -> None:
    command = [sys.executable, "-c", KEPT, "dev", "--keep"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        exported = exports(process)
        tool = subprocess.run(
            [PYTHON.parent / "aws", "cloudformation", "describe-stacks", "--query", "Stacks[].StackName"],
            env={**os.environ, **exported},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(tool.stdout) == ["CDKToolkit"]
        server = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()[0])
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=600) == 130
    finally:
        process.kill()
        process.communicate()
    assert not Path(f"/proc/{server}").exists()


def exports(process: subprocess.Popen[str]) -> dict[str, str]:
    """Return the variables that a command tells people to export."""
    assert process.stdout is not None
    variables = {}
    for line in process.stdout:
        if named := re.match(r"  export (\w+)=(.*)", line):
            variables[named[1]] = named[2]
        if "Ctrl-C" in line:
            break
    path = variables.pop("PATH")
    assert path.endswith(":$PATH")
    assert all(Path(each).is_dir() for each in path.split(":")[:-1])
    return variables
