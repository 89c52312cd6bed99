"""How much of each quota is in use, by a deployment and by everything else in the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from re import Pattern
from typing import Any, NamedTuple

from scripts.account import databases, file_systems
from scripts.account.deployment import Deployment, filters, owner_words
from scripts.account.file_systems import FileSystem
from scripts.account.reservations import reservations, unused_by_type, users

_PAGES = {"PageSize": 1000}
"""Interfaces or volumes in one answer of EC2, the most that it gives."""
_GIB_PER_TIB = 1024


class Use(NamedTuple):
    """What is in use of a quota, in its unit."""

    own: float
    others: float


def on_demand_vcpus(deployment: Deployment, counts: Pattern[str]) -> Use:
    """Count the vCPUs of instances that run on demand, and of reservations, which count before they are used, too."""
    own, others = _running(deployment, None)
    return _vcpus(deployment, counts, own, others + unused_by_type(deployment))


def spot_vcpus(deployment: Deployment, counts: Pattern[str]) -> Use:
    """Count the vCPUs of Spot Instances."""
    return _vcpus(deployment, counts, *_running(deployment, "spot"))


def block_vcpus(deployment: Deployment, counts: Pattern[str]) -> Use:
    """Count the vCPUs of Capacity Blocks."""
    return _vcpus(deployment, counts, *_blocks(deployment))


def block_instances(deployment: Deployment) -> Use:
    """Count the instances of Capacity Blocks."""
    own, others = _blocks(deployment)
    return Use(own.total(), others.total())


def interfaces(deployment: Deployment) -> Use:
    """Count the network interfaces in the deployment's zone, for each zone has the quota for itself."""
    made, instance_ids = _made(deployment), _instance_ids(deployment)

    def is_own(interface: dict[str, Any]) -> bool:
        attached = interface.get("Attachment", {}).get("InstanceId")
        return attached in instance_ids or not made.isdisjoint(owner_words(interface))

    listed = deployment.account.list("ec2", "describe_network_interfaces", PaginationConfig=_PAGES)
    return _use(_in_zone(deployment, listed), is_own)


def addresses(deployment: Deployment) -> Use:
    """Count the Elastic IP addresses of the Region."""
    made = _made(deployment)
    return _use(deployment.account.ask("ec2", "describe_addresses")["Addresses"], lambda each: each["PublicIp"] in made)


def addresses_of_nat_gateway(deployment: Deployment) -> Use:
    """Count the addresses of the deployment's own NAT gateway."""
    made = _made(deployment)
    own = [each["NatGatewayAddresses"] for each in _nat_gateways(deployment) if each["NatGatewayId"] in made]
    return Use(sum(map(len, own)), 0)


def nat_gateways(deployment: Deployment) -> Use:
    """Count the NAT gateways in the deployment's zone."""
    made = _made(deployment)
    return _use(_in_zone(deployment, _nat_gateways(deployment)), lambda each: each["NatGatewayId"] in made)


def vpcs(deployment: Deployment) -> Use:
    """Count the VPCs of the Region."""
    made = _made(deployment)
    return _use(deployment.account.list("ec2", "describe_vpcs"), lambda each: each["VpcId"] in made)


def lustre_gib(deployment: Deployment) -> Use:
    """Count the storage of file systems of the deployment's type."""
    made = _made(deployment)
    return _use(_file_systems(deployment), lambda each: each.id in made, lambda each: each.capacity_gib)


def lustre_file_systems(deployment: Deployment) -> Use:
    """Count the file systems of the deployment's type."""
    made = _made(deployment)
    return _use(_file_systems(deployment), lambda each: each.id in made)


def efs_file_systems(deployment: Deployment) -> Use:
    """Count the EFS file systems of the Region."""
    made = _made(deployment)
    return _use(file_systems.of_efs(deployment.account), lambda each: each.id in made)


def openzfs_file_systems(deployment: Deployment) -> Use:
    """Count the file systems of FSx for OpenZFS."""
    return _openzfs(deployment, lambda _: 1)


def openzfs_gib(deployment: Deployment) -> Use:
    """Count the SSD storage of FSx for OpenZFS."""
    return _openzfs(deployment, lambda each: each.capacity_gib if each.storage_type == "SSD" else 0)


def openzfs_mbps(deployment: Deployment) -> Use:
    """Count the throughput of FSx for OpenZFS."""
    return _openzfs(deployment, lambda each: each.mbps)


def db_instances(deployment: Deployment) -> Use:
    """Count the DB instances of RDS in the Region."""
    made = _made(deployment)
    return _use(databases.of_rds(deployment.account), lambda each: each.id in made)


def gp3_tib(deployment: Deployment) -> Use:
    """Count the storage of gp3 volumes."""
    instance_ids = _instance_ids(deployment)

    def is_own(volume: dict[str, Any]) -> bool:
        return any(each["InstanceId"] in instance_ids for each in volume["Attachments"])

    gp3 = filters({"volume-type": ["gp3"]})
    listed = deployment.account.list("ec2", "describe_volumes", Filters=gp3, PaginationConfig=_PAGES)
    return _use(listed, is_own, lambda each: each["Size"] / _GIB_PER_TIB)


def _use(listed: Iterable[Any], is_own: Callable[[Any], bool], amount: Callable[[Any], float] = lambda _: 1) -> Use:
    own = others = 0.0
    for each in listed:
        if is_own(each):
            own += amount(each)
        else:
            others += amount(each)
    return Use(own, others)


def _running(deployment: Deployment, lifecycle: str | None) -> tuple[Counter[str], Counter[str]]:
    """Return the instances by type, own and others; without a lifecycle are those on demand."""
    own, others = (
        Counter(each["InstanceType"] for each in instances if each.get("InstanceLifecycle") == lifecycle)
        for instances in (deployment.own_instances(), deployment.other_instances())
    )
    return own, others


def _blocks(deployment: Deployment) -> tuple[Counter[str], Counter[str]]:
    """Return the instances by type of the Capacity Blocks that the settings name, and of others that have started.

    Blocks that are over, cancelled or failed do not count.
    """
    named = users(deployment.settings, "capacity_reservation_id")
    own, others = Counter[str](), Counter[str]()
    for key, each in reservations(deployment).items():
        if each.is_block and (each.is_active or (key in named and each.is_coming)):
            (own if key in named else others)[each.instance_type] += each.total
    return own, others


def _vcpus(deployment: Deployment, counts: Pattern[str], own: Counter[str], others: Counter[str]) -> Use:
    """Return the default vCPUs of instances by type, which EC2's quotas count."""
    types = sorted(name for name in own | others if counts.match(name))
    if not types:
        return Use(0, 0)
    described = deployment.account.list("ec2", "describe_instance_types", Filters=filters({"instance-type": types}))
    vcpus = {each["InstanceType"]: each["VCpuInfo"]["DefaultVCpus"] for each in described}
    return Use(*(sum(count * vcpus[name] for name, count in each.items() if name in vcpus) for each in (own, others)))


def _nat_gateways(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the NAT gateways that count (https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html)."""
    states = filters({"state": ["pending", "available", "deleting"]})
    return deployment.account.list("ec2", "describe_nat_gateways", Filter=states)


def _file_systems(deployment: Deployment) -> list[FileSystem]:
    """Return the file systems of the deployment's type; SCRATCH_1 and SCRATCH_2 have one quota together."""
    kind = deployment.settings.storage.file_system.deployment_type.replace("SCRATCH_2", "SCRATCH")
    return [
        each
        for each in file_systems.of_fsx(deployment.account)
        if each.type == "LUSTRE" and each.deployment_type.startswith(kind)
    ]


def _openzfs(deployment: Deployment, amount: Callable[[FileSystem], float]) -> Use:
    made = _made(deployment)
    openzfs = [each for each in file_systems.of_fsx(deployment.account) if each.type == "OPENZFS"]
    return _use(openzfs, lambda each: each.id in made, amount)


def _in_zone(deployment: Deployment, listed: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    zone = filters({"availability-zone-id": [deployment.settings.zone_id]})
    subnet_ids = {each["SubnetId"] for each in deployment.account.list("ec2", "describe_subnets", Filters=zone)}
    return [each for each in listed if each["SubnetId"] in subnet_ids]


def _instance_ids(deployment: Deployment) -> set[str]:
    return {each["InstanceId"] for each in deployment.own_instances()}


def _made(deployment: Deployment) -> set[str]:
    """Return the physical ids of what the network, the storage and the team's stack made, if they exist."""
    parts = [part for part in deployment.settings.parts if part in ("network", "storage", "team")]
    stacks = (deployment.physical_ids(deployment.stack_name(part)) for part in parts)
    return {physical_id for stack in stacks for physical_id in stack.values()}
