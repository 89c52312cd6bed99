"""Arguments of constructs, checked by the types that are declared, before anything is in the tree.

The CDK checks some of this itself, but only when a value reaches it: then a part of a construct is in the tree.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from inspect import signature
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from aws_cdk import Stack, Token
from constructs import Construct
from pydantic import TypeAdapter, ValidationError

from ultracluster.domain.types import FileSystemId, NatGatewayId, SecurityGroupId, SubnetId, VolumeId, VpcId, listed
from ultracluster.domain.violations import (
    InvalidArguments,
    Path,
    Violation,
    Waiting,
    Words,
    article,
    called,
    is_list_token,
    is_token,
    kinds_of,
    shape_violations,
)

_LATER = {
    "secretsmanager": "aws_cdk.aws_secretsmanager",
    "SlurmAccounting": "ultracluster.slurm_accounting",
}
"""Modules of types that are imported when a value is given: to import one takes a twentieth of a second."""
_WORDS: Mapping[Any, str] = {
    bool: "True or False",
    str: "a text",
    int: "a whole number",
    float: "a number",
    Mapping: "a mapping",
}
_PLACE = ("self", "scope", "construct_id")
_IDS: Mapping[str, Any] = {
    "file_system_id": FileSystemId,
    "nat_gateway_id": NatGatewayId,
    "private_subnet_id": SubnetId,
    "public_subnet_id": SubnetId,
    "security_group_id": SecurityGroupId,
    "subnet_id": SubnetId,
    "volume_id": VolumeId,
    "vpc_id": VpcId,
}
"""Ids of what exists: arguments, and properties of what arguments are."""
_NOT_LOOKED_UP = frozenset({"vpc-12345", "p-12345", "p-67890", "s-12345", "s-67890", "1.2.3.4/5", "ami-1234"})
"""A VPC, its subnets and blocks, and an image (aws-cdk-lib, aws-ec2/lib/vpc.ts, DUMMY_VPC_PROPS, and
machine-image.ts)."""
_NOT_READ = "dummy-value-for-"
"""What a parameter of Systems Manager begins with (aws-cdk-lib, aws-ssm/lib/parameter.ts, valueFromLookup)."""


def construct_name(kind: type | str, scope: Construct, construct_id: str) -> str:
    """Return how messages name a construct that is about to be made: its class, or what makes it, and its path.

    Raises:
        InvalidArguments: It cannot be there.
    """
    broken = []
    if not isinstance(scope, Construct) or not any(isinstance(each, Stack) for each in scope.node.scopes):
        broken.append(Violation(("scope",), scope, "a stack, or a construct in a stack", ""))
    if not isinstance(construct_id, str) or not construct_id or is_token(construct_id):
        broken.append(Violation(("construct_id",), construct_id, "a text", "the id in the scope"))
    elif not broken and scope.node.try_find_child(construct_id) is not None:
        reason = f"{scope.node.path or 'the scope'} has a construct of this id"
        broken.append(Violation(("construct_id",), construct_id, "another id", reason))
    name = kind if isinstance(kind, str) else kind.__name__
    if broken:
        raise InvalidArguments(name, broken)
    return f"{name} {scope.node.path}/{construct_id}".replace(" /", " ")


def wrong_types(
    function: Callable[..., Any], given: Mapping[str, object], besides: Collection[str] = ()
) -> list[Violation]:
    """Return which arguments have other types than a function declares.

    Args:
        function: One with annotations.
        given: Its arguments by name, and what else there is, as ``locals()`` has them.
        besides: Names of arguments that a model checks.
    """
    return [
        each
        for name, parameter in signature(function).parameters.items()
        if name not in _PLACE and name not in besides and given[name] is not parameter.default
        for each in _wrong(given[name], _resolved(function.__module__, parameter.annotation), (name,))
    ]


def of_type(value: object, kind: Any, place: Path) -> list[Violation]:
    """Return why a value is not of a type: nothing, if it is."""
    return [*_wrong(value, kind, place)]


def is_not_looked_up(text: str) -> bool:
    """Return whether the CDK has a text instead of one of the account's, for which it asks, to synthesize again then.

    To refuse it would end the synthesis in which the CDK learns for what to ask.
    """
    return text in _NOT_LOOKED_UP or text.startswith(_NOT_READ)


def until_looked_up(value: Any) -> Any:
    """Return a token for what the CDK will look up, and any other value as it is: rules let tokens pass."""
    return Token.as_string(Token.as_any(value)) if isinstance(value, str) and is_not_looked_up(value) else value


def together(by_types: Iterable[Violation], by_rules: Sequence[Violation]) -> list[Violation]:
    """Return what is wrong by types and by rules; what rules say of an argument is more to the point."""
    said = [each.path for each in by_rules if not isinstance(each, Waiting)]
    further = [each for each in by_types if not any(_same(each.path, path) for path in said)]
    return [*further, *by_rules]


def _same(one: Path, other: Path) -> bool:
    """Return whether one place is the other, or within it."""
    length = min(len(one), len(other))
    return length > 0 and one[:length] == other[:length]


@cache
def _resolved(module: str, annotation: Any) -> Any:
    """Return a type; annotations that are texts are names in a module."""
    if not isinstance(annotation, str):
        return annotation
    return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), _Names(vars(sys.modules[module])))["it"]


class _Names(dict[str, Any]):
    def __missing__(self, name: str) -> Any:
        if name not in _LATER:
            raise KeyError(name)
        module = import_module(_LATER[name])
        return getattr(module, name, module)


def _wrong(value: object, kind: Any, place: Path) -> Iterator[Violation]:
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Any or isinstance(kind, str):
        return
    if origin in (Union, UnionType):
        members = [each for each in parts if each is not NoneType]
        found = [[*_wrong(value, each, place)] for each in members]
        if (value is None and NoneType in parts) or not all(found):
            return
        if len(found) == 1:
            yield from found[0]
        else:
            yield Violation(place, value, " or ".join(map(_described, members)), "")
        return
    within = _members_of(value, kind)
    if within is None:
        yield Violation(place, value, _described(kind), "")
    else:
        yield from _wrong_ids(value, kind, place)
    for key, each, of_member in within or ():
        yield from _wrong(each, of_member, (*place, key))


def _wrong_ids(value: object, kind: Any, place: Path) -> Iterator[Violation]:
    """Yield why a text, or a property of an interface, is not the id that its name says."""
    ids: list[tuple[Path, object]] = []
    if kind is str and len(place) == 1 and place[0] in _IDS:  # a Mount has the ids of volumes, too
        ids.append((place, value))
    elif getattr(kind, "_is_protocol", False):
        ids += [((*place, each), getattr(value, each)) for each in sorted(_members(kind) & _IDS.keys())]
    for path, given in ids:
        if is_list_token(given):
            yield Violation(path, Words("a token that stands for a list"), "one of it, such as Fn.select(0, ...)", "")
        elif not is_token(until_looked_up(given)):
            try:
                _adapter(str(path[-1])).validate_python(given)
            except ValidationError as error:
                yield from (replace(each, path=path) for each in shape_violations(error))


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_IDS[name])


def _members_of(value: object, kind: Any) -> list[tuple[str | int, object, Any]] | None:
    """Return what a value of a type holds, by key or index, with the types of that; None: it is not of the type."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return [] if value in parts else None
    if origin is None and _is(value, kind):
        declared = fields(value) if is_dataclass(kind) and is_dataclass(value) else ()
        module = type(value).__module__
        types: Mapping[str, Any] = {each.name: each.type for each in declared}
        return [(name, getattr(value, name), _resolved(module, annotation)) for name, annotation in types.items()]
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        pairs = [[(str(key), key, parts[0]), (str(key), each, parts[1])] for key, each in value.items()]
        return [each for pair in pairs for each in pair]
    items = listed(value)
    if isinstance(origin, type) and issubclass(origin, Sequence) and isinstance(items, list):
        return [(index, each, parts[0]) for index, each in enumerate(items)]
    return None


def _is(value: object, kind: Any) -> bool:
    if isinstance(value, type):  # a class in the place of an object has its attributes, too
        return False
    if kind in (int, float):
        return not isinstance(value, bool) and isinstance(value, (int, float) if kind is float else int)
    if not getattr(kind, "_is_protocol", False):
        return isinstance(value, kind) and not is_list_token(value)
    # To ask the value itself would be a call of the jsii kernel each.
    own = vars(value) if hasattr(value, "__dict__") else {}
    kinds = kinds_of(value)
    members = _members(kind) or {"__jsii_type__"}  # IDependable has none
    return all(each in own or any(hasattr(of_value, each) for of_value in kinds) for each in members)


@cache
def _members(protocol: type) -> frozenset[str]:
    """Return the properties and methods of an interface, such as those of the CDK."""
    own = (vars(each) for each in protocol.__mro__ if getattr(each, "_is_protocol", False))
    return frozenset(name for names in own for name in names if not name.startswith("_"))


def _described(kind: Any) -> str:
    """Return a type in words: ``an ec2.IVpc``."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(_described(each) for each in parts if each is not NoneType)
    if origin is Literal:
        return " or ".join(repr(each) if len(parts) == 1 else str(each) for each in parts)
    if origin in _WORDS or kind in _WORDS:
        return _WORDS.get(origin) or _WORDS[kind]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"a list, each item {_described(parts[0])}"
    if kind.__name__ == "SharedStorage":
        return "SharedStorage.lustre(...), SharedStorage.openzfs(...) or SharedStorage.efs(...)"
    name = called(kind)
    return f"{article(name)} {name}"
