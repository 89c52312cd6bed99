"""Names and limits, compared with ParallelCluster's own constants."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from ultracluster.domain import cluster_rules, names


@pytest.mark.parametrize("name", ["a", "trn1", "trn1-32xl", "a" * 25, "defaults"])
def test_names_of_queues_and_their_like(name: str) -> None:
    assert names.is_node_group_name(name)


@pytest.mark.parametrize("name", ["", "1a", "-a", "A", "a_b", "a.b", "a" * 26, "default", "a\n", "ä"])
def test_what_is_no_name_of_a_queue(name: str) -> None:
    assert not names.is_node_group_name(name)


@pytest.mark.parametrize(("name", "sound"), [("ab", True), ("A1-b", True), ("a" * 60, True), ("a" * 61, False)])
@pytest.mark.parametrize("prefix", ["", "1", "-", "_"])
def test_names_of_clusters(name: str, sound: bool, prefix: str) -> None:
    assert bool(re.fullmatch(names.CLUSTER_NAME_PATTERN, prefix + name)) == (sound and not prefix)


def test_the_longest_name_of_a_node_is_that_of_the_last_dynamic_one() -> None:
    fqdn = names.longest_node_fqdn("trn1-16", "trn1", "trn1-32xl", 1875)
    assert fqdn == "trn1-dy-trn1-32xl-1875.trn1-16.pcluster"


@pytest.mark.validation
def test_limits_are_parallelclusters(pcluster_constants: Callable[[str], dict[str, Any]]) -> None:
    limits = pcluster_constants("constants.py")
    assert limits["MAX_NUMBER_OF_QUEUES"] == cluster_rules.MAX_QUEUES
    assert limits["MAX_NUMBER_OF_COMPUTE_RESOURCES_PER_CLUSTER"] == cluster_rules.MAX_COMPUTE_RESOURCES
    assert limits["MAX_NUMBER_OF_LOGIN_NODE_POOLS"] == cluster_rules.MAX_LOGIN_POOLS
    assert limits["MAX_TAGS_COUNT"] - 1 == cluster_rules.MAX_TAGS
    assert limits["PCLUSTER_NAME_MAX_LENGTH"] == names.CLUSTER_NAME_MAX
    assert limits["PCLUSTER_NAME_MAX_LENGTH_SLURM_ACCOUNTING"] == names.CLUSTER_NAME_MAX_WITH_ACCOUNTING
    assert limits["PCLUSTER_NAME_REGEX"] == "^([a-zA-Z][a-zA-Z0-9-]{0,%d})$"
    assert f"[a-zA-Z][a-zA-Z0-9-]{{1,{names.CLUSTER_NAME_MAX - 1}}}" == names.CLUSTER_NAME_PATTERN
    of_groups = pcluster_constants("validators/cluster_validators.py")
    assert of_groups["NAME_MAX_LENGTH"] == 25
    assert of_groups["NAME_REGEX"] == r"^[a-z][a-z0-9\-]*$"
