"""Compare the table of prices with AWS's Price List, in Markdown: `make prices`, and the scheduled workflow.

Exit code 1: a price differs, or nobody has looked at some prices for a year; 2: there is no answer.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Final

from scripts.check.estimate.prices import PriceListError, client, fetch
from scripts.check.estimate.products import SOURCES, comparable, table_price
from scripts.core.text import echo
from ultracluster.domain.prices import TABLE_REGIONS

_OLD: Final = timedelta(days=365)


def differences(listed: Mapping[str, Decimal]) -> list[str]:
    """Return where the Price List has another price than the table, by what it listed."""
    table = {product.name: known for product in comparable() if (known := table_price(product))}
    return [
        f"{name}: ${listed[name]:f} by the Price List, ${dollars:f} of {source.date} in the table"
        for name, (dollars, source) in table.items()
        if name in listed and listed[name] != dollars
    ]


def old(today: date) -> list[str]:
    """Return of which prices nobody has looked at the source for a year."""
    ages = {name: today - date.fromisoformat(source.date) for name, source in SOURCES.items()}
    return [f"{name}: of {SOURCES[name].date} ({SOURCES[name].text})" for name, age in ages.items() if age > _OLD]


def report(listed: Mapping[str, Decimal], region: str, today: date) -> tuple[str, bool]:
    """Return what is wrong with the table, in Markdown, and whether it is right."""
    groups = {"Another price": differences(listed), "Older than a year": old(today)}
    lines = [f"- {title}: {line}" for title, found in groups.items() for line in found]
    compared = f"{len(listed)} of {len(comparable())} prices of {region} were compared."
    what = (
        "Change `scripts/check/estimate/products.py` and `constructs/ultracluster/domain/prices.py`, with their dates."
    )
    return "\n".join(["## Table of prices", "", compared, *lines, *([what] if lines else [])]), not lines


def main() -> int:
    """Print the comparison, and return the exit code."""
    region = TABLE_REGIONS[0]
    try:
        listed = fetch(client(), region, comparable())
    except PriceListError as error:
        echo(str(error), err=True)
        return 2
    text, is_right = report(listed, region, datetime.now(UTC).date())
    echo(text)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
