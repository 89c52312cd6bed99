import re

from ultracluster.domain import names


def test_names_of_queues_and_their_like() -> None:
    sound = ["a", "trn1", "trn1-32xl", "a" * 25, "defaults"]
    assert [name for name in sound if not names.is_node_group_name(name)] == []


def test_what_is_no_name_of_a_queue() -> None:
    odd = ["", "1a", "-a", "A", "a_b", "a.b", "a" * 26, "default", "a\n", "ä"]
    assert [name for name in odd if names.is_node_group_name(name)] == []


def test_names_of_clusters() -> None:
    sound = ["ab", "A1-b", "a" * 60]
    tried = [prefix + name for prefix in ("", "1", "-", "_") for name in (*sound, "a" * 61)]
    assert [name for name in tried if re.fullmatch(names.CLUSTER_NAME_PATTERN, name)] == sound


def test_names_of_generations() -> None:
    assert [names.of_generation("trn1-16", generation) for generation in (1, 2, 10)] == [
        "trn1-16",
        "trn1-16-2",
        "trn1-16-10",
    ]


def test_the_longest_name_of_a_node_is_that_of_the_last_dynamic_one() -> None:
    fqdn = names.longest_node_fqdn("trn1-16", "trn1", "trn1-32xl", 1875)
    assert fqdn == "trn1-dy-trn1-32xl-1875.trn1-16.pcluster"
