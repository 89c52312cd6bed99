"""What `make estimate` prints and writes, and what it refuses."""

import json
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from config.settings import Settings, load
from scripts.commands import estimate as command
from scripts.estimate.plan import document, plan, plan_run
from scripts.estimate.prices import Prices
from scripts.estimate.tables import dollars, hours, number, tables
from scripts.estimate.workloads import WORKLOADS
from tests.configurations import SHIPPED

CONFIG = Path(__file__).parents[3] / "config"
TABLE = Prices("us-west-2", remark="a test")
each_environment = pytest.mark.parametrize("environment", SHIPPED)


@cache
def settings(environment: str = "trn1-16") -> Settings:
    return load(CONFIG / f"{environment}.yaml")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, offline: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """A function that runs the command and returns its exit code, what it printed, and its complaints."""
    monkeypatch.setattr(command, "PAGES", offline)

    def called(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["plan", *arguments])
        try:
            code = command.main()
        except SystemExit as end:
            code = int(str(end.code))
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return called


@pytest.mark.parametrize(
    ("amount", "text"), [("0", "0.00"), ("0.0007", "<0.01"), ("719.914", "719.91"), ("251120", "251,120")]
)
def test_dollars(amount: str, text: str) -> None:
    assert dollars(Decimal(amount)) == text


def test_other_figures() -> None:
    assert [number(value) for value in (16875, 3.04, 5700.000000000001)] == ["16,875", "3.04", "5,700"]
    assert [hours(value) for value in (0.5, 33.45, 96)] == ["30.0 min", "33.5 h", "4.0 days"]
    assert dollars(None) == "not known"


def test_text(run: Any) -> None:
    code, text, _ = run("ultracluster", "--workload", "bert-large-phase1", "--nodes", "1,8,16,32")
    assert code == 0
    for told in ("30,000", "16,875", "L-2C3B7624", "240,000", "measured", "interpolated", "extrapolated"):
        assert told in text
    assert "Prices: the dated table, 2026-01-19 to 2026-11-21 (no credentials" in " ".join(text.split())


def test_what_was_not_measured_and_what_does_not_fit_is_marked(run: Any) -> None:
    _, text, _ = run("trn1-16", "--workload", "bert-large-phase1", "--nodes", "16,32")
    assert re.search(r"16 +measured .* 1,048,576 +440 ", text)
    assert re.search(r"32 \* +extrapolated .* 2,097,152 ! +220 ", text)
    assert "* More than the 16 nodes of this deployment's largest queue." in text
    assert "! A larger batch than any published" in text


def test_prices_of_two_sources_are_told_apart() -> None:
    listed = Prices("us-west-2", {"trn1.32xlarge": Decimal("20")}, date(2026, 11, 20), "kept in a file")
    [table] = [table for table in tables(plan(settings(), listed)) if table.title.startswith("Costs")]
    told = {row[0]: row[1] for row in table.rows}
    assert told["trn1/trn1-32xl, trn1.32xlarge"] == "20.00/hour"
    assert told["NAT gateway"] == "0.045/hour (t)"
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


@each_environment
def test_json_has_no_float_noise(environment: str) -> None:
    run = plan_run(settings(environment), TABLE, WORKLOADS["bert-large-phase1"])
    found = json.loads(json.dumps(document(plan(settings(environment), TABLE, run))))
    assert all(round(value, 5) == value for value in floats(found))
    assert found["at_max_count"]["nodes"] == settings(environment).cluster_spec.max_nodes
    assert found["prices"]["price_list_day"] is None


def test_json_is_the_same_as_the_sums(run: Any) -> None:
    code, text, _ = run("trn1-16", "--json")
    found = json.loads(text)
    assert code == 0
    by_month = 3200 * 0.08 + 200 * 0.08 + 4800 * 0.21 + 0.5 + 3 + 5 * 0.1 + 0.5
    by_month += (16 * 8 + 8 + 5) * 0.3 + 7 * 0.1 + 1 + 3  # metrics, alarms, key and dashboard of the monitoring stack
    by_hour = 16 * 21.5 + 0.68 + 0.045 + 2 * 0.005 + 17 * 0.0006
    assert found["costs"]["at_max_count"]["hour"] == pytest.approx(by_hour + by_month / 730, abs=1e-4)
    assert found["costs"]["parts"][0]["price"]["source"] == "table"
    assert found["run"] is None


def test_the_page_loads_nothing_and_shows_the_chart(run: Any) -> None:
    code, text, _ = run("ultracluster", "--html")
    assert code == 0
    page = Path(text.strip()).read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|img|iframe)|@import|url\(|\b(src|href)=", page)
    charts = [ElementTree.fromstring(chart) for chart in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]  # noqa: S314
    assert len(charts) == 2
    told = [title.text or "" for title in charts[0].iter("title")]
    assert [text.rpartition(", ")[2] for text in told] == ["measured", *["interpolated"] * 3, "measured"] + [
        "extrapolated"
    ] * 7
    joined = [path.attrib["class"] for path in charts[0].iter("path")]
    assert joined == ["joined"] * 4 + ["joined guessed"] * 7
    for mark in (*charts[0].iter("circle"), *charts[1].iter("circle")):
        assert 0 < float(mark.attrib["cx"]) < 960
        assert 0 < float(mark.attrib["cy"]) < 300


def test_a_page_without_prices_has_no_chart_of_cost() -> None:
    from scripts.estimate.page import page

    prices = Prices("ap-southeast-4")
    for counts in ([1, 2], [16]):
        run = plan_run(settings(), prices, WORKLOADS["bert-large-phase1"], counts=counts)
        assert page(plan(settings(), prices, run)).count("<svg") == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["nope"], "no such file in config/: nope"),
        (["trn1-16", "--nodes", "2"], "need a --workload"),
        (["trn1-16", "--workload", "llama-2-70b", "--nodes", "3"], "multiple of 8 nodes"),
        (["trn1-16", "--workload", "llama-2-7b", "--nodes", "0"], "numbers of nodes"),
        (["trn1-16", "--workload", "llama-2-7b", "--nodes", "a"], "numbers of nodes"),
        (["trn1-16", "--workload", "llama-2-7b", "--tokens", "1.2.3B"], "number of tokens"),
        (["trn1-16", "--workload", "llama-2-7b", "--tokens", "many"], "number of tokens"),
        (["trn1-16", "--json", "--html"], "not allowed with"),
    ],
)
def test_what_cannot_be_used_is_refused(run: Any, arguments: list[str], complaint: str) -> None:
    code, _, error = run(*arguments)
    assert code == 2
    assert complaint in error


@pytest.mark.parametrize(("text", "tokens"), [("300B", 300 * 10**9), ("1.8T", 18 * 10**11), ("5000", 5000)])
def test_numbers_of_tokens(text: str, tokens: int) -> None:
    assert command.token_count(text) == tokens
