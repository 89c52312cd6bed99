from ultracluster.domain.instance_types import (
    EfaInterfaceType,
    addresses_per_node,
    has_efa,
    interfaces_per_node,
    network_cards,
)


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
