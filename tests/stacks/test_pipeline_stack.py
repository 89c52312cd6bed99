"""The pipeline inside AWS: what it does in which order, and that it deploys what `make deploy` does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from tests.stacks.deployments import deploy
from tests.stacks.pipelines import ACCOUNT, FORK, PIPELINE_STACK, pipeline, synthesize
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
    found = template.properties("AWS::CodePipeline::Pipeline")["Stages"]
    return {each["Name"]: sorted(each["Actions"], key=lambda action: int(action["RunOrder"])) for each in found}


def project(template: Template, action: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of the CodeBuild project of an action."""
    found = template.body["Resources"][action["Configuration"]["ProjectName"]["Ref"]]["Properties"]
    return {**found, "BuildSpec": json.loads(found["Source"]["BuildSpec"])}


def checks(template: Template) -> dict[str, dict[str, Any]]:
    return {stage: project(template, stages(template)[stage][-1]) for stage in DEPLOYMENTS}


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
def test_the_change_plan_is_that_of_the_stage_and_only_looks(template: Template, stage: str, environment: str) -> None:
    action = stages(template)[stage][0]
    found = project(template, action)

    assert found["BuildSpec"]["phases"]["build"]["commands"] == [f"make plan ENV={environment}"]
    granted = permissions(template, found)
    assert "cloudformation:GetTemplate" in granted
    assert not {"ssm:SendCommand", "sts:AssumeRole", "cloudformation:CreateChangeSet"} & granted.keys()


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


def test_stacks_are_protected_before_they_are_checked(template: Template) -> None:
    commands = {stage: found["BuildSpec"]["phases"]["build"]["commands"] for stage, found in checks(template).items()}
    protect = "aws cloudformation update-termination-protection --enable-termination-protection --stack-name trn1-16-"

    assert commands == {
        "dev": ["make status ENV=dev"],
        "prod": [f"{protect}network", f"{protect}storage", "make status ENV=trn1-16"],
    }


def permissions(template: Template, project: dict[str, Any]) -> dict[str, Any]:
    """Return the resources of each action that a project may call, in its own policy."""
    _, policy = template.one("AWS::IAM::Policy", Roles=json.dumps([{"Ref": project["ServiceRole"]["Fn::GetAtt"][0]}]))
    found: dict[str, Any] = {}
    for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        for action in actions:
            found.setdefault(action, []).append(statement["Resource"])
    return found


def test_the_check_can_protect_those_stacks_and_ask_the_head_node_and_change_nothing_else(template: Template) -> None:
    stack = f"arn:aws:cloudformation:us-west-2:{ACCOUNT}:stack/trn1-16-"
    found = permissions(template, checks(template)["prod"])

    assert found["cloudformation:UpdateTerminationProtection"] == [[f"{stack}network/*", f"{stack}storage/*"]]
    assert "cloudformation:UpdateTerminationProtection" not in permissions(template, checks(template)["dev"])
    assert len(found["ssm:SendCommand"]) == 2
    assert "cloudformation:DescribeStacks" in found
    assert "sts:AssumeRole" not in found
    assert "cloudformation:DeleteStack" not in found


def test_the_check_can_tell_why_it_failed(template: Template) -> None:
    found = permissions(template, checks(template)["prod"])

    assert {"cloudformation:ListStacks", "logs:FilterLogEvents"} <= found.keys()
    assert "logs:FilterLogEvents" not in permissions(template, project(template, stages(template)["prod"][0]))


def test_without_a_connection_there_is_no_pipeline(tmp_path: Path) -> None:
    found = synthesize(pipeline(connection_arn=None), tmp_path)

    assert [path.name for path in found.glob("*.template.json")] == ["ultracluster-ci-access.template.json"]
    assert list(found.glob("assembly-*")) == []
