"""Which types and chips are known, which release of the Neuron SDK knows them, and types that the user describes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.constructs.domain.specs import NODES, changed, with_nodes, with_queue
from ultracluster.domain import neuron
from ultracluster.domain.cluster import CapacityType, ClusterSpec
from ultracluster.domain.cluster_rules import chip_warnings, type_warnings, violations
from ultracluster.domain.instance_types import TRAINIUM_TYPES, TrainiumType
from ultracluster.domain.neuron import RELEASES, as_numbers
from ultracluster.domain.type_facts import TypeFactsSpec
from ultracluster.domain.violations import Violation

NEW = "trn9.48xlarge"
FACTS = TypeFactsSpec(
    vcpus=256, memory_gib=4096, network_cards=16, efa_devices=16, neuron_devices=16, neuron_cores=64, usd_per_hour=50.5
)
GUIDE = Path(__file__).parents[3] / "docs/guides/instance-types.md"
PLACE = ("queues", 0, "compute_resources", 0)
each_type = pytest.mark.parametrize("name", TRAINIUM_TYPES)


def described(sdk: str = neuron.DEFAULT_SDK, **facts: Any) -> ClusterSpec:
    """Return a cluster of nodes that are not known, as described."""
    spec = with_nodes(instance_type=NEW, type_facts=changed(FACTS, **facts))
    return changed(spec, neuron_sdk=sdk)


def at(found: Iterable[Violation], field: str) -> list[str]:
    """Return what is said of a field of the nodes."""
    return [str(each) for each in found if each.path == (*PLACE, *field.split("."))]


@each_type
@pytest.mark.parametrize("sdk", RELEASES)
def test_a_release_is_for_the_types_that_it_knows_and_a_warning_names_those_it_is_not_verified_for(
    name: str, sdk: str
) -> None:
    spec, kind = changed(with_nodes(instance_type=name), neuron_sdk=sdk), TRAINIUM_TYPES[name]
    assert bool(at(violations(spec), "instance_type")) == (as_numbers(sdk) < as_numbers(kind.first_sdk))
    warned = at(chip_warnings(spec), "instance_type")
    assert bool(warned) == (sdk not in kind.chip.verified_sdks)
    assert all(sdk in each and kind.first_sdk in each for each in warned)
    assert not at(violations(spec, neuron_software=False), "instance_type")


def test_each_release_is_verified_for_a_chip_and_each_verified_one_is_there() -> None:
    verified = {sdk for kind in TRAINIUM_TYPES.values() for sdk in kind.chip.verified_sdks}
    assert verified == RELEASES.keys()


@each_type
def test_a_type_is_sold_as_aws_says(name: str) -> None:
    kind = TRAINIUM_TYPES[name]
    ways: dict[CapacityType, bool] = {"ONDEMAND": True, "SPOT": kind.spot, "CAPACITY_BLOCK": kind.capacity_blocks}
    nodes = changed(NODES, instance_type=name)
    for way, is_sold in ways.items():
        broken = at(violations(with_queue(nodes, capacity_type=way)), "instance_type")
        assert bool(broken) != is_sold, way


def test_the_guide_has_the_table() -> None:
    rows = "".join(
        f"| `{name}` | {kind.chips} {kind.chip.name} | {kind.chips * kind.chip.neuron_cores}, {kind.listed_cores} "
        f"| {kind.vcpus} | {kind.memory_gib:,} | {kind.nvme_gb:,} | {kind.efa_devices} "
        f"| on demand{', Spot' * kind.spot}{', Capacity Block' * kind.capacity_blocks} "
        f"| {kind.first_sdk} | {kind.usd_per_hour or 'ask the Price List'} |\n"
        for name, kind in TRAINIUM_TYPES.items()
    )
    assert f"\n{rows}\n" in GUIDE.read_text(encoding="utf-8")


def test_a_trn_type_that_is_in_no_table_is_refused_until_its_facts_are_said() -> None:
    [broken] = at(violations(with_nodes(instance_type=NEW)), "instance_type")
    assert "not known to this project" in broken
    assert "type_facts" in broken
    assert list(map(str, violations(described()))) == []
    assert list(type_warnings(described())) == []


@pytest.mark.parametrize("name", ["c99i.4xlarge", "q1.48xlarge"])
def test_another_type_that_is_in_no_table_is_a_warning_until_its_facts_are_said(name: str) -> None:
    [warning] = at(type_warnings(with_nodes(instance_type=name)), "instance_type")
    assert "not known to this project" in warning
    plain = TypeFactsSpec(vcpus=16, memory_gib=32)
    assert list(type_warnings(with_nodes(instance_type=name, type_facts=plain))) == []


@pytest.mark.parametrize(
    ("first", "newest_known", "allowed"),
    [
        (None, True, ""),
        ("2.28.1", True, ""),
        ("2.28.0", True, ""),
        ("2.29.0", False, "and this project installs none so new"),
    ],
)
def test_the_release_is_compared_with_the_first_that_is_said_to_know_the_chip(
    first: str | None, newest_known: bool, allowed: str
) -> None:
    spec = described(first_neuron_sdk=first)
    broken = at(violations(spec), "instance_type")
    assert bool(broken) != newest_known
    assert all(allowed in each for each in broken)
    [warning] = at(chip_warnings(spec), "instance_type")
    assert (first or "is not said") in warning
    if first == "2.28.0":
        [older] = at(violations(described("2.27.1", first_neuron_sdk=first)), "instance_type")
        assert "or neuron_sdk: 2.28.1" in older


@each_type
def test_facts_said_of_a_type_mean_what_the_table_means(name: str) -> None:
    """Whatever reads the table of a type reads facts: only the prices, zones and warnings differ."""
    kind = TRAINIUM_TYPES[name]
    new = f"trn9.{name.partition('.')[2]}"
    known, other = with_nodes(instance_type=name), with_nodes(instance_type=new, type_facts=as_facts(kind))
    assert [each.placement_group_label for each in known.queues] == [
        each.placement_group_label for each in other.queues
    ]
    of_known, of_other = (
        (each.max_trainium_vcpus, each.max_node_addresses, each.max_node_interfaces) for each in (known, other)
    )
    assert of_known == of_other
    assert known.queues[0].has_trainium
    assert other.queues[0].has_trainium


def as_facts(kind: TrainiumType) -> TypeFactsSpec:
    return TypeFactsSpec(
        vcpus=kind.vcpus,
        memory_gib=kind.memory_gib,
        network_cards=kind.network_cards,
        efa_devices=kind.efa_devices,
        neuron_devices=kind.chips,
        neuron_cores=kind.listed_cores,
    )


@pytest.mark.parametrize(
    ("spec", "field", "allowed"),
    [
        (described(efa_devices=17), "type_facts.efa_devices", "at most network_cards, 16"),
        (described(neuron_cores=15), "type_facts.neuron_cores", "at least 16"),
        (described(neuron_cores=0), "type_facts.neuron_cores", "at least 16"),
        (described(neuron_devices=0), "type_facts.neuron_cores", "allowed: 0"),
        (with_nodes(type_facts=FACTS), "type_facts", "allowed: null"),
        (
            with_nodes(instance_type=NEW, type_facts=FACTS, alternative_types=["trn8.48xlarge"]),
            "alternative_types",
            "allowed: none",
        ),
    ],
)
def test_facts_that_cannot_be(spec: ClusterSpec, field: str, allowed: str) -> None:
    [found] = at(violations(spec), field)
    assert allowed in found


def test_a_type_has_one_description() -> None:
    nodes = changed(NODES, instance_type=NEW, type_facts=FACTS)
    for facts in (None, changed(FACTS, vcpus=1)):
        other = changed(nodes, name="other", type_facts=facts)
        [broken] = [each for each in violations(with_queue(nodes, other)) if each.path[-1] == "type_facts"]
        assert broken.allowed == "the same as of trn1-32xl"


def test_a_described_type_has_efa_where_it_has_devices() -> None:
    for devices in (16, 0):
        [nodes] = described(efa_devices=devices).queues[0].compute_resources
        assert nodes.has_efa == (devices > 0)
    asked = with_nodes(instance_type=NEW, type_facts=changed(FACTS, efa_devices=0), efa=True)
    assert len(at(violations(asked), "efa")) == 1
