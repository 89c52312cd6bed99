from ultracluster.domain.instance_types import (
    EfaInterfaceType,
    addresses_per_node,
    interfaces_per_node,
)


def test_interfaces_and_addresses_of_a_node() -> None:
    """Interfaces and IPv4 addresses, as ParallelCluster 3.16.1 gives them: with EFA, without, with the older type."""
    expected = {
        "trn1.32xlarge": [(9, 1), (8, 8), (8, 8)],
        "trn1n.32xlarge": [(17, 1), (16, 16), (16, 16)],
        "p5.48xlarge": [(33, 1), (32, 32), (32, 32)],
        "p6-b300.48xlarge": [(17, 1), (17, 17), (17, 17)],
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
