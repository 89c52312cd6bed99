"""Room in the account's quotas for a deployment, beside everything that is in the account already."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from scripts.check.estimate.quotas import (
    LUSTRE_FILE_SYSTEMS,
    LUSTRE_STORAGE,
    STANDARD,
    TRAINIUM,
    TRN1,
    TRN2,
    Quota,
    quotas,
)
from scripts.check.preflight import usage
from scripts.check.preflight.check import SECONDS, Check, Permission
from scripts.check.preflight.usage import Use, block_vcpus, on_demand_vcpus, spot_vcpus
from scripts.core.figures import counted, number
from scripts.core.findings import FAIL, PASS, Finding
from ultracluster.domain import instance_types

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment

_NO_HEAD_NODE = "The head node would not start, and the cluster stack would roll back."
_NO_NODES = "Nodes beyond it would not start, and their jobs would stay pending."
_NO_BLOCK = "The Capacity Block could not be bought."
_NO_NETWORK = "The network stack would fail, and roll back."
_NO_STORAGE = "The storage stack would fail, and roll back."
_NO_TEAM = "The team's stack would fail, and roll back."

_MADE = ("cloudformation:DescribeStacks", "cloudformation:ListStackResources")
_SPOT = ("ec2:DescribeInstances", "ec2:DescribeInstanceTypes")
_ON_DEMAND = (*_SPOT, "ec2:DescribeCapacityReservations", "resource-groups:ListGroupResources")
_BLOCK = ("ec2:DescribeCapacityReservations",)
_BLOCK_VCPUS = (*_BLOCK, "ec2:DescribeInstanceTypes")
_INTERFACES = (*_MADE, "ec2:DescribeInstances", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")
_ADDRESSES = (*_MADE, "ec2:DescribeAddresses")
_NAT = (*_MADE, "ec2:DescribeNatGateways")
_NAT_IN_ZONE = (*_NAT, "ec2:DescribeSubnets")
_VPCS = (*_MADE, "ec2:DescribeVpcs")
_FSX = (*_MADE, "fsx:DescribeFileSystems")
_EFS = (*_MADE, "elasticfilesystem:DescribeFileSystems")
_RDS = (*_MADE, "rds:DescribeDBInstances")
_VOLUMES = ("ec2:DescribeInstances", "ec2:DescribeVolumes")

_trn, _standard = partial(on_demand_vcpus, counts=TRAINIUM), partial(on_demand_vcpus, counts=STANDARD)
_trn_spot, _standard_spot = partial(spot_vcpus, counts=TRAINIUM), partial(spot_vcpus, counts=STANDARD)
_trn1_blocks, _trn2_blocks = partial(block_vcpus, counts=TRN1), partial(block_vcpus, counts=TRN2)
_storage, _file_systems = LUSTRE_STORAGE.values(), LUSTRE_FILE_SYSTEMS.values()
_nat_addresses = usage.addresses_of_nat_gateway

_Row = tuple[str, str, Collection[str], Callable[["Deployment"], Use], tuple[str, ...], str]
_ROWS: tuple[_Row, ...] = (
    (
        "trn-on-demand",
        "vCPUs of on-demand Trn instances",
        [instance_types.ON_DEMAND_QUOTA],
        _trn,
        _ON_DEMAND,
        _NO_NODES,
    ),
    ("trn-spot", "vCPUs of Trn Spot Instances", [instance_types.SPOT_QUOTA], _trn_spot, _SPOT, _NO_NODES),
    (
        "standard-on-demand",
        "vCPUs of on-demand Standard instances, the head node's",
        ["L-1216C47A"],
        _standard,
        _ON_DEMAND,
        _NO_HEAD_NODE,
    ),
    ("standard-spot", "vCPUs of Standard Spot Instances", ["L-34B43A08"], _standard_spot, _SPOT, _NO_NODES),
    (
        "trn1-capacity-blocks",
        "vCPUs of Trn1 Capacity Blocks",
        [instance_types.TRAINIUM.block_quota],
        _trn1_blocks,
        _BLOCK_VCPUS,
        _NO_BLOCK,
    ),
    (
        "trn2-capacity-blocks",
        "vCPUs of Trn2 Capacity Blocks",
        [instance_types.TRAINIUM2.block_quota],
        _trn2_blocks,
        _BLOCK_VCPUS,
        _NO_BLOCK,
    ),
    ("capacity-block-instances", "Instances of all Capacity Blocks", [""], usage.block_instances, _BLOCK, _NO_BLOCK),
    ("interfaces", "Network interfaces in the zone", ["L-DF5E4CA3"], usage.interfaces, _INTERFACES, _NO_NODES),
    ("elastic-ips", "Elastic IP addresses", ["L-0263D0A3"], usage.addresses, _ADDRESSES, _NO_NETWORK),
    ("addresses-per-nat", "Addresses of a NAT gateway", ["L-5F53652F"], _nat_addresses, _NAT, _NO_NETWORK),
    ("nat-gateways", "NAT gateways in the zone", ["L-FE5A380F"], usage.nat_gateways, _NAT_IN_ZONE, _NO_NETWORK),
    ("vpcs", "VPCs", ["L-F678F1CE"], usage.vpcs, _VPCS, _NO_NETWORK),
    ("lustre-storage", "Storage of FSx for Lustre", _storage, usage.lustre_gib, _FSX, _NO_STORAGE),
    (
        "lustre-file-systems",
        "File systems of FSx for Lustre",
        _file_systems,
        usage.lustre_file_systems,
        _FSX,
        _NO_STORAGE,
    ),
    ("efs-file-systems", "File systems of EFS", ["L-848C634D"], usage.efs_file_systems, _EFS, _NO_TEAM),
    (
        "openzfs-file-systems",
        "File systems of FSx for OpenZFS",
        ["L-59D0763F"],
        usage.openzfs_file_systems,
        _FSX,
        _NO_TEAM,
    ),
    ("openzfs-storage", "Storage of FSx for OpenZFS", ["L-88479C21"], usage.openzfs_gib, _FSX, _NO_TEAM),
    ("openzfs-throughput", "Throughput of FSx for OpenZFS", ["L-4EDE4065"], usage.openzfs_mbps, _FSX, _NO_TEAM),
    ("db-instances", "DB instances of RDS", ["L-7B6409FD"], usage.db_instances, _RDS, _NO_TEAM),
    ("gp3", "Storage of gp3 volumes", ["L-7A658B76"], usage.gp3_tib, _VOLUMES, _NO_NODES),
)
"""One for each quota of `scripts.check.estimate.quotas`: id and title of the check, quota codes of which a deployment
needs one at most (an empty one stands for a quota without a code), what counts the use, the IAM actions that this
needs, and what would happen without the check."""


def _check(row: _Row) -> Check:
    check_id, title, codes, measure, actions, prevents = row
    limit = ("servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota") if any(codes) else ()

    permissions = tuple(Permission(action) for action in (*limit, *actions))

    def evaluate(deployment: Deployment) -> Iterator[Finding]:
        for quota in quotas(deployment.settings):
            if quota.code in codes:
                yield _judge(deployment, quota, measure(deployment), *_limit(deployment, quota))

    return Check(f"quota-{check_id}", f"Quota: {title}", prevents, permissions, evaluate, SECONDS)


def _judge(deployment: Deployment, quota: Quota, use: Use, limit: float, command: str) -> Finding:
    """Compare what a deployment still needs of a quota with what is free; the command shows the limit."""
    used, more = use.own + use.others, max(0, quota.amount - use.own)
    sentence = f"{_shown(used)} of {counted(round(limit, 2), quota.unit)} in use, {_shown(more)} more needed"
    if more == 0 or used + more <= limit:
        return Finding(PASS, sentence, command=command)
    if quota.nodes:
        sentence += f"; room for {_shown(quota.nodes_within(limit - use.others))} of {_shown(quota.nodes)} nodes"
    if not quota.code:
        hint = "AWS gives no more: smaller min_count and max_count, or other queues for some of the nodes"
        return Finding(FAIL, sentence, hint, command)
    operation = ("service-quotas", "request-service-quota-increase")
    value = ("--desired-value", str(math.ceil(used + more)))
    request = deployment.command(*operation, *_named(quota), *value)
    return Finding(FAIL, sentence, f"{request}; approval can take days", command)


def _limit(deployment: Deployment, quota: Quota) -> tuple[float, str]:
    """Return what the account has, and the command that shows it.

    Where Service Quotas has no applied value, the default holds
    (https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html).
    """
    if not quota.code:
        return quota.default or 0, deployment.command("ec2", "describe-capacity-reservations")
    wanted = {"ServiceCode": quota.service, "QuotaCode": quota.code}
    operation = "get_service_quota"
    answer = deployment.account.find("service-quotas", operation, **wanted)
    if answer is None:
        operation = "get_aws_default_service_quota"
        answer = deployment.account.ask("service-quotas", operation, **wanted)
    return answer["Quota"]["Value"], deployment.command("service-quotas", operation.replace("_", "-"), *_named(quota))


def _named(quota: Quota) -> tuple[str, ...]:
    return ("--service-code", quota.service, "--quota-code", quota.code)


def _shown(amount: float) -> str:
    return number(round(amount, 2))


CHECKS = tuple(map(_check, _ROWS))
