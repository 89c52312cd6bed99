"""What the models of several services need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from botocore.exceptions import ClientError

from emulator.resources.model import Context, Model, Physical, Properties, ResourceError


def taken(properties: Properties, keys: Iterable[str]) -> Properties:
    """Take the named properties, as far as they are there, out of the dictionary."""
    return {key: properties.pop(key) for key in keys if key in properties}


def lowered(properties: Properties, keys: Iterable[str]) -> Properties:
    """Take properties out as `taken` does, for an API whose parameters begin with a small letter."""
    return {key[0].lower() + key[1:]: value for key, value in taken(properties, keys).items()}


def taken_tags(properties: Properties) -> dict[str, str]:
    """Take the Tags out, a list of keys and values, as a dictionary."""
    return as_dictionary(properties.pop("Tags", []))


def as_dictionary(tags: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Turn a list of keys and values into a dictionary."""
    return {tag["Key"]: tag["Value"] for tag in tags}


def as_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Turn a dictionary into the list of keys and values that most APIs take."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def check_tags(tags: Sequence[Mapping[str, str]] | Mapping[str, str]) -> None:
    """Refuse tags that no service takes, in the words of EC2; those of other services differ a little.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html, InvalidParameterValue;
    https://github.com/kubernetes-sigs/cluster-api-provider-aws/issues/5120.

    Raises:
        ResourceError: A key occurs twice, or is AWS's own.
    """
    seen = set()
    for key in [tag if isinstance(tag, str) else tag["Key"] for tag in tags]:
        if key in seen:
            raise ResourceError(f"Duplicate tag key '{key}' specified.")
        if key.lower().startswith("aws:"):
            raise ResourceError(
                f"Value ( {key} ) for parameter key is invalid. "
                "Tag keys starting with 'aws:' are reserved for internal use"
            )
        seen.add(key)


def removed_tags(context: Context, properties: Properties) -> list[str]:
    """Name the tags that the resource had and is not to have any more."""
    return sorted(as_dictionary(context.previous.get("Tags", [])).keys() - as_dictionary(properties.get("Tags", [])))


def short_name(context: Context, limit: int) -> str:
    """Shorten the name that CloudFormation would make up: its beginning, and the suffix that makes it unique."""
    suffix = context.name.rpartition("-")[2]
    if len(context.name) <= limit:
        return context.name
    return f"{context.name[: limit - len(suffix) - 1]}-{suffix}"


def already_exists(resource_type: str, name: str) -> ResourceError:
    """Return CloudFormation's refusal of a name in use, where the API itself would give what exists under the name."""
    return ResourceError(f"Resource of type '{resource_type}' with identifier '{name}' already exists.")


def look_for_provider(context: Context, properties: Properties) -> None:
    """Look for the function of a custom resource that is not run, and take its ServiceToken out.

    Raises:
        ResourceError: The resource has no ServiceToken.
        botocore.exceptions.ClientError: There is no such function.
    """
    if "ServiceToken" not in properties:
        message = "[#: required key [ServiceToken] not found]"
        raise ResourceError(f"Properties validation failed for resource {context.logical_id} with message: {message}")
    context.client("lambda").get_function(FunctionName=properties.pop("ServiceToken"))


@contextmanager
def unless_gone(*codes: str) -> Iterator[None]:
    """Let a deletion pass of what does not exist: the API then answers with one of these error codes."""
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
    """Take the Tags out, as EC2's parameter TagSpecifications for a resource that is being made."""
    tags = properties.pop("Tags", [])
    return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": tags}]} if tags else {}


def retag_ec2(context: Context, resource_id: str, properties: Properties, changed: set[str]) -> None:
    """Give an EC2 resource the tags that it is to have, if they changed."""
    if "Tags" not in changed:
        return
    ec2 = context.client("ec2")
    if gone := removed_tags(context, properties):
        ec2.delete_tags(Resources=[resource_id], Tags=[{"Key": key} for key in gone])
    if properties.get("Tags"):
        ec2.create_tags(Resources=[resource_id], Tags=properties["Tags"])
    changed.remove("Tags")


class Ec2Model(Model):
    """A resource of EC2 whose reference is its id. Of itself, only its tags change in place."""

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the tags."""
        retag_ec2(context, physical.ref, properties, changed)
        return physical


def retag(context: Context, service: str, arn: str, properties: Properties, changed: set[str]) -> None:
    """Change the tags of a resource of a service whose tags go by ARN, if they are to change."""
    if "Tags" not in changed:
        return
    client = context.client(service)
    if gone := removed_tags(context, properties):
        client.untag_resource(ResourceARN=arn, TagKeys=gone)
    if properties.get("Tags"):
        client.tag_resource(ResourceARN=arn, Tags=properties["Tags"])
    changed.remove("Tags")
