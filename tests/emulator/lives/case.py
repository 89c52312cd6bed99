"""What the lives of resources are told with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.emulator.account import Account, Resource, statement

S3_READ = statement(Action="s3:GetObject", Resource="*")
EC2_READ = statement(Action="ec2:Describe*", Resource="*")
PUBLIC_READ = statement(Action="s3:GetObject", Principal="*", Resource="*")
PUBLIC_LIST = statement(Action="s3:ListBucket", Principal="*", Resource="*")


@dataclass(frozen=True)
class Case:
    """A resource's life.

    Attributes:
        properties: What it is made with.
        look: What boto3 sees of it; once it is gone, nothing or an error.
        made: What that is after its creation.
        changes: Properties that are changed; None takes one away.
        changed: What boto3 sees then.
        attributes: What Fn::GetAtt gives, all names (AWS's template reference of the type, "Return values").
    """

    properties: dict[str, Any]
    look: Callable[[Resource], Any]
    made: Any
    changes: dict[str, Any]
    changed: Any
    attributes: set[str]


CASES: dict[str, Callable[[Account], Case]] = {}


def case(resource_type: str) -> Callable[[Callable[[Account], Case]], Callable[[Account], Case]]:
    def register(build: Callable[[Account], Case]) -> Callable[[Account], Case]:
        CASES[resource_type] = build
        return build

    return register


def part(described: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: described.get(key) for key in keys}


def tags_of(account: Account, resource_id: str) -> dict[str, str]:
    found = account.client("ec2").describe_tags(Filters=[{"Name": "resource-id", "Values": [resource_id]}])["Tags"]
    return {tag["Key"]: tag["Value"] for tag in found}
