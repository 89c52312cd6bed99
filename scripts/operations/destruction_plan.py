"""What a destruction would do, and all that stands against it: said before anything is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scripts.deployment import Deployment
from scripts.operations import destruction_stacks, leftovers, stacks
from scripts.operations.destruction_storage import file_systems, hindrance
from scripts.operations.leftovers_model import Found

ORDER = ("cluster", "monitoring", "storage", "network")
"""The parts in the order in which they go."""


@dataclass(frozen=True)
class Plan:
    """What would be done.

    Attributes:
        parts: Parts to delete, in order.
        stacks: Names of the stacks that stand, in the order in which they go.
        file_systems: Ids of the file systems that go.
        unprotected: Stacks whose protection is taken away.
        obstacles: What stands against it, a sentence each; none: it can be done.
        remarks: What a person must know before, a sentence each.
        left: What stacks that are gone have left behind.
    """

    parts: tuple[str, ...]
    stacks: tuple[str, ...]
    file_systems: tuple[str, ...]
    unprotected: tuple[str, ...]
    obstacles: tuple[str, ...]
    remarks: tuple[str, ...]
    left: tuple[Found, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to delete; leftovers may be there."""
        return not self.stacks and not self.file_systems


def plan(
    deployment: Deployment,
    parts: Sequence[str] = ("cluster",),
    *,
    unprotect: bool = False,
    final_backup: bool = True,
    bucket: bool = False,
) -> Plan:
    """Return what a destruction would do, and all that stands against it.

    About 25 calls. Needs what `leftovers.find` needs.
    """
    deployment.account.forget()
    ordered = tuple(part for part in ORDER if part in parts)
    missing: list[str] = []
    left = leftovers.find(deployment, missing=missing)
    kept = [each for each in left if each.stack == deployment.stack_name("storage")]
    found = file_systems(deployment, kept)
    standing = _standing(deployment, ordered)
    protected = [each["StackName"] for each in standing if each.get("EnableTerminationProtection")]
    doomed = found if "storage" in ordered else []
    obstacles = [
        *_busy(standing),
        *_dependents(deployment, ordered, kept, found),
        *([] if unprotect else _protections(deployment, protected, doomed)),
    ]
    return Plan(
        ordered,
        tuple(each["StackName"] for each in standing),
        tuple(each["FileSystemId"] for each in doomed),
        tuple(protected) if unprotect else (),
        tuple(obstacles),
        (
            *_remarks(deployment, doomed, final_backup=final_backup),
            *(_about_buckets(deployment, kept, bucket=bucket) if "storage" in ordered else ()),
            *missing,
        ),
        tuple(left),
    )


def _standing(deployment: Deployment, parts: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for part in parts:
        found.append(deployment.stack(deployment.stack_name(part)))
        if part == "cluster":
            found.append(destruction_stacks.of_cluster(deployment))
    return [each for each in found if each is not None]


def _busy(standing: Sequence[dict[str, Any]]) -> Iterator[str]:
    for each in standing:
        status = each["StackStatus"]
        if status.endswith("_IN_PROGRESS") and status not in ("DELETE_IN_PROGRESS", "REVIEW_IN_PROGRESS"):
            yield f"{each['StackName']} is {status}: wait until that has ended."


def _dependents(
    deployment: Deployment, parts: Sequence[str], kept: Sequence[Found], found: Sequence[dict[str, Any]]
) -> Iterator[str]:
    """Yield who still uses what is to go: the storage in the network, and instances that are not the cluster's."""
    if "network" in parts and "storage" not in parts and deployment.settings.network.existing is None:
        for each in found:
            yield f"File system {each['FileSystemId']} stands in the network: name --storage, too."
    claimed: set[str] = set()
    if "storage" in parts:
        claimed |= {each.id for each in kept if each.type == "AWS::EC2::SecurityGroup"}
        claimed.update(deployment.physical_ids(deployment.stack_name("storage")).values())
    if "network" in parts:
        claimed.update(deployment.physical_ids(deployment.stack_name("network")).values())
    users = {
        each["InstanceId"]
        for each in deployment.other_instances()
        if claimed & {each.get("VpcId"), *(group["GroupId"] for group in each["SecurityGroups"])}
    }
    if users:
        yield f"Instances that are not the cluster's use what would go: {', '.join(sorted(users))}."


def _protections(deployment: Deployment, protected: Sequence[str], doomed: Sequence[dict[str, Any]]) -> Iterator[str]:
    for name in protected:
        yield f"{name} has termination protection: --unprotect takes it away."
    if doomed and deployment.settings.storage.retain:
        ids = ", ".join(each["FileSystemId"] for each in doomed)
        yield f"storage.retain keeps file system {ids}: --unprotect deletes it all the same."


def _remarks(deployment: Deployment, doomed: Sequence[dict[str, Any]], *, final_backup: bool) -> Iterator[str]:
    for each in doomed:
        name = each["FileSystemId"]
        why = hindrance(deployment, each)
        if not final_backup:
            yield f"File system {name} is deleted with all its data, without a backup, as asked for."
        elif why:
            yield f"File system {name} is deleted with all its data, without a backup: {why}."
        else:
            yield f"File system {name} is deleted after a last backup."


def _about_buckets(deployment: Deployment, kept: Sequence[Found], *, bucket: bool) -> Iterator[str]:
    """Yield what becomes of the bucket: one that its stack does not keep goes with it, objects and all."""
    for each in kept:
        if each.type == "AWS::S3::Bucket":
            yield f"Bucket {each.id} {'is deleted with all objects' if bucket else 'stays; --bucket deletes it'}."
    storage = deployment.stack_name("storage")
    for found in stacks.resources(deployment, storage) if deployment.stack(storage) is not None else []:
        if found.type == "AWS::S3::Bucket":
            goes = bucket or not deployment.settings.storage.retain
            end = "is deleted with all objects" if goes else "stays; --bucket deletes it"
            yield f"Bucket {found.physical_id} {end}."
