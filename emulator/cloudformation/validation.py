"""What CloudFormation refuses in the text of a template, and in which words.

Words without a source of their own are among what LocalStack's tests recorded on AWS, and are checked against:
https://github.com/localstack/localstack/tree/main/tests/aws/services/cloudformation
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from emulator.resources.model import NOT_EMULATED
from toolchain.values import (
    TemplateError,
    UnsupportedError,
    intrinsic_function,
    intrinsics,
    references,
)

PSEUDO_PARAMETERS: Final = frozenset(
    f"AWS::{name}"
    for name in (
        "AccountId", "NoValue", "NotificationARNs", "Partition", "Region", "StackId", "StackName", "URLSuffix",
    )
)  # fmt: skip
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/pseudo-parameter-reference.html"""

POLICIES: Final = ("DeletionPolicy", "UpdateReplacePolicy")
_RESOURCE_MEMBERS: Final = frozenset({"Condition", "DependsOn", "Metadata", "Properties", "Type", *POLICIES})
_UNSUPPORTED_MEMBERS: Final = frozenset({"CreationPolicy", "UpdatePolicy"})
_SECTIONS_OF_MEMBERS: Final = ("Conditions", "Mappings", "Metadata", "Outputs", "Parameters", "Resources", "Rules")
_CONDITION_IS_TEXT: Final = "Template format error: Every Condition member must be a string."
_NAME: Final = re.compile("[a-zA-Z0-9]+")
_BOOLEAN: Final = frozenset({"Condition", "Fn::And", "Fn::Equals", "Fn::Not", "Fn::Or"})
"""Functions of the section Conditions."""

_POLICY_FUNCTIONS: Final = frozenset({"Fn::FindInMap", "Fn::If", "Fn::Join", "Fn::Select", "Fn::Sub", "Ref"})
"""Without a transform since July 2023: https://github.com/aws-cloudformation/cfn-lint/pull/2784. Ref gives parameters.

Which functions: https://github.com/aws-cloudformation/cfn-lint/issues/2915, and cfn-lint's rule E3035.
"""


def words_of(error: TemplateError | UnsupportedError) -> str:
    """Return what a caller hears of an error: AWS's own words, or what is not emulated."""
    return NOT_EMULATED.format(error) if isinstance(error, UnsupportedError) else str(error)


def check_structure(body: Mapping[str, Any]) -> None:
    """Check the shape of all sections.

    Raises:
        TemplateError: Something has another shape than templates have.
        UnsupportedError: A resource has an attribute that is unknown here; the message names it.
    """
    for path, value in _members(body):
        if value is None:
            raise TemplateError(f"[{path}] 'null' values are not allowed in templates")
        if path.endswith("/Fn::Transform"):  # it may stand where no other function does
            raise UnsupportedError("intrinsic function Fn::Transform")
    if isinstance(body.get("Resources"), str):  # LocalStack's test_linting_error_during_creation
        raise TemplateError("Template format error: Any Resources member must be an object.")
    for section in _SECTIONS_OF_MEMBERS:
        if not isinstance(body.get(section, {}), Mapping):
            raise TemplateError("Template format error: unsupported structure.")
    if not body.get("Resources"):
        raise TemplateError("Template format error: At least one Resources member must be defined.")
    for section, check in (("Resources", _check_resource), ("Parameters", _check_parameter)):
        for name, member in body.get(section, {}).items():
            if not _NAME.fullmatch(str(name)):
                raise TemplateError(f"Template format error: {section[:-1]} name {name} is non alphanumeric.")
            if not isinstance(member, Mapping):
                raise TemplateError(f"Template format error: Any {section} member must be an object.")
            check(name, member)
    for name, member in body.get("Outputs", {}).items():
        _check_output(name, member)
    _check_mappings(body.get("Mappings", {}))


def check_functions(body: Mapping[str, Any]) -> None:
    """Check that intrinsic functions are known, have the arguments that they take, and refer to what there is.

    Raises:
        TemplateError: One has not, or does not.
        UnsupportedError: One is unknown here; the message names it.
    """
    conditions = body.get("Conditions", {})
    _check_conditions(conditions, body)
    for section in ("Resources", "Outputs"):
        functions = list(intrinsics(list(body.get(section, {}).values())))  # a resource may be called Ref
        for function, argument in functions:
            if function in _BOOLEAN or function not in _ARGUMENTS:
                raise UnsupportedError(f"intrinsic function {function}")
            _check_shape(function, argument)
        for function, argument in functions:
            _check_meaning(function, argument, body)
        for member in body.get(section, {}).values():
            if "Condition" in member and member["Condition"] not in conditions:
                # https://github.com/aws-cloudformation/cfn-lint/issues/92 quotes it
                raise TemplateError(f"Template format error: Condition {member['Condition']} is not defined.")
    for logical_id, member in body["Resources"].items():
        for attribute in POLICIES:
            _check_policy_functions(logical_id, attribute, member.get(attribute), body)
    for section in ("Resources", "Outputs"):
        names = references(list(body.get(section, {}).values()), pseudo=True)
        if section == "Resources":
            names |= {name for member in body["Resources"].values() for name in depends_on(member)}
        check_resolved(
            names - body.get("Parameters", {}).keys() - body["Resources"].keys() - PSEUDO_PARAMETERS, section
        )


def check_resolved(names: set[str], section: str, kind: str = "Template format error: ") -> None:
    """Refuse names in a section that stand for nothing.

    Raises:
        TemplateError: There are such.
    """
    if names:
        listed = ", ".join(sorted(names))
        raise TemplateError(f"{kind}Unresolved resource dependencies [{listed}] in the {section} block of the template")


def check_policy(logical_id: str, resource_type: str, attribute: str, value: Any) -> None:
    """Check the value of DeletionPolicy or UpdateReplacePolicy, without functions.

    The words are of https://github.com/aws-cloudformation/cfn-language-discussion/issues/139, and of people who asked
    for a snapshot of a table: "resource type AWS::DynamoDB::Table does not support deletion policy Snapshot".

    Raises:
        TemplateError: There is no such policy, or not for this type.
        UnsupportedError: It keeps a snapshot that cannot be made here.
    """
    allowed = {"Delete", "Retain", "Snapshot"} | ({"RetainExceptOnCreate"} if attribute == "DeletionPolicy" else set())
    if value not in allowed:
        raise TemplateError(f"Template format error: Unrecognized {attribute} {value} for resource {logical_id}")
    if value == "Snapshot" and resource_type not in SNAPSHOTS:
        if resource_type in _MORE_SNAPSHOTS:
            raise UnsupportedError(f"{attribute} Snapshot of {logical_id} ({resource_type})")
        raise TemplateError(f"Template error: resource type {resource_type} does not support deletion policy Snapshot")


SNAPSHOTS: Final = frozenset({"AWS::RDS::DBInstance"})
"""Types of which a deletion policy can keep a snapshot, as it does by default."""

_MORE_SNAPSHOTS: Final = frozenset(
    f"AWS::{name}"
    for name in (
        "DocDB::DBCluster", "EC2::Volume", "ElastiCache::CacheCluster", "ElastiCache::ReplicationGroup",
        "Neptune::DBCluster", "RDS::DBCluster", "Redshift::Cluster",
    )
)  # fmt: skip
"""Further such types of AWS.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html
"""


def depends_on(resource: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the logical ids that a resource's DependsOn names."""
    named = resource.get("DependsOn", [])
    return tuple(named) if isinstance(named, list) else (named,)


def _members(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all members of a value, however deep, with their paths."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield f"{path}/{key}", each
        yield from _members(each, f"{path}/{key}")


def _check_parameter(name: str, member: Mapping[str, Any]) -> None:
    if not isinstance(member.get("Type"), str):
        raise TemplateError(f"Template format error: Every Parameters object must contain a Type member. [{name}]")
    if isinstance(member.get("Default"), Mapping | list):
        # as people quote it who put an intrinsic function there
        raise TemplateError("Template format error: Every Default member must be a string.")


def _check_resource(logical_id: str, member: Mapping[str, Any]) -> None:
    if not isinstance(member.get("Type"), str):
        where = f"[/Resources/{logical_id}] Every Resources object must contain a Type member."
        raise TemplateError(f"Template format error: {where}")
    if unsupported := sorted(_UNSUPPORTED_MEMBERS & member.keys()):
        raise UnsupportedError(f"{', '.join(unsupported)} of {logical_id}")
    if unknown := [name for name in member if name not in _RESOURCE_MEMBERS]:
        raise TemplateError(f"Invalid template resource property '{unknown[0]}'")
    for name in ("Properties", "Metadata"):
        if not isinstance(member.get(name, {}), Mapping):
            raise TemplateError(f"Template format error: [/Resources/{logical_id}/{name}] must be an object.")
    if not isinstance(member.get("Condition", ""), str):
        raise TemplateError(_CONDITION_IS_TEXT)
    if not all(isinstance(each, str) for each in depends_on(member)):
        message = f"[/Resources/{logical_id}/DependsOn] must be a string or a list of strings."
        raise TemplateError(f"Template format error: {message}")


def _check_output(name: str, member: Any) -> None:
    if not isinstance(member, Mapping) or "Value" not in member:
        raise TemplateError("Template format error: Every Outputs member must contain a Value object")
    if not isinstance(member.get("Condition", ""), str):
        raise TemplateError(_CONDITION_IS_TEXT)
    export = member.get("Export", {"Name": ""})
    if not isinstance(export, Mapping) or "Name" not in export:
        raise TemplateError(f"Template format error: [/Outputs/{name}/Export] must be an object with a Name.")


def _check_mappings(mappings: Mapping[str, Any]) -> None:
    for name, mapping in mappings.items():
        for key, attributes in mapping.items() if isinstance(mapping, Mapping) else ((name, mapping),):
            if not isinstance(attributes, Mapping):
                raise TemplateError(f"Template format error: Every Mappings member {key} must be a map")
            for value in attributes.values():
                if isinstance(value, Mapping):
                    raise TemplateError("Template format error: Every Mappings attribute must be a String or a List.")


def _check_conditions(conditions: Mapping[str, Any], body: Mapping[str, Any]) -> None:
    graph: dict[str, set[str]] = {}
    for name, definition in conditions.items():
        graph[name] = set()
        if not isinstance(definition, Mapping) or len(definition) != 1 or not _BOOLEAN & definition.keys():
            raise TemplateError(
                "Template format error: Conditions can only be boolean operations on parameters and other conditions"
            )
        for function, argument in _functions_of_condition(definition):
            if function == "Fn::ImportValue":
                raise TemplateError("Template error: Cannot use Fn::ImportValue in Conditions.")
            if function not in _ARGUMENTS or function in ("Fn::GetAZs", "Fn::GetStackOutput"):
                raise UnsupportedError(f"intrinsic function {function} in Conditions")
            _check_shape(function, argument)
            _check_meaning(function, argument, body)
            if function == "Condition":
                graph[name].add(argument)
    unresolved = (
        references(list(conditions.values()), pseudo=True) - body.get("Parameters", {}).keys() - PSEUDO_PARAMETERS
    )
    if unresolved:
        listed = ", ".join(sorted(unresolved))
        message = (
            f"Unresolved dependencies [{listed}]. Cannot reference resources in the Conditions block of the template"
        )
        raise TemplateError(f"Template format error: {message}")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle = [name for name in conditions if name in error.args[1]]
        raise TemplateError(
            f"Template format error: Circular dependencies between conditions: [{', '.join(circle)}]"
        ) from None


def _functions_of_condition(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the intrinsic functions in a condition, of which some are named `Condition`."""
    members = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if isinstance(value, Mapping):
        function = "Condition" if list(value) == ["Condition"] else intrinsic_function(value)
        if function:
            yield function, value[function]
    for each in members:
        yield from _functions_of_condition(each)


def _check_shape(function: str, argument: Any) -> None:
    if function == "Fn::FindInMap" and _is_list_of(_is_text, _is_text, _is_text, _is_text)(argument):
        raise UnsupportedError("DefaultValue of Fn::FindInMap")  # of the transform AWS::LanguageExtensions
    fits, message = _ARGUMENTS[function]
    if not fits(argument):
        raise TemplateError(f"Template error: {message.format(function)}")


def _check_meaning(function: str, argument: Any, body: Mapping[str, Any]) -> None:
    match function:
        case "Condition" if argument not in body.get("Conditions", {}):
            raise TemplateError(f"Template error: unresolved condition dependency {argument} in Condition")
        case "Fn::If" if argument[0] not in body.get("Conditions", {}):
            raise TemplateError(f"Template error: unresolved condition dependency {argument[0]} in Fn::If")
        case "Fn::FindInMap" if isinstance(argument[0], str) and argument[0] not in body.get("Mappings", {}):
            # quoted in the documentation of zalando-stups/senza
            named = f"Mapping named '{argument[0]}' is not present in the 'Mappings' section of template."
            raise TemplateError(f"Template error: {named}")
        case "Fn::ImportValue" if _depends_on_resources(argument, body):
            message = (
                "the attribute in Fn::ImportValue must not depend on any resources, imported values, or Fn::GetAZs"
            )
            raise TemplateError(f"Template error: {message}")


def _depends_on_resources(argument: Any, body: Mapping[str, Any]) -> bool:
    functions = {function for function, _ in intrinsics(argument)}
    return bool(functions & {"Fn::GetAZs", "Fn::ImportValue"}) or bool(references(argument) & body["Resources"].keys())


def _check_policy_functions(logical_id: str, attribute: str, value: Any, body: Mapping[str, Any]) -> None:
    """Check that a policy is text, or functions that give one and depend on parameters alone."""
    if not isinstance(value, str | Mapping | None):
        raise TemplateError(f"Template format error: Every {attribute} member must be a string.")
    functions = {function for function, _ in intrinsics(value)}
    is_plain = isinstance(value, Mapping) and not functions
    if is_plain or not functions <= _POLICY_FUNCTIONS or references(value) - body.get("Parameters", {}).keys():
        # the words of https://github.com/aws-cloudformation/cfn-language-discussion/issues/124
        raise TemplateError(f"Template format error: Unsupported expression for {attribute} in resource {logical_id}")


def _is_text(value: Any) -> bool:
    """Tell whether a value is a scalar, or a function that gives one."""
    return isinstance(value, str | int | float | Mapping)


def _is_list_of(*checks: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def fits(argument: Any) -> bool:
        if not isinstance(argument, list) or len(argument) != len(checks):
            return False
        return all(check(each) for check, each in zip(checks, argument, strict=True))

    return fits


def _is_list(value: Any) -> bool:
    """Tell whether a value is a list, or a function that gives one."""
    return isinstance(value, list | Mapping)


def _is_attribute(argument: Any) -> bool:
    if isinstance(argument, str):
        return all(argument.partition(".")) and not argument.endswith(".")
    return _is_list_of(_is_name, _is_text)(argument) and all(argument)


def _is_substitution(argument: Any) -> bool:
    return isinstance(argument, str) or _is_list_of(_is_name, lambda each: isinstance(each, Mapping))(argument)


def _is_selection(argument: Any) -> bool:
    if not _is_list_of(_is_index, _is_list)(argument):
        return False
    index, values = argument
    return isinstance(index, Mapping) or isinstance(values, Mapping) or int(index) < len(values)


def _is_index(value: Any) -> bool:
    return isinstance(value, Mapping) or str(value).isdecimal()


def _is_stack_output(argument: Any) -> bool:
    return isinstance(argument, Mapping) and {"StackName", "OutputName"} <= argument.keys()


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


def _is_some(value: Any) -> bool:
    return isinstance(value, list) and len(value) in range(2, 11)


_ARGUMENTS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "Condition": (_is_name, "every {} object must have a single String value."),
    "Fn::And": (_is_some, "every {} object requires a list of at least 2 and at most 10 boolean parameters."),
    "Fn::Base64": (_is_text, "every {} object must have a String-typed value."),
    "Fn::Equals": (
        _is_list_of(lambda _: True, lambda _: True),
        "every {} object requires a list of 2 string parameters.",
    ),
    "Fn::FindInMap": (
        _is_list_of(_is_text, _is_text, _is_text),
        "every {} object requires three parameters, the map name, map key and the attribute for return value",
    ),
    "Fn::GetAZs": (_is_text, "every {} object must have a String-typed value."),
    "Fn::GetAtt": (
        _is_attribute,
        "every {} object requires two non-empty parameters, the resource name and the resource attribute",
    ),
    "Fn::GetStackOutput": (_is_stack_output, "every {} object requires a StackName and an OutputName"),
    "Fn::If": (
        _is_list_of(_is_name, lambda _: True, lambda _: True),
        "{} requires a list argument with the first element being a condition and three elements",
    ),
    "Fn::ImportValue": (_is_text, "every {} object must have a String-typed value."),
    "Fn::Join": (
        _is_list_of(_is_text, _is_list),
        "every {} object requires two parameters, (1) a string delimiter and (2) a list of strings to be joined or a "
        "function that returns a list of strings (such as Fn::GetAZs) to be joined.",
    ),
    "Fn::Not": (_is_list_of(lambda _: True), "every {} object requires one boolean parameter."),
    "Fn::Or": (_is_some, "every {} object requires a list of at least 2 and at most 10 boolean parameters."),
    "Fn::Select": (
        _is_selection,
        "{} requires a list argument with two elements: an integer index and a list",
    ),
    "Fn::Split": (
        _is_list_of(_is_text, _is_text),
        "every {} object requires two parameters, (1) a string delimiter and (2) a string to be split or a function "
        "that returns a string to be split.",
    ),
    "Fn::Sub": (
        _is_substitution,
        "One or more {} intrinsic functions don't specify expected arguments. Specify a string as first argument, and "
        "an optional second argument to specify a mapping of values to replace in the string",
    ),
    "Ref": (_is_name, "every {} object must have a single String value."),
}
"""By function: what its argument has to be, and what CloudFormation says of another one.

Those of And, Or, Base64, FindInMap and Not are known from Eucalyptus, which imitates CloudFormation
(CloudFormation's own for Or is quoted in public logs, too).
"""
