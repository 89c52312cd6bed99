"""Capacity reservations of the account, and the compute resources that are launched into them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass as model

from scripts.account.deployment import Deployment, tags_of
from scripts.core.figures import duration

if TYPE_CHECKING:
    from config.settings import Settings
    from ultracluster.domain.cluster import ComputeResourceSpec, QueueSpec

BEFORE_ITS_START: Final = frozenset({"assessing", "delayed", "payment-pending", "pending", "scheduled"})
"""States of a reservation that exists and has not started."""
_QUANTITY_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
_PAGES = {"PageSize": 1000}
"""Reservations in one answer of EC2, the most that it gives."""


@model(frozen=True)
class Reservation:
    """A capacity reservation or Capacity Block."""

    reservation_id: str = Field(description="Its id.")
    state: str = Field(description="As EC2 has it, such as `active`; `missing`: the account has none of that id.")
    is_block: bool = Field(default=False, description="Whether it is a Capacity Block.")
    instance_type: str = Field(default="", description="Its instance type; empty: not known.")
    total: int = Field(default=0, description="Number of instances.")
    left: int = Field(default=0, description="How many of them are free.")
    begins: datetime | None = Field(
        default=None, description="When it starts; None: it has started, or that is not known."
    )
    ends: datetime | None = Field(default=None, description="When it ends; None: when it is cancelled.")
    zone_id: str = Field(default="", exclude=True)
    platform: str = Field(default="", exclude=True)
    tenancy: str = Field(default="", exclude=True)
    placement_group: str = Field(default="", exclude=True)
    """The placement group that it was made in; empty: none."""
    is_targeted: bool = Field(default=False, exclude=True)
    """Whether only launches that name it use it."""

    @property
    def is_active(self) -> bool:
        """Whether EC2 launches instances into it."""
        return self.state == "active"

    @property
    def is_coming(self) -> bool:
        """Whether it exists and has not started."""
        return self.state in BEFORE_ITS_START

    @property
    def free(self) -> int:
        """How many of its instances are free; before its start all will be."""
        return self.total if self.is_coming else self.left

    def sentence(self, now: datetime) -> str:
        """Return it for people."""
        kind = "Capacity Block " if self.is_block else ""
        if not self.total:
            return f"{kind}{self.reservation_id}, {self.state}"
        text = f"{kind}{self.reservation_id}, {self.state}, {self.total} {self.instance_type}"
        if self.is_active:
            text += f", {self.total - self.left} used, {self.left} left"
        if self.begins and self.is_coming:
            text += f", starts in {duration(self.begins - now)}"
        if self.ends:
            left = duration(abs(self.ends - now))
            text += f", ends in {left}" if self.ends > now else f", ended {left} ago"
        return text


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


def reservations(deployment: Deployment) -> dict[str, Reservation]:
    """Return all reservations that the account can use, by id."""
    listed = deployment.account.list("ec2", "describe_capacity_reservations", PaginationConfig=_PAGES)
    return {each["CapacityReservationId"]: _of(each) for each in listed}


def _of(described: Mapping[str, Any]) -> Reservation:
    """Return a reservation of anybody: EC2 promises none of its keys, and one that lacks some must not hide others."""
    return Reservation(
        described["CapacityReservationId"],
        described["State"],
        described.get("ReservationType") == "capacity-block",
        described.get("InstanceType", ""),
        _size(described),
        described.get("AvailableInstanceCount", 0),
        described.get("StartDate"),
        described.get("EndDate"),
        described.get("AvailabilityZoneId", ""),
        described.get("InstancePlatform", ""),
        described.get("Tenancy", ""),
        described.get("PlacementGroupArn", "").rpartition("/")[2],
        described.get("InstanceMatchCriteria") == "targeted",
    )


def _size(described: Mapping[str, Any]) -> int:
    """Return for how many instances a reservation was made, which stands elsewhere until it has started."""
    total: int = described.get("TotalInstanceCount", 0)
    committed: int = described.get("CommitmentInfo", {}).get("CommittedInstanceCount", 0)
    return max(total, int(tags_of(described).get(_QUANTITY_TAG, 0)), committed)


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
    active = {key: each for key, each in reservations(deployment).items() if each.is_active and not each.is_block}
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


def _free_by_type(listed: Iterable[Reservation]) -> Counter[str]:
    free: Counter[str] = Counter()
    for each in listed:
        free[each.instance_type] += each.left
    return free
