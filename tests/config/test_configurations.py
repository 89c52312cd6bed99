"""The configurations that the project ships, and those that a team has added."""

from __future__ import annotations

import warnings

import pytest

from config.settings import Settings, load
from tests.configurations import CONFIG, SHIPPED

FILES = sorted(CONFIG.glob("*.yaml"))
MAX_NODES = {"dev": 2, "trn1-16": 16, "two-queues": 16, "reserved": 12, "ultracluster": 1875}


@pytest.fixture(scope="module", params=SHIPPED)
def shipped(request: pytest.FixtureRequest) -> Settings:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load(CONFIG / f"{request.param}.yaml")


def test_what_the_project_ships_is_in_order(shipped: Settings) -> None:
    assert [warning.partition(":")[0] for warning in shipped.warnings] == (
        ["cluster.custom_ami"] if shipped.name == "ultracluster" else []
    )
    assert shipped.cluster_spec.max_nodes == MAX_NODES[shipped.name]


def test_deployments_have_names_of_their_own() -> None:
    names = {path.stem: load(path).name for path in FILES}
    assert len(set(names.values())) == len(names)
    assert [names[name] for name in SHIPPED] == list(SHIPPED)


def test_the_configurations_are_what_they_are_called() -> None:
    fleets = {name: load(CONFIG / f"{name}.yaml").cluster_spec for name in SHIPPED}
    assert fleets["two-queues"].placement_group_labels == ["fleet"]
    assert fleets["reserved"].placement_group_labels == []
    assert fleets["ultracluster"].max_trainium_vcpus == 240_000
    assert fleets["ultracluster"].max_node_interfaces == 16_875
