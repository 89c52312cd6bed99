"""A template: its text, what is checked before anything starts, its rules and dependencies.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html

Not all mistakes are found: cfn-lint checks this project's own templates (`tests/stacks/test_validation.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

import yaml

from emulator.cloudformation.parameters import check_definition
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
_RESOURCE_MEMBERS = {
    "Condition",
    "DeletionPolicy",
    "DependsOn",
    "Metadata",
    "Properties",
    "Type",
    "UpdateReplacePolicy",
}
_DELETION_POLICIES = {"Delete", "Retain", "RetainExceptOnCreate"}
_SNAPSHOTS = {"AWS::RDS::DBInstance"}
"""Types of which a deletion policy can keep a snapshot, as it does by default.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html
"""
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
    """A resource as its template has it."""

    logical_id: str
    type: str
    properties: Mapping[str, Any]
    depends_on: tuple[str, ...] = ()
    condition: str | None = None
    deletion_policy: str = "Delete"
    update_replace_policy: str = "Delete"
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
        if not body.get("Resources"):
            raise TemplateError("Template format error: At least one Resources member must be defined.")
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
        for block in ("Resources", "Outputs"):
            self._check_references(block)

    def _check_references(self, block: str) -> None:
        names = references(self.body.get(block, {}))
        if block == "Resources":
            names |= {name for each in self.resources.values() for name in each.depends_on}
        if unresolved := names - self.parameters.keys() - self.resources.keys():
            listed = ", ".join(sorted(unresolved))
            message = f"Unresolved resource dependencies [{listed}] in the {block} block of the template"
            raise TemplateError(f"Template format error: {message}")


class _Loader(yaml.SafeLoader):
    """YAML with the short forms of functions."""


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
    try:
        body = json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, _Loader)  # noqa: S506 - is safe
    except (json.JSONDecodeError, yaml.YAMLError) as error:
        raise TemplateError(f"Template format error: not well-formed: {error}") from None
    if not isinstance(body, dict):
        raise TemplateError("Template format error: unsupported structure.")
    return body


def _resource(logical_id: str, member: Mapping[str, Any]) -> ResourceDefinition:
    if "Type" not in member:
        where = f"[/Resources/{logical_id}] Every Resources object must contain a Type member."
        raise TemplateError(f"Template format error: {where}")
    if unknown := sorted(member.keys() - _RESOURCE_MEMBERS):
        raise UnsupportedError(f"{', '.join(unknown)} of {logical_id}")
    depends_on = member.get("DependsOn", [])
    has_snapshots = member["Type"] in _SNAPSHOTS
    policies = [
        member.get("DeletionPolicy", "Snapshot" if has_snapshots else "Delete"),
        member.get("UpdateReplacePolicy", "Delete"),
    ]
    if not (_DELETION_POLICIES | ({"Snapshot"} if has_snapshots else set())).issuperset(policies):
        raise UnsupportedError(f"policy {' or '.join(policies)} of {logical_id}")
    return ResourceDefinition(
        logical_id=logical_id,
        type=member["Type"],
        properties=member.get("Properties", {}),
        depends_on=tuple(depends_on if isinstance(depends_on, list) else [depends_on]),
        condition=member.get("Condition"),
        deletion_policy=policies[0],
        update_replace_policy=policies[1],
        metadata=member.get("Metadata", {}),
    )
