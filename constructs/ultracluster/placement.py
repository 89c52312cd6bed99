"""Where a file system is in a VPC, and who may reach it."""

from aws_cdk import Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms

from ultracluster.domain import addresses
from ultracluster.domain.violations import Path, Violation, of_other_types


def subnet_in(
    vpc: ec2.IVpc,
    subnet: ec2.ISubnet | None,
    kms_key: kms.IKey | None,
    vpc_cidr: str | None,
    *others: tuple[Path, object, str, str],
) -> tuple[ec2.ISubnet | None, list[Violation]]:
    """Return the subnet of a file system, and what is wrong about arguments that all file systems have.

    The subnet is the one that is given, else the VPC's first private or isolated one; None if types are wrong. `others`
    are arguments of one file system, as `of_other_types` takes them.
    """
    broken = of_other_types(
        (("vpc",), vpc, "vpc_id", "an ec2.IVpc"),
        (("subnet",), subnet, "subnet_id", "an ec2.ISubnet"),
        (("kms_key",), kms_key, "key_arn", "a kms.IKey"),
        *others,
    )
    subnets = [] if broken else [subnet, *vpc.private_subnets, *vpc.isolated_subnets]
    place = next((each for each in subnets if each is not None), None)
    if place is None and not broken:
        reason = "the VPC has neither private nor isolated subnets"
        broken.append(Violation(("subnet",), None, "a subnet", reason))
    if vpc_cidr is not None and not Token.is_unresolved(vpc_cidr) and addresses.parse(vpc_cidr) is None:
        allowed = "an IPv4 block such as 10.0.0.0/16, no bits set after the prefix"
        broken.append(Violation(("vpc_cidr",), vpc_cidr, allowed, "not a CIDR"))
    return place, broken
