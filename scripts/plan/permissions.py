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
    """Return the difference of properties, given as name and values before and after, statement by statement."""
    lost, gained = [], []
    for name, before, after in properties:
        old, new = list(_statements(name, before)), list(_statements(name, after))
        lost += [each for each in old if each not in new]
        gained += [each for each in new if each not in old]
    return PermissionChange(subject, lost, gained)


def _statements(name: str, value: Any) -> Iterator[str]:
    """Yield what a property says, each statement of a policy in words, each item of another list by itself."""
    items = value.get("Statement", value) if isinstance(value, Mapping) else value
    for each in items if isinstance(items, list) else [items]:
        if isinstance(each, Mapping) and "Effect" in each:
            yield _statement(each)
        elif each is not None:
            yield f"{name}: {_text(each)}"


def _statement(statement: Mapping[str, Any]) -> str:
    return " ".join(f"{word} {_text(statement[key])}".strip() for key, word in _WORDS.items() if key in statement)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
