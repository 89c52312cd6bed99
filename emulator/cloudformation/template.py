"""A template: its text, its rules and dependencies. What is wrong with it, `validation` says.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

import yaml

from emulator.cloudformation.parameters import check_definition
from emulator.cloudformation.validation import (
    POLICIES,
    check_functions,
    check_resolved,
    check_structure,
    depends_on,
)
from toolchain import schemas
from toolchain.values import (
    TemplateError,
    UnsupportedError,
    references,
)

_SECTIONS = {
    "AWSTemplateFormatVersion",
    "Conditions",
    "Description",
    "Mappings",
    "Metadata",
    "Outputs",
    "Parameters",
    "Resources",
    "Rules",
}
_NAME_PROPERTIES = {
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Policy": None,
    "AWS::IAM::Role": "RoleName",
}
"""Types that need CAPABILITY_IAM, and the property with which they need CAPABILITY_NAMED_IAM.

https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateStack.html
"""


@dataclass(frozen=True)
class ResourceDefinition:
    """A resource as its template has it; `policies` are DeletionPolicy and UpdateReplacePolicy."""

    logical_id: str
    type: str
    properties: Mapping[str, Any]
    depends_on: tuple[str, ...] = ()
    condition: str | None = None
    policies: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Template:
    """One template: its text as it was given, its body with short forms of functions written out, and its sections."""

    def __init__(self, text: str, body: dict[str, Any]) -> None:
        self.text = text
        self.body = body
        self.description: str | None = body.get("Description")
        self.conditions: Mapping[str, Any] = body.get("Conditions", {})
        self.outputs: Mapping[str, Mapping[str, Any]] = body.get("Outputs", {})
        self.mappings: Mapping[str, Any] = body.get("Mappings", {})
        self.rules: Mapping[str, Any] = body.get("Rules", {})
        self.parameters: Mapping[str, Mapping[str, Any]] = body.get("Parameters", {})
        self.resources = {logical_id: _resource(logical_id, each) for logical_id, each in body["Resources"].items()}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a template in JSON or YAML, and check all that does not depend on the parameters' values.

        Raises:
            TemplateError: CloudFormation would refuse the template.
            UnsupportedError: It has a transform or a function that is unknown here; the message names it.
        """
        body = _read(text)
        if "Transform" in body:
            raise UnsupportedError(f"transform {body['Transform']}")
        if unknown := sorted(body.keys() - _SECTIONS):
            raise TemplateError(f"Invalid template property or properties [{', '.join(unknown)}]")
        check_structure(body)
        template = cls(text, body)
        template._check()
        return template

    def dependencies(self, logical_id: str, conditions: Mapping[str, bool]) -> set[str]:
        """Return the resources that have to exist before this one.

        Of an Fn::If only the branch taken counts, and resources that are not created are left out.
        """
        definition = self.resources[logical_id]
        names = references([definition.properties, definition.metadata], conditions) | set(definition.depends_on)
        return {
            name for name in names & self.resources.keys() if conditions.get(self.resources[name].condition or "", True)
        }

    def capabilities(self) -> set[str]:
        """Return what the caller has to acknowledge: of the two for IAM at most one, the stronger."""
        capabilities = set()
        iam = [each for each in self.resources.values() if each.type in _NAME_PROPERTIES]
        if any(_NAME_PROPERTIES[each.type] in each.properties for each in iam):
            capabilities.add("CAPABILITY_NAMED_IAM")
        elif iam:
            capabilities.add("CAPABILITY_IAM")
        return capabilities

    def check_rules(self, holds: Callable[[Any], bool]) -> None:
        """Check the assertions of the rules.

        Raises:
            TemplateError: One does not hold.
        """
        for name, rule in self.rules.items():
            if "RuleCondition" in rule and not holds(rule["RuleCondition"]):
                continue
            for assertion in rule["Assertions"]:
                if not holds(assertion["Assert"]):
                    reason = assertion.get("AssertDescription", json.dumps(assertion["Assert"]))
                    raise TemplateError(f"Template error: rule {name} failed: {reason}")

    def check_circles(self, conditions: Mapping[str, bool]) -> None:
        """Check that no resource waits for itself.

        Raises:
            TemplateError: One does.
        """
        try:
            TopologicalSorter({name: self.dependencies(name, conditions) for name in self.resources}).prepare()
        except CycleError as error:
            circle = [name for name in self.resources if name in error.args[1]]
            raise TemplateError(f"Circular dependency between resources: [{', '.join(circle)}]") from None

    def check_presence(self, conditions: Mapping[str, bool]) -> None:
        """Check that nothing refers to a resource that is not created.

        Of an Fn::If only the branch taken counts, and a DependsOn counts not at all.

        Raises:
            TemplateError: Something does.
        """
        for definition in self.resources.values():
            if conditions.get(definition.condition or "", True):
                values = [definition.properties, definition.metadata]
                check_resolved(self._absent(values, conditions), "Resources")
        for output in self.outputs.values():
            if conditions.get(output.get("Condition", ""), True):
                check_resolved(self._absent(output, conditions), "Outputs", kind="")

    def _absent(self, value: Any, conditions: Mapping[str, bool]) -> set[str]:
        names = references(value, conditions) & self.resources.keys()
        return {name for name in names if not conditions.get(self.resources[name].condition or "", True)}

    def find_in_map(self, name: str, top_level_key: str, second_level_key: str) -> Any:
        """Return a value of a mapping.

        Raises:
            TemplateError: There is none.
        """
        try:
            return self.mappings[name][top_level_key][second_level_key]
        except KeyError:
            path = f"{name}::{top_level_key}::{second_level_key}"
            raise TemplateError(f"Template error: Unable to get mapping for {path}") from None

    def _check(self) -> None:
        for key, definition in self.parameters.items():
            check_definition(key, definition)
        unknown = {each.type for each in self.resources.values() if not schemas.known(each.type)}
        if unknown:
            raise TemplateError(f"Template format error: Unrecognized resource types: [{', '.join(sorted(unknown))}]")
        check_functions(self.body)


class _Loader(yaml.SafeLoader):
    """YAML with the short forms of functions; keys are text, and so are dates.

    CloudFormation has neither the tag `timestamp` nor aliases nor merged mappings of YAML 1.1:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-formats.html
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node that is no alias.

        Raises:
            TemplateError: It is one; the words are AWS's, as many quote them.
        """
        if self.check_event(yaml.AliasEvent):
            raise TemplateError("Template error: YAML aliases are not allowed in CloudFormation templates")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Construct a mapping whose keys are the text that stands there, such as the number of an account."""
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep)


_UNKNOWN_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("timestamp", "merge", "value")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _UNKNOWN_TAGS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _short_form(loader: _Loader, name: str, node: yaml.Node) -> dict[str, Any]:
    argument: Any
    if isinstance(node, yaml.ScalarNode):
        argument = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        argument = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        argument = loader.construct_mapping(node, deep=True)
    return {name if name in {"Ref", "Condition"} else f"Fn::{name}": argument}


_Loader.add_multi_constructor("!", _short_form)


def _read(text: str) -> dict[str, Any]:
    """Read a template in JSON or YAML.

    Raises:
        TemplateError: It is neither.
    """
    try:
        body = _read_json(text) if text.lstrip().startswith("{") else yaml.load(text, _Loader)  # noqa: S506 - is safe
    except TemplateError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise TemplateError(f"Template format error: YAML not well-formed.{where}") from None
    except (yaml.YAMLError, RecursionError, AttributeError, LookupError, TypeError, ValueError):  # as `!!bool x` fails
        raise TemplateError("Template format error: YAML not well-formed.") from None
    if not isinstance(body, dict):
        raise TemplateError("Template format error: unsupported structure.")
    if not _is_json(body):  # CloudFormation has no tags of YAML but those of its functions
        raise TemplateError("Template format error: YAML not well-formed.")
    return body


def _is_json(value: Any) -> bool:
    """Tell whether JSON has such values: no bytes, sets, dates or tuples, which tags of YAML 1.1 make."""
    if isinstance(value, Mapping):
        return all(isinstance(key, str) and _is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))


_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')
"""A string, or else a comma after the last member."""


def _read_json(text: str) -> Any:
    """Read JSON, where a last comma may stand: LocalStack's cfn_lambda_serverless.yml, deployed on AWS, has one.

    Raises:
        TemplateError: It is none.
    """
    try:
        return json.loads(_LAST_COMMA.sub(lambda match: match[1] or " ", text))
    except json.JSONDecodeError as error:
        where = f"(line {error.lineno}, column {error.colno})"
        raise TemplateError(f"Template format error: JSON not well-formed. {where}") from None


def _resource(logical_id: str, member: Mapping[str, Any]) -> ResourceDefinition:
    return ResourceDefinition(
        logical_id=logical_id,
        type=member["Type"],
        properties=member.get("Properties", {}),
        depends_on=depends_on(member),
        condition=member.get("Condition"),
        policies={attribute: member[attribute] for attribute in POLICIES if attribute in member},
        metadata=member.get("Metadata", {}),
    )
