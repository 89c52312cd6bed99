"""What a resource type is to the emulated CloudFormation: how to create, update and delete it over boto3."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Properties = dict[str, Any]

NOT_EMULATED: Final = "Not emulated: {}"
"""How the emulator refuses by name what AWS would do."""


class ResourceError(RuntimeError):
    """A resource could not be created, updated or deleted; the message is the reason that a stack event gives.

    Attributes:
        physical: What a failed creation left behind, and a roll-back has to delete; None if there is nothing.
    """

    def __init__(self, reason: str, physical: Physical | None = None) -> None:
        super().__init__(reason)
        self.physical = physical


@dataclass(frozen=True)
class Physical:
    """A resource that exists: what Ref and Fn::GetAtt give.

    Attributes:
        ref: What Ref gives, which is the physical id, too.
        attributes: What Fn::GetAtt gives, by attribute name, of those that templates ask for. A missing one is an error
            of the template.
    """

    ref: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """Where a resource is, and what AWS would call it.

    Attributes:
        client: Gives a boto3 client of a service in the stack's region.
        partition: `aws` or `aws-cn`.
        stack_id: ARN of the stack.
        name: The name that CloudFormation would make up: stack, logical id and a random suffix, 64 characters at most.
        resource_type: Type of the resource in the template, which custom resources are told.
        previous: The properties that the resource has had until now, when it is updated.
        keeps_snapshot: Whether a snapshot of the resource is to stay, when it is deleted.
        siblings: Physical ids of the resources of its stack, when its drift is looked for.
    """

    client: Callable[[str], Any]
    account: str
    region: str
    partition: str
    stack_id: str
    logical_id: str
    name: str
    resource_type: str = ""
    previous: Mapping[str, Any] = field(default_factory=dict)
    keeps_snapshot: bool = False
    siblings: Collection[str] = ()

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of the stack's account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"


class Model(ABC):
    """One resource type, over boto3 against the same server as everybody's; most are rows of `api.Api`.

    What the API refuses may be raised as it comes (botocore's ClientError); `ResourceError` is for a reason in
    CloudFormation's own words.

    Attributes:
        properties: Names of the properties that the type has here, others are an error; None: all go to the API, where
            botocore refuses those that it does not know.
        mutable: Names of those that `update` changes; None: all.
    """

    properties: Collection[str] | None = None
    mutable: Collection[str] | None = ()

    @abstractmethod
    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the resource."""

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the resource in place; `changed` names the properties that are new, gone or different.

        None of these is one that AWS replaces the resource for.
        """
        del context, properties, changed
        return physical

    @abstractmethod
    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the resource. `properties` are those it has; an error that it is not there is passed over."""
