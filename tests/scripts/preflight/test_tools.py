"""What the checks of this machine read, and what they make of tools of other versions."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest

from config.settings import load
from scripts.commands.validate import CONFIG
from scripts.deployment import Deployment
from scripts.preflight import tools
from scripts.preflight.check import Check, Status
from scripts.preflight.runner import findings


def looked(check: Check) -> tuple[Status, str]:
    [found] = findings(check, Deployment("trn1-16", load(CONFIG / "trn1-16.yaml")))
    return found.status, found.sentence


def test_no_check_of_this_machine_needs_an_account() -> None:
    assert all(check.permissions == () for check in tools.CHECKS)


def test_the_oldest_python_is_that_of_the_project() -> None:
    project = tomllib.loads((tools.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=" + ".".join(map(str, tools.OLDEST_PYTHON))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose package.json pins version 2.1 of the CDK command line, and has a `cdk` beside its Python."""
    (tmp_path / "package.json").write_text(json.dumps({"dependencies": {"aws-cdk": "2.1"}}))
    (tmp_path / "cdk").touch()
    monkeypatch.setattr(tools, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    return tmp_path


def install_cdk(root: Path, version: str) -> None:
    package = root / "node_modules/aws-cdk"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": version}))


def test_a_cdk_that_is_pinned(root: Path) -> None:
    install_cdk(root, "2.1")
    assert looked(tools.cdk_cli) == (Status.PASS, "CDK command line 2.1, as pinned in package.json")


def test_a_cdk_of_another_version(root: Path) -> None:
    install_cdk(root, "2.0")
    assert looked(tools.cdk_cli) == (Status.FAIL, "CDK command line 2.0; pinned in package.json: 2.1")


def test_a_link_to_a_cdk_that_is_not_installed(root: Path) -> None:
    status, sentence = looked(tools.cdk_cli)
    assert status is Status.FAIL
    assert str(root / "node_modules/aws-cdk") in sentence


def test_a_parallelcluster_of_another_version(root: Path) -> None:
    (root / ".venv-pcluster/lib/python3.11/site-packages/aws_parallelcluster-3.16.3.dist-info").mkdir(parents=True)
    expected = "aws-parallelcluster 3.16.3 in .venv-pcluster; in the settings: 3.16.1"
    assert looked(tools.parallelcluster_package) == (Status.WARN, expected)
