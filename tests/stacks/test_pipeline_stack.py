"""The pipeline inside AWS deploys what `./ultracluster deploy` does; the golden template has its actions in order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from config.settings import load
from tests.stacks.deployments import deploy
from tests.stacks.pipelines import FORK, pipeline, synthesize

DEPLOYMENTS = {"dev": "dev", "prod": "trn1-16"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(pipeline(), tmp_path_factory.mktemp("pipeline"))


@pytest.mark.parametrize(("stage", "environment"), DEPLOYMENTS.items())
def test_what_is_deployed_differs_in_names_for_people_alone(
    directory: Path, tmp_path: Path, stage: str, environment: str
) -> None:
    """Who changes from GitHub's runners to this pipeline, or back, gets the same resources."""
    assembly = directory / f"assembly-{stage}"
    manifest = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))["artifacts"].values()
    stacks = {
        each["properties"]["stackName"]: each["properties"] for each in manifest if "stackName" in each["properties"]
    }
    expected = deploy(load(FORK / "config" / f"{environment}.yaml"), tmp_path).templates

    assert stacks.keys() == expected.keys()
    for name, properties in stacks.items():
        text = (assembly / properties["templateFile"]).read_text(encoding="utf-8")
        assert json.loads(text.replace(f'"{stage}/{environment}-', f'"{environment}-')) == expected[name].body


def test_without_a_connection_there_is_no_pipeline(tmp_path: Path) -> None:
    assembly = synthesize(pipeline(connection_arn=None), tmp_path)

    assert [path.name for path in assembly.glob("*.template.json")] == ["ultracluster-ci-access.template.json"]
    assert list(assembly.glob("assembly-*")) == []
