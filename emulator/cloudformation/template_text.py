"""The text of a template: JSON or YAML, and the shape that every part of it must have.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from typing import Any

import yaml

from toolchain.values import TemplateError, UnsupportedError

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
    "Transform",
}
_RESOURCE_MEMBERS = {
    "Condition",
    "CreationPolicy",
    "DeletionPolicy",
    "DependsOn",
    "Metadata",
    "Properties",
    "Type",
    "UpdatePolicy",
    "UpdateReplacePolicy",
}
_PARAMETER_MEMBERS = {
    "AllowedPattern",
    "AllowedValues",
    "ConstraintDescription",
    "Default",
    "Description",
    "MaxLength",
    "MaxValue",
    "MinLength",
    "MinValue",
    "NoEcho",
    "Type",
}
_OUTPUT_MEMBERS = {"Condition", "Description", "Export", "Value"}
_LONGEST_DESCRIPTION = 1024


class _Loader(yaml.SafeLoader):
    """YAML as CloudFormation takes it: short forms of functions, no aliases, dates as strings.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-formats.html
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - the base class's own form
        first: [(tag, pattern) for tag, pattern in resolvers if tag.rsplit(":", 1)[1] not in {"merge", "timestamp"}]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise TemplateError("Template error: YAML aliases are not allowed in CloudFormation templates")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        # Names are strings, also where they look like numbers: account ids are common keys of mappings.
        return {str(name.value): self.construct_object(value, deep=deep) for name, value in node.value}


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


def read(text: str) -> dict[str, Any]:
    """Return what a template says, with short forms of functions written out.

    Raises:
        TemplateError: It is neither JSON nor YAML, or no mapping.
    """
    body = _parsed(text)
    if not isinstance(body, dict):
        raise TemplateError("Template format error: unsupported structure.")
    return body


def _parsed(text: str) -> Any:
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            where = f"(line {error.lineno}, column {error.colno})"
            raise TemplateError(f"Template format error: JSON not well-formed. {where}") from None
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise TemplateError(f"Template format error: YAML not well-formed.{where}") from None


def check_structure(body: dict[str, Any]) -> None:
    """Check that every part has the shape that `template` and `parameters` read.

    Raises:
        TemplateError: One has another; the message is CloudFormation's.
        UnsupportedError: A function stands in the place of a member, as with AWS::LanguageExtensions.
    """
    for path in _nulls(body):
        raise TemplateError(f"[{path}] 'null' values are not allowed in templates")
    unknown = sorted(str(section) for section in body.keys() - _SECTIONS)
    if unknown:
        raise TemplateError(f"Invalid template property or properties [{', '.join(unknown)}]")
    version = body.get("AWSTemplateFormatVersion", "2010-09-09")
    if version != "2010-09-09":
        raise TemplateError(f"Template format error: {version} is not a supported value for AWSTemplateFormatVersion")
    if not isinstance(body.get("Description", ""), str):
        raise TemplateError("Template format error: Description must be a string.")
    if len(body.get("Description", "").encode()) > _LONGEST_DESCRIPTION:
        raise TemplateError(f"Template format error: 'Description' length is greater than {_LONGEST_DESCRIPTION}.")
    for section in ("Conditions", "Mappings", "Metadata", "Outputs", "Parameters", "Resources", "Rules"):
        if not isinstance(body.get(section, {}), dict):
            raise TemplateError(f"Template format error: {section} must be a JSON object.")
    if not body.get("Resources"):
        raise TemplateError("Template format error: At least one Resources member must be defined.")
    for section in ("Mappings", "Outputs", "Parameters", "Resources", "Rules"):
        for name, member in body.get(section, {}).items():
            if not isinstance(member, dict):
                if "Fn::" in str(name):
                    raise UnsupportedError(f"intrinsic function {name} in {section}")
                raise TemplateError(f"Template format error: Any {section} member must be a JSON object.")
    _check_members(body)
    _check_resources(body["Resources"])


def _check_members(body: dict[str, Any]) -> None:
    sections = {"Outputs": _OUTPUT_MEMBERS, "Parameters": _PARAMETER_MEMBERS, "Resources": _RESOURCE_MEMBERS}
    for section, allowed in sections.items():
        for name, member in body.get(section, {}).items():
            if section != "Outputs" and not isinstance(member.get("Type"), str):
                where = f"[/{section}/{name}] Every {section} object must contain a Type member."
                raise TemplateError(f"Template format error: {where}")
            for key in sorted(member.keys() - allowed):
                raise TemplateError(f"Invalid template {section[:-1].lower()} property '{key}'")
    for output in body.get("Outputs", {}).values():
        if "Value" not in output:
            raise TemplateError("Template format error: Every Outputs member must contain a Value object")
        if not isinstance(output.get("Export", {}), dict):
            raise TemplateError("Template format error: Every Export member must be a JSON object.")
    attributes = (each for mapping in body.get("Mappings", {}).values() for each in mapping.values())
    for attribute in attributes:
        if not isinstance(attribute, dict):
            raise TemplateError("Template format error: Every Mappings attribute must be a JSON object.")
        if any(isinstance(value, dict) for value in attribute.values()):
            raise TemplateError("Template format error: Every Mappings attribute must be a String or a List.")
    for name, rule in body.get("Rules", {}).items():
        assertions = rule.get("Assertions")
        if not isinstance(assertions, list) or not all("Assert" in each for each in assertions):
            raise TemplateError(f"Template format error: rule {name} must contain Assertions with an Assert each")


def _check_resources(resources: dict[str, Any]) -> None:
    for resource in resources.values():
        for key in ("CreationPolicy", "Metadata", "Properties", "UpdatePolicy"):
            if not isinstance(resource.get(key, {}), dict):
                raise TemplateError(f"Template format error: Any {key} member must be a JSON object.")
        depends_on = resource.get("DependsOn", [])
        if not all(isinstance(each, str) for each in (depends_on if isinstance(depends_on, list) else [depends_on])):
            raise TemplateError("Template format error: Every DependsOn value must be a string.")
        if not isinstance(resource.get("Condition", ""), str):
            raise TemplateError("Template format error: Every Condition member must be a string.")


def _nulls(value: Any, path: str = "") -> Iterator[str]:
    if value is None:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from _nulls(member, f"{path}/{key}")
