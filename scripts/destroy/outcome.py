"""What came of a destruction."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from scripts.inventory.costs import Costs
from scripts.inventory.leftovers_model import Found


@dataclass(frozen=True)
class Backup:
    """A last backup.

    Attributes:
        id: What FSx calls it.
        monthly: Dollars per month at most; None: the price is not known.
    """

    id: str
    monthly: Decimal | None


@dataclass
class Outcome:
    """What came of it, filled as it comes.

    Attributes:
        began: When.
        deleted: Stacks and other things that this call deleted.
        backups: The backups that were made.
        failures: What could not be done, and why.
        left: What is left; None: not looked for yet.
        costs: What costs what is left.
        ended: When; None: not yet.
    """

    began: datetime
    deleted: list[str] = field(default_factory=list)
    backups: list[Backup] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    left: list[Found] | None = None
    costs: Costs = field(default_factory=dict)
    ended: datetime | None = None

    @property
    def duration(self) -> timedelta:
        """How long it took."""
        return (self.ended or self.began) - self.began
