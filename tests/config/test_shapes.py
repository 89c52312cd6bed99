"""What is reported of values of a wrong type, out of range, or not among the choices."""

from __future__ import annotations

from typing import Any

import pytest

from config.sections import MonitoringSettings
from tests.config.settings_files import QUEUE, Write, outcome, with_values

IN_QUOTES = "should be a valid string, put it in quotes"
A_VPC = {"vpc_id": "vpc-01234567", "public_subnet_id": "subnet-01234567", "private_subnet_id": "subnet-76543210"}

WRONG: list[tuple[str, Any, str]] = [
    ("name", "Trn1", "should match pattern '^[a-z][a-z0-9-]{1,39}$' (Name of the"),
    ("name", 16, IN_QUOTES),
    ("account", 123456789012, IN_QUOTES),
    ("tags[1]", "trn1", IN_QUOTES),
    ("tags.a", "x" * 257, "should have at most 256 characters"),
    ("tags", ["project"], "should be a mapping"),
    ("termination_protection[0]", "all", "should be 'network', 'storage', 'cluster' or 'monitoring'"),
    ("termination_protection", "network", "should be a list"),
    ("network.nat_addresses", 0, "greater than or equal to 1"),
    *[("network.nat_addresses", each, "should be a valid integer (Public") for each in ("1", 1.0, True)],
    ("network.existing", {**A_VPC, "vpc_id": "vpc-1"}, "should match pattern '^vpc-[0-9a-f]{8,17}$' (Id of the VPC"),
    ("storage.retain", "keep", "should be a valid boolean"),
    ("cluster.parallelcluster_version", "3.16.3", "should be '3.16.1' (Version of ParallelCluster; another one means"),
    ("cluster.login_nodes", [{"name": "login", "grace_minutes": 2}], "greater than or equal to 3"),
    (f"{QUEUE}.placement_group", "Fleet", "should match pattern '^[a-z][a-z0-9-]{0,24}$' (Label of a cluster"),
    (f"{QUEUE}.custom_slurm_settings", {"MaxNodes": 4}, IN_QUOTES),
    ("cluster.slurm", [], "should be a mapping"),
]
"""One of each kind of message; patterns, ranges and choices of all settings are in config/schema.json."""


@pytest.mark.parametrize(("place", "value", "expected"), WRONG, ids=range(len(WRONG)))
def test_wrong_shapes(write: Write, place: str, value: Any, expected: str) -> None:
    key = "tags" if place == "tags[1]" else place
    [line] = outcome(write(with_values({key: {1: value} if place == "tags[1]" else value})))
    found, _, text = line.partition("settings.yaml:")[2].partition(": ")[2].partition(": got ")
    assert found == place or (isinstance(value, dict | list) and found.startswith(place))
    assert expected in text


@pytest.mark.parametrize(
    "address",
    [
        *("mailto:a@b.com", "<a@b.com>", "Me <a@b.com>", "a;b@c.de", "a,b@c.de", "mé@x.de", "a@é.de"),
        *("a", "@b.de", "a@b", "a@b.c", "a@b..de", "a@-b.de", "a@b-.de", "a@b.de.", ".a@b.de", "a..b@c.de", "a.@b.de"),
        *("a@b@c.de", "a@b.de ", "a@b.de\n", f"a@{'b' * 250}.de"),
    ],
)
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(ValueError, match="emails"):
        MonitoringSettings(emails=[address])


def test_addresses_of_companies_and_lists() -> None:
    addresses = ["a@b.de", "First.Last+trn1@mail.example.co.uk", "on_call-2@x-1.xn--p1ai", f"a@{'b' * 249}.de"]
    assert MonitoringSettings(emails=addresses).emails == addresses
