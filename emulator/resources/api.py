"""A resource type as a row of a table: the calls that make, change and delete it, and what Ref and Fn::GetAtt give."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from emulator.resources.common import short_name, taken, undone_on_failure, without
from emulator.resources.model import Context, Model, Physical, Properties
from emulator.resources.tags import retag, with_creation

_SMALL_LETTERS: Final = ("ecr", "rds", "s3")
"""Services whose names have no others."""


@dataclass(frozen=True)
class Api(Model):
    """A resource type by calls of one service's API. A call is the name of an action, or a function.

    Attributes:
        service: Of boto3.
        noun: What actions call it, such as route_table.
        ref: What Ref gives: a member of the creation's answer, however deep, or else of its parameters. By default such
            as RouteTableId.
        attributes: What Fn::GetAtt gives, by such members; one that is not there is no attribute.
        id: The parameter that names the resource to actions, and the attribute that it takes if there is one, or else
            Ref; by default as `ref`.
        name: The property for a name, made up where the template has none, and the length that it may have.
        parameters: Turns properties into parameters of the creation, where names or values differ.
        creation: By default such as create_route_table. A function takes the parameters, and returns an answer.
        later: Properties that the creation does not take.
        configuration: Sets these, from what they were (none, after the creation) to what they are to be. If it fails
            after the creation, the resource is deleted.
        modification: Makes the other changes of what exists. An action takes the properties that have changed; a
            function may return new attributes.
        deletion: By default such as delete_route_table.
        tagged: What actions for tags call the resource: an attribute, or what a function says; by default as `id`.
        tag_type: What EC2 and Systems Manager have to be told with tags; by default such as route-table.
        tags: The property that has them.
    """

    service: str
    noun: str
    ref: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    id: str = ""
    name: tuple[str, int] | None = None
    creation: str | Callable[[Context, Properties], Mapping[str, Any]] = ""
    parameters: Callable[[Properties], Properties] = dict
    later: Collection[str] = ()
    configuration: Callable[[Context, Physical, Properties, Properties], None] | None = None
    modification: str | Callable[[Context, Physical, Properties, set[str]], Mapping[str, str] | None] = ""
    deletion: str | Callable[[Context, Physical, Properties], object] = ""
    tagged: str | Callable[[Context, Physical], str] = ""
    tag_type: str = ""
    tags: str = "Tags"
    properties: Collection[str] | None = None
    mutable: Collection[str] | None = ()

    def create(self, context: Context, properties: Properties) -> Physical:
        request = self._request(context, properties)
        creation = self.creation or f"create_{self.noun}"
        answer = creation(context, request) if callable(creation) else self._act(context, creation, request)
        members = {"Ref": self._ref, **self.attributes}
        values = {name: list(_found(member, [answer, request])) for name, member in members.items()}
        attributes = {name: found[0] for name, found in values.items() if found}
        physical = Physical(attributes.pop("Ref"), attributes)
        if self.configuration:
            with undone_on_failure(lambda: self.delete(context, physical, properties)):
                self.configuration(context, physical, {}, properties)
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        old = dict(context.previous)
        if self.tags in changed:
            tagged = self.tagged
            resource = tagged(context, physical) if callable(tagged) else self._named(physical, tagged)[1]
            before, after = (each.get(self.tags, []) for each in (old, properties))
            client = context.client(self.service)
            retag(client, self.service, resource, self._tag_type, old=before, new=after)
        if self.configuration:
            self.configuration(context, physical, old, properties)
        new: Mapping[str, str] | None = None
        if callable(self.modification):
            new = self.modification(context, physical, properties, changed)
        elif self.modification and changed - {self.tags}:
            request = dict([self._named(physical)], **taken(properties, changed - {self.tags}))
            self._act(context, self.modification, request)
        return Physical(physical.ref, {**physical.attributes, **(new or {})})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        deletion = self.deletion or f"delete_{self.noun}"
        if callable(deletion):
            deletion(context, physical, properties)
        else:
            self._act(context, deletion, dict([self._named(physical)]))

    @property
    def _ref(self) -> str:
        return self.ref or f"{self.noun.title().replace('_', '')}Id"

    @property
    def _tag_type(self) -> str:
        return self.tag_type or self.noun.replace("_", "-")

    def _named(self, physical: Physical, name: str = "") -> tuple[str, str]:
        """Return the parameter that names a resource, and its value."""
        name = name or self.id or self._ref
        return name, physical.attributes.get(name, physical.ref)

    def _request(self, context: Context, properties: Properties) -> Properties:
        name = {}
        if self.name:
            made_up = short_name(context, self.name[1])
            name[self.name[0]] = made_up.lower() if self.service in _SMALL_LETTERS else made_up
        tags = with_creation(self.service, properties.get(self.tags), self._tag_type)
        return {**self.parameters({**name, **without(properties, self.tags, *self.later)}), **tags}

    def _act(self, context: Context, action: str, request: Properties) -> Properties:
        answer: Properties = getattr(context.client(self.service), action)(**request)
        return answer


EC2: Final = partial(Api, "ec2", mutable=("Tags",))
"""A resource type of EC2: of itself, only its tags change in place."""


def _found(member: str, known: Any) -> Iterator[Any]:
    """Find members of that name in what is known, the outer ones first."""
    items = list(known.items()) if isinstance(known, Mapping) else list(enumerate(known))
    yield from (value for name, value in items if name == member)
    for _, value in items:
        if isinstance(value, Mapping | list):
            yield from _found(member, value)
