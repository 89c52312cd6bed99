import re

import pytest

from ultracluster.domain import names


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
