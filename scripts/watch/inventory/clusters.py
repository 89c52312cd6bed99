"""The clusters that a deployment has or had, its deleted stacks, and what they kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from config.stack_identity import StackIdentity
from scripts.account import generations, stacks
from scripts.account.deployment import Deployment
from scripts.account.resource_kinds import LEFT
from scripts.watch.inventory.model import Key, Leftover, permitted
from scripts.watch.inventory.removal import exists


def present(deployment: Deployment, denied: list[str] | None = None) -> list[Deployment]:
    """Return a deployment with each of its clusters that exist, and with that of its settings, the oldest first.

    `denied` is that of `permitted`.
    """
    existing = permitted(_existing(deployment), denied)
    return [deployment.of_generation(each) for each in sorted({*existing, deployment.settings.cluster.generation})]


def known(deployment: Deployment, denied: list[str] | None = None) -> list[Deployment]:
    """Return `present`, and clusters of earlier generations, and later ones deleted in the last 90 days."""
    settings = deployment.settings
    first = settings.of_generation(1).stack_name("cluster")
    numbers = {*range(1, settings.cluster.generation + 1)}
    numbers.update(each.settings.cluster.generation for each in present(deployment, denied))
    for stack in permitted(stacks.deleted(deployment), denied):
        match = re.fullmatch(rf"{re.escape(first)}-(\d+)", stack["StackName"])
        if match and StackIdentity.of(stack) == (settings.name, "cluster"):
            numbers.add(int(match[1]))
    return [deployment.of_generation(each) for each in sorted(numbers)]


def names(clusters: Sequence[Deployment]) -> list[str]:
    """Return the names of the stacks that a deployment may have, of all its clusters."""
    return [*dict.fromkeys(name for each in clusters for name in stacks.names(each))]


def deleted_stacks(deployment: Deployment, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the stacks of these names deleted in the last 90 days, with those nested in them."""
    listed = [*stacks.deleted(deployment)]
    roots = {each["StackId"] for each in listed if each["StackName"] in wanted and not each.get("ParentId")}
    yield from (each for each in listed if {each["StackId"], each.get("RootId")} & roots)


def kept(deployment: Deployment, wanted: Sequence[str]) -> Iterator[Leftover]:
    """Yield what deleted stacks kept: by policy, or because somebody retained it to delete the stack.

    No policy keeps roles and profiles. They are global: only a stack of this Region tells whose they are.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    """
    for stack in deleted_stacks(deployment, wanted):
        for each in stacks.resources(deployment, stack["StackId"], deleted=True):
            if not each.status.is_gone and each.physical_id and exists(deployment, each.type, each.physical_id):
                yield Leftover(
                    type=each.type,
                    id=each.physical_id,
                    reason=f"kept when stack {each.stack} was deleted",
                    kept_on_purpose=not each.type.startswith("AWS::IAM::"),
                    stack=each.stack,
                )


_KEPT = {each.arn: each.type for each in LEFT if each.arn}
_CONSTRUCTS = {"storage": "Lustre", "team": "Homes"}
"""Constructs that tag what they keep with their path, by the part of the deployment."""


def tagged(deployment: Deployment, part: str) -> Iterator[Leftover]:
    """Yield file system, security group and bucket of storage or team, by the tag Name that the construct gives."""
    stack = deployment.stack_name(part)
    path = f"{stack}/{_CONSTRUCTS[part]}"
    wanted = [{"Key": "Name", "Values": [path]}]
    for each in deployment.account.list("resourcegroupstaggingapi", "get_resources", TagFilters=wanted):
        _, _, service, _, _, name = each["ResourceARN"].split(":", 5)
        kind = _KEPT.get(f"{service}:{name.rpartition('/')[0]}")
        resource = name.rpartition("/")[2]
        if kind is not None and exists(deployment, kind, resource):  # deleted ones are listed for a while
            yield Leftover(type=kind, id=resource, reason=f"tag Name={path}", kept_on_purpose=True, stack=stack)


@dataclass(frozen=True)
class Holdings:
    """What exists of a part of a deployment: in its stack, and kept by a deleted one.

    Attributes:
        keys: Types and ids of all.
        own: Ids of what the stack has.
        kept: What a deleted one kept.
        retained: Ids of what outlives the deletion of its stack.
    """

    keys: tuple[Key, ...]
    own: frozenset[str]
    kept: tuple[Leftover, ...]
    retained: frozenset[str]

    def of(self, kind: str) -> tuple[str, ...]:
        """Return the ids of a type."""
        return tuple(name for each, name in self.keys if each == kind)


def holdings(deployment: Deployment, part: str) -> Holdings:
    """Return what exists of storage or team, by its stack as it was deployed, not by the settings file."""
    stack = deployment.stack_name(part)
    existing = stacks.existing(deployment, stack)
    own = frozenset(each.physical_id for each in existing)
    by_id = {each.id: each for each in (*kept(deployment, [stack]), *tagged(deployment, part))}
    left = tuple(each for each in by_id.values() if each.id not in own)
    policies = stacks.deletion_policies(deployment, stack, existing)
    retained = {name for name, policy in policies.items() if policy.startswith("Retain")} | {each.id for each in left}
    keys = dict.fromkeys([*((each.type, each.physical_id) for each in existing), *(each.key for each in left)])
    return Holdings(tuple(keys), own, left, frozenset(retained))


def _existing(deployment: Deployment) -> Iterator[int]:
    yield from generations.existing(deployment)
