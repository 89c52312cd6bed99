"""Facts about instance types and zones, compared with the answers of AWS that moto packs."""

import gzip
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import moto
import pytest

from ultracluster.domain.instance_types import (
    TRAINIUM_TYPES,
    cards_of,
    is_arm,
    memory_gib,
    zone_id_prefix,
)

PACKED = Path(moto.__file__).parent / "ec2" / "resources"


@cache
def aws_types() -> dict[str, dict[str, Any]]:
    types: dict[str, dict[str, Any]] = json.loads(gzip.decompress((PACKED / "instance_types.json.gz").read_bytes()))
    return types


@cache
def aws_zones() -> dict[str, dict[str, set[str]]]:
    """Return the zone ids that offer each Trn type, and all zone ids (under an empty name), by Region."""
    folder = PACKED / "instance_type_offerings" / "availability-zone-id"
    zones_by_region: dict[str, dict[str, set[str]]] = {}
    for path in folder.glob("*.json.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        zones = {"": set(re.findall(r'"Location": "([^"]+)"', text))}
        if '"trn' in text:
            for offer in json.loads(text):
                zones.setdefault(offer["InstanceType"], set()).add(offer["Location"])
        zones_by_region[path.name.removesuffix(".json.gz")] = zones
    return zones_by_region


def test_the_trainium_types_are_all_that_aws_has() -> None:
    names = {name for name in aws_types() if name.startswith("trn")}
    assert names == TRAINIUM_TYPES.keys()


@pytest.mark.parametrize("name", TRAINIUM_TYPES)
def test_a_trainium_type_is_what_aws_says(name: str) -> None:
    kind, aws = TRAINIUM_TYPES[name], aws_types()[name]
    network = aws["NetworkInfo"]
    assert kind.vcpus == aws["VCpuInfo"]["DefaultVCpus"]
    assert kind.network_cards == network["MaximumNetworkCards"]
    assert kind.efa == network["EfaSupported"]
    assert kind.capacity_blocks == ("capacity-block" in aws["SupportedUsageClasses"])
    assert kind.spot == ("spot" in aws["SupportedUsageClasses"])
    assert list(kind.zones) == sorted(zone for region in aws_zones().values() for zone in region.get(name, ()))


def test_efa_and_network_cards_are_what_aws_says_of_every_type() -> None:
    networks = {name: each["NetworkInfo"] for name, each in aws_types().items()}
    expected = {
        name: (network["MaximumNetworkCards"], network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0))
        for name, network in networks.items()
    }
    assert {name: cards_of(name) for name in networks} == expected


def test_memory_is_what_aws_says_of_every_type_that_has_an_answer() -> None:
    answers = {name: memory_gib(name) for name in aws_types()}
    known = {name: gib for name, gib in answers.items() if gib is not None}
    assert known == {name: aws_types()[name]["MemoryInfo"]["SizeInMiB"] / 1024 for name in known}
    assert {
        "c6i.4xlarge",
        "m6i.16xlarge",
        "r5a.large",
        "t3.micro",
        "c7i.xlarge",
        "m5.24xlarge",
        "c7g.4xlarge",
    } <= known.keys()


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
