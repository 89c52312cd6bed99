"""Parameters of templates: their types, constraints and values.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import regex  # type: ignore[import-untyped]

from toolchain.values import TemplateError, UnsupportedError

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


def parse_parameter(key: str, member: Mapping[str, Any]) -> ParameterDefinition:
    """Read a member of a template's Parameters.

    Raises:
        TemplateError: It has a type that CloudFormation does not know.
    """
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


def resolve_parameters(
    definitions: Mapping[str, ParameterDefinition],
    given: Mapping[str, str],
    previous: Mapping[str, Parameter] | None,
    ssm: Callable[[str], str],
) -> dict[str, Parameter]:
    """Return all parameters of a template with their values.

    Args:
        definitions: As the template has them.
        given: Values from the request.
        previous: Parameters whose value the request leaves as it was; an SSM parameter is looked up again.
        ssm: Gives the value of a parameter in the store, by name; KeyError if there is none.

    Raises:
        TemplateError: A parameter has no value, an unknown name, or a value that it does not allow.
    """
    unknown = [key for key in given if key not in definitions]
    if unknown:
        raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    kept = {key: parameter.value for key, parameter in (previous or {}).items() if key in definitions}
    defaults = {key: each.default for key, each in definitions.items() if each.default is not None}
    values = {**defaults, **kept, **given}
    missing = [key for key in definitions if key not in values]
    if missing:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    for key, definition in definitions.items():
        definition.check(values[key])
    stored = _stored({values[key] for key, each in definitions.items() if each.is_stored}, ssm)
    return {
        key: Parameter(key, values[key], _resolved(definition, values[key], stored))
        for key, definition in definitions.items()
    }


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


def _resolved(definition: ParameterDefinition, value: str, stored: Mapping[str, str]) -> Any:
    text = stored[value] if definition.is_stored else value
    return _items(text) if definition.is_list else text


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _items(value: str) -> list[str]:
    return [item.strip() for item in value.split(",")]


def _matches(pattern: str, value: str) -> bool:
    try:
        return regex.fullmatch(pattern, value) is not None
    except regex.error as error:
        raise UnsupportedError(f"regular expression {pattern}: {error}") from None
