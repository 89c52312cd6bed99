"""What is reported of values of a wrong type, out of range, or not among the choices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from config.pipeline import Pipeline
from config.settings import Settings
from tests.config.settings_files import QUEUE, RESOURCE, Write, outcome, with_values
from ultracluster.domain.monitoring import ClusterMonitoringSpec
from ultracluster.domain.spec import Spec
from ultracluster.domain.types import FileSystemId, NatGatewayId, VolumeId
from ultracluster.domain.violations import WORDS

IN_QUOTES = "should be a valid string, put it in quotes"
OF_THE_LIBRARY: list[Any] = [FileSystemId, NatGatewayId, VolumeId]
"""Types of arguments that no setting has."""
VPC = {"vpc_id": "vpc-01234567", "public_subnet_id": "subnet-01234567", "private_subnet_id": "subnet-76543210"}

MESSAGES: list[tuple[str, Any, str]] = [
    ("name", "Trn1", "got 'Trn1'; allowed: 2 to 40 of a-z, 0-9 and -, a letter first (Name of the"),
    ("name", 16, f"got 16; {IN_QUOTES} (Name of the"),
    (
        "zone_id",
        [1],
        "got [1]; should be a valid string (Availability zone id, the same place in every account (a zone",
    ),
    ("tags.a", "x" * 257, "should have at most 256 characters"),
    ("tags", ["project"], "should be a mapping"),
    ("tags", {1: "trn1"}, IN_QUOTES),
    ("termination_protection[0]", "all", "should be 'network', 'storage', 'team', 'cluster' or 'monitoring'"),
    ("termination_protection", "network", "should be a list"),
    ("network.flow_log_retention_days", 8, "got 8; should be 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, "),
    ("network.nat_addresses", 9, "got 9; should be less than or equal to 8 (Public addresses of the NAT gateway; each"),
    *[("network.nat_addresses", each, "should be a valid integer (Public") for each in ("1", 1.0, True)],
    (
        "network.existing.vpc_id",
        "vpc-1",
        "got 'vpc-1'; allowed: the id of a VPC such as vpc-0123456789abcdef0 (Id of",
    ),
    ("cluster.parallelcluster_version", "3.16.0", "got '3.16.0'; allowed: 3.16.1 or 3.16.2 or 3.16.3 (how it differs"),
    ("network.nat_adresses", 1, "unknown key; did you mean nat_addresses? allowed: cidr, existing, "),
    ("budget.monthly_usd", 0, "got 0; should be greater than 0 (US dollars"),
    ("budget.actual_percent", [1001], "should be less than or equal to 1000"),
    ("budget.emails", ["ops"], "got 'ops'; allowed: an email address such as"),
    ("storage.zzz", True, "unknown key; allowed: data_repositories, file_system, retain"),
    (f"{RESOURCE}.max_counts", 16, "unknown key; did you mean max_count? allowed: "),
    (f"{QUEUE}.compute_resources[0]", {"name": "r"}, "missing; this key is required (Nodes at most. Fewer"),
]
"""One of each kind; patterns, ranges and choices of all settings are in config/schema.json."""


@pytest.mark.parametrize(("place", "value", "message"), MESSAGES, ids=range(len(MESSAGES)))
def test_the_message_about_a_wrong_value(write: Write, place: str, value: Any, message: str) -> None:
    needed: dict[str, dict[str, Any]] = {
        "network.existing": {"network.existing": VPC},
        "budget": {"budget": {"monthly_usd": 9000, "emails": ["a@example.com"]}},
    }
    whole = next((each for start, each in needed.items() if place.startswith(start)), {})
    [line] = outcome(write(with_values({**whole, place: value})))
    reported, _, text = line.partition("settings.yaml:")[2].partition(": ")[2].partition(": ")
    assert reported.startswith(place)
    assert message in text


def test_choices_are_those_that_the_schema_offers(write: Write) -> None:
    """The library takes more systems than a deployment with Neuron software may have."""
    schema = Settings.model_json_schema()
    for place, section, name in (
        ("cluster.os", "ClusterSettings", "os"),
        (f"{QUEUE}.capacity_type", "QueueSpec", "capacity_type"),
        ("cluster.head_node.shared_storage", "HeadNodeSettings", "shared_storage"),
        ("cluster.slurm.scaling_strategy", "SlurmSpec", "scaling_strategy"),
        ("storage.file_system.deployment_type", "LustreSpec", "deployment_type"),
    ):
        [line] = outcome(write(with_values({place: "alinux2"})))
        offered = schema["$defs"][section]["properties"][name]["enum"]
        assert re.findall(r"'([^']+)'", line.partition("should be ")[2].partition(" (")[0]) == offered


def test_every_pattern_has_words() -> None:
    schemas = json.dumps([Settings.model_json_schema(), Pipeline.model_json_schema()])
    patterns = {json.loads(each) for each in re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', schemas)}
    patterns |= {TypeAdapter(each).json_schema()["pattern"] for each in OF_THE_LIBRARY}
    assert patterns == set(WORDS)


def models(annotation: Any) -> Iterator[type[Spec]]:
    """Yield the models of a section, and those in them."""
    if isinstance(annotation, type) and issubclass(annotation, Spec):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models(field.annotation)
    for argument in get_args(annotation):
        yield from models(argument)


def test_words_about_a_pattern_have_examples_that_match_it() -> None:
    for pattern, words in WORDS.items():
        example = re.search(r"such as (\S+?)(?:,|$)", words)
        assert example is None or re.fullmatch(pattern, example[1]), words


def test_long_values_are_cut(write: Write) -> None:
    lines = outcome(write(with_values(dict.fromkeys(("region", "network.cidr"), "x" * 400_000))))
    assert [len(line) < 500 for line in lines] == [True, True]
    assert sum(f"got '{'x' * 199}...; " in line for line in lines) == 2


def test_addresses_for_alarms() -> None:
    for address in ("mailto:a@b.com", "Me <a@b.com>", "a,b@c.de", "mé@x.de", "a@b", "a@b..de", "a@b.de.", "a..b@c.de"):
        with pytest.raises(ValueError, match="emails"):
            ClusterMonitoringSpec(emails=[address])
    addresses = ["a@b.de", "First.Last+trn1@mail.example.co.uk", "on_call-2@x-1.xn--p1ai", f"a@{'b' * 249}.de"]
    assert ClusterMonitoringSpec(emails=addresses).emails == addresses
