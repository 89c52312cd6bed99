"""A template: what CloudFormation checks before it starts, its rules and dependencies.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

from emulator.cloudformation.parameters import Parameter, parse_parameter
from emulator.cloudformation.template_text import check_structure, read
from toolchain import schemas
from toolchain.values import (
    NOT_BOOLEAN,
    Evaluator,
    Scope,
    TemplateError,
    UnsupportedError,
    attribute_reference,
    check_form,
    condition_names,
    intrinsic_function,
    intrinsics,
    references,
    substituted_names,
)

MAXIMUM_BYTES = 1_000_000
"""Of a template in S3. One in the request itself has fewer; that is the API's to check."""

_MAXIMUM_MEMBERS = {"Parameters": 200, "Mappings": 200, "Resources": 500, "Outputs": 200}
_SERVERLESS_TRANSFORM = "AWS::Serverless-2016-10-31"
_POLICIES = {
    "DeletionPolicy": {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"},
    "UpdateReplacePolicy": {"Delete", "Retain", "Snapshot"},
}

_NAME_PROPERTIES = {
    "AWS::IAM::AccessKey": None,
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Policy": None,
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
    "AWS::IAM::UserToGroupAddition": None,
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
    deletion_policy: str | None = None
    update_replace_policy: str | None = None
    creation_policy: Mapping[str, Any] = field(default_factory=dict)
    update_policy: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Template:
    """One template.

    Attributes:
        text: The text as it was given.
        body: The whole, with short forms of functions written out.
        parameters: Its parameters by name.
        resources: Its resources by logical id.
        conditions: Definitions of its conditions by name.
        outputs: Its outputs by name: `Value`, and perhaps `Description`, `Export` and `Condition`.
        mappings: Its mappings by name.
        rules: Its rules by name.
    """

    def __init__(self, text: str, body: dict[str, Any]) -> None:
        self.text = text
        self.body = body
        self.description: str | None = body.get("Description")
        self.metadata: Mapping[str, Any] = body.get("Metadata", {})
        self.conditions: Mapping[str, Any] = body.get("Conditions", {})
        self.outputs: Mapping[str, Mapping[str, Any]] = body.get("Outputs", {})
        self.mappings: Mapping[str, Any] = body.get("Mappings", {})
        self.rules: Mapping[str, Any] = body.get("Rules", {})
        self.parameters = {key: parse_parameter(key, each) for key, each in body.get("Parameters", {}).items()}
        self.resources = {logical_id: _resource(logical_id, each) for logical_id, each in body["Resources"].items()}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a template in JSON or YAML.

        Raises:
            TemplateError: It is not well-formed, or does not have the structure of a template.
        """
        body = read(text)
        check_structure(body)
        return cls(text, body)

    def check(self) -> None:
        """Check all that does not depend on the parameters' values.

        Raises:
            TemplateError: CloudFormation would refuse the template.
            UnsupportedError: It has a transform or a function that is unknown here; the message names it.
        """
        if len(self.text.encode()) > MAXIMUM_BYTES:
            raise TemplateError(f"Template may not exceed {MAXIMUM_BYTES} bytes in size.")
        self._check_transforms()
        self._check_names()
        unknown = {each.type for each in self.resources.values() if not schemas.known(each.type)}
        if unknown:
            raise TemplateError(f"Template format error: Unrecognized resource types: [{', '.join(sorted(unknown))}]")
        self._check_policies()
        self._check_conditions()
        for block in ("Resources", "Outputs"):
            self._check_functions(block)
            self._check_references(block)
        self._check_exports()
        self._check_cycles({})

    def check_conditions(self, conditions: Mapping[str, bool]) -> None:
        """Check what depends on the conditions: what refers to a resource that is not created, and circles.

        Args:
            conditions: All conditions, computed.

        Raises:
            TemplateError: CloudFormation would refuse the template with these parameters.
        """
        absent = {name for name, each in self.resources.items() if not conditions.get(each.condition or "", True)}
        created = [value for name, value in self.body["Resources"].items() if name not in absent]
        outputs = [each for each in self.outputs.values() if conditions.get(each.get("Condition", ""), True)]
        for block, values in (("Resources", created), ("Outputs", outputs)):
            self._check_resolved(block, absent & references(values, conditions))
        self._check_cycles(conditions)

    def dependencies(self, logical_id: str, conditions: Mapping[str, bool] | None = None) -> set[str]:
        """Return the resources that have to exist before this one.

        Args:
            logical_id: A resource.
            conditions: All conditions, computed; of an Fn::If only the branch taken counts, and resources that are not
                created are left out. Without them everything counts.
        """
        definition = self.resources[logical_id]
        found = references(self._values(definition), conditions) | set(definition.depends_on)
        return {
            name
            for name in found & self.resources.keys()
            if conditions is None or conditions.get(self.resources[name].condition or "", True)
        }

    def capabilities(self) -> set[str]:
        """Return what the caller has to acknowledge: of the two for IAM at most one, the stronger."""
        found = set()
        iam = [each for each in self.resources.values() if each.type in _NAME_PROPERTIES]
        if any(_NAME_PROPERTIES[each.type] in each.properties for each in iam):
            found.add("CAPABILITY_NAMED_IAM")
        elif iam:
            found.add("CAPABILITY_IAM")
        if self._transforms:
            found.add("CAPABILITY_AUTO_EXPAND")
        return found

    def check_rules(self, parameters: Mapping[str, Parameter]) -> None:
        """Check the assertions of the rules.

        Raises:
            TemplateError: One does not hold.
            UnsupportedError: A function is unknown here; the message names it.
        """
        evaluator = Evaluator(_RuleScope(parameters))
        for name, rule in self.rules.items():
            if "RuleCondition" in rule and not evaluator.condition(rule["RuleCondition"]):
                continue
            for assertion in rule["Assertions"]:
                if not evaluator.condition(assertion["Assert"]):
                    reason = assertion.get("AssertDescription", json.dumps(assertion["Assert"]))
                    raise TemplateError(f"Template error: rule {name} failed: {reason}")

    def find_in_map(self, name: str, top_level_key: str, second_level_key: str) -> Any:
        """Return a value of a mapping.

        Raises:
            TemplateError: There is none.
        """
        if name not in self.mappings:
            raise TemplateError(_no_mapping(name))
        try:
            return self.mappings[name][top_level_key][second_level_key]
        except KeyError:
            path = f"{name}::{top_level_key}::{second_level_key}"
            raise TemplateError(f"Template error: Unable to get mapping for {path}") from None

    @property
    def _transforms(self) -> list[Any]:
        transform = self.body.get("Transform", [])
        return transform if isinstance(transform, list) else [transform]

    def _check_transforms(self) -> None:
        for transform in self._transforms:
            serverless = [each.type for each in self.resources.values() if each.type.startswith("AWS::Serverless::")]
            if transform != _SERVERLESS_TRANSFORM or serverless:
                raise UnsupportedError(f"transform {transform}")

    def _check_names(self) -> None:
        for section, maximum in _MAXIMUM_MEMBERS.items():
            members = self.body.get(section, {})
            if len(members) > maximum:
                number = f"Number of {section.lower()}, {len(members)}"
                raise TemplateError(f"Template format error: {number}, is greater than maximum allowed, {maximum}")
            for name in members:
                if section != "Mappings" and not re.fullmatch("[A-Za-z0-9]+", name):
                    raise TemplateError(f"Template format error: {section[:-1]} name {name} is non alphanumeric.")
        common = [name for name in self.resources if name in self.parameters]
        if common:
            message = "all resources and parameters must have unique names. Common name(s)"
            raise TemplateError(f"Template error: {message}:[{', '.join(common)}]")

    def _check_policies(self) -> None:
        for logical_id, resource in self.body["Resources"].items():
            for name, values in _POLICIES.items():
                value = resource.get(name)
                if value is None:
                    continue
                if not isinstance(value, str):
                    raise TemplateError(f"Template format error: Every {name} member must be a string.")
                if value not in values:
                    raise TemplateError(f"Template format error: Unrecognized {name} {value} for resource {logical_id}")

    def _check_conditions(self) -> None:
        names = {name: condition_names(definition) for name, definition in self.conditions.items()}
        for definition in self.conditions.values():
            _check_boolean(definition)
            _check_forms(definition)
            unresolved = references(definition) - self.parameters.keys()
            if unresolved:
                raise TemplateError(
                    f"Template format error: Unresolved dependencies [{', '.join(sorted(unresolved))}]. "
                    "Cannot reference resources in the Conditions block of the template"
                )
        for block, used in (
            ("Conditions", set().union(*names.values())),
            ("Resources", {each.condition for each in self.resources.values() if each.condition}),
            ("Outputs", {each["Condition"] for each in self.outputs.values() if "Condition" in each}),
        ):
            for name in sorted(used - self.conditions.keys()):
                where = f"in the {block} block of the template"
                raise TemplateError(f"Template format error: Unresolved condition dependency {name} {where}")
        circle = _circle(names)
        if circle:
            raise TemplateError(f"Template error: Found circular condition dependency: [{', '.join(circle)}]")

    def _check_functions(self, block: str) -> None:
        _check_forms(self.body.get(block, {}))
        for function, argument in intrinsics(self.body.get(block, {})):
            match function:
                case "Fn::If" if argument[0] not in self.conditions:
                    raise TemplateError(f"Template error: unresolved condition dependency {argument[0]} in Fn::If")
                case "Fn::FindInMap" if isinstance(argument[0], str) and argument[0] not in self.mappings:
                    raise TemplateError(_no_mapping(argument[0]))
                case "Fn::ImportValue" if not self._is_static(argument):
                    raise TemplateError(
                        "Template error: the attribute in Fn::ImportValue must not depend on any resources, "
                        "imported values, or Fn::GetAZs"
                    )

    def _check_references(self, block: str) -> None:
        found = list(intrinsics(self.body.get(block, {})))
        for function, argument in found:
            attributes: Collection[Any] = ()
            if function == "Fn::GetAtt":
                attributes = [argument]
            elif function == "Fn::Sub":
                names = {name for name in substituted_names(argument) if not name.startswith("AWS::")}
                attributes = sorted(name for name in names if "." in name)
                self._check_resolved(block, {name for name in names if "." not in name} - self._referable)
            elif function == "Ref" and not argument.startswith("AWS::"):
                self._check_resolved(block, {argument} - self._referable)
            for attribute in attributes:
                self._check_attribute(function, *attribute_reference(attribute))
        if block == "Resources":
            depended = {name for each in self.resources.values() for name in each.depends_on}
            self._check_resolved(block, depended - self.resources.keys())

    def _check_attribute(self, function: str, logical_id: str, attribute: Any) -> None:
        if logical_id not in self.resources:
            message = f"instance of {function} references undefined resource {logical_id}"
            raise TemplateError(f"Template error: {message}")
        if isinstance(attribute, str) and not schemas.has_attribute(self.resources[logical_id].type, attribute):
            message = f"resource {logical_id} does not support attribute type {attribute} in Fn::GetAtt"
            raise TemplateError(f"Template error: {message}")

    def _check_exports(self) -> None:
        for name, output in self.outputs.items():
            if "Export" in output and not self._is_static(output["Export"]):
                raise TemplateError(
                    f"Template format error: Output {name} is malformed. The Name field of Export must not depend on "
                    "any resources, imported values, or Fn::GetAZs."
                )

    def _check_cycles(self, conditions: Mapping[str, bool]) -> None:
        circle = _circle({name: self.dependencies(name, conditions) for name in self.resources})
        if circle:
            raise TemplateError(f"Circular dependency between resources: [{', '.join(circle)}]")

    @property
    def _referable(self) -> set[str]:
        return self.parameters.keys() | self.resources.keys()

    def _is_static(self, value: Any) -> bool:
        """Return whether a value depends on nothing but parameters."""
        dynamic = {"Fn::GetAZs", "Fn::GetAtt", "Fn::ImportValue"}
        return references(value) <= self.parameters.keys() and not dynamic & {name for name, _ in intrinsics(value)}

    @staticmethod
    def _check_resolved(block: str, unresolved: set[str]) -> None:
        if unresolved:
            names = ", ".join(sorted(unresolved))
            message = f"Unresolved resource dependencies [{names}] in the {block} block of the template"
            raise TemplateError(f"Template format error: {message}")

    @staticmethod
    def _values(definition: ResourceDefinition) -> list[Any]:
        """Return what of a resource may hold references."""
        return [definition.properties, definition.metadata, definition.creation_policy, definition.update_policy]


class _RuleScope(Scope):
    """What rules may refer to: parameters.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/rules-section-structure.html
    """

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = parameters

    def ref(self, name: str) -> Any:
        if name not in self._parameters:
            raise TemplateError(f"Template error: unresolved parameter {name} in the Rules block of the template")
        return self._parameters[name].resolved


def _resource(logical_id: str, member: Mapping[str, Any]) -> ResourceDefinition:
    depends_on = member.get("DependsOn", [])
    return ResourceDefinition(
        logical_id=logical_id,
        type=member["Type"],
        properties=member.get("Properties", {}),
        depends_on=tuple(depends_on if isinstance(depends_on, list) else [depends_on]),
        condition=member.get("Condition"),
        deletion_policy=member.get("DeletionPolicy"),
        update_replace_policy=member.get("UpdateReplacePolicy"),
        creation_policy=member.get("CreationPolicy", {}),
        update_policy=member.get("UpdatePolicy", {}),
        metadata=member.get("Metadata", {}),
    )


def _check_forms(value: Any) -> None:
    """Check the arguments of every function in a value, a function's own before those inside of it."""
    if isinstance(value, list):
        for each in value:
            _check_forms(each)
    elif isinstance(value, dict):
        function = intrinsic_function(value)
        if function:
            check_form(function, value[function])
        for each in value.values():
            _check_forms(each)


def _check_boolean(definition: Any) -> None:
    functions = {"Condition", "Fn::And", "Fn::Equals", "Fn::Not", "Fn::Or"}
    if not isinstance(definition, dict) or len(definition) != 1 or not definition.keys() <= functions:
        raise TemplateError(NOT_BOOLEAN)


def _circle(dependencies: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names on a circle of dependencies, in the order of the keys; none if there is no circle."""
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        return [name for name in dependencies if name in error.args[1]]
    return []


def _no_mapping(name: str) -> str:
    return f"Template error: Mapping named '{name}' is not present in the 'Mappings' section of template."
