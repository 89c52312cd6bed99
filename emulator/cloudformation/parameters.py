"""Parameters of templates: their types and values.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolchain.values import TemplateError, UnsupportedError

_LIST_TYPE = "CommaDelimitedList"
_STORED_TYPE = "AWS::SSM::Parameter::Value<String>"
_TYPES = {"String", _LIST_TYPE, _STORED_TYPE}
_MEMBERS = {"AllowedPattern", "AllowedValues", "ConstraintDescription", "Default", "Description", "Type"}
"""Types and members that templates of this project, the CDK and ParallelCluster have; CloudFormation has more.

What values are allowed is not looked at: all are those of tools.
"""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a stack.

    Attributes:
        value: What was given, or the default; of an SSM parameter the name.
        resolved: What Ref gives: a string, or a list of them.
    """

    value: str
    resolved: Any


def check_definition(key: str, definition: Mapping[str, Any]) -> None:
    """Check a member of a template's Parameters.

    Raises:
        UnsupportedError: It has a type or a constraint that is unknown here; the message names it.
    """
    unknown = sorted(definition.keys() - _MEMBERS)
    if unknown or definition["Type"] not in _TYPES:
        raise UnsupportedError(f"parameter {key}: {', '.join(unknown) or definition['Type']}")


def is_stored(definition: Mapping[str, Any]) -> bool:
    """Return whether the value of a parameter is looked up in the parameter store."""
    return bool(definition["Type"] == _STORED_TYPE)


def resolve_parameters(
    definitions: Mapping[str, Mapping[str, Any]], given: Mapping[str, str], ssm: Any
) -> dict[str, Parameter]:
    """Return all parameters of a template with their values, given in the request or by default.

    Raises:
        TemplateError: A parameter has no value, an unknown name, or the name of a stored one that is not there.
    """
    unknown = [key for key in given if key not in definitions]
    if unknown:
        raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    defaults = {key: each["Default"] for key, each in definitions.items() if "Default" in each}
    values = {**defaults, **given}
    missing = [key for key in definitions if key not in values]
    if missing:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    return {
        key: Parameter(values[key], _resolved(definition, values[key], ssm)) for key, definition in definitions.items()
    }


def _resolved(definition: Mapping[str, Any], value: str, ssm: Any) -> Any:
    """Return what Ref gives for a value."""
    if definition["Type"] == _LIST_TYPE:
        return [item.strip() for item in value.split(",")]
    if not is_stored(definition):
        return value
    try:
        return ssm.get_parameter(Name=value)["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound:
        message = f"Unable to fetch parameters [{value}] from parameter store for this account."
        raise TemplateError(message) from None
