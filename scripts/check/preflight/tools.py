"""Tools of a deployment on this machine, and warnings of the settings themselves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from scripts.account.deployment import Deployment
from scripts.check.preflight.check import check
from scripts.core.findings import FAIL, PASS, WARN, Finding
from ultracluster.domain.parallelcluster_versions import PINNED, VERSIONS

ROOT = Path(__file__).parents[3]


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


@check("parallelcluster-package", "ParallelCluster as pinned, and of the cluster's version")
def parallelcluster_package(deployment: Deployment) -> Finding:
    """ParallelCluster's own validators could not be asked, or those of another version would answer."""
    version = deployment.settings.cluster.parallelcluster_version
    packages = (ROOT / ".venv-pcluster").glob("lib/python3*/site-packages/aws_parallelcluster-*.dist-info")
    installed = ", ".join(path.stem.rpartition("-")[2] for path in packages)
    sentence = f"aws-parallelcluster {installed or 'is not'} in .venv-pcluster; in the settings: {version}"
    if installed != PINNED:
        return Finding(WARN, sentence, f"`make setup` sets up {PINNED}, as requirements-pcluster.txt pins it")
    if version == PINNED:
        return Finding(PASS, sentence)
    tried = "ran once in this project's tests" if VERSIONS[version].tried else "was never run by this project's tests"
    hint = f"only a checkout whose requirements-pcluster.txt pins {version} can ask its validators"
    return Finding(WARN, f"{sentence}, which {tried}", hint)


@check("settings", "Settings worth a second look")
def settings(deployment: Deployment) -> list[Finding]:
    """Warnings of the settings at synthesis would be overlooked."""
    file = deployment.file
    hint = f"change it in {file}, unless you mean it (of zones see the check instance-types)"
    warnings = [Finding(WARN, warning, hint) for warning in deployment.settings.warnings]
    return warnings or [Finding(PASS, f"{file} is valid and has no warnings")]


def _beside_python(program: str) -> Path:
    return Path(sys.executable).with_name(program)


CHECKS = (cdk_cli, parallelcluster_package, settings)
