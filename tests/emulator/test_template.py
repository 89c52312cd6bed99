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
        # https://repost.aws/knowledge-center/cloudformation-template-validation
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
        # As LocalStack's tests recorded them on AWS: tests/aws/services/cloudformation/**/*.snapshot.json
        ({"Resources": {}}, "Template format error: At least one Resources member must be defined."),
        ({"Resources": {"A": "AWS::S3::Bucket"}}, "Template format error: Any Resources member must be an object."),
        ({"Resources": {"A": {**BUCKET, "Invalid": 10}}}, "Invalid template resource property 'Invalid'"),
        ({"Resources": {"a-b": BUCKET}}, "Template format error: Resource name a-b is non alphanumeric."),
        (
            {"Resources": {"AWS::NoValue": BUCKET}},
            "Template format error: Resource name AWS::NoValue is non alphanumeric.",
        ),
        (
            {"Parameters": {"AWS::NoValue": {"Type": "String"}}},
            "Template format error: Parameter name AWS::NoValue is non alphanumeric.",
        ),
        ({"Outputs": {"O": {}}}, "Template format error: Every Outputs member must contain a Value object"),
        ({"Outputs": {"O": {"Value": None}}}, "[/Outputs/O/Value] 'null' values are not allowed in templates"),
        ({"Mappings": {"M": {"A": "x"}}}, "Template format error: Every Mappings member A must be a map"),
        (
            {"Mappings": {"M": {"A": {"B": {"Ref": "AWS::Region"}}}}},
            "Template format error: Every Mappings attribute must be a String or a List.",
        ),
        (
            {"Resources": {"A": bucket({"Fn::If": ["Off", "a", "b"]})}},
            "Template error: unresolved condition dependency Off in Fn::If",
        ),
        (
            {"Conditions": {"C": {"Fn::Equals": ["a"]}}},
            "Template error: every Fn::Equals object requires a list of 2 string parameters.",
        ),
        (
            {"Resources": {"A": bucket({"Fn::Select": ["x", ["a"]]})}},
            "Template error: Fn::Select requires a list argument with two elements: an integer index and a list",
        ),
        (
            {"Resources": {"A": bucket({"Fn::Split": ["-"]})}},
            "Template error: every Fn::Split object requires two parameters, (1) a string delimiter and (2) a string "
            "to be split or a function that returns a string to be split.",
        ),
        (
            {"Resources": {"A": bucket({"Fn::GetAtt": ["B"]})}},
            "Template error: every Fn::GetAtt object requires two non-empty parameters, the resource name and the "
            "resource attribute",
        ),
        (
            {"Resources": {"A": bucket({"Fn::Join": ["-", "a"]})}},
            "Template error: every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of "
            "strings to be joined or a function that returns a list of strings (such as Fn::GetAZs) to be joined.",
        ),
        # As public reports quote them; where from, `emulator.cloudformation.validation` says
        (
            {"Resources": {"A": {**BUCKET, "Condition": "Off"}}},
            "Template format error: Condition Off is not defined.",
        ),
        (
            {"Resources": {"A": bucket({"Ref": "AWS::Regoin"})}},
            "Template format error: Unresolved resource dependencies [AWS::Regoin] in the Resources block of the "
            "template",
        ),
        (
            {"Conditions": {"C": {"Fn::Equals": [{"Ref": "B"}, "x"]}}},
            "Template format error: Unresolved dependencies [B]. Cannot reference resources in the Conditions block of "
            "the template",
        ),
        (
            {"Resources": {"A": bucket({"Fn::FindInMap": ["None", "a", "b"]})}},
            "Template error: Mapping named 'None' is not present in the 'Mappings' section of template.",
        ),
        (
            {"Parameters": {"P": {"Type": "String", "Default": {"Ref": "AWS::Region"}}}},
            "Template format error: Every Default member must be a string.",
        ),
        (
            {"Resources": {"A": bucket({"Fn::ImportValue": {"Ref": "B"}}), "B": BUCKET}},
            "Template error: the attribute in Fn::ImportValue must not depend on any resources, imported values, or "
            "Fn::GetAZs",
        ),
        (
            {"Resources": {"A": {**BUCKET, "DeletionPolicy": {"Fn::GetAtt": ["B", "Arn"]}}, "B": BUCKET}},
            "Template format error: Unsupported expression for DeletionPolicy in resource A",
        ),
    ],
)
def test_a_template_that_cannot_work_is_refused(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(TemplateError) as raised:
        template(**sections)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("sections", "name"),
    [
        ({"Transform": "AWS::Include"}, "transform AWS::Include"),
        ({"Resources": {"A": {**BUCKET, "UpdatePolicy": {}}}}, "UpdatePolicy of A"),
        ({"Resources": {"A": bucket({"Fn::GetAZs": ""})}}, "intrinsic function Fn::GetAZs"),
        ({"Resources": {"A": bucket({"Fn::FindInMap": ["M", "a", "b", {}]})}}, "DefaultValue of Fn::FindInMap"),
        ({"Parameters": {"P": {"Type": "List<Number>"}}}, "parameter P: List<Number>"),
        ({"Parameters": {"P": {"Type": "String", "MinLength": 1}}}, "parameter P: MinLength"),
    ],
)
def test_what_is_unknown_here_is_named(sections: dict[str, Any], name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        template(**sections)


def test_yaml_is_read_as_text() -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-formats.html."""
    read = Template.parse("""
AWSTemplateFormatVersion: 2010-09-09
Mappings: {Accounts: {012345678901: {on: [2024-01-31, 1, true]}}}
Resources:
  A:
    Type: AWS::S3::BucketPolicy
    Properties:
      Bucket: !FindInMap [Accounts, !Ref AWS::AccountId, on]
      PolicyDocument: {Version: 2012-10-17, Statement: []}
""")
    assert read.resources["A"].properties["PolicyDocument"]["Version"] == "2012-10-17"
    assert read.find_in_map("Accounts", "012345678901", "on") == ["2024-01-31", 1, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{\n  'a': 1}", "Template format error: JSON not well-formed. (line 2, column 3)"),
        ("Resources: [", "Template format error: YAML not well-formed. (line 1, column 13)"),
        (
            "Resources: {A: &a {Type: AWS::S3::Bucket}, B: *a}",
            "Template error: YAML aliases are not allowed in CloudFormation templates",
        ),
        ("https://example.com", "Template format error: unsupported structure."),
    ],
)
def test_text_that_is_no_template(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as raised:
        Template.parse(text)
    assert str(raised.value) == message


def test_a_circle_counts_under_its_condition() -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/conditions-section-structure.html."""
    reference = {"Fn::If": ["C", {"Ref": "C"}, "x"]}
    resources = {"A": bucket(reference), "B": BUCKET, "C": {**BUCKET, "DependsOn": "A"}}
    circle = template(Conditions={"C": {"Fn::Equals": ["a", "a"]}}, Resources=resources)
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
