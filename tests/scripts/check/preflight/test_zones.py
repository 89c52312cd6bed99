"""Zones that offer everything, and zones that do not."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.account.deployment import Account
from scripts.check.preflight import zones
from scripts.core.findings import FAIL, PASS, SKIP, WARN
from tests.scripts.check.preflight.accounts import Case, case, new_network


def in_zone(zone_id: str) -> Any:
    return lambda raw: raw.update(zone_id=zone_id)


def with_endpoints(*names: str) -> Any:
    return lambda raw: raw["network"].update(interface_endpoints=list(names))


def zone_that_is(**facts: object) -> Any:
    def alter(answer: Any) -> None:
        [zone] = [each for each in answer["AvailabilityZones"] if each["ZoneId"] == "usw2-az4"]
        zone.update(facts)

    return alter


def everywhere_but_here(answer: Any) -> None:
    """Have no service in us-west-2d, which is usw2-az4 there."""
    for service in answer["ServiceDetails"]:
        service["AvailabilityZones"] = ["us-west-2a", "us-west-2b"]


CASES = [
    case(zones.zone, PASS, "usw2-az4 (us-west-2d in this account) is available, opt-in-not-required"),
    case(zones.zone, FAIL, "no zone usw2-az9 in us-west-2", edit=in_zone("usw2-az9")),
    case(zones.zone, FAIL, "not-opted-in", describe_availability_zones=zone_that_is(OptInStatus="not-opted-in")),
    case(
        zones.zone,
        WARN,
        "EC2 says: power is failing",
        describe_availability_zones=zone_that_is(Messages=[{"Message": "power is failing"}]),
    ),
    case(zones.instance_types, PASS, "usw2-az4 offers", "trn1.32xlarge"),
    case(
        zones.instance_types, FAIL, "usw2-az3 does not offer trn1.32xlarge", edit=in_zone("usw2-az3"), base=new_network
    ),
    case(zones.endpoint_services, SKIP),
    case(
        zones.endpoint_services,
        PASS,
        "has endpoints in usw2-az4",
        edit=with_endpoints("parallelcluster", "ssm", "s3"),
        base=new_network,
    ),
    case(
        zones.endpoint_services,
        FAIL,
        "com.amazonaws.us-west-2.dynamodb has no endpoints in usw2-az4, but in no zone",
        edit=with_endpoints("ssm", "dynamodb"),
        base=new_network,
    ),
    case(
        zones.endpoint_services,
        FAIL,
        "com.amazonaws.us-west-2.ssm has no endpoints in usw2-az4, but in usw2-az1, usw2-az2",
        edit=with_endpoints("ssm"),
        base=new_network,
        describe_vpc_endpoint_services=everywhere_but_here,
    ),
]


@pytest.mark.parametrize("each", CASES)
def test_zones(each: Case, account: Account) -> None:
    each.verify(account)
