"""`make plan` and `make deploy`: what they print, ask, start and return."""

from __future__ import annotations

import filecmp
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts import deploy as scripts_deploy
from scripts.commands import deploy
from scripts.commands import plan as changes
from scripts.plan import cdk, command
from tests.scripts.plan.account import PARTS, DeployedCluster, compute_resource, file_system, unchanged
from tests.scripts.plan.conftest import SNAPSHOTS, find, golden

pytestmark = pytest.mark.validation

GOLDEN = SNAPSHOTS / "trn1-16"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command and returns its exit code, what it printed, and its complaints."""

    def called(program: Any, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["program", *arguments])
        capfd.readouterr()
        try:
            code = program.main()
        except SystemExit as end:
            code = int(str(end.code))
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return called


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing lead to AWS."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")


def edited_golden(directory: Path, edit: Callable[[Any], object]) -> str:
    """Write the golden templates after an edit, and return their directory."""
    stacks = golden()
    edit(stacks)
    for name, stack in stacks.items():
        (directory / f"{name}.json").write_text(json.dumps(stack.template), encoding="utf-8")
    return str(directory)


def other_head_node(stacks: Any) -> None:
    cluster = find(stacks, "cluster", "Custom::PclusterCluster")[1]["Properties"]["ClusterConfiguration"]
    cluster["HeadNode"]["InstanceType"] = "c6i.8xlarge"


def other_throughput_and_policy(stacks: Any) -> None:
    system = find(stacks, "storage", "AWS::FSx::FileSystem")[1]["Properties"]
    system["LustreConfiguration"]["PerUnitStorageThroughput"] = 500
    cluster = find(stacks, "cluster", "Custom::PclusterCluster")[1]["Properties"]["ClusterConfiguration"]
    cluster["SharedStorage"][0]["Name"] = "fsx-0123456789ab"
    policy = find(stacks, "cluster", "AWS::IAM::ManagedPolicy")[1]["Properties"]["PolicyDocument"]
    policy["Statement"].append({"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": "*"})


@pytest.mark.usefixtures("offline")
def test_two_sets_of_templates_offline(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(changes, "trn1-16", "--against", str(GOLDEN), "--assembly", str(GOLDEN))
    assert code == 0
    assert "Nothing would change." in out
    directory = edited_golden(tmp_path, other_head_node)
    code, out, _ = run(changes, "trn1-16", "--against", str(GOLDEN), "--assembly", directory)
    assert code == 1
    fault = "HeadNode.InstanceType from c6i.4xlarge to c6i.8xlarge is refused as long as the cluster lives"
    assert fault in " ".join(out.split())
    assert "1 thing must be settled" in out


@pytest.mark.usefixtures("offline")
def test_json_is_what_the_document_says(run: Run, tmp_path: Path) -> None:
    directory = edited_golden(tmp_path, other_throughput_and_policy)
    code, out, _ = run(changes, "trn1-16", "--against", str(GOLDEN), "--assembly", directory, "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["empty"]) == (1, False, False)
    assert (found["environment"], found["region"], found["against"]) == ("trn1-16", "us-west-2", str(GOLDEN))
    [fault] = [each for each in found["findings"] if each["status"] == "FAIL"]
    assert fault["hint"] == "take the change back, or say that it is meant: --accept-replacement"
    stacks = {stack["name"]: stack for stack in found["stacks"]}
    assert list(stacks) == [f"trn1-16-{part}" for part in PARTS]
    assert {stack["source"] for stack in stacks.values()} == {"two sets of templates"}
    [system] = stacks["trn1-16-storage"]["changes"]
    assert system["effect"] == "replaced"
    assert system["causes"] == ["LustreConfiguration.PerUnitStorageThroughput"]
    assert system["properties"] == [{"path": system["causes"][0], "before": 250, "after": 500}]
    assert found["cluster"]["name"] == "trn1-16"
    [rights] = found["rights"]
    assert rights["gained"] == ["Allow s3:PutObject on *"]
    assert rights["lost"] == []


@pytest.mark.usefixtures("offline")
def test_markdown_is_short_and_leads_with_the_verdict(run: Run, tmp_path: Path) -> None:
    directory = edited_golden(tmp_path, other_throughput_and_policy)
    arguments = ("trn1-16", "--against", str(GOLDEN), "--assembly", directory, "--markdown")
    code, out, _ = run(changes, *arguments)
    lines = out.splitlines()
    assert code == 1
    assert lines[:3] == ["### Changes of `trn1-16`", "", "**1 thing must be settled before this can be deployed.**"]
    assert any(line.startswith("| FAIL | trn1-16-storage/Lustre") for line in lines)
    assert any("| FSx::FileSystem | **replaced, the old one stays** |" in line for line in lines)
    assert "+ Allow s3:PutObject on *" in lines
    assert all(line.count("|") in (0, 4, 5) for line in lines if line.startswith("|"))
    code, out, _ = run(changes, *arguments, "--accept-replacement")
    assert code == 0
    assert "**Nothing stands against this deployment.**" in out
    assert "| WARN | trn1-16-storage/Lustre" in out


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("width", [80, 120])
def test_text_fits_the_terminal_and_is_plain_elsewhere(
    width: int, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "PLAIN_WIDTH", width)
    directory = edited_golden(tmp_path, other_throughput_and_policy)
    _, out, _ = run(changes, "trn1-16", "--against", str(GOLDEN), "--assembly", directory)
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= width
    assert "+ Allow s3:PutObject on *" in out


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("nowhere",), "no such file in config/: nowhere; there is "),
        (("trn1-16", "--against", "/nowhere"), "got /nowhere; allowed: a directory"),
        (("trn1-16", "--against", str(GOLDEN), "--assembly", str(SNAPSHOTS)), "one of templates (*.json)"),
        (("trn1-16", "--assembly", str(GOLDEN)), "manifest.json"),
    ],
)
def test_what_cannot_be_used(arguments: tuple[str, ...], complaint: str, run: Run) -> None:
    code, out, err = run(changes, *arguments)
    assert (code, out) == (2, "")
    assert complaint in err


@pytest.mark.usefixtures("offline")
def test_templates_of_another_deployment(run: Run) -> None:
    code, out, _ = run(changes, "dev", "--against", str(GOLDEN), "--assembly", str(SNAPSHOTS / "dev"))
    assert code == 1
    assert "dev-network: the stack does not exist yet: " in out
    assert "(AWS::EC2::VPC) is removed: everything stands in it; it is deleted" in " ".join(out.split())


@pytest.mark.usefixtures("offline")
def test_a_file_that_is_no_template(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    code, _, err = run(changes, "dev", "--against", str(tmp_path), "--assembly", str(SNAPSHOTS / "dev"))
    assert code == 2
    assert "with a file that is no JSON" in err


@pytest.mark.usefixtures("offline")
def test_golden_templates_and_an_assembly_are_not_compared(run: Run, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    code, _, err = run(changes, "trn1-16", "--against", str(GOLDEN), "--assembly", str(tmp_path))
    assert code == 2
    assert "allowed: two assemblies, or two directories of golden templates" in err


@pytest.mark.usefixtures("offline")
def test_without_credentials(run: Run, cluster: DeployedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    _, assembly = cluster.assembly("unchanged", unchanged)
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    code, _, err = run(changes, "trn1-16", "--assembly", str(assembly))
    assert code == 2
    assert "AWS cannot be asked: Unable to locate credentials (--against DIRECTORY needs no account)" in err


@pytest.mark.slow
def test_a_configuration_is_synthesized_as_make_deploy_does(run: Run, tmp_path: Path) -> None:
    command.synthesize("trn1-16", tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert {f"trn1-16-{part}" for part in PARTS} <= manifest["artifacts"].keys()
    code, out, _ = run(changes, "trn1-16", "--against", str(tmp_path))
    assert code == 0
    assert "Nothing would change." in out


def test_a_configuration_that_cannot_be_synthesized(tmp_path: Path) -> None:
    with pytest.raises(command.PlanError, match=r"nowhere\.yaml"):
        command.synthesize("nowhere", tmp_path)


class Deploying:
    """`make deploy` of the deployed cluster, with edited settings in the place of what would be synthesized."""

    def __init__(self, cluster: DeployedCluster, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._cluster = cluster
        self._monkeypatch = monkeypatch
        self.build = directory / "build"
        self.started: list[list[str]] = []
        monkeypatch.setattr("scripts.deploy.BUILD", self.build)

    def edit(self, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
        """Have edited settings synthesized, and return their assembly."""
        _, assembly = self._cluster.assembly(name, change)
        self._monkeypatch.setattr(deploy, "synthesize", lambda _, to: shutil.copytree(assembly, to))
        return assembly

    def answer(self, *answers: str) -> None:
        """Have a person at a terminal, who answers."""
        given = iter(answers)
        self._monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        self._monkeypatch.setattr("builtins.input", lambda _: next(given))

    def leave_the_cdk_out(self) -> None:
        """Note what would be started instead of starting it."""

        def note(name: str, _: Path, arguments: list[str]) -> int:
            self.started.append([name, *arguments])
            return 0

        self._monkeypatch.setattr(deploy, "deploy", note)


@pytest.fixture
def deploying(cluster: DeployedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deploying:
    return Deploying(cluster, tmp_path, monkeypatch)


def more_nodes(settings: dict[str, Any]) -> None:
    compute_resource(settings)["max_count"] = 20


def faster_file_system(settings: dict[str, Any]) -> None:
    file_system(settings)["throughput_mbps_per_tib"] = 500


def test_without_a_terminal_it_does_not_deploy_unasked(deploying: Deploying, run: Run) -> None:
    deploying.leave_the_cdk_out()
    code, out, err = run(deploy, "trn1-16")
    assert (code, out) == (2, "")
    assert "standard input is not a terminal; pass --yes" in err
    assert deploying.started == []


@pytest.mark.usefixtures("without_change_sets")
@pytest.mark.parametrize(("answer", "code", "started"), [("n", 1, []), ("", 1, []), ("y", 0, [["trn1-16"]])])
def test_it_asks(answer: str, code: int, started: list[list[str]], deploying: Deploying, run: Run) -> None:
    deploying.leave_the_cdk_out()
    deploying.edit("more_nodes", more_nodes)
    deploying.answer(answer)
    found, out, _ = run(deploy, "trn1-16")
    assert (found, deploying.started) == (code, started)
    assert "MaxCount" in out
    assert ("Nothing was changed." in out) == (code == 1)


@pytest.mark.usefixtures("without_change_sets")
def test_it_does_not_ask_about_nothing(deploying: Deploying, run: Run) -> None:
    deploying.leave_the_cdk_out()
    deploying.edit("unchanged", unchanged)
    deploying.answer()
    assert run(deploy, "trn1-16")[0] == 0
    assert deploying.started == [["trn1-16"]]


@pytest.mark.usefixtures("without_change_sets")
def test_it_does_not_deploy_what_something_stands_against(deploying: Deploying, run: Run) -> None:
    deploying.leave_the_cdk_out()
    deploying.edit("faster_file_system", faster_file_system)
    code, out, _ = run(deploy, "trn1-16", "--yes")
    assert (code, deploying.started) == (1, [])
    fault = "is replaced, because of LustreConfiguration.PerUnitStorageThroughput from 250 to 500"
    assert fault in " ".join(out.split())
    assert run(deploy, "trn1-16", "--yes", "--accept-replacement", "--", "--verbose")[0] == 0
    assert deploying.started == [["trn1-16", "--verbose"]]


@pytest.mark.usefixtures("without_change_sets")
def test_what_is_deployed_is_the_planned_directory(
    deploying: Deploying, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").symlink_to(cdk.ROOT / "config")
    (tmp_path / "cdk.out").mkdir()
    (tmp_path / "cdk.out/manifest.json").write_text("of another command")
    monkeypatch.setattr(cdk, "ROOT", tmp_path)
    copy = "import shutil, sys; shutil.copytree(sys.argv[sys.argv.index('--app') + 1], 'deployed')"
    monkeypatch.setattr(cdk, "command", lambda *arguments: [sys.executable, "-c", copy, *arguments])
    planned = deploying.edit("more_nodes", more_nodes)
    deploying.answer("y")
    assert run(deploy, "trn1-16")[0] == 0
    names = [path.name for path in planned.iterdir() if path.is_file()]
    assert filecmp.cmpfiles(planned, tmp_path / "deployed", names, shallow=False) == (names, [], [])
    assert [path.read_text() for path in (tmp_path / "cdk.out").iterdir()] == ["of another command"]


@pytest.mark.parametrize(
    "argument",
    [
        ("--profile", "other"),
        ("--app", "other"),
        ("--role-arn=other",),
        ("--hotswap",),
        ("--method", "direct"),
        ("--import-existing-resources",),
        ("-c", "env=dev"),
        ("-vc", "env=dev"),
        ("--prog", "events"),
        ("other-stack",),
        ("--", "--profile=other"),
    ],
    ids=" ".join,
)
def test_the_cdk_is_not_led_elsewhere(argument: tuple[str, ...], run: Run) -> None:
    code, out, err = run(deploy, "nowhere", "--", "--verbose", *argument)
    assert (code, out) == (2, "")
    assert "[--verbose] [--debug] [--ci] [--no-color] [--progress {bar,events}]" in " ".join(err.split())
    assert "ignored explicit argument 'c'" in err or f"got {' '.join(argument)}; allowed: " in err
    assert "-vc" in argument or "AWS_PROFILE" in err


def test_what_leads_the_cdk_nowhere_else_is_allowed(run: Run) -> None:
    allowed = ("-vv", "--verbose", "--debug", "--ci", "--no-color", "--progress", "bar", "--concurrency=3")
    code, _, err = run(deploy, "nowhere", "--", *allowed)
    assert code == 2
    assert "no such file in config/: nowhere" in err


def test_make_diff_compares_with_one_account_only() -> None:
    make = ["make", "--dry-run", "diff", "ENV=trn1-16", "ARGS=--profile other"]
    said = subprocess.run(make, cwd=cdk.ROOT, check=True, capture_output=True, text=True).stdout
    assert "cdk --no-notices -c env=trn1-16 diff" in said
    assert "--profile" not in said


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_the_cdk_ends_with_the_command(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ask = f"import os, time\nfor _ in range(100): os.kill(os.getppid(), {int(number)}); time.sleep(0.1)"
    monkeypatch.setattr("scripts.deploy.BUILD", tmp_path)
    monkeypatch.setattr(cdk, "command", lambda *_: [sys.executable, "-c", ask])
    before = signal.signal(number, lambda *_: None)  # until the command listens
    try:
        assert scripts_deploy.deploy("trn1-16", tmp_path, ()) == 128 + signal.SIGTERM
    finally:
        signal.signal(number, before)
    assert "The CDK was terminated." in capfd.readouterr().err


@pytest.mark.slow
def test_it_deploys_what_it_showed(deploying: Deploying, run: Run, cluster: DeployedCluster) -> None:
    deploying.edit("tagged", lambda settings: settings["cluster"]["monitoring"].update(log_retention_days=30))
    code, out, err = run(deploy, "trn1-16", "--yes", "--", "--progress", "events")
    assert code == 0, out + err
    assert "✅  trn1-16-cluster" in out + err
    outputs = json.loads((deploying.build / "outputs-trn1-16.json").read_text(encoding="utf-8"))
    assert outputs["trn1-16-cluster"]["ClusterName"] == "trn1-16"
    deploying.edit("unchanged", unchanged)
    assert run(deploy, "trn1-16", "--yes")[0] == 0
    assert cluster.plan("unchanged", unchanged).empty


def test_the_exit_code_is_that_of_the_cdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.deploy.BUILD", tmp_path)
    monkeypatch.setattr(cdk, "command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"])
    assert scripts_deploy.deploy("trn1-16", tmp_path, ()) == 3
