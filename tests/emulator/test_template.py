"""Templates are read and refused as CloudFormation does, in its words."""

import json
from typing import Any

import pytest

from emulator.aws import EmulatedAws
from emulator.cloudformation.parameters import resolve_parameters
from emulator.cloudformation.template import Template
from toolchain.values import TemplateError, UnsupportedError

BUCKET: dict[str, Any] = {"Type": "AWS::S3::Bucket"}


def template(**sections: Any) -> Template:
    return Template.parse(json.dumps({"Resources": {"B": BUCKET}, **sections}))


def bucket(name: Any) -> dict[str, Any]:
    return {**BUCKET, "Properties": {"BucketName": name}}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        (
            {"Resources": {"A": {"Properties": {}}}},
            "Template format error: [/Resources/A] Every Resources object must contain a Type member.",
        ),
        (
            {"Resources": {"A": {"Type": "AWS::EC2::Vpc"}}},
            "Template format error: Unrecognized resource types: [AWS::EC2::Vpc]",
        ),
        (
            {"Resources": {"A": bucket({"Ref": "X"}), "B": {**BUCKET, "DependsOn": ["Y"]}}},
            "Template format error: Unresolved resource dependencies [X, Y] in the Resources block of the template",
        ),
        (
            {"Outputs": {"O": {"Value": {"Fn::GetAtt": ["X", "Arn"]}}}},
            "Template format error: Unresolved resource dependencies [X] in the Outputs block of the template",
        ),
    ],
)
def test_a_template_that_cannot_work_is_refused(sections: dict[str, Any], message: str) -> None:
    """https://repost.aws/knowledge-center/cloudformation-template-validation."""
    with pytest.raises(TemplateError) as raised:
        template(**sections)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("sections", "name"),
    [
        ({"Transform": "AWS::Include"}, "transform AWS::Include"),
        ({"Resources": {"A": {**BUCKET, "BucketName": "x"}}}, "BucketName of A"),
        ({"Resources": {"A": {**BUCKET, "DeletionPolicy": "Snapshot"}}}, "policy Snapshot or Delete of A"),
        ({"Parameters": {"P": {"Type": "List<Number>"}}}, "parameter P: List<Number>"),
        ({"Parameters": {"P": {"Type": "String", "MinLength": 1}}}, "parameter P: MinLength"),
    ],
)
def test_what_is_unknown_here_is_named(sections: dict[str, Any], name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        template(**sections)


def test_a_circle_counts_under_its_condition() -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/conditions-section-structure.html."""
    reference = {"Fn::If": ["C", {"Ref": "C"}, "x"]}
    circle = template(Resources={"A": bucket(reference), "B": BUCKET, "C": {**BUCKET, "DependsOn": "A"}})
    circle.check_circles({"C": False})
    with pytest.raises(TemplateError, match=r"Circular dependency between resources: \[A, C\]"):
        circle.check_circles({"C": True})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Parameters: [P] must have values"),
        ({"P": "x", "Q": "x"}, "Parameters: [Q] do not exist in the template"),
    ],
)
def test_wrong_names_of_parameters(given: dict[str, Any], message: str) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html."""
    with pytest.raises(TemplateError) as raised:
        resolve_parameters({"P": {"Type": "String"}}, given, ssm=None)
    assert str(raised.value) == message


def test_a_stored_parameter_that_is_missing_is_named(aws: EmulatedAws) -> None:
    """The words are those of https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-troubleshoot.html."""
    definition = {"P": {"Type": "AWS::SSM::Parameter::Value<String>"}}
    with pytest.raises(TemplateError, match=r"Unable to fetch parameters \[/missing\] from parameter store"):
        resolve_parameters(definition, {"P": "/missing"}, ssm=aws.client("ssm", "us-east-1"))


def test_a_rule_is_asserted_under_its_condition() -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/rules-section-structure.html."""
    assertion = {"Assert": "assertion", "AssertDescription": "Production needs an a1.large."}
    ruled = template(Rules={"R": {"RuleCondition": "condition", "Assertions": [assertion]}})
    ruled.check_rules({"condition": True, "assertion": True}.__getitem__)
    ruled.check_rules({"condition": False}.__getitem__)
    with pytest.raises(TemplateError, match=r"Template error: rule R failed: Production needs an a1.large\."):
        ruled.check_rules({"condition": True, "assertion": False}.__getitem__)
