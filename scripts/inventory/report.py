"""An inventory as a table, as Markdown, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any

from scripts.inventory.resources import Inventory, Resource

if TYPE_CHECKING:
    from rich.console import Console

FEW = 3
"""Resources of one type and stack that have a line each; more are one line."""

_KIND, _STACK, _BESIDE_ID = 16, 18, 58
"""Columns for a type and for a stack at most, and those that an id leaves to all others."""

CENT = Decimal("0.01")


@dataclass(frozen=True)
class Line:
    """A line of the table: one resource, or many of one type and stack.

    Attributes:
        service: Name of their service.
        kind: Their type without the service.
        name: Their id, or how many they are.
        stack: Of all of them.
        since: When the oldest was made.
        monthly: Dollars per month of all of them; None: paid by use, or not known.
        data: Whether they hold data.
    """

    service: str
    kind: str
    name: str
    stack: str
    since: datetime | None
    monthly: Decimal | None
    data: bool


def lines(resources: Iterable[Resource]) -> Iterator[Line]:
    """Yield the lines of resources that are in the order of an inventory."""
    for _, group in groupby(resources, lambda each: (each.service, each.type, each.root or each.stack)):
        alike = list(group)
        for members in [[each] for each in alike] if len(alike) <= FEW else [alike]:
            yield _line(members)


def _line(members: Sequence[Resource]) -> Line:
    """Return the line of resources of one type and stack."""
    first = members[0]
    prices = [each.monthly for each in members]
    return Line(
        first.service,
        first.type.rpartition("::")[2],
        _name(first) if len(members) == 1 else f"{len(members):,} of them",
        first.root or first.stack,
        min((each.since for each in members if each.since is not None), default=None),
        None if None in prices else sum(filter(None, prices), Decimal(0)),
        first.data,
    )


def _name(resource: Resource) -> str:
    """Return the id; of a stack, which has a long one, the name."""
    return resource.id.split("/")[1] if resource.id.startswith("arn:aws:cloudformation:") else resource.id


def show(inventory: Inventory, console: Console, now: datetime) -> None:
    """Print an inventory, a table of 80 columns for each service."""
    from rich.text import Text

    from scripts import screen

    if not inventory.resources:
        console.print(f"There is nothing of {inventory.name}.", markup=False)
    for service, group in groupby(lines(inventory.resources), lambda each: each.service):
        table = screen.table("what", "id", "stack", ">age", ">a month")
        table.title, table.title_justify, table.title_style = service, "left", "bold"
        for each in group:
            style = "yellow" if each.data else ""
            name, stack = _cut(each.name, max(console.width, 80) - _BESIDE_ID), _cut(each.stack, _STACK)
            cells = (_cut(_marked(each), _KIND), name, stack, _age(each, now), cost(each.monthly))
            table.add_row(*map(Text, cells), style=style)
        console.print(table)
        console.print()
    show_sum(inventory, console)


def show_sum(inventory: Inventory, console: Console) -> None:
    """Print the number of resources, what they cost, and what could not be looked at."""
    console.print(
        f"{len(inventory.resources):,} resources, {cost(inventory.monthly)} a month as they stand. "
        "* holds data; by use: paid by use, or of no known price.",
        markup=False,
    )
    for each in inventory.missing:
        console.print(f"Not looked at: {each}", markup=False)


def markdown(inventory: Inventory, now: datetime) -> str:
    """Return an inventory as a page of Markdown: every resource by itself, with its tags."""
    text = [f"# What there is of {inventory.name}", "", f"{now:%Y-%m-%d %H:%M} UTC, {cost(inventory.monthly)} a month."]
    for service, group in groupby(inventory.resources, lambda each: each.service):
        text += ["", f"## {service}", "", "| what | id | stack | age | a month | tags |", "|---|---|---|--:|--:|---|"]
        for resource in group:
            each = _line([resource])
            tags = ", ".join(_tags(resource))
            cells = (_marked(each), f"`{each.name}`", resource.stack, _age(each, now), cost(each.monthly), tags)
            text.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    text += ["", "\\* holds data; by use: paid by use, or of no known price."]
    text += [f"\nNot looked at: {each}" for each in inventory.missing]
    return "\n".join(text)


def document(inventory: Inventory) -> dict[str, Any]:
    """Return an inventory as docs/schemas/inventory.json describes it."""
    return {
        "deployment": inventory.name,
        "dollars_per_month": float(inventory.monthly.quantize(CENT)),
        "resources": [
            {
                "service": each.service,
                "type": each.type,
                "id": each.id,
                "stack": each.stack,
                "since": None if each.since is None else each.since.isoformat(),
                "dollars_per_month": number(each.monthly),
                "holds_data": each.data,
                "tags": dict(each.tags or {}),
            }
            for each in inventory.resources
        ],
        "not_looked_at": list(inventory.missing),
    }


def number(monthly: Decimal | None) -> float | None:
    """Return dollars per month for programs, to the cent."""
    return None if monthly is None else float(monthly.quantize(CENT))


def cost(monthly: Decimal | None) -> str:
    """Return dollars per month for people."""
    from scripts import screen

    if monthly is None:
        return "by use"
    return "-" if monthly < CENT / 2 else screen.dollars(monthly)


def _tags(resource: Resource) -> Iterator[str]:
    """Yield a resource's tags, without those that AWS sets itself: they tell of its stack."""
    for key, value in sorted((resource.tags or {}).items()):
        if not key.startswith("aws:"):
            yield f"{key}={value}"


def _cut(text: str, width: int) -> str:
    """Return a text in so many columns: of a longer one the middle is left out, for names differ at their end."""
    if len(text) <= width:
        return text
    end = (width - 1) // 3
    return f"{text[: width - 1 - end]}…{text[-end:]}"


def _age(line: Line, now: datetime) -> str:
    """Return an age in its largest unit."""
    from scripts import screen

    return "" if line.since is None else " ".join(screen.duration(now - line.since).split()[:2])


def _marked(line: Line) -> str:
    return f"{line.kind} *" if line.data else line.kind
