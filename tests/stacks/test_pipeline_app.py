"""pipeline_app.py as a process: what it makes of a filled-in file, and what it reports about one that is not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import pipeline_app
from config.pipeline import READ_ROLE, deploy_role, load
from tests.stacks.pipelines import ACCESS_STACK, ACCOUNT, CONNECTION, FORK, PIPELINE_STACK
from tests.stacks.test_hermetic import ROOT, synthesize

FOLDERS = ("config", "constructs", "emulator", "nodes", "scripts", "stacks", "toolchain", "training")

pytestmark = pytest.mark.slow


def test_the_file_at_the_top_needs_two_values_to_let_github_in(tmp_path: Path) -> None:
    """The app in a copy of this repository with pipeline.yaml filled in."""
    copy = tmp_path / "repository"
    copy.mkdir()
    for name in ("pipeline_app.py", "package.json"):
        shutil.copy(ROOT / name, copy)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    text = (ROOT / "pipeline.yaml").read_text(encoding="utf-8")
    values = {"repository": "Acme/trn1", "account": f'"{ACCOUNT}"', "connection_arn": CONNECTION}
    for key, value in {**values, "oidc_provider_arn": "null"}.items():
        line = next(line for line in text.splitlines() if line.startswith(f"{key}:"))
        text = text.replace(line, f"{key}: {value}")
    (copy / "pipeline.yaml").write_text(text, encoding="utf-8")

    home = {"HOME": str(Path.home()), "PYTHONHASHSEED": "1"}
    assembly = synthesize(copy, tmp_path / "out", home, "pipeline_app.py")

    resources = json.loads(assembly[f"{ACCESS_STACK}.template.json"])["Resources"].values()
    roles = {each["Properties"]["RoleName"] for each in resources if each["Type"] == "AWS::IAM::Role"}
    stages = load(ROOT / "pipeline.yaml").stages
    assert roles == {READ_ROLE, *(deploy_role(stage.name) for stage in stages)}
    version = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]["aws-cdk"]
    assert f"npm install -g aws-cdk@{version}" in assembly[f"{PIPELINE_STACK}.template.json"].decode()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("repository: Acme/trn1", "repository: your-org/your-fork", "repository is still your-org/your-fork"),
        ("deployment: trn1-16", "deployment: nowhere", "stages[1].deployment: got 'nowhere'"),
    ],
)
def test_what_keeps_it_from_synthesizing_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, expected: str
) -> None:
    shutil.copytree(FORK / "config", tmp_path / "config")
    text = (FORK / "pipeline.yaml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "pipeline.yaml").write_text(text.replace(old, new), encoding="utf-8")
    monkeypatch.setattr(pipeline_app, "ROOT", tmp_path)

    with pytest.raises(SystemExit) as exit_code:
        pipeline_app.main()

    assert expected in str(exit_code.value)
