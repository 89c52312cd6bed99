"""Signatures as ``help()`` shows them: an argument a line, with types in the words of those who call.

Python 3.13 breaks long signatures by itself; before, ``help()`` writes them on one line, and no version leaves out what
`Annotated` adds for models. Annotations stay what they are: only their text is made here.
"""

import inspect
from collections.abc import Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel

from ultracluster.domain.types import FromCdk

_Class = TypeVar("_Class", bound=type)
_LINE = 100
_INDENT = "    "
_GENERIC: Mapping[Any, str] = {list: "Sequence", dict: "Mapping"}
"""Models hold lists and dictionaries, and take any sequence and mapping."""
_STARS: Mapping[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
_OPTIONS = "ultracluster.options"


def readable(cls: _Class) -> _Class:
    """Let a class and its own public functions have signatures to be read."""
    if "__init__" in vars(cls):
        cls.__signature__ = _OfInit()  # type: ignore[attr-defined]
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and (name == "__init__" or not name.startswith("_")):
            function.__signature__ = _readable(inspect.signature(function))  # type: ignore[attr-defined]
            function.__doc__ = function.__doc__ or ""  # else that of the class of the CDK that is below
    return cls


class _OfInit:
    """The signature of a class: that of its ``__init__``, not of a metaclass that has one, as that of the CDK."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        _, *parameters = inspect.signature(owner.__init__).parameters.values()  # type: ignore[misc]
        return _Signature(parameters)


class OfModel:
    """The signature of a model, by the one that pydantic has made.

    Attributes:
        made: What the class has of pydantic.
    """

    def __init__(self, made: Any) -> None:
        self.made = made

    def __get__(self, instance: object, owner: type[BaseModel]) -> inspect.Signature:
        fields = owner.model_fields
        made = _readable(self.made.__get__(None, owner)).parameters
        return _Signature([each.replace(annotation=fields[name].rebuild_annotation()) for name, each in made.items()])


class _Parameter(inspect.Parameter):
    """One whose text has its type and default in short."""

    __slots__ = ()

    def __str__(self) -> str:
        text = f"{_STARS.get(self.kind, '')}{self.name}"
        if self.annotation is not self.empty:
            text += f": {written(self.annotation)}"
        if self.default is not self.empty:
            equals = "=" if self.annotation is self.empty else " = "
            text += f"{equals}{_default(self.default)}"
        return text


class _Signature(inspect.Signature):
    """One whose text has a line for each argument, if all do not fit into one."""

    __slots__ = ()

    def __str__(self) -> str:
        return self.format()

    def format(self, **_: Any) -> str:
        """Return the text. Python 3.13 asks for a width, and later ones for other things."""
        arguments, by_name = list[str](), False
        for each in self.parameters.values():
            by_name = by_name or each.kind is each.VAR_POSITIONAL
            if each.kind is each.KEYWORD_ONLY and not by_name:
                arguments.append("*")
                by_name = True
            arguments.append(str(each))
        returned = "" if self.return_annotation is self.empty else f" -> {written(self.return_annotation)}"
        line = f"({', '.join(arguments)}){returned}"
        if len(line) <= _LINE:
            return line
        return "\n".join(["(", *(f"{_INDENT}{each}," for each in arguments), f"){returned}"])


def _readable(signature: inspect.Signature) -> inspect.Signature:
    parameters = [
        _Parameter(each.name, each.kind, default=each.default, annotation=each.annotation)
        for each in signature.parameters.values()
    ]
    return _Signature(parameters, return_annotation=signature.return_annotation)


def written(kind: Any) -> str:
    """Return a type as a user of the library writes it: ``Sequence[Queue]``, ``int | cdk.Size | None``."""
    return " | ".join(dict.fromkeys(sorted(_members(kind), key="None".__eq__)))


def _members(kind: Any) -> list[str]:
    """Return the members of a union, and what a field takes of the CDK beside its type."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return [*_members(parts[0]), *(each.takes for each in parts[1:] if isinstance(each, FromCdk))]
    if origin in (Union, UnionType):
        return [text for each in parts for text in _members(each)]
    if origin is Literal:
        numbers = all(isinstance(each, int) for each in parts)
        return ["int"] if numbers else [f"Literal[{', '.join(map(repr, parts))}]"]
    if isinstance(origin, type):
        name = _GENERIC.get(origin, origin.__name__)
        return [f"{name}[{', '.join('...' if each is ... else written(each) for each in parts)}]"]
    return [_name(kind)]


def _name(kind: Any) -> str:
    """Return the name of a class: of a model, that of the options made of it; of the CDK, as its guide imports it."""
    if isinstance(kind, ForwardRef):
        return kind.__forward_arg__
    if kind is None or kind is NoneType or not isinstance(kind, type):
        return str(None if kind is NoneType else kind).removeprefix("typing.")
    if issubclass(kind, BaseModel) and kind.__module__ != _OPTIONS:
        return next((each.__name__ for each in kind.__subclasses__() if each.__module__ == _OPTIONS), kind.__name__)
    package, _, module = kind.__module__.partition(".")
    if package != "aws_cdk":
        return kind.__name__
    return f"{module.removeprefix('aws_') or 'cdk'}.{kind.__name__}"


def _default(value: object) -> str:
    if isinstance(value, Enum):
        return f"{_name(type(value))}.{value.name}"
    return repr(value)
