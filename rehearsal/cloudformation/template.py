"""A template: its text, what CloudFormation checks before it starts, its parameters, rules and dependencies.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self

import regex  # type: ignore[import-untyped]
import yaml

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

__all__ = ["Parameter", "ParameterDefinition", "ResourceDefinition", "Template", "TemplateError"]

MAXIMUM_BYTES = 1_000_000
"""Of a template in S3. One in the request itself has fewer; that is the API's to check."""

_MAXIMUM_MEMBERS = {"Parameters": 200, "Mappings": 200, "Resources": 500, "Outputs": 200}
_SERVERLESS_TRANSFORM = "AWS::Serverless-2016-10-31"
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
_POLICIES = {
    "DeletionPolicy": {"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"},
    "UpdateReplacePolicy": {"Delete", "Retain", "Snapshot"},
}
_TYPES_WITH_SNAPSHOTS = {
    "AWS::DocDB::DBCluster",
    "AWS::EC2::Volume",
    "AWS::ElastiCache::CacheCluster",
    "AWS::ElastiCache::ReplicationGroup",
    "AWS::Neptune::DBCluster",
    "AWS::RDS::DBCluster",
    "AWS::RDS::DBInstance",
    "AWS::Redshift::Cluster",
}
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html"""

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

_AWS_TYPE = (
    r"AWS::EC2::(?:AvailabilityZone::Name|Image::Id|Instance::Id|KeyPair::KeyName|SecurityGroup::GroupName"
    r"|SecurityGroup::Id|Subnet::Id|Volume::Id|VPC::Id)|AWS::Route53::HostedZone::Id"
)
_VALUE_TYPE = rf"String|CommaDelimitedList|List<String>|{_AWS_TYPE}|List<(?:{_AWS_TYPE})>"
_SSM_TYPE = re.compile(rf"AWS::SSM::Parameter::Value<({_VALUE_TYPE})>")
_PARAMETER_TYPE = re.compile(
    rf"Number|List<Number>|AWS::SSM::Parameter::Name|{_VALUE_TYPE}|AWS::SSM::Parameter::Value<(?:{_VALUE_TYPE})>"
)
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-supplied-parameter-types.html"""


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


@dataclass(frozen=True)
class Parameter:
    """A parameter of a stack.

    Attributes:
        key: Its name.
        value: What was given, or the default; of an SSM parameter the name.
        resolved: What Ref gives: a string, or a list of them.
    """

    key: str
    value: str
    resolved: Any


@dataclass(frozen=True)
class ParameterDefinition:
    """A parameter as its template has it; scalars are strings, as CloudFormation takes them."""

    key: str
    type: str
    default: str | None = None
    no_echo: bool = False
    description: str | None = None
    constraint_description: str | None = None
    allowed_values: tuple[str, ...] | None = None
    allowed_pattern: str | None = None
    minimum_length: float | None = None
    maximum_length: float | None = None
    minimum_value: float | None = None
    maximum_value: float | None = None

    @property
    def is_list(self) -> bool:
        """Return whether Ref gives a list."""
        return self.value_type == "CommaDelimitedList" or self.value_type.startswith("List<")

    @property
    def value_type(self) -> str:
        """Return the type of the value, which of an SSM parameter stands in brackets."""
        ssm = _SSM_TYPE.fullmatch(self.type)
        return ssm[1] if ssm else self.type

    @property
    def is_stored(self) -> bool:
        """Return whether the value is looked up in the parameter store."""
        return _SSM_TYPE.fullmatch(self.type) is not None

    def check(self, value: str) -> None:
        """Check a value against the constraints. That a VPC, key pair or other resource exists is not looked up.

        Raises:
            TemplateError: It does not satisfy one.
        """
        for item in _items(value) if self.is_list else [value]:
            problem = self._problem(item)
            if problem and self.constraint_description:
                problem = f"failed to satisfy constraint: {self.constraint_description}"
            if problem:
                raise TemplateError(f"Parameter '{self.key}' {problem}")

    def _problem(self, value: str) -> str | None:
        if self.allowed_values is not None and value not in self.allowed_values:
            return "must be one of AllowedValues"
        if self.minimum_length is not None and len(value) < self.minimum_length:
            return f"must contain at least {self.minimum_length:g} characters"
        if self.maximum_length is not None and len(value) > self.maximum_length:
            return f"must contain at most {self.maximum_length:g} characters"
        if self.allowed_pattern is not None and not _matches(self.allowed_pattern, value):
            return f"must match pattern {self.allowed_pattern}"
        if self.type in {"Number", "List<Number>"}:
            return self._problem_of_number(value)
        return None

    def _problem_of_number(self, value: str) -> str | None:
        try:
            number = float(value)
        except ValueError:
            return "must be a number"
        if not math.isfinite(number):
            return "must be a number"
        if self.minimum_value is not None and number < self.minimum_value:
            return f"must be a number not less than {self.minimum_value:g}"
        if self.maximum_value is not None and number > self.maximum_value:
            return f"must be a number not greater than {self.maximum_value:g}"
        return None


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
        self.parameters = {key: _parameter(key, each) for key, each in body.get("Parameters", {}).items()}
        self.resources = {logical_id: _resource(logical_id, each) for logical_id, each in body["Resources"].items()}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a template in JSON or YAML.

        Raises:
            TemplateError: It is not well-formed, or does not have the structure of a template.
        """
        body = _read(text)
        if not isinstance(body, dict):
            raise TemplateError("Template format error: unsupported structure.")
        _check_structure(body)
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

    def resolve_parameters(
        self, given: Mapping[str, str], previous: Mapping[str, Parameter] | None, ssm: Callable[[str], str]
    ) -> dict[str, Parameter]:
        """Return all parameters with their values.

        Args:
            given: Values from the request.
            previous: Parameters whose value the request leaves as it was; an SSM parameter is looked up anew.
            ssm: Gives the value of a parameter in the store, by name; KeyError if there is none.

        Raises:
            TemplateError: A parameter has no value, an unknown name, or a value that it does not allow.
        """
        unknown = [key for key in given if key not in self.parameters]
        if unknown:
            raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
        kept = {key: parameter.value for key, parameter in (previous or {}).items() if key in self.parameters}
        defaults = {key: each.default for key, each in self.parameters.items() if each.default is not None}
        values = {**defaults, **kept, **given}
        missing = [key for key in self.parameters if key not in values]
        if missing:
            raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
        for key, definition in self.parameters.items():
            definition.check(values[key])
        stored = self._stored({values[key] for key, each in self.parameters.items() if each.is_stored}, ssm)
        return {
            key: Parameter(key, values[key], _resolved(definition, values[key], stored))
            for key, definition in self.parameters.items()
        }

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
                if value == "Snapshot" and resource["Type"] not in _TYPES_WITH_SNAPSHOTS:
                    message = f"resource type {resource['Type']} does not support deletion policy Snapshot"
                    raise TemplateError(f"Template error: {message}")

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

    @staticmethod
    def _stored(names: set[str], ssm: Callable[[str], str]) -> dict[str, str]:
        stored = {}
        missing = []
        for name in sorted(names):
            try:
                stored[name] = ssm(name)
            except KeyError:
                missing.append(name)
        if missing:
            listed = ", ".join(missing)
            raise TemplateError(f"Unable to fetch parameters [{listed}] from parameter store for this account.")
        return stored


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


def _read(text: str) -> Any:
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


def _check_structure(body: dict[str, Any]) -> None:
    """Check that every part has the shape that the rest of this module reads."""
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


def _parameter(key: str, member: Mapping[str, Any]) -> ParameterDefinition:
    if not _PARAMETER_TYPE.fullmatch(member["Type"]):
        raise TemplateError(f"Template format error: Unrecognized parameter type: {member['Type']}")
    allowed = member.get("AllowedValues")
    return ParameterDefinition(
        key=key,
        type=member["Type"],
        default=_string(member["Default"]) if "Default" in member else None,
        no_echo=_string(member.get("NoEcho", False)) == "true",
        description=member.get("Description"),
        constraint_description=member.get("ConstraintDescription"),
        allowed_values=None if allowed is None else tuple(_string(each) for each in allowed),
        allowed_pattern=member.get("AllowedPattern"),
        minimum_length=_number(member.get("MinLength")),
        maximum_length=_number(member.get("MaxLength")),
        minimum_value=_number(member.get("MinValue")),
        maximum_value=_number(member.get("MaxValue")),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",")]


def _resolved(definition: ParameterDefinition, value: str, stored: Mapping[str, str]) -> Any:
    text = stored[value] if definition.is_stored else value
    return _items(text) if definition.is_list else text


def _matches(pattern: str, value: str) -> bool:
    try:
        return regex.fullmatch(pattern, value) is not None
    except regex.error as error:
        raise UnsupportedError(f"regular expression {pattern}: {error}") from None


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
