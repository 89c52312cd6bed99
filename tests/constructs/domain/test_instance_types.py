from __future__ import annotations

import re

import botocore.session

from ultracluster.domain import instance_type_names
from ultracluster.domain.instance_types import (
    TRAINIUM_TYPES,
    EfaInterfaceType,
    addresses_per_node,
    cards_of,
    interfaces_per_node,
)
from ultracluster.domain.violations import WORDS


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
                interfaces_per_node(cards_of(name), efa=on, interface_type=kind),
                addresses_per_node(cards_of(name), efa=on, interface_type=kind),
            )
            for on, kind in modes
        ]
        for name in expected
    }
    assert of_nodes == expected


def test_names_are_those_of_ec2_and_each_is_taken() -> None:
    """EC2 has ever more: newer ones are taken with a warning, and come with the next look at botocore."""
    types = set(botocore.session.get_session().get_service_model("ec2").shape_for("InstanceType").enum)
    known = instance_type_names._known()
    assert known - types == set()
    assert len(known) > 0.9 * len(types)
    assert {each for each in known if each.startswith("trn")} == TRAINIUM_TYPES.keys()
    [pattern] = [each for each in WORDS if WORDS[each] == "an EC2 instance type such as trn1.32xlarge"]
    assert [each for each in types if not re.fullmatch(pattern, each)] == []
