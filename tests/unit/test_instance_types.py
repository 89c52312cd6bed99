"""Facts about instance types and zones, compared with the answers of AWS that moto packs."""

import gzip
import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from ultracluster.domain.instance_types import (
    TRAINIUM_TYPES,
    TrainiumType,
    addresses_per_node,
    has_efa,
    interfaces_per_node,
    is_arm,
    memory_gib,
    network_cards,
    zone_id_prefix,
)

each_trainium_type = pytest.mark.parametrize("kind", TRAINIUM_TYPES.values(), ids=TRAINIUM_TYPES)


@cache
def packed(name: str) -> Any:
    spec = find_spec("moto")
    assert spec is not None
    assert spec.origin is not None
    return json.loads(gzip.decompress((Path(spec.origin).parent / "ec2" / "resources" / name).read_bytes()))


@cache
def aws_types() -> dict[str, dict[str, Any]]:
    types: dict[str, dict[str, Any]] = packed("instance_types.json.gz")
    return types


@cache
def aws_zones() -> dict[str, dict[str, set[str]]]:
    """Return the zone ids that offer each Trn type, and all zone ids (under an empty name), by Region."""
    spec = find_spec("moto")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "ec2" / "resources" / "instance_type_offerings" / "availability-zone-id"
    found: dict[str, dict[str, set[str]]] = {}
    for path in folder.glob("*.json.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        zones = {"": set(re.findall(r'"Location": "([^"]+)"', text))}
        if '"trn' in text:
            for offer in json.loads(text):
                zones.setdefault(offer["InstanceType"], set()).add(offer["Location"])
        found[path.name.removesuffix(".json.gz")] = zones
    return found


def test_the_trainium_types_are_all_that_aws_has() -> None:
    names = {name for name in aws_types() if name.startswith("trn")}
    assert names == TRAINIUM_TYPES.keys()
    assert all(kind.name == name for name, kind in TRAINIUM_TYPES.items())


@each_trainium_type
def test_a_trainium_type_is_what_aws_says(kind: TrainiumType) -> None:
    aws = aws_types()[kind.name]
    network = aws["NetworkInfo"]
    assert kind.vcpus == aws["VCpuInfo"]["DefaultVCpus"]
    assert kind.network_cards == network["MaximumNetworkCards"]
    assert kind.efa == network["EfaSupported"]
    assert network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0) == (kind.network_cards if kind.efa else 0)
    assert kind.capacity_blocks == ("capacity-block" in aws["SupportedUsageClasses"])


@each_trainium_type
def test_a_trainium_type_has_the_zones_that_aws_says(kind: TrainiumType) -> None:
    zones = {zone for region in aws_zones().values() for zone in region.get(kind.name, ())}
    assert set(kind.zones) == zones
    assert list(kind.zones) == sorted(zones)


def test_memory_is_what_aws_says_of_every_type_that_has_an_answer() -> None:
    answers = {name: memory_gib(name) for name in aws_types()}
    known = {name: gib for name, gib in answers.items() if gib is not None}
    assert known == {name: aws_types()[name]["MemoryInfo"]["SizeInMiB"] / 1024 for name in known}
    assert {"c6i.4xlarge", "m6i.16xlarge", "r5a.large", "t3.micro", "c7i.xlarge", "m5.24xlarge"} <= known.keys()


@pytest.mark.parametrize("name", ["trn1.32xlarge", "c6i.metal", "c6i.huge", "m7g.large", "c6i", ""])
def test_memory_of_other_types_is_not_guessed(name: str) -> None:
    assert memory_gib(name) is None


def test_arm_types_are_those_that_aws_says() -> None:
    wrong = {
        name
        for name, aws in aws_types().items()
        if is_arm(name) != ("arm64" in aws["ProcessorInfo"]["SupportedArchitectures"])
    }
    assert wrong == set()


def test_zone_ids_begin_with_the_prefix_of_their_region() -> None:
    regions = aws_zones()
    assert len(regions) >= 25
    for region, zones in regions.items():
        prefix = zone_id_prefix(region)
        assert {zone.partition("-")[0] for zone in zones[""] if re.fullmatch(r"[a-z]+\d-az\d+", zone)} == {prefix}


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
    told = [
        (interfaces_per_node(name, efa=on, interface_type=kind), addresses_per_node(name, efa=on, interface_type=kind))
        for on, kind in ((True, "efa-only"), (False, "efa-only"), (True, "efa"))
    ]
    assert told == [efa, interfaces, legacy]


def test_other_types_have_one_card_and_are_not_known_to_have_efa() -> None:
    for name in ("trn1.2xlarge", "c6i.4xlarge"):
        assert network_cards(name) == 1
        assert not has_efa(name)
        assert interfaces_per_node(name, efa=False, interface_type="efa-only") == 1
        assert addresses_per_node(name, efa=False, interface_type="efa") == 1
