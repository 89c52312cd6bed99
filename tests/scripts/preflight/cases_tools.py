"""Machines that have what a deployment is made with, and machines that lack something of it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.preflight import tools
from scripts.preflight.check import Status
from tests.scripts.preflight.cases import Case

NOWHERE = Path(__file__).parent / "there-is-no-such-directory"


def old_python(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(sys, "version_info", (3, 10, 14))


def other_environment(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(sys, "executable", str(NOWHERE / "python"))


def no_pcluster_environment(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(tools, "ROOT", NOWHERE)


def on_path(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(shutil, "which", lambda program: f"/usr/local/bin/{program}")


def not_on_path(machine: pytest.MonkeyPatch) -> None:
    machine.setenv("PATH", str(NOWHERE))


def zone_without_trn1(raw: dict[str, Any]) -> None:
    raw["zone_id"] = "usw2-az3"


CASES = (
    Case(tools.python, Status.PASS, ("3.11 or newer",)),
    Case(tools.python, Status.FAIL, ("3.10.14", "PYTHON=python3.11"), patch=old_python, name="old"),
    Case(tools.node, Status.PASS, ("Node 24.19.0 is", "/node")),
    Case(tools.node, Status.FAIL, ("there is no", "make setup"), patch=other_environment, name="elsewhere"),
    Case(tools.cdk_cli, Status.PASS, ("2.1148.1", "as pinned")),
    Case(tools.cdk_cli, Status.FAIL, ("there is no", "/cdk;", "make setup"), patch=other_environment, name="elsewhere"),
    Case(tools.parallelcluster_package, Status.PASS, ("aws-parallelcluster 3.16.1",)),
    Case(
        tools.parallelcluster_package,
        Status.WARN,
        ("aws-parallelcluster is not in .venv-pcluster", "make setup"),
        patch=no_pcluster_environment,
        name="missing",
    ),
    Case(tools.aws_cli, Status.PASS, ("aws is /usr/local/bin/aws",), patch=on_path),
    Case(tools.aws_cli, Status.WARN, ("no aws on PATH", "https://"), patch=not_on_path, name="missing"),
    Case(tools.session_manager_plugin, Status.PASS, ("/usr/local/bin/session-manager-plugin",), patch=on_path),
    Case(
        tools.session_manager_plugin,
        Status.WARN,
        ("no session-manager-plugin on PATH", "install-plugin.html"),
        patch=not_on_path,
        name="missing",
    ),
    Case(tools.settings, Status.PASS, ("config/trn1-16.yaml",)),
    Case(
        tools.settings,
        Status.WARN,
        ("cluster.queues[0].compute_resources[0].instance_type: got 'trn1.32xlarge'", "config/trn1-16.yaml"),
        edit=zone_without_trn1,
        name="zone",
    ),
)
