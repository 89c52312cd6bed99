"""The pipeline inside AWS deploys what `./ultracluster deploy` does; the golden template has its actions in order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from config.settings import load
from tests.stacks.deployments import deploy
from tests.stacks.pipelines import FORK, PIPELINE_STACK, pipeline, synthesize
from tests.stacks.small_app import read_template

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


def test_stacks_are_protected_that_exist_and_no_others(directory: Path) -> None:
    """By default the list of what is protected has parts that a deployment may lack, such as the team's."""
    template = read_template(directory, PIPELINE_STACK)
    commands = json.dumps(
        [each["Properties"]["Source"] for each in template.of_type("AWS::CodeBuild::Project").values()]
    )
    protected = re.findall(r"--enable-termination-protection --stack-name ([a-z0-9-]+)", commands)
    manifests = (path.read_text(encoding="utf-8") for path in directory.glob("assembly-*/manifest.json"))
    artifacts = [each["properties"] for text in manifests for each in json.loads(text)["artifacts"].values()]
    assert sorted(protected) == sorted(each["stackName"] for each in artifacts if each.get("terminationProtection"))
    assert protected


def test_without_a_connection_there_is_no_pipeline(tmp_path: Path) -> None:
    assembly = synthesize(pipeline(connection_arn=None), tmp_path)

    assert [path.name for path in assembly.glob("*.template.json")] == ["ultracluster-ci-access.template.json"]
    assert list(assembly.glob("assembly-*")) == []
