"""Templates are read and refused as CloudFormation does, in its words."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from cfnlint.helpers import FUNCTION_CONDITIONS, FUNCTIONS  # type: ignore[import-untyped]

from emulator.aws import EmulatedAws
from emulator.cloudformation.parameters import resolve_parameters
from emulator.cloudformation.template import Template
from toolchain.values import Evaluator, Scope, TemplateError, UnsupportedError

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
            # LocalStack's test_invalid_select_index_type
            {"Resources": {"A": bucket({"Fn::Select": [1, ["a"]]})}},
            "Template error: Fn::Select requires a list argument with two elements: an integer index and a list",
        ),
        ({"Resources": "", "Outputs": ""}, "Template format error: Any Resources member must be an object."),
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
        ({"Resources": {"A": bucket({"Fn::Length": []})}}, "intrinsic function Fn::Length"),
        ({"Resources": {"Fn::Transform": {"Name": "M"}, "B": BUCKET}}, "intrinsic function Fn::Transform"),
        ({"Resources": {"A": {"Fn::Transform": {"Name": "M"}}}}, "intrinsic function Fn::Transform"),
        ({"Resources": {"A": bucket({"Fn::FindInMap": ["M", "a", "b", {}]})}}, "DefaultValue of Fn::FindInMap"),
        ({"Parameters": {"P": {"Type": "AWS::EC2::VPC::Id"}}}, "parameter P: AWS::EC2::VPC::Id"),
        ({"Parameters": {"P": {"Type": "String", "Hidden": 1}}}, "parameter P: Hidden"),
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


def test_a_resource_may_have_the_name_of_a_function() -> None:
    assert set(template(Resources={"Ref": BUCKET}).resources) == {"Ref"}


@pytest.mark.parametrize("tag", [tag for tag in yaml.SafeLoader.yaml_constructors if tag])
def test_a_template_in_yaml_has_no_values_that_json_has_not(tag: str) -> None:
    """For every tag that YAML 1.1 knows, on values of all shapes: it is read as a plain value, or refused."""
    for value in ("x", "2020-01-01", "1", ".inf", "aGk=", "[a]", "[a: 1]", "{a: 1}", "{a, b}"):
        text = f"Resources: {{B: {{Type: 'AWS::S3::Bucket', Metadata: {{M: !<{tag}> {value}}}}}}}"
        try:
            body = Template.parse(text).body
        except TemplateError:
            continue
        assert json.loads(json.dumps(body, allow_nan=False)) == body, text


def test_json_may_have_a_comma_more() -> None:
    """LocalStack's cfn_lambda_serverless.yml, deployed on AWS, has one."""
    read = Template.parse('{"Resources": {"A": {"Type": "AWS::S3::Bucket", "Metadata": {"a": ["\\",]", 1 , ],}, }}}')
    assert read.resources["A"].metadata == {"a": ['",]', 1]}


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


WHOLE: dict[str, Any] = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Description": "d",
    "Metadata": {"a": {"b": 1}},
    "Parameters": {
        "P": {
            "Type": "String",
            "Default": "a",
            "AllowedValues": ["a"],
            "AllowedPattern": "a",
            "ConstraintDescription": "c",
            "Description": "d",
            "MaxLength": "1",
            "MinLength": 1,
            "NoEcho": False,
        },
        "N": {"Type": "Number", "Default": 1, "MaxValue": 1, "MinValue": "1"},
    },
    "Mappings": {"M": {"a": {"b": "c", "d": ["e"]}}},
    "Conditions": {
        "C": {"Fn::Equals": [{"Ref": "P"}, "a"]},
        "D": {"Fn::And": [{"Condition": "C"}, {"Fn::Not": [{"Fn::Or": [{"Condition": "C"}, {"Condition": "C"}]}]}]},
        "E": {"Fn::Equals": ["a", {"Fn::FindInMap": ["M", "a", "b"]}]},
    },
    "Resources": {
        "A": {
            "Type": "AWS::S3::Bucket",
            "Properties": {
                "a": {"Fn::Sub": ["${B}-${X}-${AWS::Region}", {"X": {"Fn::Join": ["-", [{"Ref": "P"}]]}}]},
                "b": {"Fn::Select": ["0", {"Fn::Split": ["-", {"Fn::GetAtt": ["B", "Value"]}]}]},
                "c": {"Fn::Base64": {"Fn::If": ["C", {"Fn::ImportValue": "x"}, {"Ref": "AWS::NoValue"}]}},
                "d": {"Fn::GetStackOutput": {"StackName": "s", "OutputName": "o"}},
                "e": {"Fn::FindInMap": ["M", "a", "d"]},
            },
            "DependsOn": ["B"],
            "Condition": "C",
            "Metadata": {"x": "y"},
            "DeletionPolicy": {"Fn::If": ["C", "Retain", "Delete"]},
            "UpdateReplacePolicy": "Retain",
        },
        "B": BUCKET,
    },
    "Outputs": {"O": {"Value": {"Ref": "A"}, "Condition": "C", "Description": "x", "Export": {"Name": "e"}}},
}


class Anything(Scope):
    """A scope in which every name stands for a text, but in mappings."""

    def __init__(self, template: Template) -> None:
        self._template = template

    def ref(self, name: str) -> Any:
        return "a"

    def attribute(self, logical_id: str, attribute: str) -> Any:
        return "a"

    def stack_output(self, region: str | None, stack_name: str, output: str) -> Any:
        return "a"

    def import_value(self, name: str) -> str:
        return name

    def condition(self, name: str) -> bool:
        return True

    def mapping(self, name: str, top_level_key: str, second_level_key: str) -> Any:
        return self._template.find_in_map(name, top_level_key, second_level_key)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all that a value contains."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in members:
        yield (*path, key)
        yield from places(each, (*path, key))


@pytest.mark.slow
def test_anything_anywhere_is_done_or_refused_and_functions_by_name() -> None:
    """Every part of a template is replaced by values of other shapes, and by every function that cfn-lint knows."""
    shapes: list[Any] = [
        None,
        "",
        "x",
        5,
        True,
        [],
        {},
        ["x"],
        [{}],
        {"x": {}},
        {"Ref": "x"},
        {"Ref": ["P"]},
        {"Fn::If": ["C", "a"]},
    ]
    functions = {each.partition("::[")[0] for each in FUNCTIONS | FUNCTION_CONDITIONS} - {"Ref"}
    arguments: list[Any] = ["", [], 5]
    values: list[Any] = [
        *shapes,
        *({function: argument} for function in sorted(functions) for argument in arguments),
    ]
    Template.parse(json.dumps(WHOLE))
    for path in places(WHOLE):
        for value in values:
            changed = json.loads(json.dumps(WHOLE))
            container = changed
            for key in path[:-1]:
                container = container[key]
            container[path[-1]] = value
            refusal = ""
            try:
                parsed = Template.parse(json.dumps(changed))
                resolve_parameters(parsed.parameters, {}, ssm=None)
                evaluator = Evaluator(Anything(parsed))
                for resource in parsed.resources.values():
                    evaluator.evaluate([dict(resource.properties), resource.policies, resource.metadata])
                for output in parsed.outputs.values():
                    evaluator.evaluate(output["Value"])
                for condition in parsed.conditions.values():
                    evaluator.condition(condition)
            except (TemplateError, UnsupportedError) as error:
                refusal = str(error)
                assert refusal, (path, value)
            if path[:3] == ("Resources", "A", "Properties") and len(path) == len(("Resources", "A", "Properties", "a")):
                assert not refusal or value in shapes or next(iter(value)) in refusal, (path, value)


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


@pytest.mark.parametrize(
    ("definition", "value", "resolved"),
    [
        ({"Type": "Number", "MinValue": 1, "MaxValue": "3"}, "2.5", "2.5"),
        ({"Type": "List<Number>", "MaxValue": 3}, "1, 2", ["1", "2"]),
        ({"Type": "CommaDelimitedList", "AllowedValues": ["a", "b"]}, "b, a", ["b", "a"]),
        ({"Type": "String", "AllowedValues": [True]}, "true", "true"),
        ({"Type": "String", "AllowedPattern": "[a-z]*", "MinLength": "1", "MaxLength": 2}, "ab", "ab"),
    ],
)
def test_what_ref_gives_for_a_parameter(definition: dict[str, Any], value: str, resolved: Any) -> None:
    assert resolve_parameters({"P": definition}, {"P": value}, ssm=None)["P"].resolved == resolved
    assert resolve_parameters({"P": {**definition, "Default": value}}, {}, ssm=None)["P"].resolved == resolved


@pytest.mark.parametrize(
    ("definition", "value", "message"),
    [
        ({"Type": "Number"}, "one", "Parameter 'P' must be a number."),
        ({"Type": "Number", "MinValue": 1}, "0", "Parameter 'P' must be a number not less than 1"),
        ({"Type": "List<Number>", "MaxValue": 1}, "1,2", "Parameter 'P' must be a number not greater than 1"),
        ({"Type": "String", "MinLength": 2}, "a", "Parameter 'P' must contain at least 2 characters"),
        ({"Type": "String", "MaxLength": 2}, "abc", "Parameter 'P' must contain at most 2 characters"),
        ({"Type": "String", "AllowedPattern": "[a-z]"}, "ab", "Parameter 'P' must match pattern [a-z]"),
        ({"Type": "CommaDelimitedList", "AllowedValues": ["a"]}, "a,b", "Parameter 'P' must be one of AllowedValues"),
        (
            {"Type": "String", "AllowedValues": ["a"], "ConstraintDescription": "only a"},
            "b",
            "Parameter 'P' failed to satisfy constraint: only a",
        ),
    ],
)
def test_a_value_that_is_not_allowed_is_refused(definition: dict[str, Any], value: str, message: str) -> None:
    with pytest.raises(TemplateError) as raised:
        resolve_parameters({"P": definition}, {"P": value}, ssm=None)
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
