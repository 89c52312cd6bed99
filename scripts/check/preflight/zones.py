"""The availability zone, and whether it offers what the deployment puts there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from scripts.account.deployment import Deployment, filters
from scripts.check.preflight.check import check
from scripts.core.findings import FAIL, PASS, WARN, Finding


@check("zone", "Availability zone", calls=("ec2:DescribeAvailabilityZones",))
def zone(deployment: Deployment) -> Finding:
    """Subnets could not be made, or instances could not be launched in them."""
    zone_id, region = deployment.settings.zone_id, deployment.settings.region
    command = deployment.command("ec2", "describe-availability-zones", "--all-availability-zones")
    zones = {each["ZoneId"]: each for each in _zones(deployment)}
    others = ", ".join(sorted(key for key, each in zones.items() if _is_usable(each) and key != zone_id))
    hint = f"set `zone_id` in {deployment.file} to one that instance-types names; there is {others}"
    if zone_id not in zones:
        return Finding(FAIL, f"this account has no zone {zone_id} in {region}", hint, command)
    described = zones[zone_id]
    messages = "".join(f"; EC2 says: {each['Message']}" for each in described["Messages"])
    state = f"is {described['State']}, {described['OptInStatus']}{messages}"
    sentence = f"{zone_id} ({described['ZoneName']} in this account) {state}"
    if not _is_usable(described):
        return Finding(FAIL, sentence, hint, command)
    if messages:
        return Finding(WARN, sentence, f"wait until EC2 reports no trouble; if that lasts for hours, {hint}", command)
    return Finding(PASS, sentence, command=command)


@check("instance-types", "Instance types offered in the zone", calls=("ec2:DescribeInstanceTypeOfferings",))
def instance_types(deployment: Deployment) -> Finding:
    """Every launch would fail as not supported in the zone, after network and file system are being billed.

    Ask which zones offer the types of all nodes. Zones by id: a name stands for another zone in another account.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html
    """
    zone_id, types, location = deployment.settings.zone_id, _types_in_use(deployment), "availability-zone-id"
    wanted, operation = filters({"instance-type": types}), "describe_instance_type_offerings"
    offerings = deployment.account.list("ec2", operation, LocationType=location, Filters=wanted)
    zones: dict[str, set[str]] = {each: set() for each in types}
    for each in offerings:
        zones[each["InstanceType"]].add(each["Location"])
    words = ("--location-type", location, "--filters", f"Name=instance-type,Values={','.join(types)}")
    command = deployment.command("ec2", "describe-instance-type-offerings", *words)
    missing = [each for each in types if zone_id not in zones[each]]
    if not missing:
        return Finding(PASS, f"{zone_id} offers {', '.join(types)}", command=command)
    offers = "; ".join(f"{name} is offered in {', '.join(sorted(each)) or 'no zone'}" for name, each in zones.items())
    hint = f"in {deployment.file} set `zone_id` or the instance types; {offers}"
    return Finding(FAIL, f"{zone_id} does not offer {', '.join(missing)}", hint, command)


@check(
    "endpoint-services",
    "Services of the interface endpoints",
    calls=("ec2:DescribeAvailabilityZones", "ec2:DescribeVpcEndpointServices"),
)
def endpoint_services(deployment: Deployment) -> Iterator[Finding]:
    """The network stack would fail at the endpoint, and roll back.

    Check that the services have interface endpoints in the zone. Settings with an existing VPC name none.
    """
    zone_id, names = deployment.settings.zone_id, deployment.settings.endpoint_services
    services = {name: f"com.amazonaws.{deployment.settings.region}.{name}" for name in names}
    if not services:
        return
    zones = _zones_of_services(deployment, list(services.values()))
    for name, service in services.items():
        command = deployment.command("ec2", "describe-vpc-endpoint-services", "--service-names", service)
        if zone_id in zones[service]:
            finding = Finding(PASS, f"{service} has endpoints in {zone_id}")
        else:
            elsewhere = ", ".join(sorted(zones[service])) or "no zone: there is no such service"
            hint = f"take {name} off `network.interface_endpoints` in {deployment.file}, or correct it"
            finding = Finding(FAIL, f"{service} has no endpoints in {zone_id}, but in {elsewhere}", hint)
        yield finding.of(name, command)


def _zones(deployment: Deployment) -> list[dict[str, Any]]:
    answer = deployment.account.ask("ec2", "describe_availability_zones", AllAvailabilityZones=True)
    return [each for each in answer["AvailabilityZones"] if each["ZoneType"] == "availability-zone"]


def _is_usable(zone: Mapping[str, Any]) -> bool:
    return bool(zone["State"] == "available" and zone["OptInStatus"] != "not-opted-in")


def _types_in_use(deployment: Deployment) -> list[str]:
    cluster = deployment.settings.cluster
    nodes = [resource.instance_type for queue in cluster.queues for resource in queue.compute_resources]
    return sorted({cluster.head_node.instance_type, *(each.instance_type for each in cluster.login_nodes), *nodes})


def _zones_of_services(deployment: Deployment, services: list[str]) -> dict[str, set[str]]:
    """Return the zone ids of the services that have interface endpoints. EC2 tells their zones by name."""
    ids = {each["ZoneName"]: each["ZoneId"] for each in _zones(deployment)}
    wanted = filters({"service-name": services, "service-type": ["Interface"]})
    zones: dict[str, set[str]] = defaultdict(set)
    for each in deployment.account.ask("ec2", "describe_vpc_endpoint_services", Filters=wanted)["ServiceDetails"]:
        zones[each["ServiceName"]] |= {ids[name] for name in each["AvailabilityZones"] if name in ids}
    return zones


CHECKS = (zone, instance_types, endpoint_services)
