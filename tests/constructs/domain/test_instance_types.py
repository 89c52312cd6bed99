from ultracluster.domain.instance_types import (
    EfaInterfaceType,
    addresses_per_node,
    has_efa,
    interfaces_per_node,
)


def test_interfaces_and_addresses_of_a_node() -> None:
    """Interfaces and IPv4 addresses, as ParallelCluster 3.16.1 gives them: with EFA, without, with the older type."""
    expected = {
        "trn1.32xlarge": [(9, 1), (8, 8), (8, 8)],
        "trn1n.32xlarge": [(17, 1), (16, 16), (16, 16)],
        "c6i.4xlarge": [(2, 1), (1, 1), (1, 1)],
    }
    modes: list[tuple[bool, EfaInterfaceType]] = [(True, "efa-only"), (False, "efa-only"), (True, "efa")]
    of_nodes = {
        name: [
            (
                interfaces_per_node(name, efa=on, interface_type=kind),
                addresses_per_node(name, efa=on, interface_type=kind),
            )
            for on, kind in modes
        ]
        for name in expected
    }
    assert of_nodes == expected


def test_other_types_are_not_known_to_have_efa() -> None:
    assert [has_efa(name) for name in ("trn1.32xlarge", "trn1.2xlarge", "p5.48xlarge")] == [True, False, False]
