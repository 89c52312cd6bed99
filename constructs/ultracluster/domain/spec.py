"""The base of everything that is declared once for both the settings and the construct library."""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, ClassVar, Self, cast

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic_core import CoreSchema

from ultracluster.domain.violations import DECIDES, Violation, shape_violations, without

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

    def describe(self, model: type["Spec"], field: dict[str, Any]) -> None:
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

    @classmethod
    def declared(cls) -> Iterator[tuple[str, Setting]]:
        """Yield the fields that are settings, with what they declare."""
        for name, field in cls.model_fields.items():
            yield from ((name, each) for each in field.metadata if isinstance(each, Setting))

    @classmethod
    def checked(
        cls, values: Mapping[str, Any], rules: Callable[[Self], Iterable[Violation]] = lambda _: ()
    ) -> tuple[Self | None, list[Violation]]:
        """Return what has some values, if their shapes are right, and all that is wrong about them.

        Rules see defaults or placeholders in place of values of a wrong shape, of which they say nothing.
        """
        try:
            spec = cls.model_validate(values)
        except ValidationError as error:
            shapes = shape_violations(error)
            fields = {each.path[:1] for each in shapes}
            others = rules(cls.model_validate(without(dict(values), fields)))
            fields |= {(decided,) for field in fields for decided in DECIDES.get(field[0], ())}
            return None, [*shapes, *(each for each in others if each.path[:1] not in fields)]
        return spec, [*rules(spec)]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema with the fields' docstrings, and what `Setting` says of them.

        Pydantic's ``use_attribute_docstrings`` reads them when the class is made: 55 ms more to import the settings.
        """
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for base in reversed(cls.__mro__):
            if issubclass(base, Spec):
                for name, docstring in _docstrings(base):
                    if name in cls.model_fields:
                        properties[name]["description"] = docstring
        for name, setting in cls.declared():
            setting.describe(cls, properties[name])
        return schema


def _docstrings(cls: type[Spec]) -> Iterator[tuple[str, str]]:
    """Yield the name of each field in the body of a class with the docstring below it."""
    definition = cast(ast.ClassDef, ast.parse(inspect.getsource(cls)).body[0])
    for field, below in pairwise(definition.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(docstring))):
                yield name, inspect.cleandoc(docstring)
