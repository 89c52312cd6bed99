"""What changes in who may do or reach what: IAM, security groups, policies of buckets, keys and topics."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

RESOURCE_TYPES = (
    "AWS::EC2::SecurityGroup",
    "AWS::IAM::",
    "AWS::KMS::Key",
    "AWS::Lambda::Permission",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::TopicPolicy",
)
"""Beginnings of the resource types that say who may do or reach what."""
UNRELATED = frozenset({"Description", "GroupDescription", "Metadata", "Path", "PolicyName", "Roles", "Tags", "VpcId"})
"""Their properties that grant nothing."""
CLUSTER_KEYS = frozenset({"AdditionalSecurityGroups", "AllowedIps", "Iam", "SecurityGroups"})
"""Keys of a ParallelCluster configuration that say who may do or reach what."""
_WORDS: Mapping[str, str] = {
    "Effect": "",
    "Action": "",
    "NotAction": "all but",
    "Resource": "on",
    "NotResource": "on all but",
    "Principal": "to",
    "NotPrincipal": "to all but",
    "Condition": "if",
}
"""Elements of a statement, and the words before them.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements.html
"""

_PEERS = (
    *("CidrIp", "CidrIpv6", "SourceSecurityGroupId", "SourcePrefixListId"),
    *("DestinationSecurityGroupId", "DestinationPrefixListId"),
)
"""Properties of a security group's rule that name the other side.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-ec2-securitygroup-ingress.html
"""


@dataclass(frozen=True)
class PermissionChange:
    """What changes in who may do or reach what.

    Attributes:
        subject: The resource, or the key of the cluster's configuration.
        lost: Statements that are removed.
        gained: Statements that are added.
    """

    subject: str
    lost: list[str]
    gained: list[str]


def permission_change(subject: str, properties: Iterable[tuple[str, Any, Any]]) -> PermissionChange:
    """Return the difference of properties, given as name and values before and after, statement by statement.

    Of a statement that allows more or less than before, only that is shown.
    """
    lost, gained = [], []
    for name, before, after in properties:
        old, new = list(_statements(before)), list(_statements(after))
        less = [each for each in old if each not in new]
        more = [each for each in new if each not in old]
        for number, each in enumerate(less):
            less[number], more = narrowed(each, more)
        lost += [_words(name, each) for each in less if each is not None]
        gained += [_words(name, each) for each in more]
    return PermissionChange(subject, lost, gained)


def narrowed(statement: Any, others: list[Any]) -> tuple[Any, list[Any]]:
    """Return a statement that is lost, and those that are gained, without what one of them has in common with it.

    That is so if they differ in the actions alone, or in the resources alone; None: nothing of it is lost.
    """
    for number, other in enumerate(others):
        if not (isinstance(statement, Mapping) and isinstance(other, Mapping) and statement.keys() == other.keys()):
            continue
        different = [key for key in statement if statement[key] != other[key]]
        if different not in (["Action"], ["Resource"]):
            continue
        [key] = different
        old, new = (each[key] if isinstance(each[key], list) else [each[key]] for each in (statement, other))
        less, more = [each for each in old if each not in new], [each for each in new if each not in old]
        rest = [{**other, key: more}] if more else []
        return ({**statement, key: less} if less else None), [*others[:number], *rest, *others[number + 1 :]]
    return statement, others


def _statements(value: Any) -> Iterator[Any]:
    """Yield what a property says: each statement of a policy, each item of another list."""
    items = value.get("Statement", value) if isinstance(value, Mapping) else value
    for each in items if isinstance(items, list) else [items]:
        if isinstance(each, Mapping) and "PolicyDocument" in each:  # an inline policy of a role
            yield from _statements(each["PolicyDocument"])
        elif each is not None:
            yield each


def _words(name: str, item: Any) -> str:
    """Return what an item of a property says."""
    if isinstance(item, Mapping) and "Effect" in item:
        return _statement(item)
    if isinstance(item, Mapping) and "IpProtocol" in item:
        protocol, numbers, peer = rule(item)
        way = "to" if name.endswith("Egress") else "from"
        remark = f" ({item['Description']})" if "Description" in item else ""
        return f"{name}: {f'{protocol} {numbers}'.strip()} {way} {peer}{remark}"
    return f"{name}: {_text(item)}"


def ports(group: Mapping[str, Any], way: str = "SecurityGroupIngress") -> Iterator[tuple[str, str]]:
    """Yield what a security group lets in, or out: the other side, with protocol and ports."""
    allowed: dict[tuple[str, str], list[str]] = {}
    for each in group.get(way, []):
        protocol, numbers, peer = rule(each)
        allowed.setdefault((peer, protocol), []).append(numbers)
    for (peer, protocol), ranges in allowed.items():
        yield peer, f"{protocol} {', '.join(ranges)}".strip()


def rule(properties: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return protocol, ports and other side of a security group's rule."""
    protocol = "everything" if str(properties["IpProtocol"]) == "-1" else str(properties["IpProtocol"]).upper()
    numbers = "-".join(dict.fromkeys(str(properties[key]) for key in ("FromPort", "ToPort") if key in properties))
    return protocol, numbers, next((_text(properties[key]) for key in _PEERS if key in properties), "")


def _statement(statement: Mapping[str, Any]) -> str:
    return " ".join(f"{word} {_text(statement[key])}".strip() for key, word in _WORDS.items() if key in statement)


def _text(value: Any) -> str:
    """Return a value in words: of a condition, StringEquals aws:SourceAccount 123456789012."""
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return " and ".join(f"{key} {_text(each)}" for key, each in value.items())
    return value if isinstance(value, str) else json.dumps(value)
