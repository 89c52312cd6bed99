"""Whether a VPC that exists already can take the cluster: its DNS, its subnets and their addresses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scripts.deployment import Deployment
from scripts.estimate.sizes import fleet, others
from scripts.estimate.sizes import subnets as planned_subnets
from scripts.preflight.check import Finding, Status, check
from scripts.preflight.existing_vpc import ExistingSubnet, existing_subnets, unseen
from ultracluster.domain.instance_types import network_cards

_DNS_ATTRIBUTES = {"enableDnsSupport": "--enable-dns-support", "enableDnsHostnames": "--enable-dns-hostnames"}
"""Attributes of a VPC that ParallelCluster needs, and the AWS CLI's options that switch them on.

https://docs.aws.amazon.com/parallelcluster/latest/ug/network-configuration-v3.html
"""


@check(
    "vpc",
    "Existing VPC",
    prevents="Nodes could not resolve the names of AWS's services, of each other and of the file system.",
    calls=("ec2:DescribeVpcs", "ec2:DescribeVpcAttribute"),
)
def vpc(deployment: Deployment) -> Iterator[Finding]:
    """Compare the VPC with the settings, and look at its DNS."""
    network = deployment.settings.network
    if network.existing is None:
        return
    vpc_id = network.existing.vpc_id
    command = deployment.command("ec2", "describe-vpcs", "--vpc-ids", vpc_id)
    listed = deployment.account.list("ec2", "describe_vpcs", Filters=[{"Name": "vpc-id", "Values": [vpc_id]}])
    if not listed:
        sentence = f"{deployment.settings.region} has no VPC {vpc_id}, or it is another account's"
        yield Finding(Status.FAIL, sentence, "change `network.existing.vpc_id`", command)
        return
    [found] = listed
    blocks = [each["CidrBlock"] for each in found["CidrBlockAssociationSet"]]
    faults = list(_dns_faults(deployment, vpc_id))
    if network.cidr not in blocks:
        sentence = f"{vpc_id} has {', '.join(blocks)}; in the settings: {network.cidr}"
        faults.append(Finding(Status.FAIL, sentence, "change `network.cidr`", command, "cidr"))
    yield from faults or [Finding(Status.PASS, f"{vpc_id} has {network.cidr}, DNS support and hostnames", "", command)]


def _dns_faults(deployment: Deployment, vpc_id: str) -> Iterator[Finding]:
    for attribute, option in _DNS_ATTRIBUTES.items():
        answer = deployment.account.ask("ec2", "describe_vpc_attribute", VpcId=vpc_id, Attribute=attribute)
        if not answer[attribute[0].upper() + attribute[1:]]["Value"]:
            hint = f"`{deployment.command('ec2', 'modify-vpc-attribute', '--vpc-id', vpc_id, option)}`"
            words = ("ec2", "describe-vpc-attribute", "--vpc-id", vpc_id, "--attribute", attribute)
            yield Finding(Status.FAIL, f"{attribute} of {vpc_id} is off", hint, deployment.command(*words), attribute)


@check(
    "subnets",
    "Existing subnets",
    prevents="EC2 would refuse nodes, or they would come up where they reach neither each other nor the internet.",
    calls=("ec2:DescribeSubnets",),
)
def subnets(deployment: Deployment) -> Iterator[Finding]:
    """Compare both subnets with the settings."""
    for subnet in existing_subnets(deployment):
        command = deployment.command("ec2", "describe-subnets", "--subnet-ids", subnet.id)
        if subnet.found is None:
            sentence = f"{deployment.settings.region} has no subnet {subnet.id}, or it is another account's"
            hint = f"change `network.existing.{subnet.label}_subnet_id`"
            yield Finding(Status.FAIL, sentence, hint, command, subnet.label)
            continue
        faults = [
            Finding(status, f"{subnet.id} {sentence}", hint, command, subnet.label)
            for status, sentence, hint in _faults(deployment, subnet, subnet.found)
        ]
        where = f"{subnet.id} is {subnet.cidr} in {subnet.found['VpcId']} and {deployment.settings.zone_id}"
        yield from faults or [Finding(Status.PASS, where, "", command, subnet.label)]


def _faults(deployment: Deployment, subnet: ExistingSubnet, found: dict[str, Any]) -> Iterator[tuple[Status, str, str]]:
    network, zone_id = deployment.settings.network, deployment.settings.zone_id
    other = f"change `network.existing.{subnet.label}_subnet_id`"
    wanted_vpc = network.existing.vpc_id if network.existing else ""
    if found["VpcId"] != wanted_vpc:
        yield Status.FAIL, f"is in {found['VpcId']}; in the settings: {wanted_vpc}", other
    if found["CidrBlock"] != subnet.cidr:
        hint = f"change `network.{subnet.label}_subnet_cidr`"
        yield Status.FAIL, f"is {found['CidrBlock']}; in the settings: {subnet.cidr}", hint
    if found["AvailabilityZoneId"] != zone_id:
        yield Status.FAIL, f"is in {found['AvailabilityZoneId']}; in the settings: {zone_id}", f"{other}, or `zone_id`"
    if subnet.label == "private" and found["MapPublicIpOnLaunch"]:
        yield _with_public_addresses(deployment, subnet)
    if subnet.label == "public" and subnet.used and not found["MapPublicIpOnLaunch"]:
        words = ("ec2", "modify-subnet-attribute", "--subnet-id", subnet.id, "--map-public-ip-on-launch")
        sentence = "assigns no public addresses, without which nodes there do not reach the internet"
        yield Status.FAIL, sentence, f"`{deployment.command(*words)}`, or another subnet"


def _with_public_addresses(deployment: Deployment, subnet: ExistingSubnet) -> tuple[Status, str, str]:
    """Tell what speaks against public addresses for nodes.

    EC2 gives none to an instance of several interfaces, and ParallelCluster refuses it in such a subnet
    (aws-parallelcluster 3.16.1, validators/cluster_validators.py, MultiNetworkInterfacesInstancesValidator).
    """
    words = ("ec2", "modify-subnet-attribute", "--subnet-id", subnet.id, "--no-map-public-ip-on-launch")
    hint = f"`{deployment.command(*words)}`, or another subnet"
    types = {each.instance_type for each in fleet(deployment.settings.cluster_spec).kinds}
    several = sorted(each for each in types if network_cards(each) > 1)
    if several:
        return Status.FAIL, f"assigns public addresses, with which EC2 launches no {', '.join(several)}", hint
    return Status.WARN, "assigns public addresses, which nodes do not need", hint


@check(
    "free-addresses",
    "Free addresses in the existing subnets",
    prevents="Nodes beyond the last free address would never start, nor jobs that need them.",
    calls=("ec2:DescribeSubnets", "ec2:DescribeInstances", "cloudformation:DescribeStacks", "fsx:DescribeFileSystems"),
)
def free_addresses(deployment: Deployment) -> Iterator[Finding]:
    """Compare what is free with what the deployment takes at max_count, less what it holds already."""
    settings = deployment.settings
    planned = planned_subnets(settings, fleet(settings.cluster_spec))
    for subnet, plan in zip(existing_subnets(deployment), planned, strict=False):
        if not subnet.used:
            continue
        if subnet.found is None:
            yield unseen(subnet)
            continue
        free, held = subnet.found["AvailableIpAddressCount"], _held(deployment, subnet)
        more = max(0, plan.at_max - held)
        sentence = f"{free:,} addresses of {subnet.id} are free; {more:,} more are needed at max_count, {held:,} held"
        words = ("--subnet-ids", subnet.id, "--query", "Subnets[].AvailableIpAddressCount")
        command = deployment.command("ec2", "describe-subnets", *words)
        if free >= more:
            yield Finding(Status.PASS, sentence, "", command, subnet.label)
            continue
        hint = f"{more - free:,} too few: free some, name a larger subnet, or want fewer nodes"
        if subnet.label == "private" and settings.cluster.efa_interface_type == "efa":
            hint += "; with `cluster.efa_interface_type: efa-only` a node takes one address"
        yield Finding(Status.FAIL, sentence, hint, command, subnet.label)


def _held(deployment: Deployment, subnet: ExistingSubnet) -> int:
    """Return how many addresses of a subnet the deployment has already."""
    held = sum(
        len(interface["PrivateIpAddresses"])
        for instance in deployment.own_instances()
        for interface in instance["NetworkInterfaces"]
        if interface["SubnetId"] == subnet.id
    )
    if deployment.stack(deployment.settings.cluster_spec.name) is not None:
        held += others(deployment.settings, public=subnet.label == "public").load_balancers
    file_system_id = deployment.outputs(deployment.stack_name("storage")).get("FileSystemId")
    if file_system_id:
        [found] = deployment.account.list("fsx", "describe_file_systems", FileSystemIds=[file_system_id])
        held += len(found["NetworkInterfaceIds"]) if subnet.id in found["SubnetIds"] else 0
    return held


CHECKS = (vpc, subnets, free_addresses)
