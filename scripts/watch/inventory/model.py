"""What an inventory lists: resources of a deployment, and leftovers of deleted stacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, TypeVar

from pydantic import Field, PlainSerializer, computed_field

from scripts.account.resource_kinds import PREFIX, kind_of
from scripts.core.aws_errors import is_denied
from scripts.core.document import DeploymentName, Document

_T = TypeVar("_T")

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


class Inventory(Document):
    """Every resource of a deployment."""

    deployment: DeploymentName
    resources: tuple[Resource, ...] = Field(description="By service, type, stack and id.")
    not_listed: tuple[str, ...] = Field(description="What AWS refused to list for want of a permission.")

    @computed_field(  # type: ignore[prop-decorator]
        description="US dollars per month of all resources whose price is known, as they are now."
    )
    @property
    def dollars_per_month(self) -> Dollars:
        """Sum of the known prices."""
        return sum((each.dollars_per_month or Decimal(0) for each in self.resources), Decimal(0))


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
