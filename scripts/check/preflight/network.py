"""An existing VPC that can take the cluster: its DNS, its subnets and their addresses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from scripts.account import file_systems
from scripts.account.deployment import Deployment, filters
from scripts.check.estimate.sizes import fleet, others
from scripts.check.estimate.sizes import subnets as planned_subnets
from scripts.check.preflight.check import check
from scripts.core.figures import counted
from scripts.core.findings import FAIL, PASS, SKIP, WARN, Finding
from ultracluster.domain.cluster_rules import types_with_several_interfaces

_DNS_ATTRIBUTES = {"enableDnsSupport": "--enable-dns-support", "enableDnsHostnames": "--enable-dns-hostnames"}
"""Attributes of a VPC that ParallelCluster needs, and the AWS CLI's options that switch them on.

https://docs.aws.amazon.com/parallelcluster/latest/ug/network-configuration-v3.html
"""


@dataclass(frozen=True)
class ExistingSubnet:
    """A subnet that the settings name as ``network.existing.LABEL_subnet_id``, or as a further one of a queue.

    Attributes:
        label: public or private; of a further one, its id.
        id: Its id.
        cidr: Its block in the settings; of a further one, none.
        used: Whether the deployment puts anything into it.
        described: The subnet as EC2 describes it; None: it does not exist.
    """

    label: str
    id: str
    cidr: str
    used: bool
    described: dict[str, Any] | None

    @property
    def public(self) -> bool:
        """Whether it is the public one; further ones are private."""
        return self.label == "public"


Judge = Callable[[Deployment, ExistingSubnet, dict[str, Any]], Finding]
"""Returns the finding of a check on a subnet, given as EC2 describes it."""


def _existing_subnets(deployment: Deployment) -> tuple[ExistingSubnet, ...]:
    """Return the public and the private subnet; none: the deployment makes a VPC of its own."""
    network = deployment.settings.network
    if network.existing is None:
        return ()
    public_id, private_id = network.existing.public_subnet_id, network.existing.private_subnet_id
    subnets = _described(deployment, [public_id, private_id])
    in_public = others(deployment.settings, public=True).interfaces > 0
    return (
        ExistingSubnet("public", public_id, network.public_subnet_cidr, in_public, subnets.get(public_id)),
        ExistingSubnet("private", private_id, network.private_subnet_cidr, True, subnets.get(private_id)),
    )


def _further_subnets(deployment: Deployment) -> tuple[ExistingSubnet, ...]:
    """Return the further subnets of all queues, each once."""
    ids = list(dict.fromkeys(each for queue in deployment.settings.cluster.queues for each in queue.further_subnet_ids))
    subnets = _described(deployment, ids) if ids else {}
    return tuple(ExistingSubnet(each, each, "", True, subnets.get(each)) for each in ids)


def _described(deployment: Deployment, ids: list[str]) -> dict[str, dict[str, Any]]:
    """Return subnets that exist as EC2 describes them, by id."""
    listed = deployment.account.list("ec2", "describe_subnets", Filters=filters({"subnet-id": ids}))
    return {each["SubnetId"]: each for each in listed}


def judge_subnets(deployment: Deployment, judge: Judge, only: str = "", further: bool = False) -> Iterator[Finding]:
    """Yield a finding of each subnet that the deployment uses, or of the only one with a label.

    Args:
        deployment: The deployment.
        judge: Judges a subnet that exists.
        only: public or private; empty: both.
        further: Whether to judge the further subnets of queues, too.
    """
    for subnet in (*_existing_subnets(deployment), *(_further_subnets(deployment) if further else ())):
        if not subnet.used or only not in ("", subnet.label):
            continue
        if subnet.described:
            yield judge(deployment, subnet, subnet.described)
        else:
            yield Finding(SKIP, f"there is no {subnet.id} to check: see subnets", subject=subnet.label)


def vpc_finding(deployment: Deployment, what: str, vpc_id: str, path: str, command: str) -> Finding:
    """Judge whether something that the settings name is in the deployment's VPC.

    Args:
        deployment: The deployment.
        what: Its id.
        vpc_id: The VPC that it is in.
        path: The setting that names it.
        command: Shows it.
    """
    existing = deployment.settings.network.existing
    own = deployment.outputs(deployment.stack_name("network")).get("VpcId") if existing is None else existing.vpc_id
    if vpc_id == own:
        return Finding(PASS, f"{what} is in {vpc_id}, the deployment's VPC", command=command)
    allowed = own or "the VPC that the deployment makes, which does not exist yet"
    hint = f"change `{path}`" if own else f"change `{path}`, or name {vpc_id} in `network.existing`"
    return Finding(FAIL, f"{what} is in {vpc_id}; allowed: {allowed}", hint, command)


@check("vpc", "Existing VPC", calls=("ec2:DescribeVpcs", "ec2:DescribeVpcAttribute"))
def vpc(deployment: Deployment) -> Iterator[Finding]:
    """Nodes could not resolve the names of AWS's services, of each other and of the file system."""
    network = deployment.settings.network
    if network.existing is None:
        return
    vpc_id = network.existing.vpc_id
    command = deployment.command("ec2", "describe-vpcs", "--vpc-ids", vpc_id)
    listed = deployment.account.list("ec2", "describe_vpcs", Filters=filters({"vpc-id": [vpc_id]}))
    if not listed:
        sentence = f"{deployment.settings.region} has no VPC {vpc_id}, or it is another account's"
        yield Finding(FAIL, sentence, "change `network.existing.vpc_id`", command)
        return
    problems = []
    for attribute, option in _DNS_ATTRIBUTES.items():
        answer = deployment.account.ask("ec2", "describe_vpc_attribute", VpcId=vpc_id, Attribute=attribute)
        if not answer[attribute[0].upper() + attribute[1:]]["Value"]:
            hint = f"`{deployment.command('ec2', 'modify-vpc-attribute', '--vpc-id', vpc_id, option)}`"
            words = ("ec2", "describe-vpc-attribute", "--vpc-id", vpc_id, "--attribute", attribute)
            off = Finding(FAIL, f"{attribute} of {vpc_id} is off", hint, deployment.command(*words), attribute)
            problems.append(off)
    blocks = [each["CidrBlock"] for each in listed[0]["CidrBlockAssociationSet"]]
    if network.cidr not in blocks:
        sentence = f"{vpc_id} has {', '.join(blocks)}; in the settings: {network.cidr}"
        problems.append(Finding(FAIL, sentence, "change `network.cidr`", command, "cidr"))
    yield from problems or [Finding(PASS, f"{vpc_id} has {network.cidr}, DNS support and hostnames", "", command)]


@check("subnets", "Existing subnets", calls=("ec2:DescribeSubnets",))
def subnets(deployment: Deployment) -> Iterator[Finding]:
    """EC2 would reject nodes, or they would start where they reach neither each other nor the internet."""
    for subnet in _existing_subnets(deployment):
        command = deployment.command("ec2", "describe-subnets", "--subnet-ids", subnet.id)
        fits = Finding(PASS, f"{subnet.id} is {subnet.cidr} in the VPC and in {deployment.settings.zone_id}")
        for each in list(_problems(deployment, subnet)) or [fits]:
            yield each.of(subnet.label, command)


def _problems(deployment: Deployment, subnet: ExistingSubnet) -> Iterator[Finding]:
    network, zone_id, described = deployment.settings.network, deployment.settings.zone_id, subnet.described
    other = f"change `network.existing.{subnet.label}_subnet_id`"
    if described is None:
        sentence = f"{deployment.settings.region} has no subnet {subnet.id}, or it is another account's"
        yield Finding(FAIL, sentence, other)
        return
    vpc_id = network.existing.vpc_id if network.existing else ""
    wanted = (
        ("VpcId", vpc_id, other),
        ("CidrBlock", subnet.cidr, f"change `network.{subnet.label}_subnet_cidr`"),
        ("AvailabilityZoneId", zone_id, f"{other}, or `zone_id`"),
    )
    for key, value, hint in wanted:
        if described[key] != value:
            yield Finding(FAIL, f"{key} of {subnet.id} is {described[key]}; in the settings: {value}", hint)
    modify = ("ec2", "modify-subnet-attribute", "--subnet-id", subnet.id)
    if not subnet.public and described["MapPublicIpOnLaunch"]:
        hint = f"`{deployment.command(*modify, '--no-map-public-ip-on-launch')}`, or another subnet"
        yield _with_public_addresses(deployment, subnet.id, hint)
    if subnet.public and subnet.used and not described["MapPublicIpOnLaunch"]:
        sentence = f"{subnet.id} assigns no public addresses, without which nodes there do not reach the internet"
        yield Finding(
            FAIL, sentence, f"`{deployment.command(*modify, '--map-public-ip-on-launch')}`, or another subnet"
        )


def _with_public_addresses(deployment: Deployment, subnet_id: str, hint: str) -> Finding:
    """Return why nodes should have no public addresses.

    EC2 gives none to an instance of several interfaces, and ParallelCluster rejects it in such a subnet
    (aws-parallelcluster 3.16.1, validators/cluster_validators.py, MultiNetworkInterfacesInstancesValidator).
    """
    every = deployment.settings.cluster.queues
    queues = [queue for queue in every if subnet_id in queue.further_subnet_ids] or [*every]  # of the cluster's own
    interface_type = deployment.settings.cluster.efa_interface_type
    several = sorted({each for queue in queues for each in types_with_several_interfaces(queue, interface_type)})
    if several:
        sentence = f"{subnet_id} assigns public addresses, with which EC2 launches no {', '.join(several)}"
        return Finding(FAIL, sentence, hint)
    return Finding(WARN, f"{subnet_id} assigns public addresses, which nodes do not need", hint)


@check("further-subnets", "Further subnets of queues", calls=("ec2:DescribeSubnets", "cloudformation:DescribeStacks"))
def further_subnets(deployment: Deployment) -> Iterator[Finding]:
    """ParallelCluster would reject the cluster, after network and file system were made.

    A fleet of EC2 takes one subnet of each zone (aws-parallelcluster 3.16.1, validators/networking_validators.py,
    QueueSubnetsValidator).
    """
    described = {each.id: each.described for each in _further_subnets(deployment)}
    for index, queue in enumerate(deployment.settings.cluster.queues):
        in_zones = {deployment.settings.zone_id: "the cluster's own subnet"}
        for position, subnet_id in enumerate(queue.further_subnet_ids):
            path = f"cluster.queues[{index}].further_subnet_ids[{position}]"
            command = deployment.command("ec2", "describe-subnets", "--subnet-ids", subnet_id)
            yield _further(deployment, subnet_id, described[subnet_id], path, in_zones).of(path, command)


def _further(
    deployment: Deployment, subnet_id: str, described: dict[str, Any] | None, path: str, in_zones: dict[str, str]
) -> Finding:
    """Judge a further subnet; `in_zones` are the subnets of its queue so far, by zone, to which it is added."""
    if described is None:
        sentence = f"{deployment.settings.region} has no subnet {subnet_id}, or it is another account's"
        return Finding(FAIL, sentence, f"change `{path}`")
    zone_id = described["AvailabilityZoneId"]
    if zone_id in in_zones:
        sentence = f"{subnet_id} is in {zone_id}, as {in_zones[zone_id]}; allowed: one subnet of each zone in a queue"
        return Finding(FAIL, sentence, f"change `{path}`")
    in_zones[zone_id] = subnet_id
    in_vpc = vpc_finding(deployment, subnet_id, described["VpcId"], path, "")
    if in_vpc.status is PASS and described["MapPublicIpOnLaunch"]:
        return _with_public_addresses(deployment, subnet_id, f"change `{path}`")
    return in_vpc


@check(
    "free-addresses",
    "Free addresses in the existing subnets",
    calls=("ec2:DescribeSubnets", "ec2:DescribeInstances", "cloudformation:DescribeStacks", "fsx:DescribeFileSystems"),
)
def free_addresses(deployment: Deployment) -> Iterator[Finding]:
    """Nodes beyond the last free address would never start, nor jobs that need them.

    Compare what is free with what the deployment takes at max_count, less what it has already.
    """
    yield from judge_subnets(deployment, _free_addresses)


def _free_addresses(deployment: Deployment, subnet: ExistingSubnet, described: dict[str, Any]) -> Finding:
    settings = deployment.settings
    public, private = planned_subnets(settings, fleet(settings.cluster_spec))
    at_max = (public if subnet.public else private).at_max
    free, held = described["AvailableIpAddressCount"], _held(deployment, subnet)
    more = max(0, at_max - held)
    sentence = f"{counted(free, 'addresses')} free in {subnet.id}; {more:,} more needed at max_count, {held:,} held"
    words = ("--subnet-ids", subnet.id, "--query", "Subnets[].AvailableIpAddressCount")
    command = deployment.command("ec2", "describe-subnets", *words)
    if free >= more:
        return Finding(PASS, sentence, "", command, subnet.label)
    hint = f"{more - free:,} too few: free some, name a larger subnet, or lower max_count"
    if not subnet.public and settings.cluster.efa_interface_type == "efa":
        hint += "; with `cluster.efa_interface_type: efa-only` a node takes one address"
    return Finding(FAIL, sentence, hint, command, subnet.label)


def _held(deployment: Deployment, subnet: ExistingSubnet) -> int:
    """Return how many addresses of a subnet the deployment has already."""
    held = sum(
        len(interface["PrivateIpAddresses"])
        for instance in deployment.own_instances()
        for interface in instance["NetworkInterfaces"]
        if interface["SubnetId"] == subnet.id
    )
    if deployment.stack(deployment.settings.cluster_spec.name) is not None:
        held += others(deployment.settings, public=subnet.public).load_balancers
    if name := file_systems.lustre_id(deployment):
        file_system = file_systems.get(deployment.account, file_systems.FSX, name)
        held += len(file_system.interface_ids) if subnet.id in file_system.subnet_ids else 0
    return held


CHECKS = (vpc, subnets, further_subnets, free_addresses)
