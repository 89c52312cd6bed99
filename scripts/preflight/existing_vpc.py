"""What the account tells of a VPC that exists already and that the settings name, for the checks of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scripts.deployment import Deployment
from scripts.estimate.sizes import others
from scripts.preflight.check import Finding, Status

ANYWHERE = "0.0.0.0/0"


@dataclass(frozen=True)
class ExistingSubnet:
    """A subnet that the settings name as ``network.existing.LABEL_subnet_id``.

    Attributes:
        label: public or private.
        id: Its id.
        cidr: Its block, as the settings have it.
        used: Whether the deployment puts anything into it.
        found: What EC2 tells of it; None: it does not exist.
    """

    label: str
    id: str
    cidr: str
    used: bool
    found: dict[str, Any] | None


def existing_subnets(deployment: Deployment) -> tuple[ExistingSubnet, ...]:
    """Return the public and the private subnet; none: the deployment makes a VPC of its own.

    Needs ec2:DescribeSubnets.
    """
    network = deployment.settings.network
    if network.existing is None:
        return ()
    public_id, private_id = network.existing.public_subnet_id, network.existing.private_subnet_id
    filters = [{"Name": "subnet-id", "Values": [public_id, private_id]}]
    found = {each["SubnetId"]: each for each in deployment.account.list("ec2", "describe_subnets", Filters=filters)}
    in_public = others(deployment.settings, public=True).interfaces > 0
    return (
        ExistingSubnet("public", public_id, network.public_subnet_cidr, in_public, found.get(public_id)),
        ExistingSubnet("private", private_id, network.private_subnet_cidr, True, found.get(private_id)),
    )


def unseen(subnet: ExistingSubnet) -> Finding:
    """Return what to say of a subnet that does not exist, where that is not the question."""
    return Finding(Status.SKIP, f"there is no {subnet.id} to look at: see subnets", subject=subnet.label)


def route_table(deployment: Deployment, vpc_id: str, subnet_id: str) -> dict[str, Any]:
    """Return the route table of a subnet of a VPC: the VPC's main one, if none is associated with it.

    Needs ec2:DescribeRouteTables. https://docs.aws.amazon.com/vpc/latest/userguide/subnet-route-tables.html
    """
    tables = deployment.account.list("ec2", "describe_route_tables", Filters=[_in_vpc(vpc_id)])
    associated = {each.get("SubnetId", "main"): table for table in tables for each in table["Associations"]}
    found: dict[str, Any] = associated.get(subnet_id) or associated["main"]
    return found


def vpc_endpoints(deployment: Deployment, vpc_id: str) -> list[dict[str, Any]]:
    """Return the endpoints of a VPC. Needs ec2:DescribeVpcEndpoints."""
    available = {"Name": "vpc-endpoint-state", "Values": ["available"]}
    return deployment.account.list("ec2", "describe_vpc_endpoints", Filters=[_in_vpc(vpc_id), available])


def _in_vpc(vpc_id: str) -> dict[str, Any]:
    return {"Name": "vpc-id", "Values": [vpc_id]}
