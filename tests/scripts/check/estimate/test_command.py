"""What `./ultracluster estimate` prints and writes, and what it refuses."""

import json
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from config.settings import Settings, load
from scripts.check.estimate.estimate import estimate
from scripts.check.estimate.prices import Prices
from scripts.check.estimate.tables import tables
from scripts.commands import estimate as command
from scripts.core import options
from scripts.core.figures import hours, number, usd
from tests.command_line import Call

CONFIG = Path(__file__).parents[4] / "config"


@cache
def settings(environment: str = "trn1-16") -> Settings:
    return load(CONFIG / f"{environment}.yaml")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, offline: Path, call: Call) -> Call:
    monkeypatch.setattr(options, "BUILD", offline)
    return partial(call, "estimate")


def test_figures() -> None:
    assert [command.token_count(text) for text in ("300B", "1.8T")] == [300 * 10**9, 18 * 10**11]
    shown = [usd(Decimal(amount)) for amount in ("0", "0.0007", "719.914", "251120")]
    assert [*shown, usd(None)] == ["0.00", "<0.01", "719.91", "251,120", "not known"]
    assert [number(value) for value in (16875, 3.04, 5700.000000000001)] == ["16,875", "3.04", "5,700"]
    assert [hours(value) for value in (0.5, 33.45, 96)] == ["30.0 min", "33.5 h", "4.0 days"]


def test_text(run: Call) -> None:
    code, text, _ = run("trn1-16", "--workload", "bert-large-phase1", "--nodes", "8,16,32")
    assert code == 0
    assert "L-2C3B7624" in text
    assert "Prices: the dated table, 2026-01-19 to 2026-11-21 (no credentials" in " ".join(text.split())
    assert re.search(r"8 +interpolated ", text)
    assert re.search(r"16 +measured .* 1,048,576 +440 ", text)
    assert re.search(r"32 \* +extrapolated .* 2,097,152 ! +220 ", text)
    assert "* More than the 16 nodes of this deployment's largest queue." in text
    assert "! A larger batch than any published" in text


def test_prices_of_two_sources_are_marked() -> None:
    listed = Prices("us-west-2", {"trn1.32xlarge": Decimal("20")}, date(2026, 11, 20), "kept in a file")
    [table] = [table for table in tables(estimate("trn1-16", settings(), listed)) if table.title.startswith("Costs")]
    shown = {row[0]: row[1] for row in table.rows}
    assert shown["trn1/trn1-32xl, trn1.32xlarge"] == "20.00/hour"
    assert shown["NAT gateway"] == "0.045/hour (t)"
    assert table.notes[0] == (
        "Prices: AWS Price List API, us-west-2, 2026-11-20 (kept in a file); (t) marks those of the dated table."
    )


def floats(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from floats(each)
    elif isinstance(value, float):
        yield value


def test_json_has_the_sums_without_the_noise_of_floating_point(run: Call) -> None:
    code, text, _ = run("trn1-16", "--output", "json", "--workload", "bert-large-phase1")
    document = json.loads(text)
    assert code == 0
    by_month = 3200 * 0.08 + 200 * 0.08 + 4800 * 0.21 + 0.5 + 3 + 5 * 0.1 + 0.5
    by_month += (16 * 8 + 8 + 12) * 0.3 + 7 * 0.1 + 1 + 3  # metrics, alarms, key and dashboard of the monitoring stack
    by_hour = 16 * 21.5 + 0.68 + 0.045 + 2 * 0.005 + 17 * 0.0006
    assert document["costs"]["at_max_count"]["hour"] == pytest.approx(by_hour + by_month / 730, abs=1e-4)
    assert document["costs"]["parts"][0]["price"] == {
        "dollars": 21.5,
        "per": "hour",
        "source": "table",
        "date": "2026-01-19",
    }
    assert document["prices"]["price_list_day"] is None
    assert all(round(value, 5) == value for value in floats(document))
