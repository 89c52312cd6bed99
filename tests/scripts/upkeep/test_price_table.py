"""The table of prices beside the Price List, for the scheduled workflow."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest

from scripts.check.estimate.prices import PriceListError
from scripts.check.estimate.products import SOURCES, comparable, table_price
from scripts.upkeep import price_table

TABLE = {product.name: known[0] for product in comparable() if (known := table_price(product))}
TODAY = max(date.fromisoformat(source.date) for source in SOURCES.values())


def test_the_table_is_right_where_the_price_list_says_the_same_or_nothing() -> None:
    for listed in (TABLE, {}):
        text, is_right = price_table.report(listed, "us-east-1", TODAY)
        assert is_right
        assert f"{len(listed)} of {len(comparable())} prices of us-east-1 were compared." in text


@pytest.mark.parametrize("name", TABLE)
def test_each_price_that_differs_is_reported_with_its_date(name: str) -> None:
    text, is_right = price_table.report({**TABLE, name: TABLE[name] + Decimal("0.01")}, "us-east-1", TODAY)

    assert not is_right
    [line] = [each for each in text.splitlines() if each.startswith("- ")]
    assert line.startswith(f"- Another price: {name}: $")
    assert any(line.endswith(f"of {source.date} in the table") for source in SOURCES.values())


def test_what_nobody_has_looked_at_for_a_year_is_reported() -> None:
    text, is_right = price_table.report(TABLE, "us-east-1", TODAY + timedelta(days=366))

    assert not is_right
    assert text.count("- Older than a year: ") == len(SOURCES)


def test_it_ends_with_an_error_where_the_price_list_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise PriceListError("no answer")

    monkeypatch.setattr(price_table, "fetch", fails)
    assert price_table.main() == 2
    monkeypatch.setattr(price_table, "fetch", lambda *_: {**TABLE, "trn1.32xlarge": Decimal(1)})
    assert price_table.main() == 1
    assert "no answer" in capsys.readouterr().err
