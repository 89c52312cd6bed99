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


def permission_change(subject: str, values: Iterable[tuple[Any, Any]]) -> PermissionChange:
    """Return the difference between values before and after, statement by statement."""
    lost, gained = [], []
    for before, after in values:
        old, new = list(_statements(before)), list(_statements(after))
        lost += [each for each in old if each not in new]
        gained += [each for each in new if each not in old]
    return PermissionChange(subject, lost, gained)


def _statements(value: Any) -> Iterator[str]:
    """Yield what a value says, each statement of a policy and each item of a list by itself."""
    match value:
        case None:
            return
        case {"Statement": list(statements)}:
            yield from map(_statement, statements)
        case list(items):
            yield from map(_statement, items)
        case _:
            yield _text(value)


def _statement(statement: Any) -> str:
    """Return a statement of a policy in words, and anything else as it is."""
    if not isinstance(statement, Mapping) or "Effect" not in statement:
        return _text(statement)
    return " ".join(f"{word} {_text(statement[key])}".strip() for key, word in _WORDS.items() if key in statement)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
