"""docs/pitfalls.md: what it says to be caught is caught by something that exists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from config.settings import SettingsError, load
from scripts.preflight.catalog import CATALOG

ROOT = Path(__file__).parents[3]
NUMBER = 25
PREVENTABLE = ("yes", "partly")


class Pitfall(NamedTuple):
    """A row of the table."""

    number: int
    before: str
    caught_by: list[str]


def rows() -> Iterator[Pitfall]:
    for line in (ROOT / "docs/pitfalls.md").read_text(encoding="utf-8").splitlines():
        if re.match(r"\| \d", line):
            number, _, evidence, before, caught_by = (cell.strip() for cell in line.strip("|").split(" | "))
            assert "https://github.com/" in evidence
            yield Pitfall(int(number), before, re.findall(r"`([^`]+)`", caught_by))


PITFALLS = list(rows())
NAMED = sorted({each for pitfall in PITFALLS for each in pitfall.caught_by})


def queue(raw: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = raw["cluster"]["queues"][0]
    return found


def reserved_in_our_group(raw: dict[str, Any]) -> None:
    queue(raw).update(placement_group="fleet")
    queue(raw)["compute_resources"][0].update(capacity_reservation_id="cr-0123456789abcdef0")


def efa_where_there_is_none(raw: dict[str, Any]) -> None:
    queue(raw)["compute_resources"][0].update(instance_type="trn1.2xlarge", efa=True)


REFUSED: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "cluster.neuron_sdk": lambda raw: raw["cluster"].update(neuron_sdk="2.6.0"),
    "cluster.os": lambda raw: raw["cluster"].update(os="ubuntu2004"),
    "cluster.parallelcluster_version": lambda raw: raw["cluster"].update(parallelcluster_version="3.13.0"),
    "cluster.pytorch": lambda raw: raw["cluster"].update(pytorch="1.13"),
    "cluster.queues[0].compute_resources[0].efa": efa_where_there_is_none,
    "cluster.queues[0].placement_group": reserved_in_our_group,
}


def test_the_table_is_whole() -> None:
    assert [pitfall.number for pitfall in PITFALLS] == list(range(1, NUMBER + 1))
    assert {pitfall.before for pitfall in PITFALLS} == {*PREVENTABLE, "no"}


def test_what_can_be_prevented_is_caught() -> None:
    uncaught = {pitfall.number for pitfall in PITFALLS if pitfall.before in PREVENTABLE and not pitfall.caught_by}
    assert uncaught == set()


@pytest.mark.parametrize("name", [name for name in NAMED if not name.startswith("settings: ")])
def test_what_catches_it_exists(name: str) -> None:
    if name.startswith("preflight: "):
        assert name.removeprefix("preflight: ") in {each.id for each in CATALOG}
    else:
        path, _, function = name.partition("::")
        assert re.search(rf"^\s*def {function}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", [name.removeprefix("settings: ") for name in NAMED if name.startswith("settings: ")])
def test_the_settings_refuse_it(path: str, tmp_path: Path) -> None:
    raw = yaml.safe_load((ROOT / "config/trn1-16.yaml").read_text(encoding="utf-8"))
    REFUSED[path](raw)
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump(raw), encoding="utf-8")
    with pytest.raises(SettingsError, match=rf": {re.escape(path)}: got "):
        load(file)
