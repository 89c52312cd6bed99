"""What a network is: a VPC with one public and one private subnet in one availability zone."""

import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Annotated

from pydantic import Field

from ultracluster.domain import addresses
from ultracluster.domain.instance_types import zone_id_prefix
from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import MANY, ZONE_ID_PATTERN, Items, LogRetentionDays, SubnetBlock, text
from ultracluster.domain.violations import WORDS, Violation, below

PRESET = "parallelcluster"
PARALLELCLUSTER_ENDPOINTS = ("logs", "cloudformation", "ec2")
"""Interface endpoints that a cluster without internet access needs beside the S3 and DynamoDB gateways (AWS
ParallelCluster user guide, "AWS ParallelCluster in a single subnet with no internet access")."""
LOGIN_NODE_ENDPOINTS = ("autoscaling", "elasticloadbalancing")
"""What login nodes need beside (https://github.com/aws/aws-parallelcluster/issues/6758)."""
_SIMILAR = 0.8

EndpointService = Annotated[
    str, text(r"^[a-z][a-z0-9.-]+$", "the name of an AWS service in its endpoint, such as ec2 or ecr.dkr")
]


class NetworkSpec(Spec):
    """A VPC, one public and one private subnet in one availability zone."""

    cidr: Annotated[SubnetBlock, Setting(Change.NEW_DEPLOYMENT, "AWS::EC2::VPC.CidrBlock")] = "10.0.0.0/16"
    """IPv4 block of the VPC, /16 to /28."""
    public_subnet_cidr: Annotated[SubnetBlock, Setting(Change.NEW_DEPLOYMENT, "AWS::EC2::Subnet.CidrBlock")] = (
        "10.0.0.0/24"
    )
    """Block of the public subnet: head node, NAT gateway."""
    private_subnet_cidr: Annotated[SubnetBlock, Setting(Change.NEW_DEPLOYMENT, "AWS::EC2::Subnet.CidrBlock")] = (
        "10.0.64.0/18"
    )
    """Block of the private subnet: compute nodes, file system. For the largest fleet that you will want: 15,000
    addresses for 1,875 trn1.32xlarge if `efa_interface_type` may have to be `efa`."""
    nat_addresses: Annotated[
        int, Field(ge=1, le=8), Setting(Change.AT_ONCE, "AWS::EC2::NatGateway.SecondaryAllocationIds")
    ] = 1
    """Public addresses of the NAT gateway; each carries 55,000 connections to one destination. More than 2 need raised
    quotas of addresses per NAT gateway and, beyond 5, of Elastic IP addresses in the Region."""
    interface_endpoints: Annotated[
        Items[EndpointService], MANY, Setting(Change.AT_ONCE, "AWS::EC2::VPCEndpoint.ServiceName")
    ] = []
    """Services with an interface endpoint, such as ssm; `parallelcluster` means those that a cluster needs, with login
    nodes also theirs. Each costs."""
    flow_log_retention_days: Annotated[
        LogRetentionDays | None, Setting(Change.AT_ONCE, "AWS::Logs::LogGroup.RetentionInDays")
    ] = 90
    """Days that flow logs are kept; None: no flow logs."""

    @property
    def endpoint_services(self) -> list[str]:
        """Short names of the interface endpoints, with the preset expanded."""
        return endpoint_services(self.interface_endpoints)


def endpoint_services(names: Iterable[str], *, login_nodes: bool = False) -> list[str]:
    """Return short names of interface endpoints, with the preset expanded, of a cluster that may have login nodes."""
    preset = (*PARALLELCLUSTER_ENDPOINTS, *(LOGIN_NODE_ENDPOINTS if login_nodes else ()))
    services = (preset if name == PRESET else (name,) for name in names)
    return list(dict.fromkeys(service for each in services for service in each))


BLOCKS = ("cidr", "public_subnet_cidr", "private_subnet_cidr")
"""Fields of `NetworkSpec`."""


def violations(spec: NetworkSpec) -> Iterator[Violation]:
    """Yield what Amazon VPC would refuse, with paths relative to ``spec``."""
    yield from below((), _blocks(spec), _endpoints(spec))


def _blocks(spec: NetworkSpec) -> Iterator[Violation]:
    yield from addresses.block_violations({field: getattr(spec, field) for field in BLOCKS})


def _endpoints(spec: NetworkSpec) -> Iterator[Violation]:
    for index, name in enumerate(spec.interface_endpoints):
        if name != PRESET and get_close_matches(name, [PRESET], cutoff=_SIMILAR):
            yield Violation(("interface_endpoints", index), name, PRESET, "no service has such a name")
    first: dict[str, str] = {}
    for name in spec.endpoint_services:
        earlier = first.setdefault(name.replace(".", "-"), name)
        if earlier != name:
            yield Violation(("interface_endpoints",), name, f"one of {earlier} and {name}", "one service, one endpoint")


def endpoint_warnings(spec: NetworkSpec, known: Collection[str]) -> Iterator[Violation]:
    """Tell which services are not among those that are known to have endpoints, as a misspelt one is not."""
    for index, name in enumerate(spec.interface_endpoints):
        if name != PRESET and name.replace("-", ".") not in {each.replace("-", ".") for each in known}:
            meant = get_close_matches(name, sorted(known), n=3)
            allowed = " or ".join([*meant, "a newer service"])
            reason = "no service had an endpoint of this name when the CDK was written; a deployment would tell"
            yield Violation(("interface_endpoints", index), name, allowed, reason)


def zone_violations(region: str | None, zone_id: str) -> Iterator[Violation]:
    """Yield why ``zone_id`` is no availability zone id, or none of a Region, if that is known; paths are empty."""
    prefix = None if region is None else zone_id_prefix(region)
    if not re.fullmatch(ZONE_ID_PATTERN, zone_id):
        yield Violation((), zone_id, WORDS[ZONE_ID_PATTERN], "the same place in every account")
    elif prefix is not None and not zone_id.startswith(f"{prefix}-"):
        yield Violation((), zone_id, f"{prefix}-az1, {prefix}-az2, ...", f"a zone of {region}")
