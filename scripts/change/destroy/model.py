"""What is asked of a destruction, what it would do, and what it did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pydantic import ConfigDict, Field, computed_field

from scripts.core.document import DeploymentName, Document
from scripts.core.errors import UnusableError
from scripts.watch.inventory.model import Costs, Dollars, Inventory, Leftover, priced

Part = Literal["cluster", "monitoring", "team", "storage", "network"]
ORDER: tuple[Part, ...] = ("cluster", "monitoring", "team", "storage", "network")
"""The parts in the order in which they are deleted."""
BENEATH: tuple[Part, ...] = ("team", "storage", "network")
"""The parts that others depend on."""


@dataclass(frozen=True)
class DestroyOptions:
    """What is asked of a destruction."""

    parts: tuple[Part, ...] = ("cluster",)
    final_backup: bool = True
    """Back up the head node's volume before the cluster is deleted, and each file system before any of the storage."""
    drain: bool = False
    """Wait for the end of all jobs first."""
    drain_limit: float | None = None
    """Seconds to wait for jobs at most; None: as long as they take."""
    force: bool = False
    """Terminate the nodes of jobs, also if the head node cannot be asked."""
    unprotect: bool = False
    """Remove termination protection, and delete what ``retain`` keeps."""
    bucket: bool = False
    """Delete the deployment's bucket, too, if ``storage.retain`` kept it."""
    sweep: bool = False
    """Remove leftovers that are not kept on purpose and hold no data."""

    @classmethod
    def of(cls, *, everything: bool, no_final_backup: bool, **switches: bool) -> DestroyOptions:
        """Return what the switches of the command ask for; the parts beside the cluster are switches.

        Raises:
            UnusableError: --retained-bucket is given without --storage.
        """
        chosen = {part: switches.pop(part, part == "cluster") or everything for part in ORDER}
        if switches["bucket"] and not chosen["storage"]:
            raise UnusableError("--retained-bucket goes with --storage")
        parts = tuple(part for part in ORDER if chosen[part])
        return cls(parts, final_backup=not no_final_backup, **switches)


class DestroyPlan(Document):
    """What a destruction would do."""

    parts: tuple[Part, ...] = Field(description="Parts to delete, in order.")
    stacks: tuple[str, ...] = Field(description="Names of the stacks to delete, in order.")
    file_systems: tuple[str, ...] = Field(description="Ids of the file systems to delete.")
    databases: tuple[str, ...] = Field(description="Ids of the databases to delete.")
    left_behind: tuple[Leftover, ...] = Field(
        description="What deleted stacks kept and is deleted, too, file systems and databases among it."
    )
    unprotected: tuple[str, ...] = Field(description="Stacks whose termination protection is removed.")
    sweep: tuple[Leftover, ...] = Field(description="Leftovers that are removed; new ones are, too.")
    blockers: tuple[str, ...] = Field(description="What blocks it; nothing is done unless this is empty.")
    remarks: tuple[str, ...] = Field(description="What a person must know before.")

    @property
    def empty(self) -> bool:
        """Whether there is nothing to delete."""
        return not (self.stacks or self.left_behind or self.sweep)

    def priced(self, costs: Costs) -> DestroyPlan:
        """Return it with what its leftovers cost."""
        leftovers = {"left_behind": priced(self.left_behind, costs), "sweep": priced(self.sweep, costs)}
        return self.model_copy(update=leftovers)


class Backup(Document):
    """A last backup of a file system or database, or a last snapshot of the head node's volume."""

    id: str = Field(
        description="Its id: in FSx and EBS, ARN of the recovery point in AWS Backup, or name of the snapshot in RDS."
    )
    kind: Literal["fsx", "efs", "rds", "ebs"] = Field(default="fsx", description="The service of what was backed up.")
    dollars_per_month_at_most: Dollars | None = Field(
        description="US dollars per month if the file system or volume was full; null: the price is not known."
    )


class DestroyOutcome(Document):
    """What a destruction did, filled while it runs."""

    model_config = ConfigDict(frozen=False)

    deleted: list[str] = Field(default=[], description="Stacks and other resources that this call deleted.")
    backups: list[Backup] = Field(
        default=[], description="The last backups and snapshots; each costs until it is deleted."
    )
    in_progress: list[str] = Field(
        default=[], description="Stacks that AWS was deleting when this call ended, and continues to delete."
    )
    failures: list[str] = Field(
        default=[], description="What could not be done, and why; if it was interrupted, the last one says why."
    )
    left: list[Leftover] | None = Field(
        default=None, description="What is left, but for stacks that were to stay; null: interrupted before the search."
    )
    started: datetime = Field(exclude=True)
    ended: datetime | None = Field(default=None, exclude=True)

    @property
    def duration(self) -> timedelta:
        """How long it took."""
        return (self.ended or self.started) - self.started

    @computed_field(description="How long it took.")  # type: ignore[prop-decorator]
    @property
    def seconds(self) -> int:
        """How long it took."""
        return round(self.duration.total_seconds())


class Destruction(Document):
    """A destruction: what there was, what it would do, and what it did."""

    deployment: DeploymentName
    plan: DestroyPlan = Field(description="What would be done.")
    before: Inventory = Field(description="What there was.")
    outcome: DestroyOutcome | None = Field(description="What was done, also if it was interrupted; null: nothing.")

    @property
    def ok(self) -> bool:
        """Whether nothing blocks it, and nothing failed."""
        return not (self.plan.blockers or (self.outcome and self.outcome.failures))
