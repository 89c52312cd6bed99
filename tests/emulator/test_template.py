"""Templates are read and refused as CloudFormation does, in its words."""

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.cloudformation.parameters import Parameter, resolve_parameters
from emulator.cloudformation.template import Template
from toolchain.values import TemplateError, UnsupportedError

ROOT = Path(__file__).parents[2]
GUIDE = "https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide"
REFERENCE = "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference"
KNOWLEDGE_CENTER = "https://repost.aws/knowledge-center/cloudformation-template-validation"
BLOG = "https://aws.amazon.com/blogs/infrastructure-and-automation"
CIRCLES = f"{BLOG}/handling-circular-dependency-errors-in-aws-cloudformation/"
PARAMETERS = f"{GUIDE}/parameters-section-structure.html"
BUCKET: dict[str, Any] = {"Type": "AWS::S3::Bucket"}


def template(**sections: Any) -> Template:
    return Template.parse(json.dumps({"Resources": {"B": BUCKET}, **sections}))


def bucket(**properties: Any) -> dict[str, Any]:
    return {**BUCKET, "Properties": properties}


def parameters(definition: dict[str, Any], *, given: dict[str, str] | None = None) -> Parameter:
    """Return the one parameter of a template."""
    return resolve_parameters(
        template(Parameters={"P": definition}).parameters, given or {}, None, {"/name": "a, b"}.__getitem__
    )["P"]


def test_short_forms_of_yaml_are_those_of_json() -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html."""
    text = """
        AWSTemplateFormatVersion: 2010-09-09
        Conditions:
          C: !Not [!Equals [!Ref AWS::Region, us-east-1]]
          D: !And [!Condition C, !Condition C]
        Resources:
          B:
            Type: AWS::S3::Bucket
            Properties:
              BucketName: !Sub
                - "${X}-${AWS::Region}"
                - X: !GetAtt A.Outputs.Name
              Tags: !If [C, [{Key: Since, Value: 2012-10-17}], !Ref AWS::NoValue]
              BucketEncryption: !GetStackOutput {StackName: s, OutputName: o}
    """
    body = Template.parse(text).body
    assert body["AWSTemplateFormatVersion"] == "2010-09-09"
    assert body["Conditions"] == {
        "C": {"Fn::Not": [{"Fn::Equals": [{"Ref": "AWS::Region"}, "us-east-1"]}]},
        "D": {"Fn::And": [{"Condition": "C"}, {"Condition": "C"}]},
    }
    assert body["Resources"]["B"]["Properties"] == {
        "BucketName": {"Fn::Sub": ["${X}-${AWS::Region}", {"X": {"Fn::GetAtt": "A.Outputs.Name"}}]},
        "Tags": {"Fn::If": ["C", [{"Key": "Since", "Value": "2012-10-17"}], {"Ref": "AWS::NoValue"}]},
        "BucketEncryption": {"Fn::GetStackOutput": {"StackName": "s", "OutputName": "o"}},
    }


@pytest.mark.parametrize(
    ("text", "message", "source"),
    [
        ('{"Resources": }', "Template format error: JSON not well-formed. (line 1, column 15)", KNOWLEDGE_CENTER),
        ("- a", "Template format error: unsupported structure.", KNOWLEDGE_CENTER),
    ],
)
def test_text_that_is_no_template(text: str, message: str, source: str) -> None:
    with pytest.raises(TemplateError) as raised:
        Template.parse(text)
    assert str(raised.value) == message, source


@pytest.mark.parametrize(
    ("sections", "message", "source"),
    [
        ({"Resources": {}}, "Template format error: At least one Resources member must be defined.", KNOWLEDGE_CENTER),
        ({"Resorces": {}, "X": 1}, "Invalid template property or properties [Resorces, X]", KNOWLEDGE_CENTER),
        (
            {"Resources": {"A": {"Properties": {}}}},
            "Template format error: [/Resources/A] Every Resources object must contain a Type member.",
            KNOWLEDGE_CENTER,
        ),
        (
            {"Resources": {"A": {**BUCKET, "BucketName": "x"}}},
            "Invalid template resource property 'BucketName'",
            KNOWLEDGE_CENTER,
        ),
        (
            {"Resources": {"A": bucket(BucketName=None)}},
            "[/Resources/A/Properties/BucketName] 'null' values are not allowed in templates",
            KNOWLEDGE_CENTER,
        ),
        (
            {"Outputs": {"O": {"Description": "x"}}},
            "Template format error: Every Outputs member must contain a Value object",
            f"{GUIDE}/outputs-section-structure.html",
        ),
    ],
)
def test_a_wrong_structure_is_refused(sections: dict[str, Any], message: str, source: str) -> None:
    with pytest.raises(TemplateError) as raised:
        template(**sections)
    assert str(raised.value) == message, source


@pytest.mark.parametrize(
    ("sections", "message", "source"),
    [
        (
            {"Resources": {"A": {"Type": "AWS::EC2::Vpc"}}},
            "Template format error: Unrecognized resource types: [AWS::EC2::Vpc]",
            KNOWLEDGE_CENTER,
        ),
        (
            {"Resources": {f"B{number}": BUCKET for number in range(501)}},
            "Template format error: Number of resources, 501, is greater than maximum allowed, 500",
            f"{GUIDE}/cloudformation-limits.html",
        ),
        (
            {"Metadata": {"x": "y" * 1_000_000}},
            "Template may not exceed 1000000 bytes in size.",
            f"{GUIDE}/cloudformation-limits.html",
        ),
        (
            {"Parameters": {"B": {"Type": "String"}}},
            "Template error: all resources and parameters must have unique names. Common name(s):[B]",
            PARAMETERS,
        ),
        (
            {"Resources": {"A": bucket(BucketName={"Ref": "X"})}},
            "Template format error: Unresolved resource dependencies [X] in the Resources block of the template",
            KNOWLEDGE_CENTER,
        ),
        (
            {"Resources": {"A": {**BUCKET, "DependsOn": ["X"]}}},
            "Template format error: Unresolved resource dependencies [X] in the Resources block of the template",
            KNOWLEDGE_CENTER,
        ),
        (
            {"Outputs": {"O": {"Value": {"Fn::GetAtt": ["X", "Arn"]}}}},
            "Template error: instance of Fn::GetAtt references undefined resource X",
            f"{REFERENCE}/intrinsic-function-reference-getatt.html",
        ),
        (
            {"Outputs": {"O": {"Value": {"Fn::GetAtt": ["B", "Arm"]}}}},
            "Template error: resource B does not support attribute type Arm in Fn::GetAtt",
            f"{REFERENCE}/intrinsic-function-reference-getatt.html",
        ),
        (
            {"Outputs": {"O": {"Value": {"Fn::ImportValue": {"Ref": "B"}}}}},
            "Template error: the attribute in Fn::ImportValue must not depend on any resources, imported values, "
            "or Fn::GetAZs",
            f"{REFERENCE}/intrinsic-function-reference-importvalue.html",
        ),
        (
            {"Outputs": {"O": {"Value": {"Fn::If": ["C", 1, 2]}}}},
            "Template error: unresolved condition dependency C in Fn::If",
            f"{GUIDE}/conditions-section-structure.html",
        ),
        (
            {"Resources": {"A": {**BUCKET, "Condition": "C"}}},
            "Template format error: Unresolved condition dependency C in the Resources block of the template",
            f"{GUIDE}/conditions-section-structure.html",
        ),
        (
            {"Conditions": {"C": {"Fn::Equals": [{"Ref": "B"}, "x"]}}},
            "Template format error: Unresolved dependencies [B]. Cannot reference resources in the Conditions block of "
            "the template",
            f"{GUIDE}/conditions-section-structure.html",
        ),
        (
            {"Conditions": {"C": {"Fn::Not": [{"Condition": "D"}]}, "D": {"Condition": "C"}}},
            "Template error: Found circular condition dependency: [C, D]",
            f"{GUIDE}/conditions-section-structure.html",
        ),
        (
            {"Resources": {"A": {**BUCKET, "DeletionPolicy": "Keep"}}},
            "Template format error: Unrecognized DeletionPolicy Keep for resource A",
            f"{REFERENCE}/aws-attribute-deletionpolicy.html",
        ),
        (
            {"Resources": {"A": bucket(BucketName={"Ref": "C"}), "B": BUCKET, "C": {**BUCKET, "DependsOn": "A"}}},
            "Circular dependency between resources: [A, C]",
            CIRCLES,
        ),
    ],
)
def test_a_template_that_cannot_work_is_refused(sections: dict[str, Any], message: str, source: str) -> None:
    with pytest.raises(TemplateError) as raised:
        template(**sections).check()
    assert str(raised.value) == message, source


@pytest.mark.parametrize(
    ("sections", "name"),
    [
        ({"Transform": "AWS::LanguageExtensions"}, "transform AWS::LanguageExtensions"),
        ({"Resources": {"A": bucket(BucketName={"Fn::Length": [], "x": 1})}}, "intrinsic function Fn::Length"),
    ],
)
def test_what_is_unknown_here_is_named(sections: dict[str, Any], name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        template(**sections).check()


def test_the_bootstrap_template_of_the_cdk_is_accepted() -> None:
    text = (ROOT / "node_modules/aws-cdk/lib/api/bootstrap/bootstrap-template.yaml").read_text()
    bootstrap = Template.parse(text)
    bootstrap.check()
    assert bootstrap.capabilities() == {"CAPABILITY_NAMED_IAM"}


@pytest.mark.parametrize("path", sorted((ROOT / "tests/snapshots/trn1-16").glob("*.json")), ids=lambda path: path.stem)
def test_our_own_templates_are_accepted(path: Path) -> None:
    ours = Template.parse(path.read_text())
    ours.check()
    ours.check_rules(resolve_parameters(ours.parameters, {}, None, lambda _: "32"))


def test_a_reference_to_a_resource_that_is_not_created_is_unresolved() -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/conditions-section-structure.html."""
    conditional = template(
        Conditions={"C": {"Fn::Equals": ["a", "a"]}, "D": {"Fn::Equals": ["a", "a"]}},
        Resources={"A": {**BUCKET, "Condition": "C"}, "B": bucket(BucketName={"Fn::If": ["D", {"Ref": "A"}, "x"]})},
        Outputs={"O": {"Value": {"Ref": "A"}, "Condition": "C"}},
    )
    conditional.check()
    for holds in ({"C": True, "D": True}, {"C": False, "D": False}):
        conditional.check_conditions(holds)
    with pytest.raises(TemplateError, match=r"Unresolved resource dependencies \[A\] in the Resources block"):
        conditional.check_conditions({"C": False, "D": True})


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"B": BUCKET}, set()),
        ({"R": {"Type": "AWS::IAM::Role"}}, {"CAPABILITY_IAM"}),
        ({"P": {"Type": "AWS::IAM::Policy", "Properties": {"PolicyName": "p"}}}, {"CAPABILITY_IAM"}),
        (
            {"P": {"Type": "AWS::IAM::Policy"}, "R": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "r"}}},
            {"CAPABILITY_NAMED_IAM"},
        ),
    ],
)
def test_capabilities(resources: dict[str, Any], expected: set[str]) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html."""
    assert template(Resources=resources).capabilities() == expected


@pytest.mark.parametrize(
    ("definition", "given", "value", "resolved"),
    [
        ({"Type": "String", "Default": "d"}, None, "d", "d"),
        ({"Type": "CommaDelimitedList"}, "a, b,c", "a, b,c", ["a", "b", "c"]),
        ({"Type": "AWS::SSM::Parameter::Value<String>"}, "/name", "/name", "a, b"),
        ({"Type": "AWS::SSM::Parameter::Value<List<String>>"}, "/name", "/name", ["a", "b"]),
    ],
)
def test_values_of_parameters(definition: dict[str, Any], given: str | None, value: str, resolved: Any) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html."""
    found = parameters(definition, given=None if given is None else {"P": given})
    assert found == Parameter("P", value, resolved)


@pytest.mark.parametrize(
    ("definition", "given", "message"),
    [
        ({"Type": "String"}, {}, "Parameters: [P] must have values"),
        ({"Type": "String"}, {"P": "x", "Q": "x"}, "Parameters: [Q] do not exist in the template"),
        ({"Type": "String", "AllowedPattern": "[a-z]+"}, {"P": "ab1"}, "Parameter 'P' must match pattern [a-z]+"),
        ({"Type": "String", "MinLength": "3"}, {"P": "ab"}, "Parameter 'P' must contain at least 3 characters"),
        ({"Type": "Number", "MinValue": 2}, {"P": "1.5"}, "Parameter 'P' must be a number not less than 2"),
        (
            {"Type": "AWS::SSM::Parameter::Value<String>"},
            {"P": "/missing"},
            "Unable to fetch parameters [/missing] from parameter store for this account.",
        ),
    ],
)
def test_wrong_values_of_parameters(definition: dict[str, Any], given: dict[str, str], message: str) -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html."""
    with pytest.raises(TemplateError) as raised:
        parameters(definition, given=given)
    assert str(raised.value) == message


RULE = {
    "RuleCondition": {"Fn::Equals": [{"Ref": "P"}, "prod"]},
    "Assertions": [
        {"Assert": {"Fn::Contains": [["a1.large"], {"Ref": "Q"}]}, "AssertDescription": "Production needs an a1.large."}
    ],
}


def test_a_rule_is_asserted_under_its_condition() -> None:
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/rules-section-structure.html."""
    ruled = template(Parameters={"P": {"Type": "String"}, "Q": {"Type": "String"}}, Rules={"R": RULE})

    def check(**given: str) -> None:
        ruled.check_rules(resolve_parameters(ruled.parameters, given, None, str))

    check(P="prod", Q="a1.large")
    check(P="test", Q="a1.medium")
    with pytest.raises(TemplateError, match=r"Template error: rule R failed: Production needs an a1.large\."):
        check(P="prod", Q="a1.medium")
