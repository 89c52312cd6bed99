"""An inventory for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING

from rich.text import Text

from scripts.core import screen
from scripts.watch.inventory.model import CENT, Inventory, Resource

if TYPE_CHECKING:
    from rich.console import Console

FEW = 3
"""Resources of one type and stack that have a line each; more are one line."""
_LEGEND = "* holds data; by use: paid by use, or of no known price."


def show(inventory: Inventory, console: Console, now: datetime) -> None:
    """Print an inventory, a table of 80 columns for each service."""
    if not inventory.resources:
        console.print(f"There is nothing of {inventory.deployment}.")
    for service, group in groupby(lines(inventory.resources), lambda each: each.service):
        table = screen.table("what", "id", "stack", ">age", ">a month")
        table.title, table.title_justify, table.title_style = service, "left", "bold"
        for each in group:
            price = cost(each.dollars_per_month)
            cells = (_kind(each), _name(each), each.root or each.stack, _age(each, now), price)
            table.add_row(*map(Text, cells), style="yellow" if each.holds_data else "")
        console.print(table)
        console.print()
    console.print(_total(inventory))
    for refusal in inventory.not_listed:
        console.print(f"Not listed: {refusal}")


def show_each(inventory: Inventory, console: Console, now: datetime) -> None:
    """Print an inventory for a page: every resource by itself, with its tags but those of AWS, the total first."""
    console.print(f"{now:%Y-%m-%d %H:%M} UTC. {_total(inventory)}")
    for refusal in inventory.not_listed:
        console.print(f"Not listed: {refusal}")
    for service, group in groupby(inventory.resources, lambda each: each.service):
        table = screen.table("what", "id", "stack", ">age", ">a month", "tags")
        table.title = service
        for each in group:
            tags = ", ".join(f"{key}={value}" for key, value in sorted(each.tags.items()) if not key.startswith("aws:"))
            price = cost(each.dollars_per_month)
            table.add_row(*map(Text, (_kind(each), _name(each), each.stack, _age(each, now), price, tags)))
        console.print(table)


def _total(inventory: Inventory) -> str:
    monthly = screen.dollars(inventory.dollars_per_month)
    return f"{len(inventory.resources):,} resources, {monthly} a month as they are now. {_LEGEND}"


def cost(monthly: Decimal | None) -> str:
    """Return dollars per month for people."""
    if monthly is None:
        return "by use"
    return "-" if monthly < CENT / 2 else screen.dollars(monthly)


def lines(resources: Iterable[Resource]) -> Iterator[Resource]:
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


def _name(resource: Resource) -> str:
    """Return the id; of a stack, which has a long one, the name."""
    return resource.id.split("/")[1] if resource.id.startswith("arn:aws:cloudformation:") else resource.id


def _age(resource: Resource, now: datetime) -> str:
    return "" if resource.since is None else " ".join(screen.duration(now - resource.since).split()[:2])


def _kind(resource: Resource) -> str:
    kind = resource.type.rpartition("::")[2]
    return f"{kind} *" if resource.holds_data else kind
