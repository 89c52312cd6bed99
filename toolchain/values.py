"""The values of a template: what intrinsic functions stand for.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

NO_VALUE: Final = object()
"""What `AWS::NoValue` stands for: the member that has it is left out."""

DYNAMIC_REFERENCE: Final = re.compile(r"\{\{resolve:([^{}]+)\}\}")
"""What is read from another service when a resource is made or changed."""
_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")


class UnsupportedError(LookupError):
    """A template uses something that is unknown here; the message names it."""


class TemplateError(ValueError):
    """A template, or a parameter's value, is wrong."""


class Scope(Protocol):
    """What the values of one template may refer to. A subclass defines what it has; all else is unsupported.

    Attributes:
        keeps_dynamic_references: Whether `{{resolve:...}}` stays as it is; nobody here knows what it stands for.
    """

    keeps_dynamic_references: bool = False

    def ref(self, name: str) -> Any:
        """Return what Ref gives for a parameter, a pseudo parameter or a resource."""
        raise UnsupportedError(f"Ref of {name}")

    def attribute(self, logical_id: str, attribute: str) -> Any:
        """Return what Fn::GetAtt gives; the attribute may have dots, as `Outputs.VpcId` has."""
        raise UnsupportedError(f"Fn::GetAtt of {logical_id}.{attribute}")

    def stack_output(self, region: str | None, stack_name: str, output: str) -> Any:
        """Return what Fn::GetStackOutput gives; no region is the stack's own."""
        raise UnsupportedError(f"Fn::GetStackOutput of {stack_name}.{output} in region {region}")

    def zones(self, region: str) -> list[str]:
        """Return what Fn::GetAZs gives; no region is the stack's own."""
        raise UnsupportedError(f"Fn::GetAZs of region {region}")

    def import_value(self, name: str) -> str:
        """Return the value that is exported under the name."""
        raise UnsupportedError(f"Fn::ImportValue of {name}")

    def condition(self, name: str) -> bool:
        """Return whether the condition with this name holds."""
        raise UnsupportedError(f"condition {name}")

    def mapping(self, name: str, top_level_key: str, second_level_key: str) -> Any:
        """Return what Fn::FindInMap gives."""
        raise UnsupportedError(f"Fn::FindInMap of {name}::{top_level_key}::{second_level_key}")


class Evaluator:
    """Computes values of one template."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._values: Mapping[str, Callable[[Any], Any]] = {
            "Ref": scope.ref,
            "Fn::Base64": self._base64,
            "Fn::FindInMap": self._find_in_map,
            "Fn::GetAZs": lambda region: scope.zones(self._text(region)),
            "Fn::GetAtt": self._get_attribute,
            "Fn::GetStackOutput": self._get_stack_output,
            "Fn::If": self._if,
            "Fn::ImportValue": lambda name: scope.import_value(self._evaluate(name)),
            "Fn::Join": self._join,
            "Fn::Select": self._select,
            "Fn::Split": self._split,
            "Fn::Sub": self._sub,
        }
        self._conditions: Mapping[str, Callable[[Any], bool]] = {
            "Condition": scope.condition,
            "Fn::And": lambda parts: all(self.condition(part) for part in parts),
            "Fn::Or": lambda parts: any(self.condition(part) for part in parts),
            "Fn::Not": lambda parts: not self.condition(parts[0]),
            "Fn::Equals": self._equals,
            "Fn::Contains": self._contains,
        }

    def evaluate(self, value: Any) -> Any:
        """Return a value without intrinsic functions and members that are `AWS::NoValue`.

        Raises:
            TemplateError: A value is none that a function takes. Whether arguments have the right shape, the CDK's own
                template validator says before.
            UnsupportedError: A function is unknown here, or there is a dynamic reference; the message names it.
        """
        evaluated = self._evaluate(value)
        reference = DYNAMIC_REFERENCE.search(str(evaluated))
        if reference and not self._scope.keeps_dynamic_references:
            raise UnsupportedError(f"dynamic reference to {reference[1]}")
        return evaluated

    def condition(self, definition: Any) -> bool:
        """Return whether the condition of a Conditions section, or the assertion of a rule, holds.

        Raises:
            TemplateError: It is no boolean function.
        """
        functions = list(definition) if isinstance(definition, dict) else []
        if len(functions) != 1 or functions[0] not in self._conditions:
            raise TemplateError(f"Template format error: no boolean operation: {definition!r}")
        [function] = functions
        return self._conditions[function](definition[function])

    def _evaluate(self, value: Any) -> Any:
        if isinstance(value, list):
            return [item for each in value if (item := self._evaluate(each)) is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        function = intrinsic_function(value)
        if function is None:
            members = {key: self._evaluate(each) for key, each in value.items()}
            return {key: each for key, each in members.items() if each is not NO_VALUE}
        if function not in self._values:
            raise UnsupportedError(f"intrinsic function {function}")
        return self._values[function](value[function])

    def _base64(self, argument: Any) -> str:
        return base64.b64encode(self._text(argument).encode()).decode()

    def _find_in_map(self, argument: list[Any]) -> Any:
        name, top_level_key, second_level_key = (self._text(each) for each in argument)
        return self._scope.mapping(name, top_level_key, second_level_key)

    def _get_attribute(self, argument: list[Any] | str) -> Any:
        logical_id, attribute = attribute_reference(argument)
        return self._scope.attribute(logical_id, self._text(attribute))

    def _get_stack_output(self, argument: dict[str, Any]) -> Any:
        if "RoleArn" in argument:
            raise UnsupportedError("Fn::GetStackOutput with RoleArn")
        members = self._evaluate(argument)
        return self._scope.stack_output(members.get("Region"), members["StackName"], members["OutputName"])

    def _if(self, argument: list[Any]) -> Any:
        name, then, otherwise = argument
        return self._evaluate(then if self._scope.condition(name) else otherwise)

    def _join(self, argument: list[Any]) -> str:
        separator, parts = self._evaluate(argument)
        if not isinstance(parts, list):
            raise TemplateError(f"Template error: Fn::Join got {parts!r}; allowed: a list")
        return _scalar_text(separator).join(map(_scalar_text, parts))

    def _select(self, argument: list[Any]) -> Any:
        index, values = (self._evaluate(each) for each in argument)
        if not isinstance(values, list):
            raise TemplateError(f"Template error: Fn::Select got {values!r}; allowed: a list")
        if not str(index).isdecimal() or int(index) >= len(values):
            raise TemplateError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")
        return values[int(index)]

    def _split(self, argument: list[Any]) -> list[str]:
        delimiter, text = (self._text(each) for each in argument)
        if not delimiter:
            raise TemplateError("Template error: Fn::Split got '' as delimiter; allowed: a text")
        return text.split(delimiter)

    def _sub(self, argument: list[Any] | str) -> str:
        text, variables = substitution(argument)

        def value_of(match: re.Match[str]) -> str:
            name = match[1]
            if name.startswith("!"):
                return f"${{{name[1:]}}}"
            if name in variables:
                return self._text(variables[name])
            if "." in name:
                return _scalar_text(self._scope.attribute(*attribute_reference(name)))
            return _scalar_text(self._scope.ref(name))

        return _PLACEHOLDER.sub(value_of, text)

    def _text(self, value: Any) -> str:
        return _scalar_text(self._evaluate(value))

    def _equals(self, argument: list[Any]) -> bool:
        first, second = (_comparable(self._evaluate(each)) for each in argument)
        return bool(first == second)

    def _contains(self, argument: list[Any]) -> bool:
        values, value = (_comparable(self._evaluate(each)) for each in argument)
        return value in values


def intrinsic_function(value: Mapping[str, Any]) -> str | None:
    """Return the name of the intrinsic function that an object is, or None for a plain object.

    Raises:
        UnsupportedError: A function stands beside other members.
    """
    functions = [key for key in value if str(key).startswith("Fn::")]
    if functions and len(value) > 1:
        raise UnsupportedError(f"intrinsic function {functions[0]} beside other members")
    return "Ref" if list(value) == ["Ref"] else next(iter(functions), None)


def intrinsics(value: Any, conditions: Mapping[str, bool] | None = None) -> Iterator[tuple[str, Any]]:
    """Yield name and argument of every intrinsic function in a value.

    Args:
        value: Any value of a template.
        conditions: Of an Fn::If only the branch that its condition takes is visited, and none if the condition is
            missing here. Without this argument both are.
    """
    if isinstance(value, list):
        for each in value:
            yield from intrinsics(each, conditions)
    elif isinstance(value, dict):
        function = intrinsic_function(value)
        if function is None:
            yield from intrinsics(list(value.values()), conditions)
            return
        argument = value[function]
        yield function, argument
        if function == "Fn::If" and conditions is not None:
            name, then, otherwise = argument
            if name in conditions:
                yield from intrinsics(then if conditions[name] else otherwise, conditions)
        else:
            yield from intrinsics(argument, conditions)


def references(value: Any, conditions: Mapping[str, bool] | None = None, *, pseudo: bool = False) -> set[str]:
    """Return the parameters and logical ids that Ref, Fn::GetAtt and Fn::Sub name.

    Args:
        value: Any value of a template.
        conditions: As of `intrinsics`.
        pseudo: Whether to return what is named like a pseudo parameter, too.
    """
    return {name for name, _ in referred(value, conditions) if pseudo or not name.startswith("AWS::")}


def referred(value: Any, conditions: Mapping[str, bool] | None = None) -> Iterator[tuple[str, Any]]:
    """Yield what Ref, Fn::GetAtt and Fn::Sub name, each with its attribute: empty for what Ref gives.

    Args:
        value: Any value of a template.
        conditions: As of `intrinsics`.
    """
    for function, argument in intrinsics(value, conditions):
        match function:
            case "Ref":
                yield argument, ""
            case "Fn::GetAtt":
                yield attribute_reference(argument)
            case "Fn::Sub":
                text, variables = substitution(argument)
                for name in dict.fromkeys(match[1] for match in _PLACEHOLDER.finditer(text)):  # in their order
                    if not name.startswith("!") and name not in variables:
                        logical_id, _, attribute = name.partition(".")
                        yield logical_id, attribute


def attribute_reference(argument: list[Any] | str) -> tuple[str, Any]:
    """Return logical id and attribute of an Fn::GetAtt; its text form has them on both sides of the first dot."""
    logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
    return logical_id, attribute


def substitution(argument: list[Any] | str) -> tuple[str, dict[str, Any]]:
    """Return text and variables of an Fn::Sub."""
    text, variables = (argument, {}) if isinstance(argument, str) else argument
    return text, variables


def _scalar_text(value: Any) -> str:
    """Return a scalar as CloudFormation writes it into a string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise TemplateError(f"Template error: {value!r} does not resolve to a string")


def _comparable(value: Any) -> Any:
    """Return a value with its scalars as strings, which is how CloudFormation compares."""
    if isinstance(value, list):
        return [_comparable(each) for each in value]
    return value if isinstance(value, dict) or value is NO_VALUE else _scalar_text(value)
