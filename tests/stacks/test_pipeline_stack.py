"""The pipeline inside AWS: what it does in which order, and that it deploys what `./ultracluster deploy` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from tests.stacks.deployments import deploy
from tests.stacks.pipelines import FORK, PIPELINE_STACK, pipeline, synthesize
from tests.stacks.small_app import Template, read_template

DEPLOYMENTS = {"dev": "dev", "prod": "trn1-16"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthesize(pipeline(), tmp_path_factory.mktemp("pipeline"))


@pytest.fixture(scope="module")
def template(directory: Path) -> Template:
    return read_template(directory, PIPELINE_STACK)


def stages(template: Template) -> dict[str, list[dict[str, Any]]]:
    """Return the actions of each stage, in their order."""
    listed = template.properties("AWS::CodePipeline::Pipeline")["Stages"]
    return {each["Name"]: sorted(each["Actions"], key=lambda action: int(action["RunOrder"])) for each in listed}


def test_the_plan_comes_first_and_then_the_approval(template: Template) -> None:
    """Actions of one run order run at once, and nothing of a later one runs when one of them fails."""
    orders = {
        stage: {action["Name"]: int(action["RunOrder"]) for action in stages(template)[stage]} for stage in DEPLOYMENTS
    }
    dev, prod = orders["dev"], orders["prod"]

    assert "Approve" not in dev
    assert dev.pop("Changes") < min(dev.values())
    assert prod.pop("Changes") < prod.pop("Approve") < min(prod.values())


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
