"""Tags as the services take them: each by parameters of its own, and some in another form than templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from emulator.resources.model import Properties


class _Tagging(NamedTuple):
    """How a service takes tags.

    Attributes:
        resource: The parameter of its actions that names the resource.
        verbs: The actions that set and remove tags.
        values: The parameter of the former, and of what makes resources, that has the tags.
        keys: The parameter of the latter.
        members: What key and value are called in a list of tags; none: tags are a dictionary.
    """

    resource: str = ""
    verbs: tuple[str, str] = ("tag_resource", "untag_resource")
    values: str = "Tags"
    keys: str = "TagKeys"
    members: tuple[str, ...] = ("Key", "Value")

    def form(self, tags: Any) -> Any:
        """Return tags as the service takes them; as they are in most templates, they may have further members."""
        if self.members == ("Key", "Value") and not isinstance(tags, Mapping):
            return [{"Value": "", **tag} for tag in tags]  # some types need no value
        tags = as_dictionary(tags)
        return [dict(zip(self.members, tag, strict=True)) for tag in tags.items()] if self.members else tags


_TO_RESOURCE = ("add_tags_to_resource", "remove_tags_from_resource")
_OF_PROVIDER = ("tag_open_id_connect_provider", "untag_open_id_connect_provider")
_LISTED = ("ec2", "elbv2")
"""Services whose actions for tags take a list of resources."""
_TAGGING: Mapping[str, _Tagging] = {
    "cloudwatch": _Tagging("ResourceARN"),
    "dlm": _Tagging("ResourceArn", members=()),
    "dynamodb": _Tagging("ResourceArn"),
    "ec2": _Tagging("Resources", ("create_tags", "delete_tags")),
    "ecr": _Tagging("resourceArn", values="tags", keys="tagKeys"),
    "efs": _Tagging("ResourceId"),
    "elbv2": _Tagging("ResourceArns", ("add_tags", "remove_tags")),
    "fsx": _Tagging("ResourceARN"),
    "iam": _Tagging("RoleName", ("tag_role", "untag_role")),
    "iam open-id-connect-provider": _Tagging("OpenIDConnectProviderArn", _OF_PROVIDER),
    "kms": _Tagging("KeyId", members=("TagKey", "TagValue")),
    "lambda": _Tagging("Resource", members=()),
    "logs": _Tagging("resourceArn", values="tags", keys="tagKeys", members=()),
    "rds": _Tagging("ResourceName", _TO_RESOURCE),
    "secretsmanager": _Tagging("SecretId"),
    "sns": _Tagging("ResourceArn"),
    "ssm": _Tagging("ResourceId", _TO_RESOURCE),
}
"""By service, or by service and type of resource where one has actions for each type."""


def as_dictionary(tags: Sequence[Mapping[str, str]] | Mapping[str, str]) -> dict[str, str]:
    """Turn a list of keys and values into a dictionary, which some types of Systems Manager have already."""
    return dict(tags) if isinstance(tags, Mapping) else {tag["Key"]: tag.get("Value", "") for tag in tags}


def with_creation(service: str, tags: Any, tag_type: str) -> Properties:
    """Return tags as a parameter of the action that makes a resource; EC2's has to be told what it makes."""
    if not tags:
        return {}
    if service == "ec2":
        return {"TagSpecifications": [{"ResourceType": tag_type, "Tags": tags}]}
    tagging = _TAGGING.get(service, _Tagging())
    return {tagging.values: tagging.form(tags)}


def retag(client: Any, service: str, resource: str, tag_type: str, *, old: Any, new: Any) -> None:
    """Change the tags of a resource, which is given as the service's actions for tags call it."""
    tagging = _TAGGING.get(f"{service} {tag_type}") or _TAGGING[service]
    what: Properties = {tagging.resource: [resource] if service in _LISTED else resource}
    if service == "ssm":
        what["ResourceType"] = tag_type
    tag, untag = (getattr(client, verb) for verb in tagging.verbs)
    if gone := sorted(as_dictionary(old).keys() - as_dictionary(new)):
        untag(**what, **({"Tags": [{"Key": key} for key in gone]} if service == "ec2" else {tagging.keys: gone}))
    if new:
        tag(**what, **{tagging.values: tagging.form(new)})
