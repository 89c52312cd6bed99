"""What the models of several services need."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from botocore.exceptions import ClientError

from emulator.resources.model import Context, Model, Physical, Properties, ResourceError

_TAGGED: Mapping[str, str] = {
    "cloudwatch": "ResourceARN",
    "dlm": "ResourceArn",
    "fsx": "ResourceARN",
    "lambda": "Resource",
    "logs": "resourceArn",
    "sns": "ResourceArn",
}
"""Services whose tags TagResource and UntagResource change, and the parameter that names the resource."""
_TAGS_BY_KEY = ("dlm", "lambda", "logs")
"""Those of them that take tags as a dictionary, not as a list of keys and values."""


def taken(properties: Mapping[str, Any], keys: Iterable[str]) -> Properties:
    """Return the named properties, as far as they are there."""
    return {key: properties[key] for key in keys if key in properties}


def without(properties: Mapping[str, Any], *keys: str) -> Properties:
    """Return all properties but the named ones."""
    return {key: value for key, value in properties.items() if key not in keys}


def lowered(properties: Mapping[str, Any]) -> Properties:
    """Return properties as parameters of an API whose names start with a small letter."""
    return {key[0].lower() + key[1:]: value for key, value in properties.items()}


def as_dictionary(tags: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Turn a list of keys and values into a dictionary."""
    return {tag["Key"]: tag["Value"] for tag in tags}


def as_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Turn a dictionary into the list of keys and values that most APIs take."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def removed_tags(context: Context, properties: Properties) -> list[str]:
    """Name the tags that the resource had and is not to have any more."""
    return sorted(as_dictionary(context.previous.get("Tags", [])).keys() - as_dictionary(properties.get("Tags", [])))


def retag(context: Context, service: str, resource: str, properties: Properties, changed: set[str]) -> None:
    """Change the tags of a resource, given by its ARN, if they are to change."""
    if "Tags" not in changed:
        return
    client = context.client(service)
    keys, values = ("tagKeys", "tags") if service == "logs" else ("TagKeys", "Tags")
    tags = properties.get("Tags", [])
    if gone := removed_tags(context, properties):
        client.untag_resource(**{_TAGGED[service]: resource, keys: gone})
    if tags:
        tags = as_dictionary(tags) if service in _TAGS_BY_KEY else tags
        client.tag_resource(**{_TAGGED[service]: resource, values: tags})


def short_name(context: Context, limit: int) -> str:
    """Shorten the name that CloudFormation would make up: its beginning, and the suffix that makes it unique."""
    suffix = context.name.rpartition("-")[2]
    if len(context.name) <= limit:
        return context.name
    return f"{context.name[: limit - len(suffix) - 1]}-{suffix}"


def already_exists(resource_type: str, name: str) -> ResourceError:
    """Return CloudFormation's refusal of a name in use, where the API itself would give what exists under the name."""
    return ResourceError(f"Resource of type '{resource_type}' with identifier '{name}' already exists.")


@contextmanager
def unless_gone(*codes: str) -> Iterator[None]:
    """Let a call pass about what does not exist: the API then answers with one of these error codes."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise


@contextmanager
def undone_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Undo a first step when one in the `with` block fails: a resource that could not be made leaves nothing."""
    try:
        yield
    except Exception:
        undo()
        raise


def tag_specifications(properties: Properties, resource_type: str) -> Properties:
    """Return the Tags as EC2's parameter TagSpecifications for a resource that is being made."""
    tags = properties.get("Tags")
    return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": tags}]} if tags else {}


def retag_ec2(context: Context, resource_id: str, properties: Properties) -> None:
    """Give an EC2 resource the tags that it is to have."""
    ec2 = context.client("ec2")
    if gone := removed_tags(context, properties):
        ec2.delete_tags(Resources=[resource_id], Tags=[{"Key": key} for key in gone])
    if properties.get("Tags"):
        ec2.create_tags(Resources=[resource_id], Tags=properties["Tags"])


class Ec2Model(Model):
    """A resource of EC2 whose reference is its id, such as RouteTableId. Of itself, only its tags change in place.

    Attributes:
        noun: What the API's actions call it, such as route_table.
        tag_type: What TagSpecifications call it; by default the noun with hyphens.
    """

    noun: ClassVar[str]
    tag_type: ClassVar[str] = ""
    mutable: Collection[str] | None = ("Tags",)

    def create(self, context: Context, properties: Properties) -> Physical:
        return Physical(self._make(context, properties)[self._id])

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        if "Tags" in changed:
            retag_ec2(context, physical.ref, properties)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        getattr(context.client("ec2"), f"delete_{self.noun}")(**{self._id: physical.ref})

    def _make(self, context: Context, properties: Properties) -> Properties:
        """Make the resource from properties that are parameters of the API, and return what the API says of it."""
        tags = tag_specifications(properties, self.tag_type or self.noun.replace("_", "-"))
        action = getattr(context.client("ec2"), f"create_{self.noun}")
        described: Properties = action(**without(properties, "Tags"), **tags)[self._id.removesuffix("Id")]
        return described

    @property
    def _id(self) -> str:
        return f"{self.noun.title().replace('_', '')}Id"
