"""Capacity reservations of the account, and the compute resources that are launched into them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from scripts.account.deployment import Deployment, tags_of

if TYPE_CHECKING:
    from config.settings import Settings
    from ultracluster.domain.cluster import ComputeResourceSpec, QueueSpec

CAPACITY_BLOCK = "capacity-block"
"""ReservationType of a Capacity Block, and InstanceLifecycle of the instances in it."""

BEFORE_ITS_START = frozenset({"assessing", "delayed", "payment-pending", "pending", "scheduled"})
"""States of a reservation that exists and has not started."""

_QUANTITY_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"


@dataclass(frozen=True)
class User:
    """A compute resource that is launched into a reservation, or a group of them."""

    path: str
    queue: QueueSpec
    resource: ComputeResourceSpec

    @property
    def queue_path(self) -> str:
        """The path of its queue in the settings."""
        return self.path.rpartition(".")[0]

    @property
    def wants_block(self) -> bool:
        """Whether it is to run in a Capacity Block."""
        return self.queue.capacity_type == "CAPACITY_BLOCK"


def users(
    settings: Settings, key: Literal["capacity_reservation_id", "capacity_reservation_group_arn"]
) -> dict[str, list[User]]:
    """Return the compute resources by the reservation, or by the group, that the settings name for them."""
    by_name = defaultdict(list)
    for q, queue in enumerate(settings.cluster.queues):
        for r, resource in enumerate(queue.compute_resources):
            if name := getattr(resource, key):
                by_name[name].append(User(f"cluster.queues[{q}].compute_resources[{r}]", queue, resource))
    return by_name


def is_block(reservation: Mapping[str, Any]) -> bool:
    """Return whether a reservation is a Capacity Block."""
    return reservation.get("ReservationType") == CAPACITY_BLOCK


def reservations(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """Return all reservations that the account can use, by id, as EC2 describes them."""
    listed = deployment.account.list("ec2", "describe_capacity_reservations")
    return {each["CapacityReservationId"]: each for each in listed}


def members(deployment: Deployment, group_arn: str) -> list[str]:
    """Return the ids of the reservations in a group; none: there is no such group."""
    ids: list[str] = []
    token: dict[str, str] = {}
    while page := deployment.account.find("resource-groups", "list_group_resources", Group=group_arn, **token):
        ids += [each["Identifier"]["ResourceArn"].rpartition("/")[2] for each in page["Resources"]]
        if "NextToken" not in page:
            break
        token = {"NextToken": page["NextToken"]}
    return ids


def size(reservation: Mapping[str, Any]) -> int:
    """Return for how many instances a reservation was made, which stands elsewhere until it has started."""
    total: int = reservation["TotalInstanceCount"]
    committed: int = reservation.get("CommitmentInfo", {}).get("CommittedInstanceCount", 0)
    return max(total, int(tags_of(reservation).get(_QUANTITY_TAG, 0)), committed)


def still_to_launch(deployment: Deployment, using: Sequence[User], reservation_ids: Collection[str]) -> int:
    """Return how many nodes of compute resources, at MaxCount, do not run in one of their reservations yet."""
    wanted: Counter[str] = Counter()
    for user in using:
        wanted[user.resource.instance_type] += user.resource.max_count
    running = Counter(
        each["InstanceType"]
        for each in deployment.own_instances()
        if each.get("CapacityReservationId") in reservation_ids
    )
    return (wanted - running).total()


def by_type(using: Sequence[User]) -> dict[str, list[User]]:
    """Return compute resources by instance type."""
    grouped = defaultdict(list)
    for user in using:
        grouped[user.resource.instance_type].append(user)
    return grouped


def unused_by_type(deployment: Deployment) -> Counter[str]:
    """Return the instances by type that reservations hold free, beyond those that this deployment will take.

    Capacity Blocks are left out, as in the quotas of on-demand instances.
    """
    settings = deployment.settings
    active = {
        key: each for key, each in reservations(deployment).items() if each["State"] == "active" and not is_block(each)
    }
    by_id, by_group = users(settings, "capacity_reservation_id"), users(settings, "capacity_reservation_group_arn")
    targets = [
        *(([key], using) for key, using in by_id.items()),
        *((members(deployment, group_arn), using) for group_arn, using in by_group.items()),
    ]
    unused = _free_by_type(active.values())
    for reservation_ids, using in targets:
        free = _free_by_type(active[key] for key in reservation_ids if key in active)
        for instance_type, same_type in by_type(using).items():
            unused[instance_type] -= min(free[instance_type], still_to_launch(deployment, same_type, reservation_ids))
    return +unused


def _free_by_type(listed: Iterable[Mapping[str, Any]]) -> Counter[str]:
    free: Counter[str] = Counter()
    for each in listed:
        free[each["InstanceType"]] += each["AvailableInstanceCount"]
    return free
