"""How much of each quota is in use, by a deployment and by everything else in the account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from scripts.preflight.reservations import BEFORE_ITS_START, is_block, reservations, size, unused_by_type, users

if TYPE_CHECKING:
    from scripts.deployment import Deployment

PAGE_SIZE = 1000
"""Interfaces or volumes in one answer of EC2, the most that it gives."""

_TYPES_AT_ONCE = 100
"""Instance types in one request, the most that EC2 takes.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html
"""
_GIB_PER_TIB = 1024


class Use(NamedTuple):
    """What is in use of a quota, in its unit.

    Attributes:
        own: By this deployment.
        others: By everything else.
    """

    own: float
    others: float


def on_demand_vcpus(deployment: Deployment, counts: Callable[[str], bool]) -> Use:
    """Count the vCPUs of instances that run on demand, and of reservations, which count before they are used, too."""
    own, others = _running(deployment, None)
    return _vcpus(deployment, counts, own, others + unused_by_type(deployment))


def spot_vcpus(deployment: Deployment, counts: Callable[[str], bool]) -> Use:
    """Count the vCPUs of Spot Instances."""
    return _vcpus(deployment, counts, *_running(deployment, "spot"))


def block_vcpus(deployment: Deployment, counts: Callable[[str], bool]) -> Use:
    """Count the vCPUs of Capacity Blocks."""
    return _vcpus(deployment, counts, *_blocks(deployment))


def block_instances(deployment: Deployment) -> Use:
    """Count the instances of Capacity Blocks."""
    own, others = _blocks(deployment)
    return Use(own.total(), others.total())


def interfaces(deployment: Deployment) -> Use:
    """Count the network interfaces in the deployment's zone, for each zone has the quota for itself.

    The last word in the description of an interface of a NAT gateway, an endpoint or a file system tells whose it is.
    """
    subnet_ids, made, instance_ids = _subnet_ids_of_zone(deployment), _made(deployment), _instance_ids(deployment)
    listed = deployment.account.list("ec2", "describe_network_interfaces", PaginationConfig={"PageSize": PAGE_SIZE})
    own = [
        each.get("Attachment", {}).get("InstanceId") in instance_ids or each["Description"].rpartition(" ")[2] in made
        for each in listed
        if each["SubnetId"] in subnet_ids
    ]
    return _counted(own)


def addresses(deployment: Deployment) -> Use:
    """Count the Elastic IP addresses of the Region."""
    made = _made(deployment)
    listed = deployment.account.ask("ec2", "describe_addresses")["Addresses"]
    return _counted([each["PublicIp"] in made for each in listed])


def addresses_of_nat_gateway(deployment: Deployment) -> Use:
    """Count the addresses of the deployment's own NAT gateway."""
    made = _made(deployment)
    own = [each["NatGatewayAddresses"] for each in _nat_gateways(deployment) if each["NatGatewayId"] in made]
    return Use(sum(map(len, own)), 0)


def nat_gateways(deployment: Deployment) -> Use:
    """Count the NAT gateways in the deployment's zone."""
    subnet_ids, made = _subnet_ids_of_zone(deployment), _made(deployment)
    listed = _nat_gateways(deployment)
    return _counted([each["NatGatewayId"] in made for each in listed if each["SubnetId"] in subnet_ids])


def vpcs(deployment: Deployment) -> Use:
    """Count the VPCs of the Region."""
    made = _made(deployment)
    return _counted([each["VpcId"] in made for each in deployment.account.list("ec2", "describe_vpcs")])


def lustre_gib(deployment: Deployment) -> Use:
    """Count the storage of file systems of the deployment's type."""
    own, others = _file_systems(deployment)
    return Use(*(sum(each.get("StorageCapacity", 0) for each in systems) for systems in (own, others)))


def lustre_file_systems(deployment: Deployment) -> Use:
    """Count the file systems of the deployment's type."""
    own, others = _file_systems(deployment)
    return Use(len(own), len(others))


def gp3_tib(deployment: Deployment) -> Use:
    """Count the storage of gp3 volumes."""
    instance_ids = _instance_ids(deployment)
    gp3 = [{"Name": "volume-type", "Values": ["gp3"]}]
    listed = deployment.account.list("ec2", "describe_volumes", Filters=gp3, PaginationConfig={"PageSize": PAGE_SIZE})
    own = [each for each in listed if any(one["InstanceId"] in instance_ids for one in each["Attachments"])]
    tib = [sum(each["Size"] for each in volumes) / _GIB_PER_TIB for volumes in (own, listed)]
    return Use(tib[0], tib[1] - tib[0])


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
        counted = each["State"] == "active" or (key in named and each["State"] in BEFORE_ITS_START)
        if is_block(each) and counted:
            (own if key in named else others)[each["InstanceType"]] += size(each)
    return own, others


def _vcpus(deployment: Deployment, counts: Callable[[str], bool], own: Counter[str], others: Counter[str]) -> Use:
    vcpus = _vcpus_by_type(deployment, {name for name in (*own, *others) if counts(name)})
    return Use(*(sum(vcpus.get(name, 0) * count for name, count in types.items()) for types in (own, others)))


def _vcpus_by_type(deployment: Deployment, names: Iterable[str]) -> dict[str, int]:
    """Return the default vCPUs of instance types, which EC2's quotas count."""
    ordered = sorted(names)
    vcpus = {}
    for start in range(0, len(ordered), _TYPES_AT_ONCE):
        types = ordered[start : start + _TYPES_AT_ONCE]
        for each in deployment.account.list("ec2", "describe_instance_types", InstanceTypes=types):
            vcpus[each["InstanceType"]] = each["VCpuInfo"]["DefaultVCpus"]
    return vcpus


def _nat_gateways(deployment: Deployment) -> list[dict[str, Any]]:
    """Return the NAT gateways that count (https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html)."""
    states = [{"Name": "state", "Values": ["pending", "available", "deleting"]}]
    return deployment.account.list("ec2", "describe_nat_gateways", Filter=states)


def _file_systems(deployment: Deployment) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return own and other file systems of the deployment's type; SCRATCH_1 and SCRATCH_2 have one quota together."""
    made = _made(deployment)
    kind = deployment.settings.storage.file_system.deployment_type.replace("SCRATCH_2", "SCRATCH")
    listed = [
        each
        for each in deployment.account.list("fsx", "describe_file_systems")
        if each.get("LustreConfiguration", {}).get("DeploymentType", "").startswith(kind)
    ]
    own = [each for each in listed if each["FileSystemId"] in made]
    return own, [each for each in listed if each["FileSystemId"] not in made]


def _subnet_ids_of_zone(deployment: Deployment) -> set[str]:
    zone = [{"Name": "availability-zone-id", "Values": [deployment.settings.zone_id]}]
    return {each["SubnetId"] for each in deployment.account.list("ec2", "describe_subnets", Filters=zone)}


def _instance_ids(deployment: Deployment) -> set[str]:
    return {each["InstanceId"] for each in deployment.own_instances()}


def _made(deployment: Deployment) -> set[str]:
    """Return the physical ids of what the network and the storage stack made, if they exist."""
    return {
        physical_id
        for part in ("network", "storage")
        for physical_id in deployment.physical_ids(deployment.stack_name(part)).values()
    }


def _counted(own: list[bool]) -> Use:
    return Use(sum(own), len(own) - sum(own))
