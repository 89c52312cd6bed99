"""Each sum of money says of which day its prices are."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from config.settings import load
from scripts.account.deployment import Deployment
from scripts.change.destroy import head_node
from scripts.check.estimate.estimate import estimate
from scripts.check.estimate.prices import Prices
from scripts.check.estimate.tables import tables
from scripts.check.review import comment, deployment
from scripts.rehearse.prove.ladder import RUNGS
from scripts.rehearse.prove.money import announcement, rates_of
from scripts.use.costs.costs import node_prices
from scripts.watch.inventory.model import Inventory
from scripts.watch.status.cost import cost_now
from tests.configurations import CONFIG
from tests.scripts.reports import as_markdown
from ultracluster.domain.budget import BudgetSpec, violations

ROOT = Path(__file__).parents[4]
SETTINGS = load(CONFIG / "trn1-16.yaml")
ESTIMATE = estimate("trn1-16", SETTINGS, Prices("us-west-2"))
DAY = re.compile(r"\b2\d{3}-\d{2}-\d{2}\b")
ASK = re.compile(r"\b(?:find_prices|kept_prices|Prices|per_month)\(")


def inventory() -> str:
    listed = Inventory(deployment="mine", time=datetime(1999, 1, 1, tzinfo=UTC), resources=(), not_listed=())
    return listed._total


def snapshot() -> str:
    return head_node.announcement(Deployment("mine", SETTINGS), head_node.RootVolume("vol-1", 100))


SAYINGS: dict[str, Callable[[], str]] = {
    "scripts/check/estimate": lambda: as_markdown(tables(ESTIMATE)),
    "scripts/check/review": lambda: deployment._costs(ESTIMATE),
    "scripts/check/review/": lambda: comment.costs_table(SETTINGS, SETTINGS),
    "scripts/change/destroy": snapshot,
    "scripts/rehearse/prove": lambda: announcement(rates_of(SETTINGS, RUNGS[0], {}), 60, Decimal(0), Decimal(9)),
    "scripts/use/costs": lambda: node_prices(SETTINGS)[1],
    "scripts/watch/inventory": inventory,
    "scripts/watch/status": lambda: cost_now(SETTINGS, {}, date(2026, 11, 28)).source,
}
"""What each package that has prices says of a sum; one that says it twice stands here twice."""


@pytest.mark.parametrize("package", SAYINGS)
def test_a_sum_names_the_day_of_its_prices(package: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("scripts.check.estimate.prices._have_credentials", lambda: False)
    assert DAY.search(SAYINGS[package]())


def test_no_other_package_has_prices() -> None:
    files = [each for each in (ROOT / "scripts").rglob("*.py") if ASK.search(each.read_text(encoding="utf-8"))]
    assert {each.relative_to(ROOT).parent.as_posix() for each in files} == {each.rstrip("/") for each in SAYINGS}


def test_a_limit_of_a_budget_below_a_price_names_the_day_of_the_list_price_alone() -> None:
    own = BudgetSpec(monthly_usd=1, emails=["a@example.com"], usd_per_hour={"trn1.32xlarge": 10})
    reasons = [
        [each.reason for each in violations(spec, "us-west-2", ["trn1.32xlarge"])]
        for spec in (own, own.model_copy(update={"usd_per_hour": {}}))
    ]
    assert [bool(DAY.search(reason)) for [reason] in reasons] == [False, True]
