"""Parameters of templates: their types, constraints and values.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolchain.values import TemplateError, UnsupportedError

_LIST_TYPE = "CommaDelimitedList"
_STORED_TYPE = "AWS::SSM::Parameter::Value<String>"
_TYPES = {"String", _LIST_TYPE, _STORED_TYPE}
_MEMBERS = {"AllowedPattern", "AllowedValues", "ConstraintDescription", "Default", "Description", "Type"}
"""Types and members that templates of this project, the CDK and ParallelCluster have; CloudFormation has more."""


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
    """A parameter as its template has it."""

    key: str
    type: str
    default: str | None
    allowed_values: tuple[str, ...] | None
    allowed_pattern: str | None
    constraint_description: str | None

    @property
    def is_stored(self) -> bool:
        """Return whether the value is looked up in the parameter store."""
        return self.type == _STORED_TYPE

    def resolve(self, value: str, ssm: Any) -> Any:
        """Return what Ref gives for a value.

        Raises:
            TemplateError: It does not satisfy a constraint, or is not in the parameter store.
        """
        problem = ""
        if self.allowed_values is not None and value not in self.allowed_values:
            problem = "must be one of AllowedValues"
        if self.allowed_pattern is not None and not re.fullmatch(self.allowed_pattern, value):
            problem = f"must match pattern {self.allowed_pattern}"
        if problem and self.constraint_description:
            problem = f"failed to satisfy constraint: {self.constraint_description}"
        if problem:
            raise TemplateError(f"Parameter '{self.key}' {problem}")
        if self.type == _LIST_TYPE:
            return [item.strip() for item in value.split(",")]
        if not self.is_stored:
            return value
        try:
            return ssm.get_parameter(Name=value)["Parameter"]["Value"]
        except ssm.exceptions.ParameterNotFound:
            message = f"Unable to fetch parameters [{value}] from parameter store for this account."
            raise TemplateError(message) from None


def parse_parameter(key: str, member: Mapping[str, Any]) -> ParameterDefinition:
    """Read a member of a template's Parameters.

    Raises:
        UnsupportedError: It has a type or a constraint that is unknown here; the message names it.
    """
    unknown = sorted(member.keys() - _MEMBERS)
    if unknown or member["Type"] not in _TYPES:
        raise UnsupportedError(f"parameter {key}: {', '.join(unknown) or member['Type']}")
    return ParameterDefinition(
        key=key,
        type=member["Type"],
        default=member.get("Default"),
        allowed_values=tuple(member["AllowedValues"]) if "AllowedValues" in member else None,
        allowed_pattern=member.get("AllowedPattern"),
        constraint_description=member.get("ConstraintDescription"),
    )


def resolve_parameters(
    definitions: Mapping[str, ParameterDefinition], given: Mapping[str, str], ssm: Any
) -> dict[str, Parameter]:
    """Return all parameters of a template with their values, given in the request or by default.

    Raises:
        TemplateError: A parameter has no value, an unknown name, or a value that it does not allow.
    """
    unknown = [key for key in given if key not in definitions]
    if unknown:
        raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    defaults = {key: each.default for key, each in definitions.items() if each.default is not None}
    values = {**defaults, **given}
    missing = [key for key in definitions if key not in values]
    if missing:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    return {
        key: Parameter(key, values[key], definition.resolve(values[key], ssm))
        for key, definition in definitions.items()
    }
