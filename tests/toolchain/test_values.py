"""Intrinsic functions give what the AWS documentation says they give.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html,
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html
"""

from typing import Any

import pytest

from toolchain.values import NO_VALUE, Evaluator, Scope, TemplateError, UnsupportedError, references, referred


class Known(Scope):
    """A stack with a few of everything."""

    references = {  # noqa: RUF012
        "AWS::NoValue": NO_VALUE,
        "AWS::Region": "us-west-2",
        "Instance": "i-1",
        "Number": "16",
        "Zones": ["us-west-2a", "us-west-2b"],
    }

    def ref(self, name: str) -> Any:
        return self.references[name]

    def attribute(self, logical_id: str, attribute: str) -> Any:
        return f"{logical_id}->{attribute}"

    def stack_output(self, region: str | None, stack_name: str, output: str) -> Any:
        return [region, stack_name, output]

    def import_value(self, name: str) -> str:
        return f"value of {name}"

    def condition(self, name: str) -> bool:
        return name == "Yes"

    def mapping(self, name: str, top_level_key: str, second_level_key: str) -> Any:
        return [name, top_level_key, second_level_key]


def evaluate(value: Any) -> Any:
    return Evaluator(Known()).evaluate(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "Instance"}, "i-1"),
        ({"Fn::GetAtt": ["A", {"Ref": "Number"}]}, "A->16"),
        (
            {"Fn::GetStackOutput": {"StackName": "s", "OutputName": "o", "Region": {"Ref": "AWS::Region"}}},
            ["us-west-2", "s", "o"],
        ),
        ({"Fn::ImportValue": {"Fn::Sub": "${AWS::Region}-x"}}, "value of us-west-2-x"),
        ({"Fn::Join": [":", ["a", "b", "c"]]}, "a:b:c"),
        ({"Fn::Join": ["", [True, 1, {"Ref": "AWS::NoValue"}]]}, "true1"),
        ({"Fn::Select": ["1", ["a", "b"]]}, "b"),
        ({"Fn::Split": ["|", "a|b||c|"]}, ["a", "b", "", "c", ""]),
        ({"Fn::Sub": "${Instance} ${A.B.C} ${!Literal} $x"}, "i-1 A->B.C ${Literal} $x"),
        ({"Fn::Sub": ["${Own}-${Instance}", {"Own": {"Fn::Select": [0, {"Ref": "Zones"}]}}]}, "us-west-2a-i-1"),
        ({"Fn::FindInMap": ["M", {"Ref": "AWS::Region"}, 64]}, ["M", "us-west-2", "64"]),
        ({"Fn::Base64": "a b"}, "YSBi"),
        ({"Fn::If": ["Yes", 1, {"Ref": "Nowhere"}]}, 1),
        ({"a": {"Fn::If": ["No", 1, {"Ref": "AWS::NoValue"}]}, "b": 2}, {"b": 2}),
    ],
)
def test_values(value: Any, expected: Any) -> None:
    assert evaluate(value) == expected


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({"Condition": "Yes"}, True),
        ({"Fn::Equals": [{"Ref": "Number"}, 16]}, True),
        ({"Fn::Equals": ["a", "A"]}, False),
        ({"Fn::And": [{"Condition": "Yes"}, {"Condition": "No"}]}, False),
        ({"Fn::Or": [{"Condition": "No"}, {"Condition": "Yes"}]}, True),
        ({"Fn::Not": [{"Fn::Not": [{"Condition": "Yes"}]}]}, True),
        ({"Fn::Contains": [["m1.large", "m1.small"], "m1.small"]}, True),
    ],
)
def test_conditions(definition: Any, expected: bool) -> None:
    assert Evaluator(Known()).condition(definition) is expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"Fn::Select": [2, ["a", "b"]]}, "Fn::Select cannot select nonexistent value at index 2"),
        ({"Fn::Sub": "${Zones}"}, "['us-west-2a', 'us-west-2b'] does not resolve to a string"),
    ],
)
def test_wrong_arguments_are_errors_of_the_template(value: Any, message: str) -> None:
    with pytest.raises(TemplateError) as raised:
        evaluate(value)
    assert str(raised.value).startswith("Template error: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({"Fn::Transform": {"Name": "AWS::Include"}}, "intrinsic function Fn::Transform"),
        ("{{resolve:secretsmanager:x}}", "dynamic reference to secretsmanager:x"),
        ({"Fn::ImportValue": "x"}, "Fn::ImportValue of x"),
    ],
)
def test_what_is_unsupported_is_named(value: Any, name: str) -> None:
    class Nothing(Scope):
        pass

    with pytest.raises(UnsupportedError, match=name):
        Evaluator(Nothing()).evaluate(value)


def test_references_are_those_of_every_function() -> None:
    value = {
        "a": [{"Ref": "R"}, {"Ref": "AWS::Region"}, {"Fn::GetAtt": "G.x.y"}, {"Fn::GetAtt": ["H", {"Ref": "P"}]}],
        "b": {"Fn::Sub": ["${Own}${S}${T.x}${!Not}${AWS::StackId}", {"Own": {"Ref": "V"}}]},
        "c": {"Fn::If": ["C", {"Ref": "Then"}, {"Ref": "Else"}]},
    }
    always = {"R", "G", "H", "P", "S", "T", "V"}
    assert references(value) == always | {"Then", "Else"}
    assert references(value, {"C": True}) == always | {"Then"}
    assert references(value, {"C": False}) == always | {"Else"}
    assert references(value, {}) == always


def test_what_a_text_refers_to_comes_in_its_order() -> None:
    """So that two runs of a program tell the same: the order of a set differs."""
    names = [f"Name{number}" for number in range(40)]
    assert [name for name, _ in referred({"Fn::Sub": "".join(f"${{{name}}}" for name in names)})] == names
