"""A team adds settings of its own to config/ and names them in pipeline.yaml: tests go on to pass."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from config.edit import set_values
from tests.workflows.workflows import ROOT

COPIED = (".github", "config", "scripts", "tests/fork", "tests/config", "tests/workflows")
FILES = (
    *("Makefile", "pyproject.toml"),
    *(f"tests/{name}.py" for name in ("command_line", "configurations", "conftest", "shared")),
)
TESTS = (
    "tests/config/test_schema.py",
    "tests/config/test_configurations.py",
    "tests/config/test_edit.py",
    "tests/config/test_pipeline.py",
    "tests/workflows/test_workflows.py::test_stages_are_those_of_pipeline_yaml",
)
"""Those that look at config/ or pipeline.yaml and need no CDK."""
OWN = {"dev": "a-team-dev", "trn1-16": "prod"}
"""Copies of what is shipped: one comes before all others, and one names its account."""


@pytest.mark.slow
def test_settings_of_a_team_beside_those_that_are_shipped(tmp_path: Path) -> None:
    for name in COPIED:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path / name)
    pipeline = (ROOT / "tests/fork/pipeline.yaml").read_text(encoding="utf-8").replace("../../config/", "config/")
    for shipped, own in OWN.items():
        shutil.copy(ROOT / f"config/{shipped}.yaml", tmp_path / f"config/{own}.yaml")
        set_values(tmp_path / f"config/{own}.yaml", {("name",): f"acme-{own}"})
        pipeline = pipeline.replace(f"environment: {shipped}\n", f"environment: {own}\n")
    set_values(tmp_path / "config/prod.yaml", {("account",): "123456789012"})
    (tmp_path / "pipeline.yaml").write_text(pipeline, encoding="utf-8")

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.returncode, " failed" in done.stdout) == (0, False), done.stdout
