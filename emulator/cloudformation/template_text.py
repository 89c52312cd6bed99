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
_MEMBERS = {
    "Outputs": {"Condition", "Description", "Export", "Value"},
    "Parameters": {
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
    },
    "Resources": {
        "Condition",
        "CreationPolicy",
        "DeletionPolicy",
        "DependsOn",
        "Metadata",
        "Properties",
        "Type",
        "UpdatePolicy",
        "UpdateReplacePolicy",
    },
}


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
    """Check that a template has the sections and members that there are. Their forms are left to who writes templates.

    Raises:
        TemplateError: It has others; the message is CloudFormation's.
        UnsupportedError: A function stands in the place of a member, as with AWS::LanguageExtensions.
    """
    for path in _nulls(body):
        raise TemplateError(f"[{path}] 'null' values are not allowed in templates")
    if unknown := sorted(str(section) for section in body.keys() - _SECTIONS):
        raise TemplateError(f"Invalid template property or properties [{', '.join(unknown)}]")
    if not body.get("Resources"):
        raise TemplateError("Template format error: At least one Resources member must be defined.")
    for section, allowed in _MEMBERS.items():
        for name, member in body.get(section, {}).items():
            if str(name).startswith("Fn::"):
                raise UnsupportedError(f"intrinsic function {name} in {section}")
            if section != "Outputs" and "Type" not in member:
                where = f"[/{section}/{name}] Every {section} object must contain a Type member."
                raise TemplateError(f"Template format error: {where}")
            for key in sorted(member.keys() - allowed):
                raise TemplateError(f"Invalid template {section[:-1].lower()} property '{key}'")
    if not all("Value" in output for output in body.get("Outputs", {}).values()):
        raise TemplateError("Template format error: Every Outputs member must contain a Value object")


def _nulls(value: Any, path: str = "") -> Iterator[str]:
    if value is None:
        yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from _nulls(member, f"{path}/{key}")
