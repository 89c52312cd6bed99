"""The configurations that the project ships, and those that a team has added."""

from __future__ import annotations

import warnings

from config import files
from config.settings import load
from tests.configurations import CONFIG, SHIPPED


def test_deployments_have_names_of_their_own_and_ours_warn_of_a_large_fleet_without_an_image() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = {name: load(CONFIG / f"{name}.yaml") for name in files.deployments(CONFIG)}
    warned = {name: [each.partition(":")[0] for each in loaded[name].warnings] for name in SHIPPED}

    assert len({settings.name for settings in loaded.values()}) == len(loaded)
    assert [loaded[name].name for name in SHIPPED] == list(SHIPPED)
    assert warned == {name: ["cluster.custom_ami"] if name == "ultracluster" else [] for name in SHIPPED}
    assert loaded["ultracluster"].cluster_spec.max_nodes == 1875
