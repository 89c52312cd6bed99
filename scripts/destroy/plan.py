"""What a destruction would do, and all that stands against it: said before anything is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scripts import generations
from scripts.deployment import Deployment
from scripts.destroy import obstacles as against
from scripts.destroy import stacks as destruction_stacks
from scripts.destroy.storage import DRAINING, LINKED, Storage, going, hindrance, is_freed, look
from scripts.inventory import leftovers
from scripts.inventory.leftovers_model import Found, allowed

ORDER = ("cluster", "monitoring", "storage", "network")
"""The parts in the order in which they go."""


@dataclass(frozen=True)
class Plan:
    """What would be done.

    Attributes:
        parts: Parts to delete, in order.
        stacks: Names of the stacks that stand, in the order in which they go.
        file_systems: Ids of the file systems that go.
        left_behind: What the storage stack has left behind and goes, too, file systems among it.
        unprotected: Stacks whose protection is taken away.
        sweep: Leftovers that go.
        obstacles: What stands against it, a sentence each; none: it can be done.
        remarks: What a person must know before, a sentence each.
    """

    parts: tuple[str, ...]
    stacks: tuple[str, ...]
    file_systems: tuple[str, ...]
    left_behind: tuple[Found, ...]
    unprotected: tuple[str, ...]
    sweep: tuple[Found, ...]
    obstacles: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to delete."""
        return not (self.stacks or self.left_behind or self.sweep)


def plan(
    deployment: Deployment,
    parts: Sequence[str] = ("cluster",),
    *,
    unprotect: bool = False,
    final_backup: bool = True,
    bucket: bool = False,
    sweep: bool = False,
) -> Plan:
    """Return what a destruction would do, and all that stands against it. The arguments are those of `destroy`.

    About 40 calls. Needs what `leftovers.find` and `generations.existing` need; storage and network also what
    `storage.look`, `hindrance` and `obstacles.of_users` need: without a look at them they cannot go.
    """
    deployment.account.forget()
    ordered = tuple(part for part in ORDER if part in parts)
    beneath = "storage" in ordered or "network" in ordered
    missing: list[str] = []
    refused: list[str] = []
    left = leftovers.find(deployment, missing)
    others = dict(allowed(lambda: generations.existing(deployment).items(), refused if beneath else missing))
    others.pop(deployment.settings.cluster.generation, None)
    storage = _storage(deployment, refused) if beneath else Storage()
    doomed = storage if "storage" in ordered else Storage()
    standing = _standing(deployment, ordered)
    protected = [each["StackName"] for each in standing if each.get("EnableTerminationProtection")]
    looks = [
        lambda: against.of_status(standing),
        lambda: against.of_clusters(deployment, others if beneath else {}),
        lambda: against.of_network(deployment, storage) if beneath and "storage" not in ordered else (),
        lambda: against.of_users(deployment, ordered, storage, left, sweep=sweep),
        lambda: against.of_protection(protected, doomed) if not unprotect else (),
        lambda: against.of_backup(deployment, doomed) if final_backup else (),
    ]
    obstacles = [each for one in looks for each in allowed(one, refused)]
    remarks = [
        *_about_cluster(deployment, standing),
        *allowed(lambda: _about_file_systems(deployment, doomed, final_backup=final_backup), refused),
        *_about_buckets(doomed, bucket=bucket),
        *([] if beneath else [against.about_cluster(deployment, *each) for each in others.items()]),
        *(["Leftovers that come of it, such as logs of functions, are swept, too."] if sweep and standing else []),
        *missing,
    ]
    return Plan(
        ordered,
        tuple(each["StackName"] for each in standing),
        tuple(each["FileSystemId"] for each in doomed.file_systems),
        tuple(going(doomed.kept, bucket=bucket)),
        tuple(protected) if unprotect else (),
        tuple(each for each in left if sweep and each.is_swept),
        (*obstacles, *(f"It cannot be looked at: {each}" for each in refused)),
        tuple(remarks),
    )


def _storage(deployment: Deployment, refused: list[str]) -> Storage:
    """Return what there is of the storage; nothing, and a note, where it may not be looked at."""
    found = allowed(lambda: [look(deployment)], refused)
    return found[0] if found else Storage()


def _standing(deployment: Deployment, parts: Sequence[str]) -> list[dict[str, Any]]:
    found = []
    for part in parts:
        found.append(deployment.stack(deployment.stack_name(part)))
        if part == "cluster":
            found.append(destruction_stacks.of_cluster(deployment))
    return [each for each in found if each is not None]


def _about_cluster(deployment: Deployment, standing: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what goes with a cluster beside its resources."""
    names = {each["StackName"] for each in standing}
    if names & {deployment.stack_name("cluster"), deployment.settings.cluster_spec.name}:
        efs = deployment.settings.cluster.head_node.shared_storage == "efs"
        place = "the head node and on the cluster's EFS file system" if efs else "the head node"
        yield f"All that is on {place} is lost, /home with it: first copy what is to stay."
        yield "Jobs that wait for nodes are lost, unless --drain lets them end first."


def _about_file_systems(deployment: Deployment, storage: Storage, *, final_backup: bool) -> Iterator[str]:
    for each in storage.file_systems:
        begin, why = f"File system {each['FileSystemId']} is deleted", hindrance(deployment, each)
        if not final_backup:
            how = f"with all its data, without a backup, as asked for.{DRAINING if why == LINKED else ''}"
        elif is_freed(deployment, storage, each):
            how = f"after a last backup, once its links to S3 are gone with the stack.{DRAINING}"
        elif why:
            continue  # stands against it
        else:
            how = "after a last backup."
        yield f"{begin} {how} Its automatic backups go with it, those that somebody made stay."


def _about_buckets(storage: Storage, *, bucket: bool) -> Iterator[str]:
    """Yield what becomes of buckets: one that its stack does not keep goes with it, objects and all."""
    for each in storage.buckets:
        stays = each in storage.retained and not bucket
        yield f"Bucket {each} {'stays; --bucket deletes it' if stays else 'is deleted with all objects'}."
