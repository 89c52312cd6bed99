"""Zones that offer everything, and zones that do not."""

from __future__ import annotations

from typing import Any

from scripts.preflight import zones
from scripts.preflight.check import Status
from tests.scripts.preflight.answers import Patch, answering
from tests.scripts.preflight.cases import Case


def in_zone(zone_id: str) -> Any:
    return lambda raw: raw.update(zone_id=zone_id)


def with_endpoints(*names: str) -> Any:
    return lambda raw: raw["network"].update(interface_endpoints=list(names))


def in_northern_california(raw: dict[str, Any]) -> None:
    raw.update(region="us-west-1", zone_id="usw1-az1")


def with_login_nodes_of_no_type(raw: dict[str, Any]) -> None:
    raw["cluster"]["login_nodes"] = [{"name": "login", "instance_type": "c6i.7xlarge"}]


def zone_that_is(**facts: object) -> Patch:
    """Have EC2 tell something else of usw2-az4."""

    def alter(answer: Any) -> None:
        [zone] = [each for each in answer["AvailabilityZones"] if each["ZoneId"] == "usw2-az4"]
        zone.update(facts)

    return answering("describe_availability_zones", alter)


def everywhere_but_here(answer: Any) -> None:
    """Have no service in us-west-2d, which is usw2-az4 there."""
    for service in answer["ServiceDetails"]:
        service["AvailabilityZones"] = ["us-west-2a", "us-west-2b"]


CASES = (
    Case(zones.zone, Status.PASS, ("usw2-az4 (us-west-2d in this account) is available, opt-in-not-required",)),
    Case(
        zones.zone,
        Status.FAIL,
        ("no zone usw2-az9 in us-west-2", "there is usw2-az1, usw2-az2, usw2-az3, usw2-az4"),
        edit=in_zone("usw2-az9"),
        name="missing",
    ),
    Case(
        zones.zone,
        Status.FAIL,
        ("is constrained", "there is usw2-az1, usw2-az2, usw2-az3"),
        patch=zone_that_is(State="constrained"),
        name="constrained",
    ),
    Case(
        zones.zone,
        Status.FAIL,
        ("not-opted-in", "`zone_id`"),
        patch=zone_that_is(OptInStatus="not-opted-in"),
        name="not-opted-in",
    ),
    Case(
        zones.zone,
        Status.WARN,
        ("is available", "EC2 says: power is failing", "wait"),
        patch=zone_that_is(Messages=[{"Message": "power is failing"}]),
        name="in-trouble",
    ),
    Case(zones.instance_types, Status.PASS, ("usw2-az4 offers c6i.4xlarge, trn1.32xlarge",)),
    Case(zones.instance_types, Status.PASS, ("m6i.16xlarge",), environment="ultracluster", name="ultracluster"),
    Case(
        zones.instance_types,
        Status.FAIL,
        (
            "usw2-az3 does not offer trn1.32xlarge",
            "`zone_id`",
            "usw2-az1, usw2-az4 offer all of c6i.4xlarge, trn1.32xlarge",
        ),
        edit=in_zone("usw2-az3"),
        name="other-zone",
    ),
    Case(
        zones.instance_types,
        Status.FAIL,
        (
            "usw1-az1 does not offer trn1.32xlarge",
            "in us-west-1, no zone offers them all",
            "c6i.4xlarge is offered in usw1-az1, usw1-az3",
            "trn1.32xlarge is offered in no zone",
        ),
        edit=in_northern_california,
        name="other-region",
    ),
    Case(
        zones.instance_types,
        Status.FAIL,
        ("usw2-az4 does not offer c6i.7xlarge",),
        edit=with_login_nodes_of_no_type,
        name="no-type",
    ),
    Case(zones.endpoint_services, Status.SKIP, name="none"),
    Case(
        zones.endpoint_services,
        Status.PASS,
        ("has endpoints in usw2-az4",),
        edit=with_endpoints("parallelcluster", "ssm", "s3"),
    ),
    Case(
        zones.endpoint_services,
        Status.FAIL,
        ("no service com.amazonaws.us-west-2.smm", "take smm off `network.interface_endpoints`"),
        edit=with_endpoints("parallelcluster", "smm"),
        name="misspelt",
    ),
    Case(
        zones.endpoint_services,
        Status.FAIL,
        ("no service com.amazonaws.us-west-2.dynamodb with interface endpoints",),
        edit=with_endpoints("dynamodb"),  # which is a gateway only, as moto has it
        name="gateway-only",
    ),
    Case(
        zones.endpoint_services,
        Status.FAIL,
        (
            "com.amazonaws.us-west-2.ssm has no endpoints in usw2-az4, but in usw2-az1, usw2-az2",
            "take ssm off `network.interface_endpoints` in config/trn1-16.yaml",
        ),
        edit=with_endpoints("ssm"),
        patch=answering("describe_vpc_endpoint_services", everywhere_but_here),
        name="other-zones",
    ),
)
