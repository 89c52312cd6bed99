"""The base of everything that is declared once for both the settings and the construct library."""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, cast, get_args

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema, SchemaValidator
from pydantic_core.core_schema import CoreConfig, no_info_wrap_validator_function

from ultracluster.domain.violations import NO_SUCH_NAME, Violation, WaitsError, below, shape_violations

_PARALLELCLUSTER = "https://docs.aws.amazon.com/parallelcluster/latest/ug/{}-v3.html#yaml-{}"
_CLOUDFORMATION = "https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-{}-{}.html#cfn-{}"


class Change(StrEnum):
    """When a setting of something that exists can change."""

    AT_ONCE = "at once"
    """What runs continues."""
    DRAINS = "nodes drain"
    """At once; nodes that it concerns are replaced as their jobs end (``queue_update_strategy``)."""
    STOPPED_FLEET = "stopped fleet"
    """While the compute fleet is stopped."""
    NO_LOGIN_NODES = "no login nodes"
    """While there are no login nodes."""
    STOPPED_NODES = "stopped fleet, no login nodes"
    """While the compute fleet is stopped and there are no login nodes."""
    TWO_DEPLOYMENTS = "two deployments"
    """First without what it is part of, then with the new value."""
    NEW_CLUSTER = "new cluster"
    """By another cluster, on the same network and file system."""
    NEW_FILE_SYSTEM = "new file system"
    """By another file system, which is empty."""
    NEW_DEPLOYMENT = "new deployment"
    """By another network, and all that is in it."""
    BY_KEY = "as the key says"
    """ParallelCluster has a policy for each key."""


@dataclass(frozen=True)
class Growth:
    """That AWS only ever raises a value of something that exists: a number, or a version such as 8.4.9.

    Attributes:
        page: Who says so.
        percent: By how much it is raised at least.
        unset: Returns what counts where there is no value, by the properties of what exists.
    """

    page: str
    percent: int = 0
    unset: Callable[[Mapping[str, Any]], int] | None = None

    def __str__(self) -> str:
        return f"only up, by {self.percent} percent or more" if self.percent else "only up"

    def refused(self, before: object, after: object, properties: Mapping[str, Any]) -> str | None:
        """Return what is allowed instead of a change; None: AWS makes it, or a value is not known yet.

        Args:
            before: The value that there is; None: none.
            after: The one that is wanted.
            properties: Those that the resource has in CloudFormation.
        """
        if before == after:
            return None
        old, new = (
            _number(self.unset(properties) if each is None and self.unset else each) for each in (before, after)
        )
        if old is None or new is None:
            return None
        [value, *further] = old
        if further:
            return None if new > old else f"{'.'.join(map(str, old))} or later"
        least = -(-value * (100 + self.percent) // 100)
        if new[0] == value or new[0] >= least:
            return None
        return f"{value}, or {least} or more" if self.percent else f"{value} or more"


def _number(value: object) -> tuple[int, ...] | None:
    """Return the parts of a number or a version; None: it is neither."""
    return tuple(map(int, str(value).split("."))) if re.fullmatch(r"\d+(\.\d+)*", str(value)) else None


@dataclass(frozen=True)
class Setting:
    """What the annotation of a field says beside its type: ``x-change`` and the like of its schema.

    Attributes:
        change: When it can change.
        aws: What it is at AWS: a key of ParallelCluster's configuration such as ``HeadNode.InstanceType``, or a
            property in CloudFormation such as ``AWS::EC2::VPC.CidrBlock``. With a dot in front it is below ``aws`` of
            the model. None: it is nothing at AWS by itself.
        page: Address of documentation of its subject, where there is no page of that key or property.
        growth: In which direction alone it can change; None: in both.
    """

    change: Change
    aws: str | None = None
    page: str | None = None
    growth: Growth | None = None

    def key(self, model: type["Spec"]) -> str | None:
        """Return what a field of a model is at AWS, in full."""
        return f"{model.aws}{self.aws}" if self.aws and self.aws.startswith(".") else self.aws

    def describe(self, model: type["Spec"], field: MutableMapping[str, Any]) -> None:
        """Add to the JSON schema of a field what is said here."""
        field["x-change"] = self.change
        sentence = f"Change: {self.change}."
        if self.growth is not None:
            field["x-growth"] = str(self.growth)
            sentence = f"Change: {self.change}, {self.growth}. {self.growth.page}"
        key = self.key(model)
        if key is not None:
            field["x-aws"] = key
            sentence += f" {documentation(key)}"
        if self.page is not None:
            field["x-page"] = self.page
            sentence += f" {self.page}"
        field["description"] += f"\n\n{sentence}"


def documentation(aws: str) -> str:
    """Return the address of AWS's documentation of a key of ParallelCluster or a property in CloudFormation."""
    if not aws.startswith("AWS::"):
        return _PARALLELCLUSTER.format(aws.partition(".")[0], aws.replace(".", "-"))
    resource, *nested, name = aws.removeprefix("AWS::").replace("::", "-").lower().split(".")
    page = "-".join([resource, *nested[-1:]])
    return _CLOUDFORMATION.format("properties" if nested else "resource", page, f"{page}-{name}")


class Spec(BaseModel):
    """Immutable values. A docstring below a field describes it in the JSON schema and in messages."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
    aws: ClassVar[str] = ""
    """Where the fields are at AWS: see `Setting`."""

    def violation(self, field: str, allowed: str, reason: str) -> Violation:
        """Return that the value of a field breaks a rule."""
        return Violation((field,), getattr(self, field), allowed, reason)

    def changed(self) -> dict[str, Any]:
        """Return the values that are not the default."""
        fields = type(self).model_fields.items()
        return {name: value for name, field in fields if (value := getattr(self, name)) != field.get_default()}

    @classmethod
    def declared(cls) -> Iterator[tuple[str, Setting]]:
        """Yield the fields that are settings, with what they declare."""
        for name, field in cls.model_fields.items():
            yield from ((name, each) for each in field.metadata if isinstance(each, Setting))

    @classmethod
    def documented(cls) -> dict[str, str]:
        """Return the docstrings of fields."""
        bases = [each for each in reversed(cls.__mro__) if issubclass(each, Spec)]
        return {name: text for each in bases for name, text in _docstrings(each).items() if name in cls.model_fields}

    @classmethod
    def checked(
        cls, values: Mapping[str, Any], rules: Callable[[Self], Iterable[Violation]] = lambda _: ()
    ) -> tuple[Self | None, list[Violation]]:
        """Return what has some values, if their shapes are right, and all that is wrong about them.

        A rule that reads a value of a wrong shape waits.
        """
        try:
            spec = cls.model_validate(values)
        except ValidationError as error:
            return None, [*cls.shapes(error), *below((), rules(cls.readable(values)))]
        return spec, [*rules(spec)]

    @classmethod
    def shapes(cls, error: ValidationError) -> list[Violation]:
        """Return what has a wrong type or lies outside its range; of an unknown name, which may be meant."""
        return [_with_similar(cls, each) for each in shape_violations(error)]

    @classmethod
    def readable(cls, values: Mapping[str, Any]) -> Self:
        """Return what has those of some values whose shapes are right. `WaitsError` comes of reading another."""
        return cast(Self, _tolerant_validator(cls).validate_python(values))

    @classmethod
    def assembled(cls, values: Mapping[str, Callable[[], Any]]) -> Self:
        """Return what has values of right shapes. One that is not `readable` is so in the result, too."""
        return _without_wrong(cls, {name: _unless_it_waits(value) for name, value in values.items()})

    if not TYPE_CHECKING:  # type checkers see the fields

        def __getattr__(self, name: str) -> Any:
            if name in type(self).model_fields:
                raise WaitsError(name)
            return super().__getattr__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            if not name.startswith("_"):
                raise AttributeError(f"{_never_changes(self, name)}: make another with the value that you want")
            super().__setattr__(name, value)

        def __delattr__(self, name: str) -> None:
            raise AttributeError(_never_changes(self, name))

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema with the fields' docstrings, and what `Setting` says of them.

        Pydantic's ``use_attribute_docstrings`` reads them when the class is made: 55 ms more to import the settings.
        """
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for base in reversed(cls.__mro__):
            if issubclass(base, Spec):
                for name, docstring in _docstrings(base).items():
                    if name in cls.model_fields:
                        properties[name]["description"] = _in_yaml(base, docstring)
        for name, setting in cls.declared():
            setting.describe(cls, properties[name])
        return schema


def _never_changes(spec: Spec, name: str) -> str:
    return f"{type(spec).__name__}.{name} cannot be set: a {type(spec).__name__} never changes"


@cache
def _docstrings(cls: type[Spec]) -> dict[str, str]:
    """Return the docstring below each field in the body of a class."""
    docstrings = {}
    definition = cast(ast.ClassDef, ast.parse(inspect.getsource(cls)).body[0])
    for field, next_one in pairwise(definition.body):
        match field, next_one:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(docstring))):
                docstrings[name] = inspect.cleandoc(docstring)
    return docstrings


def _in_yaml(cls: type[Spec], docstring: str) -> str:
    """Return a docstring as a schema of settings has it: fields of the library are arguments, with Python's values."""
    if not cls.__module__.startswith("ultracluster."):
        return docstring
    words = {"None": "null", "True": "true", "False": "false"}
    return re.sub(r"\b(None|True|False)\b", lambda word: words[word[0]], docstring)


def _with_similar(model: type[Spec], violation: Violation) -> Violation:
    """Return the violation of an unknown name with the field that is most like it."""
    if violation.allowed != NO_SUCH_NAME:
        return violation
    *place, name = violation.path
    for part in place:
        field = model.model_fields.get(part) if isinstance(part, str) else None
        model = model if field is None else next(_models(field.annotation), model)
    similar = get_close_matches(str(name), model.model_fields, n=1)
    return replace(violation, allowed=f"{NO_SUCH_NAME}; there is {similar[0]}") if similar else violation


def _models(kind: Any) -> Iterator[type[Spec]]:
    if isinstance(kind, type) and issubclass(kind, Spec):
        yield kind
    for each in get_args(kind):
        yield from _models(each)


_Spec = TypeVar("_Spec", bound=Spec)
WRONG = object()
"""What stands for a value of a wrong shape until a model is made, which then lacks it."""


@cache
def _tolerant_validator(cls: type[Spec]) -> SchemaValidator:
    return SchemaValidator(_tolerant(cls.__pydantic_core_schema__), CoreConfig(strict=True, allow_inf_nan=False))


def _tolerant(schema: Any) -> Any:
    """Return a schema by which models lack the values that it refuses, and no rule of a whole model is checked."""
    if isinstance(schema, list):
        return [_tolerant(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    match schema.get("type"):
        case "function-after" if schema["schema"]["type"] == "model":
            return _tolerant(schema["schema"])
        case "model":  # not as one: pydantic-core would take the strict one that it has made already
            ref = schema.get("ref")  # of a model that is the type of several fields
            return no_info_wrap_validator_function(
                partial(_lacking, schema["cls"]), _tolerant(schema["schema"]), ref=ref
            )
        case "model-field":
            return {**schema, "schema": _or_wrong(schema["schema"])}
    return {key: _tolerant(each) for key, each in schema.items()}


def _or_wrong(schema: Any) -> Any:
    if schema["type"] == "default":  # outermost, or a missing value would be none
        return {**schema, "schema": _or_wrong(schema["schema"])}
    return no_info_wrap_validator_function(_value_or_wrong, _tolerant(schema))


def _value_or_wrong(value: Any, check: Callable[[Any], Any]) -> Any:
    with suppress(ValidationError):
        return WRONG if value is WRONG else check(value)
    return WRONG


def _lacking(cls: type[Spec], value: Any, check: Callable[[Any], Any]) -> Spec:
    """Return a model without values that are wrong or missing. Those that an unknown key may be meant for are, too."""
    if isinstance(value, cls):
        return value
    if isinstance(value, Mapping):
        fields = cls.model_fields
        missing = {name for name, field in fields.items() if field.is_required()}
        for key in value.keys() - fields.keys():
            missing |= {*(get_close_matches(str(key), fields, n=1) or fields)}
        value = {**dict.fromkeys(missing, WRONG), **{key: value[key] for key in fields if key in value}}
    values, _, given = check(value)
    return _without_wrong(cls, values, given)


def _without_wrong(cls: type[_Spec], values: Mapping[str, Any], given: set[str] | None = None) -> _Spec:
    spec = cls.model_construct(given, **values)
    for name in [name for name, each in values.items() if each is WRONG]:
        del spec.__dict__[name]
    return spec


def _unless_it_waits(value: Callable[[], Any]) -> Any:
    with suppress(WaitsError):
        return value()
    return WRONG
