"""What an inventory lists: resources of a deployment, and leftovers of deleted stacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import groupby
from typing import Annotated, TypeVar

from pydantic import Field, PlainSerializer, computed_field

from scripts.account.resource_kinds import PREFIX, kind_of
from scripts.check.estimate.products import table_dates
from scripts.core.aws_errors import is_denied
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.figures import counted, dollars, duration
from scripts.core.report import Block, Conclusion, Gap, Line, Table, Toned, columns

_T = TypeVar("_T")

FEW = 3
"""Resources of one type and stack that have a line each on a terminal; more are one line."""
_TITLES = ("what", "id", "stack", ">age", ">a month")
_LEGEND = "* holds data; by use: paid by use, or of no known price."
CENT = Decimal("0.01")
_PROVIDER_BUCKET = "-pclustercustomresourcebu"
"""Within the name that CloudFormation makes for the bucket of ParallelCluster's provider, which keeps its requests."""

Key = tuple[str, str]
"""Type and id of a resource."""
Costs = Mapping[Key, Decimal | None]
"""Dollars per month of resources as they are now; None: paid by use, or the price is not known."""
Dollars = Annotated[Decimal, PlainSerializer(lambda amount: float(amount.quantize(CENT)), return_type=float)]
"""US dollars; to the cent as JSON."""


class _Item(Document):
    type: str = Field(description=f"As CloudFormation names it, such as AWS::EC2::VPC, or `{PREFIX}`.")
    id: str = Field(description="Id, name or ARN: what CloudFormation calls the physical id.")
    dollars_per_month: Dollars | None = Field(
        default=Decimal(0),
        description="US dollars per month as it is now; null: paid by use, or the price is not known.",
    )

    @computed_field(description="Whether it holds data of people.")  # type: ignore[prop-decorator]
    @property
    def holds_data(self) -> bool:
        """Whether it holds data of people, so that it is deleted only if that is requested."""
        return kind_of(self.type).holds_data and _PROVIDER_BUCKET not in self.id

    @property
    def key(self) -> Key:
        """Type and id."""
        return self.type, self.id

    @property
    def cost(self) -> str:
        """Dollars per month for people."""
        if self.dollars_per_month is None:
            return "by use"
        return "-" if self.dollars_per_month < CENT / 2 else dollars(self.dollars_per_month)


class Resource(_Item):
    """A resource of a deployment."""

    stack: str = Field(
        description="Name of its stack; (fleet): launched for a queue; (kept): its stack is deleted and kept it, or a "
        "backup that somebody made; (left over): its stack is deleted."
    )
    since: datetime | None = Field(
        default=None, description="When it was created, or last changed by its stack; null: not known."
    )
    tags: Mapping[str, str] = Field(default={}, description="Its tags, as far as it can have any.")
    root: str = Field(default="", exclude=True)
    """Name of the stack that its stack is nested in, at whatever depth; empty: it is not nested."""

    @computed_field(description="Such as EC2.")  # type: ignore[prop-decorator]
    @property
    def service(self) -> str:
        """Name of its service."""
        return self.type.split("::")[1] if self.type.startswith("AWS::") else "CloudFormation"

    @property
    def own_tags(self) -> str:
        """Its tags but those of AWS, for people."""
        return ", ".join(f"{key}={value}" for key, value in sorted(self.tags.items()) if not key.startswith("aws:"))

    def cells(self, now: datetime, stack: str) -> tuple[str, str, str, str, str]:
        """Return what a table has of it: type, id or name, a stack, age and cost."""
        kind = self.type.rpartition("::")[2]
        name = self.id.split("/")[1] if self.id.startswith("arn:aws:cloudformation:") else self.id
        age = "" if self.since is None else " ".join(duration(now - self.since).split()[:2])
        return f"{kind} *" if self.holds_data else kind, name, stack, age, self.cost


class Inventory(Result):
    """Every resource of a deployment."""

    deployment: DeploymentName
    resources: tuple[Resource, ...] = Field(description="By service, type, stack and id.")
    not_listed: tuple[str, ...] = Field(description="What AWS refused to list for want of a permission.")
    time: datetime = Field(default_factory=lambda: datetime.now(UTC), exclude=True)
    """When it was listed."""

    @computed_field(  # type: ignore[prop-decorator]
        description="US dollars per month of all resources whose price is known, as they are now."
    )
    @property
    def dollars_per_month(self) -> Dollars:
        """Sum of the known prices."""
        return sum((each.dollars_per_month or Decimal(0) for each in self.resources), Decimal(0))

    def blocks(self) -> Iterator[Block]:
        """Yield it for people, a table for each service; many of a kind are one line."""
        if not self.resources:
            yield Line(f"There is nothing of {self.deployment}.")
        for service, group in groupby(summed(self.resources), lambda each: each.service):
            rows = [
                [
                    Toned(cell, "warn" if each.holds_data else "")
                    for cell in each.cells(self.time, each.root or each.stack)
                ]
                for each in group
            ]
            yield Table(service, columns(*_TITLES), rows)
            yield Gap()
        yield Conclusion([Line(self._total), *self._refused])

    def page(self) -> Iterator[Block]:
        """Yield every resource by itself, with its tags but those of AWS."""
        yield Conclusion([Line(f"{self.time:%Y-%m-%d %H:%M} UTC. {self._total}"), *self._refused])
        for service, group in groupby(self.resources, lambda each: each.service):
            rows = [[*each.cells(self.time, each.stack), each.own_tags] for each in group]
            yield Table(service, columns(*_TITLES, "tags"), rows)

    @property
    def _total(self) -> str:
        monthly = f"{dollars(self.dollars_per_month)} a month as they are now, by prices of {table_dates()}"
        return f"{counted(len(self.resources), 'resources')}, {monthly}. {_LEGEND}"

    @property
    def _refused(self) -> list[Line]:
        return [Line(f"Not listed: {refusal}") for refusal in self.not_listed]


def summed(resources: Iterable[Resource]) -> Iterator[Resource]:
    """Yield resources; many of one type and stack as one that stands for all."""
    for _, group in groupby(resources, lambda each: (each.service, each.type, each.root or each.stack)):
        alike = list(group)
        yield from alike if len(alike) <= FEW else [_sum(alike)]


def _sum(alike: Sequence[Resource]) -> Resource:
    """Return a resource that stands for many: with their number, the age of the oldest, and the price of all."""
    prices = [each.dollars_per_month for each in alike]
    return alike[0].model_copy(
        update={
            "id": f"{len(alike):,} of them",
            "since": min((each.since for each in alike if each.since is not None), default=None),
            "dollars_per_month": None if None in prices else sum(filter(None, prices), Decimal(0)),
        }
    )


class Leftover(_Item):
    """Something that is left although its stack is deleted."""

    reason: str = Field(description="Why it is considered as one of the deployment.")
    kept_on_purpose: bool = Field(default=False, description="Whether the settings, or a policy of its stack, keep it.")
    stack: str = Field(default="", exclude=True)
    """Name of the deleted stack that kept it; empty: it was found otherwise."""

    @property
    def is_swept(self) -> bool:
        """Whether --sweep removes it: it is not kept on purpose, and holds no data."""
        return not (self.kept_on_purpose or self.holds_data)


def priced(leftovers: Iterable[Leftover], costs: Costs) -> tuple[Leftover, ...]:
    """Return leftovers with what they cost."""
    return tuple(
        each.model_copy(update={"dollars_per_month": costs.get(each.key, each.dollars_per_month)}) for each in leftovers
    )


def permitted(items: Iterable[_T], denied: list[str] | None) -> list[_T]:
    """Return what a generator yields; where a permission is missing, what it yielded until then.

    `denied` takes the error; None: it is raised.
    """
    collected: list[_T] = []
    try:
        for each in items:
            collected.append(each)
    except Exception as error:
        if denied is None or not is_denied(error):
            raise
        if str(error) not in denied:
            denied.append(str(error))
    return collected
