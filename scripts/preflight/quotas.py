"""Room in the account's quotas for a deployment, beside everything that is in the account already."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from scripts.estimate.figures import number
from scripts.estimate.quotas import (
    LUSTRE_FILE_SYSTEMS,
    LUSTRE_STORAGE,
    Quota,
    is_standard,
    is_trainium,
    is_trn1,
    is_trn2,
    quotas,
)
from scripts.preflight import usage
from scripts.preflight.check import Check, CheckStatus, Finding, check, find
from scripts.preflight.usage import Use

if TYPE_CHECKING:
    from scripts.deployment import Deployment

_LIMIT = ("servicequotas:GetServiceQuota", "servicequotas:GetAWSDefaultServiceQuota")
_MADE = ("cloudformation:DescribeStacks", "cloudformation:ListStackResources")
_SPOT = ("ec2:DescribeInstances", "ec2:DescribeInstanceTypes")
_ON_DEMAND = (*_SPOT, "ec2:DescribeCapacityReservations", "resource-groups:ListGroupResources")
_BLOCKS = ("ec2:DescribeCapacityReservations", "ec2:DescribeInstanceTypes")
_LUSTRE = (*_MADE, "fsx:DescribeFileSystems")
_NO_NODES = "Nodes beyond it would not start, and their jobs would stay pending."
_NO_BLOCK = "The Capacity Block could not be bought."
_NO_NETWORK = "The network stack would fail, and roll back."
_NO_STORAGE = "The storage stack would fail, and roll back."


class QuotaCheck(NamedTuple):
    """How a quota is checked.

    Attributes:
        id: Of the check, after ``quota-``.
        title: Of the check.
        codes: Quota codes of which a deployment needs one at most; an empty one stands for a quota without a code.
        prevents: What would happen later.
        measure: Counts what is in use.
        calls: The IAM actions that this needs.
    """

    id: str
    title: str
    codes: Collection[str]
    prevents: str
    measure: Callable[[Deployment], Use]
    calls: tuple[str, ...]


_HEAD_NODE = "The head node would not start, and the cluster stack would roll back."
_on_demand_trn = partial(usage.on_demand_vcpus, counts=is_trainium)
_on_demand_standard = partial(usage.on_demand_vcpus, counts=is_standard)
_spot_trn = partial(usage.spot_vcpus, counts=is_trainium)
_spot_standard = partial(usage.spot_vcpus, counts=is_standard)
_trn1_blocks = partial(usage.block_vcpus, counts=is_trn1)
_trn2_blocks = partial(usage.block_vcpus, counts=is_trn2)

QUOTA_CHECKS = (
    QuotaCheck(
        "trn-on-demand", "vCPUs of on-demand Trn instances", ["L-2C3B7624"], _NO_NODES, _on_demand_trn, _ON_DEMAND
    ),
    QuotaCheck("trn-spot", "vCPUs of Trn Spot Instances", ["L-6B0D517C"], _NO_NODES, _spot_trn, _SPOT),
    QuotaCheck(
        "standard-on-demand",
        "vCPUs of on-demand Standard instances, the head node's",
        ["L-1216C47A"],
        _HEAD_NODE,
        _on_demand_standard,
        _ON_DEMAND,
    ),
    QuotaCheck("standard-spot", "vCPUs of Standard Spot Instances", ["L-34B43A08"], _NO_NODES, _spot_standard, _SPOT),
    QuotaCheck(
        "trn1-capacity-blocks", "vCPUs of Trn1 Capacity Blocks", ["L-2E30FD7D"], _NO_BLOCK, _trn1_blocks, _BLOCKS
    ),
    QuotaCheck(
        "trn2-capacity-blocks", "vCPUs of Trn2 Capacity Blocks", ["L-64569A79"], _NO_BLOCK, _trn2_blocks, _BLOCKS
    ),
    QuotaCheck(
        "capacity-block-instances",
        "Instances of all Capacity Blocks",
        [""],
        _NO_BLOCK,
        usage.block_instances,
        ("ec2:DescribeCapacityReservations",),
    ),
    QuotaCheck(
        "interfaces",
        "Network interfaces in the zone",
        ["L-DF5E4CA3"],
        _NO_NODES,
        usage.interfaces,
        (*_MADE, "ec2:DescribeInstances", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"),
    ),
    QuotaCheck(
        "elastic-ips",
        "Elastic IP addresses",
        ["L-0263D0A3"],
        _NO_NETWORK,
        usage.addresses,
        (*_MADE, "ec2:DescribeAddresses"),
    ),
    QuotaCheck(
        "addresses-per-nat",
        "Addresses of a NAT gateway",
        ["L-5F53652F"],
        _NO_NETWORK,
        usage.addresses_of_nat_gateway,
        (*_MADE, "ec2:DescribeNatGateways"),
    ),
    QuotaCheck(
        "nat-gateways",
        "NAT gateways in the zone",
        ["L-FE5A380F"],
        _NO_NETWORK,
        usage.nat_gateways,
        (*_MADE, "ec2:DescribeNatGateways", "ec2:DescribeSubnets"),
    ),
    QuotaCheck("vpcs", "VPCs", ["L-F678F1CE"], _NO_NETWORK, usage.vpcs, (*_MADE, "ec2:DescribeVpcs")),
    QuotaCheck(
        "lustre-storage", "Storage of FSx for Lustre", LUSTRE_STORAGE.values(), _NO_STORAGE, usage.lustre_gib, _LUSTRE
    ),
    QuotaCheck(
        "lustre-file-systems",
        "File systems of FSx for Lustre",
        LUSTRE_FILE_SYSTEMS.values(),
        _NO_STORAGE,
        usage.lustre_file_systems,
        _LUSTRE,
    ),
    QuotaCheck(
        "gp3",
        "Storage of gp3 volumes",
        ["L-7A658B76"],
        _NO_NODES,
        usage.gp3_tib,
        ("ec2:DescribeInstances", "ec2:DescribeVolumes"),
    ),
)
"""One for each quota of `scripts.estimate.quotas`."""


def _check(checked: QuotaCheck) -> Check:
    """Make a check, which is skipped where a deployment needs nothing of the quota."""
    limit = _LIMIT if any(checked.codes) else ()

    @check(f"quota-{checked.id}", f"Quota: {checked.title}", prevents=checked.prevents, calls=(*limit, *checked.calls))
    def evaluate(deployment: Deployment) -> Iterator[Finding]:
        for quota in quotas(deployment.settings):
            if quota.code in checked.codes:
                limit, command = _limit(deployment, quota)
                yield judge(deployment, quota, checked.measure(deployment), limit, command)

    return evaluate


def judge(deployment: Deployment, quota: Quota, use: Use, limit: float, command: str) -> Finding:
    """Compare what a deployment still needs of a quota with what is free.

    Args:
        deployment: What needs it.
        quota: The quota, and how much the deployment needs.
        use: What is in use.
        limit: What the account has.
        command: AWS CLI command that shows the limit.
    """
    used, more = use.own + use.others, max(0, quota.amount - use.own)
    sentence = f"{_shown(used)} of {_shown(limit)} {quota.unit} in use, {_shown(more)} more needed"
    if more == 0 or used + more <= limit:
        return Finding(CheckStatus.PASS, sentence, command=command)
    if quota.nodes:
        sentence += f"; room for {_shown(quota.nodes_within(limit - use.others))} of {_shown(quota.nodes)} nodes"
    if not quota.code:
        hint = "AWS gives no more: smaller min_count and max_count, or other queues for some of the nodes"
        return Finding(CheckStatus.FAIL, sentence, hint, command)
    operation = ("service-quotas", "request-service-quota-increase")
    value = ("--desired-value", str(math.ceil(used + more)))
    request = deployment.command(*operation, *_named(quota), *value)
    return Finding(CheckStatus.FAIL, sentence, f"{request}; approval can take days", command)


def _limit(deployment: Deployment, quota: Quota) -> tuple[float, str]:
    """Return what the account has, and the command that shows it.

    Where Service Quotas has no applied value, the default holds
    (https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html).
    """
    if not quota.code:
        return quota.default or 0, deployment.command("ec2", "describe-capacity-reservations")
    wanted = {"ServiceCode": quota.service, "QuotaCode": quota.code}
    operation = "get_service_quota"
    answer = find(deployment, "service-quotas", operation, **wanted)
    if answer is None:
        operation = "get_aws_default_service_quota"
        answer = deployment.account.ask("service-quotas", operation, **wanted)
    return answer["Quota"]["Value"], deployment.command("service-quotas", operation.replace("_", "-"), *_named(quota))


def _named(quota: Quota) -> tuple[str, ...]:
    return ("--service-code", quota.service, "--quota-code", quota.code)


def _shown(amount: float) -> str:
    return number(math.ceil(amount))


CHECKS = tuple(map(_check, QUOTA_CHECKS))
