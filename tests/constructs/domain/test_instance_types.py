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


def test_memory_of_common_types() -> None:
    gib = {"c6i.4xlarge": 32, "m6i.16xlarge": 256, "r5a.large": 16, "t3.micro": 1, "t3a.nano": 0.5}
    assert {name: memory_gib(name) for name in gib} == gib


def test_arm_types() -> None:
    arm = {"c7g.large": True, "a1.medium": True, "g5.xlarge": False, "trn1.2xlarge": False}
    assert {name: is_arm(name) for name in arm} == arm


def test_memory_of_other_types_is_not_guessed() -> None:
    for name in ("trn1.32xlarge", "c6i.metal", "c6i.huge", "m7g.large", "c6i", ""):
        assert memory_gib(name) is None, name


def test_zone_id_prefixes_of_other_regions() -> None:
    prefixes = {"us-gov-west-1": "usgw1", "ap-northeast-3": "apne3", "us-moon-1": None, "us-1": None}
    assert {region: zone_id_prefix(region) for region in prefixes} == prefixes


def test_interfaces_and_addresses_of_a_node() -> None:
    """Interfaces and IPv4 addresses, as ParallelCluster 3.16.1 gives them: with EFA, without, with the older type."""
    expected = {
        "trn1.32xlarge": [(9, 1), (8, 8), (8, 8)],
        "trn1n.32xlarge": [(17, 1), (16, 16), (16, 16)],
        "trn2.48xlarge": [(17, 1), (16, 16), (16, 16)],
        "trn2.3xlarge": [(2, 1), (1, 1), (1, 1)],
    }
    modes: list[tuple[bool, EfaInterfaceType]] = [(True, "efa-only"), (False, "efa-only"), (True, "efa")]
    found = {
        name: [
            (
                interfaces_per_node(name, efa=on, interface_type=kind),
                addresses_per_node(name, efa=on, interface_type=kind),
            )
            for on, kind in modes
        ]
        for name in expected
    }
    assert found == expected


def test_other_types_have_one_card_and_are_not_known_to_have_efa() -> None:
    for name in ("trn1.2xlarge", "c6i.4xlarge"):
        assert network_cards(name) == 1
        assert not has_efa(name)
        assert interfaces_per_node(name, efa=False, interface_type="efa-only") == 1
        assert addresses_per_node(name, efa=False, interface_type="efa") == 1
