import pytest

from ultracluster.domain.instance_types import (
    EfaInterfaceType,
    addresses_per_node,
    has_efa,
    interfaces_per_node,
    is_arm,
    memory_gib,
    network_cards,
    zone_id_prefix,
)


@pytest.mark.parametrize(
    ("name", "gib"), [("c6i.4xlarge", 32), ("m6i.16xlarge", 256), ("r5a.large", 16), ("t3.micro", 1), ("t3a.nano", 0.5)]
)
def test_memory_of_common_types(name: str, gib: float) -> None:
    assert memory_gib(name) == gib


@pytest.mark.parametrize(
    ("name", "arm"), [("c7g.large", True), ("a1.medium", True), ("g5.xlarge", False), ("trn1.2xlarge", False)]
)
def test_arm_types(name: str, arm: bool) -> None:
    assert is_arm(name) == arm


@pytest.mark.parametrize("name", ["trn1.32xlarge", "c6i.metal", "c6i.huge", "m7g.large", "c6i", ""])
def test_memory_of_other_types_is_not_guessed(name: str) -> None:
    assert memory_gib(name) is None


@pytest.mark.parametrize(
    ("region", "prefix"), [("us-gov-west-1", "usgw1"), ("ap-northeast-3", "apne3"), ("us-moon-1", None), ("us-1", None)]
)
def test_zone_id_prefixes_of_other_regions(region: str, prefix: str | None) -> None:
    assert zone_id_prefix(region) == prefix


@pytest.mark.parametrize(
    ("name", "efa", "interfaces", "legacy"),
    [
        ("trn1.32xlarge", (9, 1), (8, 8), (8, 8)),
        ("trn1n.32xlarge", (17, 1), (16, 16), (16, 16)),
        ("trn2.48xlarge", (17, 1), (16, 16), (16, 16)),
        ("trn2.3xlarge", (2, 1), (1, 1), (1, 1)),
    ],
)
def test_interfaces_and_addresses_of_a_node(
    name: str, efa: tuple[int, int], interfaces: tuple[int, int], legacy: tuple[int, int]
) -> None:
    """Interfaces and IPv4 addresses, as ParallelCluster 3.16.1 gives them."""
    modes: list[tuple[bool, EfaInterfaceType]] = [(True, "efa-only"), (False, "efa-only"), (True, "efa")]
    told = [
        (interfaces_per_node(name, efa=on, interface_type=kind), addresses_per_node(name, efa=on, interface_type=kind))
        for on, kind in modes
    ]
    assert told == [efa, interfaces, legacy]


def test_other_types_have_one_card_and_are_not_known_to_have_efa() -> None:
    for name in ("trn1.2xlarge", "c6i.4xlarge"):
        assert network_cards(name) == 1
        assert not has_efa(name)
        assert interfaces_per_node(name, efa=False, interface_type="efa-only") == 1
        assert addresses_per_node(name, efa=False, interface_type="efa") == 1
