"""Where a file system is in a VPC, and who may reach it."""

from aws_cdk import Token
from aws_cdk import aws_ec2 as ec2

from ultracluster.domain import addresses
from ultracluster.domain.violations import Violation


def subnet_in(
    vpc: ec2.IVpc, subnet: ec2.ISubnet | None, vpc_cidr: str | None, broken: list[Violation]
) -> tuple[ec2.ISubnet | None, list[Violation]]:
    """Return the subnet of a file system, and what is wrong about arguments that all file systems have.

    The subnet is the one that is given, else the VPC's first private or isolated one; None if their types are among
    those that are ``broken``.
    """
    broken = list(broken)
    known = not {"vpc", "subnet"} & {each.path[0] for each in broken}
    subnets = [subnet, *vpc.private_subnets, *vpc.isolated_subnets] if known else []
    place = next((each for each in subnets if each is not None), None)
    if place is None and known:
        reason = "the VPC has neither private nor isolated subnets"
        broken.append(Violation(("subnet",), None, "a subnet", reason))
    if isinstance(vpc_cidr, str) and not Token.is_unresolved(vpc_cidr) and addresses.parse(vpc_cidr) is None:
        allowed = "an IPv4 block such as 10.0.0.0/16, no bits set after the prefix"
        broken.append(Violation(("vpc_cidr",), vpc_cidr, allowed, "not a CIDR"))
    return place, broken
