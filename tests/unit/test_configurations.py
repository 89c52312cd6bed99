"""The configurations that the project ships."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from config.settings import Settings, load

CONFIG = Path(__file__).parents[2] / "config"
FILES = sorted(CONFIG.glob("*.yaml"))


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.stem)
def configuration(request: pytest.FixtureRequest) -> Settings:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load(request.param)


def test_the_configurations_are_in_order(configuration: Settings) -> None:
    assert configuration.warnings == []
    assert configuration.name in {path.stem for path in FILES}


def test_there_is_a_configuration_for_each_use() -> None:
    assert {path.stem for path in FILES} >= {"dev", "trn1-16", "two-queues", "reserved", "ultracluster"}
    assert all(load(path).name == path.stem for path in FILES)


def test_the_configurations_are_what_they_are_called() -> None:
    fleets = {path.stem: load(path).cluster_spec for path in FILES}
    assert {name: spec.max_nodes for name, spec in fleets.items()} == {
        "dev": 2,
        "trn1-16": 16,
        "two-queues": 16,
        "reserved": 12,
        "ultracluster": 1875,
    }
    assert fleets["two-queues"].placement_group_labels == ["fleet"]
    assert fleets["reserved"].placement_group_labels == []
    assert fleets["ultracluster"].max_trainium_vcpus == 240_000
    assert fleets["ultracluster"].max_node_interfaces == 16_875
