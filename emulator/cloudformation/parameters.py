"""Parameters of templates: their types and values.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolchain.values import TemplateError, UnsupportedError

_PLAIN: Final = ("String", "Number", "CommaDelimitedList", "List<String>", "List<Number>")
_STORED: Final = re.compile("AWS::SSM::Parameter::Value<(.+)>")
_OF_STORED: Final = ("String", "CommaDelimitedList", "List<String>", "AWS::EC2::Image::Id")
"""What a stored parameter may be. Of other types AWS looks whether there is something of that name or id."""

_NUMBERS: Final = ("Number", "List<Number>")
_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and _NUMBER.fullmatch(str(value)) is not None


def _is_list_of_scalars(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_scalar, value))


_FORMS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    **dict.fromkeys(
        ("AllowedPattern", "ConstraintDescription", "Default", "Description", "NoEcho", "Type"), ("string", _is_scalar)
    ),
    **dict.fromkeys(("MaxLength", "MaxValue", "MinLength", "MinValue"), ("number", _is_number)),
    "AllowedValues": ("list", _is_list_of_scalars),
}
"""The members of a parameter: what each has to be."""


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
        TemplateError: A member has another form than it has to have. These words are made up, after those for Default.
        UnsupportedError: It has a type or a constraint that is unknown here; the message names it.
    """
    unknown = sorted(definition.keys() - _FORMS.keys())
    stored = _STORED.fullmatch(definition["Type"])
    if unknown or (stored[1] not in _OF_STORED if stored else definition["Type"] not in _PLAIN):
        raise UnsupportedError(f"parameter {key}: {', '.join(unknown) or definition['Type']}")
    for name, value in definition.items():
        kind, is_met = _FORMS[name]
        if not is_met(value):
            raise TemplateError(f"Template format error: Every {name} member must be a {kind}.")
    of_numbers = [name for name in ("MinValue", "MaxValue") if name in definition]
    if of_numbers and definition["Type"] not in _NUMBERS:
        raise UnsupportedError(f"parameter {key}: {of_numbers[0]} of type {definition['Type']}")


def is_stored(definition: Mapping[str, Any]) -> bool:
    """Return whether the value of a parameter is looked up in the parameter store."""
    return _STORED.fullmatch(definition["Type"]) is not None


HIDDEN: Final = "****"
"""What is shown in place of the value of a parameter without echo."""


def is_hidden(definition: Mapping[str, Any]) -> bool:
    """Return whether nothing shows the value of a parameter."""
    return _text(definition.get("NoEcho", False)) == "true"


def resolve_parameters(
    definitions: Mapping[str, Mapping[str, Any]], given: Mapping[str, str], ssm: Any
) -> dict[str, Parameter]:
    """Return all parameters of a template with their values, given in the request or by default.

    Raises:
        TemplateError: A parameter has no value, one that is not allowed, an unknown name, or the name of a stored one
            that is not there.
    """
    unknown = [key for key in given if key not in definitions]
    if unknown:
        raise TemplateError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    defaults = {key: _text(each["Default"]) for key, each in definitions.items() if "Default" in each}
    values = {**defaults, **given}
    missing = [key for key in definitions if key not in values]
    if missing:
        raise TemplateError(f"Parameters: [{', '.join(missing)}] must have values")
    for key, definition in definitions.items():
        for demand in _unmet(definition, values[key]):
            described = definition.get("ConstraintDescription")
            words = f"failed to satisfy constraint: {described}" if described else demand
            raise TemplateError(f"Parameter '{key}' {words}")
    return {
        key: Parameter(values[key], _resolved(definition, values[key], ssm)) for key, definition in definitions.items()
    }


def _unmet(definition: Mapping[str, Any], value: str) -> Iterator[str]:
    """Yield what a value has to be and is not, in AWS's words.

    That of a pattern: https://github.com/aws-quickstart/quickstart-pivotal-cloudfoundry/issues/9; of MinValue: tests of
    https://github.com/openshift/rosa; the others as Eucalyptus has them, which imitates CloudFormation.
    """
    kind = definition["Type"]
    allowed = [_text(each) for each in definition.get("AllowedValues", [])]
    for each in _listed(value) if _is_list(kind) else [value]:
        if kind in _NUMBERS and not _NUMBER.fullmatch(each):
            yield "must be a number."  # LocalStack's test_invalid_parameter_type
            return
        if allowed and each not in allowed:
            yield "must be one of AllowedValues"
        if "AllowedPattern" in definition and not _matches(str(definition["AllowedPattern"]), each):
            yield f"must match pattern {definition['AllowedPattern']}"
        for name, (measured, is_met, words) in _BOUNDS.items():
            if name in definition and not is_met(measured(each), float(definition[name])):
                yield words.format(_text(definition[name]))


def _length(value: str) -> float:
    return float(len(value))


_BOUNDS: Final[Mapping[str, tuple[Callable[[str], float], Callable[[float, float], bool], str]]] = {
    "MinLength": (_length, float.__ge__, "must contain at least {} characters"),
    "MaxLength": (_length, float.__le__, "must contain at most {} characters"),
    "MinValue": (float, float.__ge__, "must be a number not less than {}"),
    "MaxValue": (float, float.__le__, "must be a number not greater than {}"),
}


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.fullmatch(pattern, value) is not None
    except re.error:  # Java's expressions are not all Python's
        raise UnsupportedError(f"AllowedPattern {pattern}") from None


def _resolved(definition: Mapping[str, Any], value: str, ssm: Any) -> Any:
    """Return what Ref gives for a value."""
    stored = _STORED.fullmatch(definition["Type"])
    if stored is None:
        return _listed(value) if _is_list(definition["Type"]) else value
    try:
        found = ssm.get_parameter(Name=value)["Parameter"]["Value"]
    except ssm.exceptions.ParameterNotFound:
        message = f"Unable to fetch parameters [{value}] from parameter store for this account."
        raise TemplateError(message) from None
    return _listed(found) if _is_list(stored[1]) else found


def _is_list(kind: str) -> bool:
    return kind == "CommaDelimitedList" or kind.startswith("List<")


def _listed(value: str) -> list[str]:
    return [item.strip() for item in value.split(",")]


def _text(value: Any) -> str:
    """Return a value of a template as a parameter has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
