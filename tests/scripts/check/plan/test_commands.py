"""`./ultracluster plan`: what it prints, writes and returns."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from scripts.check.plan import cdk
from scripts.check.plan.live import MANIFEST
from scripts.check.plan.model import PlanError
from scripts.core.errors import ExitCode
from tests.scripts.check.plan.account import PARTS
from tests.scripts.check.plan.conftest import SNAPSHOTS, Run, find, golden

pytestmark = pytest.mark.validation

GOLDEN = SNAPSHOTS / "trn1-16"


def other_throughput_and_policy(stacks: Any) -> None:
    system = find(stacks, "storage", "AWS::FSx::FileSystem")[1]["Properties"]
    system["LustreConfiguration"]["PerUnitStorageThroughput"] = 500
    cluster = find(stacks, "cluster", "Custom::PclusterCluster")[1]["Properties"]["ClusterConfiguration"]
    cluster["SharedStorage"][0]["Name"] = "fsx-0123456789ab"
    policy = find(stacks, "cluster", "AWS::IAM::ManagedPolicy")[1]["Properties"]["PolicyDocument"]
    policy["Statement"].append({"Effect": "Allow", "Action": ["s3:PutObject"], "Resource": "*"})


@pytest.fixture(scope="module")
def edited(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Golden templates with another throughput of the file system, and another policy."""
    directory, stacks = tmp_path_factory.mktemp("edited"), golden()
    other_throughput_and_policy(stacks)
    for name, stack in stacks.items():
        (directory / f"{name}.json").write_text(json.dumps(stack.template), encoding="utf-8")
    return str(directory)


@pytest.mark.usefixtures("offline")
def test_json(run: Run, edited: str) -> None:
    code, out, _ = run("plan", "trn1-16", "--against", str(GOLDEN), "--assembly", edited, "--output", "json")
    document = json.loads(out)
    assert (code, document["ok"], document["empty"]) == (1, False, False)
    assert (document["deployment"], document["region"], document["against"]) == ("trn1-16", "us-west-2", str(GOLDEN))
    [finding] = [each for each in document["findings"] if each["status"] == "FAIL"]
    assert finding["hint"] == "take the change back, or accept it: ./ultracluster deploy trn1-16 --accept-replacement"
    stacks = {stack["name"]: stack for stack in document["stacks"]}
    assert list(stacks) == [f"trn1-16-{part}" for part in PARTS]
    assert {stack["source"] for stack in stacks.values()} == {"two sets of templates"}
    [system] = stacks["trn1-16-storage"]["changes"]
    cause = "LustreConfiguration.PerUnitStorageThroughput"
    assert (system["effect"], system["old_stays"], system["causes"]) == ("replaced", True, [cause])
    assert system["properties"] == [{"path": cause, "before": 250, "after": 500}]
    assert {change["kind"] for change in document["cluster"]["changes"]} == {"applied live"}
    [permissions] = document["permissions"]
    assert (permissions["gained"], permissions["lost"]) == (["Allow s3:PutObject on *"], [])


@pytest.mark.usefixtures("offline")
def test_markdown(run: Run, edited: str) -> None:
    arguments = ("trn1-16", "--against", str(GOLDEN), "--assembly", edited, "--output", "markdown")
    code, out, _ = run("plan", *arguments)
    lines = out.splitlines()
    assert code == 1
    assert lines[:3] == ["### `plan trn1-16`", "", "**1 blocking issue: this cannot be deployed.**"]
    assert any(line.startswith("| FAIL | trn1-16-storage/Lustre") for line in lines)
    assert any("| FSx::FileSystem | **replaced, the old one is retained** |" in line for line in lines)
    assert "+ Allow s3:PutObject on *" in lines
    assert all(line.count("|") in (0, 4, 5) for line in lines if line.startswith("|"))
    code, out, _ = run("plan", *arguments, "--accept-replacement")
    assert code == 0
    assert "**Nothing blocks this deployment.**" in out
    assert "| WARN | trn1-16-storage/Lustre" in out


@pytest.mark.usefixtures("offline")
def test_text_fits_the_terminal_and_has_no_colours_elsewhere(
    run: Run, edited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("plan", "trn1-16", "--against", str(GOLDEN), "--assembly", edited)
    assert "\x1b" not in out
    assert max(len(line) for line in out.splitlines() if "./ultracluster" not in line) <= 80, "commands stay whole"
    assert out.startswith("Plan of trn1-16, us-west-2, against ")
    assert "+ Allow s3:PutObject on *" in out
    assert "take the change back, or accept it: ./ultracluster deploy trn1-16 --accept-replacement" in " ".join(
        out.split()
    )


def no_json(directory: Path) -> None:
    (directory / "a.json").write_text("{")


def assembly(directory: Path) -> None:
    (directory / "manifest.json").write_text("{}")


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("arguments", "write", "problem"),
    [
        (("trn1-16", "--assembly", str(GOLDEN)), assembly, "manifest.json"),
        (("trn1-16", "--assembly", str(GOLDEN), "--against", "DIRECTORY"), no_json, "with a file that is no JSON"),
        (("trn1-16", "--assembly", str(GOLDEN), "--against", "DIRECTORY"), assembly, "allowed: two assemblies, or two"),
    ],
)
def test_what_cannot_be_used(
    arguments: tuple[str, ...], write: Callable[[Path], None], problem: str, run: Run, tmp_path: Path
) -> None:
    write(tmp_path)
    code, out, err = run("plan", *(argument.replace("DIRECTORY", str(tmp_path)) for argument in arguments))
    assert (code, out) == (2, "")
    assert problem in err


def test_what_cannot_be_synthesized_is_the_error_of_the_cdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [sys.executable, "-c", "print('config/trn1-16.yaml: no'); raise SystemExit(1)"]
    monkeypatch.setattr(cdk, "command", lambda *_: failing)
    with pytest.raises(PlanError, match=r"^config/trn1-16.yaml: no$"):
        cdk.synthesize("trn1-16", tmp_path)
    monkeypatch.setattr(cdk, "command", lambda *_: ["false"])
    with pytest.raises(PlanError, match="exit code 1"):
        cdk.synthesize("trn1-16", tmp_path)


@pytest.mark.usefixtures("offline")
def test_the_diff_is_of_what_is_planned(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdk, "command", lambda *words: ["echo", *words])
    monkeypatch.setattr("scripts.check.plan.plan.plan_of_account", Mock(side_effect=PlanError("no")))
    (tmp_path / MANIFEST).touch()
    assembly = str(tmp_path)
    _, out, _ = run("plan", "trn1-16", "--diff", "--assembly", assembly)
    assert out.startswith(f"diff --app {assembly}\n")
    assert run("plan", "trn1-16", "--diff", "--against", assembly)[0] == 2
    for of_cdk, code in ((1, 2), (ExitCode.HUNG_UP, ExitCode.HUNG_UP)):
        monkeypatch.setattr(cdk, "command", lambda *_, ends=of_cdk: ["sh", "-c", f"exit {int(ends)}"])
        ended, _, err = run("plan", "trn1-16", "--diff", "--assembly", assembly)
        assert (ended, f"cdk diff ended with exit code {int(of_cdk)}" in err) == (code, True)
