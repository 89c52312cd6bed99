"""The availability zone, and whether it offers what the deployment puts there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from scripts.deployment import Deployment
from scripts.preflight.check import CheckStatus, Finding, check


@check(
    "zone",
    "Availability zone",
    prevents="Subnets could not be made, or instances could not be launched in them.",
    calls=("ec2:DescribeAvailabilityZones",),
)
def zone(deployment: Deployment) -> Iterator[Finding]:
    """Check that the zone exists for this account, and that EC2 reports no trouble in it."""
    zone_id = deployment.settings.zone_id
    command = deployment.command("ec2", "describe-availability-zones", "--all-availability-zones")
    zones = {each["ZoneId"]: each for each in _zones(deployment)}
    others = ", ".join(sorted(key for key, each in zones.items() if _is_usable(each) and key != zone_id))
    file = f"config/{deployment.environment}.yaml"
    hint = f"set `zone_id` in {file} to one that the check instance-types names; there is {others}"
    if zone_id not in zones:
        yield Finding(
            CheckStatus.FAIL, f"this account has no zone {zone_id} in {deployment.settings.region}", hint, command
        )
        return
    described = zones[zone_id]
    messages = "".join(f"; EC2 says: {each['Message']}" for each in described["Messages"])
    state = f"is {described['State']}, {described['OptInStatus']}{messages}"
    sentence = f"{zone_id} ({described['ZoneName']} in this account) {state}"
    if not _is_usable(described):
        yield Finding(CheckStatus.FAIL, sentence, hint, command)
    elif messages:
        yield Finding(CheckStatus.WARN, sentence, f"wait until EC2 reports no trouble, or {hint}", command)
    else:
        yield Finding(CheckStatus.PASS, sentence, command=command)


@check(
    "instance-types",
    "Instance types offered in the zone",
    prevents="Every launch would fail as not supported in the zone, after network and file system are being billed.",
    calls=("ec2:DescribeInstanceTypeOfferings",),
)
def instance_types(deployment: Deployment) -> Iterator[Finding]:
    """Ask which zones offer the types of all nodes. Zones by id: a name stands for another zone in another account.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypeOfferings.html
    """
    where, zone_id = deployment.settings.region, deployment.settings.zone_id
    types = _types_in_use(deployment)
    location = "availability-zone-id"
    offerings = deployment.account.list(
        "ec2",
        "describe_instance_type_offerings",
        LocationType=location,
        Filters=[{"Name": "instance-type", "Values": types}],
    )
    zones: dict[str, set[str]] = {each: set() for each in types}
    for each in offerings:
        zones[each["InstanceType"]].add(each["Location"])
    filters = f"Name=instance-type,Values={','.join(types)}"
    command = deployment.command(
        "ec2", "describe-instance-type-offerings", "--location-type", location, "--filters", filters
    )
    missing = [each for each in types if zone_id not in zones[each]]
    if not missing:
        yield Finding(CheckStatus.PASS, f"{zone_id} offers {', '.join(types)}", command=command)
        return
    hint = f"in config/{deployment.environment}.yaml set `zone_id` or the instance types; in {where}, {_offers(zones)}"
    yield Finding(CheckStatus.FAIL, f"{zone_id} does not offer {', '.join(missing)}", hint, command)


@check(
    "endpoint-services",
    "Services of the interface endpoints",
    prevents="The network stack would fail at the endpoint, and roll back.",
    calls=("ec2:DescribeAvailabilityZones", "ec2:DescribeVpcEndpointServices"),
)
def endpoint_services(deployment: Deployment) -> Iterator[Finding]:
    """Check that the services have interface endpoints in the zone. Settings with an existing VPC name none."""
    zone_id, names = deployment.settings.zone_id, deployment.settings.network.endpoint_services
    services = {name: f"com.amazonaws.{deployment.settings.region}.{name}" for name in names}
    if not services:
        return
    offered = _zones_of_services(deployment, list(services.values()))
    for short_name, service in services.items():
        command = deployment.command("ec2", "describe-vpc-endpoint-services", "--service-names", service)
        where = f"`network.interface_endpoints` in config/{deployment.environment}.yaml"
        if service not in offered:
            hint = f"take {short_name} off {where}, or correct it"
            command = deployment.command("ec2", "describe-vpc-endpoint-services", "--query", "ServiceNames")
            sentence = f"there is no service {service} with interface endpoints"
            yield Finding(CheckStatus.FAIL, sentence, hint, command, subject=short_name)
        elif zone_id not in offered[service]:
            sentence = f"{service} has no endpoints in {zone_id}, but in {', '.join(sorted(offered[service]))}"
            hint = f"take {short_name} off {where}, or choose one of these as `zone_id`"
            yield Finding(CheckStatus.FAIL, sentence, hint, command, subject=short_name)
        else:
            sentence = f"{service} has endpoints in {zone_id}"
            yield Finding(CheckStatus.PASS, sentence, command=command, subject=short_name)


def _zones(deployment: Deployment) -> list[dict[str, Any]]:
    answer = deployment.account.ask("ec2", "describe_availability_zones", AllAvailabilityZones=True)
    return [each for each in answer["AvailabilityZones"] if each["ZoneType"] == "availability-zone"]


def _is_usable(zone: Mapping[str, Any]) -> bool:
    return bool(zone["State"] == "available" and zone["OptInStatus"] != "not-opted-in")


def _types_in_use(deployment: Deployment) -> list[str]:
    cluster = deployment.settings.cluster
    nodes = [resource.instance_type for queue in cluster.queues for resource in queue.compute_resources]
    return sorted({cluster.head_node.instance_type, *(each.instance_type for each in cluster.login_nodes), *nodes})


def _offers(zones: Mapping[str, set[str]]) -> str:
    """Return which zones offer all of the types, or else which zones offer each."""
    if common := set.intersection(*zones.values()):
        return f"{', '.join(sorted(common))} offer all of {', '.join(zones)}"
    offers = (f"{kind} is offered in {', '.join(sorted(each)) or 'no zone'}" for kind, each in zones.items())
    return f"no zone offers them all: {'; '.join(offers)}"


def _zones_of_services(deployment: Deployment, services: list[str]) -> dict[str, set[str]]:
    """Return the zone ids of the services that have interface endpoints. EC2 tells their zones by name."""
    ids = {each["ZoneName"]: each["ZoneId"] for each in _zones(deployment)}
    filters = [{"Name": "service-name", "Values": services}, {"Name": "service-type", "Values": ["Interface"]}]
    zones: dict[str, set[str]] = defaultdict(set)
    for each in deployment.account.ask("ec2", "describe_vpc_endpoint_services", Filters=filters)["ServiceDetails"]:
        zones[each["ServiceName"]] |= {ids[name] for name in each["AvailabilityZones"] if name in ids}
    return zones


CHECKS = (zone, instance_types, endpoint_services)
