"""Programs of the library's users: they synthesize, type checkers accept them, and the CDK may be old or new."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from scripts.core.environments import ROOT
from tests.constructs.synthesize import synthesize

HERE = ROOT / "tests" / "constructs"
EXAMPLES = ROOT / "constructs" / "examples"
PROGRAMS = sorted((HERE / "apps").glob("*.py"))
OF_THE_CDK = 'incompatible with protocol "IKey"'
"""By aws-cdk-lib's own types a Key is no IKey: add_alias has another parameter."""


@pytest.mark.slow
def test_programs_synthesize(tmp_path: Path) -> None:
    made = {each.stem: [*synthesize(each, tmp_path).rglob("*.template.json")] for each in PROGRAMS}
    clusters = {
        name: sum(each.read_text(encoding="utf-8").count("Custom::PclusterCluster") for each in templates)
        for name, templates in made.items()
    }
    assert len(clusters) == len(PROGRAMS)
    assert min(clusters.values()) > 0, clusters


@pytest.mark.scenario
@pytest.mark.slow
def test_pyright_accepts_programs_and_examples(tmp_path: Path) -> None:
    """Mypy does in `make type`, which has the examples and these tests."""
    for each in (HERE / "pyright/package.json", HERE / "pyright/package-lock.json", ROOT / ".npmrc"):
        shutil.copy(each, tmp_path)
    subprocess.run(["npm", "ci", "--loglevel=error"], cwd=tmp_path, check=True)
    for folder in (HERE / "apps", EXAMPLES):
        shutil.copytree(folder, tmp_path / folder.name)
    options = {
        "include": ["apps", "examples"],
        "venvPath": str(ROOT),
        "venv": ".venv",
        "extraPaths": [str(ROOT / "constructs")],
        "typeCheckingMode": "standard",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(options), encoding="utf-8")
    pyright = [str(tmp_path / "node_modules/.bin/pyright"), "--outputjson"]
    found = json.loads(subprocess.run(pyright, cwd=tmp_path, stdout=subprocess.PIPE, check=False).stdout)
    assert found["summary"]["filesAnalyzed"] == len([*PROGRAMS, *EXAMPLES.glob("*.py")])
    errors = [each for each in found["generalDiagnostics"] if OF_THE_CDK not in each["message"]]
    assert errors == []


def test_both_bounds_of_the_cdk_are_tried_on_workdays() -> None:
    """Of what `make test-library` installs, uv decides: the lowest versions that the library takes, or the newest."""
    with (ROOT / "constructs/pyproject.toml").open("rb") as file:
        [cdk] = [each for each in tomllib.load(file)["project"]["dependencies"] if each.startswith("aws-cdk-lib")]
    lowest, newest = re.fullmatch(r"aws-cdk-lib>=2\.(\d+),<(\d+)", cdk).groups()  # type: ignore[union-attr]
    [pinned] = re.findall(r"^aws-cdk-lib==2\.(\d+)", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    assert int(lowest) < int(pinned)
    assert newest == "3"
    steps = yaml.safe_load((ROOT / ".github/workflows/scheduled.yaml").read_text("utf-8"))["jobs"]["library"]
    assert steps["strategy"]["matrix"]["resolution"] == ["lowest-direct", "highest"]
    assert steps["steps"][-1]["env"] == {"RESOLUTION": "${{ matrix.resolution }}"}
    assert 'make test-library RESOLUTION="$RESOLUTION"' in steps["steps"][-1]["run"]
