"""The real command against accounts that are good, or have one thing wrong: what `emulate` lets people try."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.settings import load
from emulator import scenarios
from emulator.aws import ACCOUNT, EmulatedAws
from emulator.scenarios import GOOD, SCENARIOS, Scenario
from scripts.check.preflight import cluster
from scripts.check.preflight.catalog import CATALOG
from scripts.core import options
from scripts.emulated import accounts
from tests.command_line import ultracluster
from tests.configurations import CONFIG
from tests.scripts.check.preflight.accounts import everything

EVERYTHING = "everything"
"""Settings that have something for each of them."""
CONSEQUENCES = {"full-subnet": ["subnets"]}
"""What else is wrong then: the small subnet is not the one that the settings describe."""
Document = dict[str, Any]


def write_everything(directory: Path) -> Path:
    path = directory / f"{EVERYTHING}.yaml"
    path.write_text(json.dumps({**everything(), "name": EVERYTHING}), encoding="utf-8")
    return path


@pytest.fixture
def look(
    rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, Document]]:
    settings_path = write_everything(tmp_path)
    patient = tuple(replace(each, seconds=600) for each in CATALOG)
    monkeypatch.setattr("scripts.check.preflight.catalog.CATALOG", patient)

    def run(environment: str, scenario: Scenario, *arguments: str) -> tuple[int, Document]:
        path = settings_path if environment == EVERYTHING else CONFIG / f"{environment}.yaml"
        settings = load(path)
        with scenarios.account(
            rehearsed_aws,
            accounts.prerequisites_of(settings),
            scenario,
            lambda: accounts.bootstrap(rehearsed_aws, settings),
        ) as variables:
            for name, value in variables.items():
                monkeypatch.setenv(name, value)
            monkeypatch.setattr(options, "CONFIG", path.parent)
            code = ultracluster("preflight", environment, "--output", "json", *arguments)
        return code, json.loads(capsys.readouterr().out)

    return run


def with_status(document: Document, *statuses: str) -> dict[str, Document]:
    return {each["id"]: each for each in document["results"] if each["status"] in statuses}


@pytest.mark.slow
@pytest.mark.validation
@pytest.mark.parametrize("environment", [EVERYTHING, "ultracluster"])
def test_nothing_is_wrong_with_a_good_account(environment: str, look: Callable[..., tuple[int, Document]]) -> None:
    code, document = look(environment, GOOD)
    # So many nodes should have an image with the Neuron software; which one, is for who deploys to say.
    warned = {"settings"} if environment == "ultracluster" else set()
    assert with_status(document, "FAIL", "WARN", "UNKNOWN").keys() == warned
    assert code == 0
    assert document["account"] == ACCOUNT
    assert {each["check"] for each in document["results"]} == {each.id for each in CATALOG}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_wrong_is_found_and_nothing_else(name: str, look: Callable[..., tuple[int, Document]]) -> None:
    scenario = SCENARIOS[name]
    environment = "trn1-16" if name == "no-addresses" else EVERYTHING
    fail_on = "unknown" if name == "no-read-permissions" else "warn"
    code, document = look(environment, scenario, "--skip", cluster.parallelcluster.id, "--fail-on", fail_on)
    wrong = with_status(document, "FAIL", "WARN", "UNKNOWN").values()
    assert code == 1
    assert all(each["hint"] for each in wrong)
    caught = {each["check"] for each in wrong}
    if name == "no-read-permissions":
        assert scenario.caught_by in caught
        assert {each["status"] for each in wrong} == {"UNKNOWN"}
    else:
        assert caught == {scenario.caught_by, *CONSEQUENCES.get(name, ())}
