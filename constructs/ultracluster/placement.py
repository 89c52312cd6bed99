"""Where resources are in a VPC, and who may reach them."""

from collections.abc import Iterator, Mapping
from typing import Any

from aws_cdk import CfnResource, Reference, Tokenization
from aws_cdk import aws_ec2 as ec2

from ultracluster.arguments import is_not_looked_up, of_type, until_looked_up
from ultracluster.domain import addresses
from ultracluster.domain.violations import Path, Violation, Words, is_token

Subnet = ec2.ISubnet | ec2.SubnetSelection
"""A subnet, or a selection from those of the VPC, whose first one it is, as for the CDK's own instances."""
_SELECTED_BY = ("availability_zones", "one_per_az", "subnet_filters", "subnet_group_name", "subnets", "subnet_type")


def selected(vpc: ec2.IVpc, selection: ec2.SubnetSelection, place: Path, broken: list[Violation]) -> list[ec2.ISubnet]:
    """Return the subnets of a selection; where there are none, why is added to ``broken``.

    Of a VPC that the CDK has not looked up yet they are any of its placeholders.
    """
    given = {name: getattr(selection, name) for name in _SELECTED_BY}
    words = Words("a selection")
    try:
        found = vpc.select_subnets(**{name: value for name, value in given.items() if value is not None})
    except RuntimeError as error:  # an error of JavaScript; the CDK's message says which subnets the VPC has
        reason = str(error).split(": ", 1)[-1].splitlines()[0]
        broken.append(Violation(place, words, f"subnets of {vpc.node.path}", reason))
        return []
    subnets = found.subnets or (vpc.private_subnets if found.is_pending_lookup else [])
    wrong = [each for subnet in subnets for each in of_type(subnet, ec2.ISubnet, place)]
    if not subnets:
        wrong.append(Violation(place, words, f"subnets of {vpc.node.path}", "it selects none"))
    broken += wrong
    return [] if wrong else list(subnets)


def with_subnets(vpc: ec2.IVpc, given: Any, place: Path, broken: list[Violation]) -> Any:
    """Return an argument with the first subnet of each selection in its place, in options and lists of them, too."""
    if isinstance(given, ec2.SubnetSelection):
        return next(iter(selected(vpc, given, place, broken)), None)
    if isinstance(given, list | tuple):
        return [with_subnets(vpc, each, (*place, index), broken) for index, each in enumerate(given)]
    if isinstance(getattr(given, "subnet", None), ec2.SubnetSelection):
        return given.model_copy(update={"subnet": with_subnets(vpc, given.subnet, (*place, "subnet"), broken)})
    return given


def with_subnets_for_selections(vpc: ec2.IVpc, broken: list[Violation], **given: Any) -> dict[str, Any]:
    """Return arguments of a cluster with subnets for selections; as they are, if the VPC is among ``broken``."""
    if any(each.path[0] == "vpc" for each in broken):
        return given
    return {name: with_subnets(vpc, each, (name,), broken) for name, each in given.items()}


def subnet_in(
    vpc: ec2.IVpc, given: Subnet | None, vpc_cidr: str | None, broken: list[Violation]
) -> tuple[ec2.ISubnet | None, list[Violation]]:
    """Return the subnet of a file system, and what is wrong about arguments that all file systems have.

    The subnet is the one that is given, else the VPC's first private or isolated one; None if their types are among
    those that are ``broken``.
    """
    broken = list(broken)
    subnet: ec2.ISubnet | None = None
    if not {"vpc", "subnet"} & {each.path[0] for each in broken}:
        subnet = with_subnets(vpc, given, ("subnet",), broken)
    known = not {"vpc", "subnet"} & {each.path[0] for each in broken}
    subnets = [subnet, *vpc.private_subnets, *vpc.isolated_subnets] if known else []
    place = next((each for each in subnets if each is not None), None)
    if place is None and known:
        reason = "the VPC has neither private nor isolated subnets"
        broken.append(Violation(("subnet",), None, "a subnet", reason))
    if known:
        broken += default_violations("subnet", place if subnet is None else None)
        broken += elsewhere(vpc, {("subnet",): subnet})
    vpc_cidr = until_looked_up(vpc_cidr)
    if isinstance(vpc_cidr, str) and not is_token(vpc_cidr) and addresses.parse(vpc_cidr) is None:
        allowed = "an IPv4 block such as 10.0.0.0/16, no bits set after the prefix"
        broken.append(Violation(("vpc_cidr",), vpc_cidr, allowed, "not a CIDR"))
    return place, broken


def node_subnets(
    vpc: ec2.IVpc, public_subnet: ec2.ISubnet | None, private_subnet: ec2.ISubnet | None
) -> tuple[ec2.ISubnet | None, ec2.ISubnet | None, list[Violation]]:
    """Return the public and the private subnet of a cluster, those of its VPC where none are given, and what is wrong.

    Without public ones the private subnet is both.
    """
    private = next(filter(None, [private_subnet, *vpc.private_subnets, *vpc.isolated_subnets]), None)
    public = next(filter(None, [public_subnet, *vpc.public_subnets]), None)
    if private is None:
        allowed = "a VPC with private or isolated subnets, or private_subnet"
        return public, None, [Violation(("vpc",), vpc.node.path, allowed, "compute nodes take no public addresses")]
    broken = [
        *default_violations("private_subnet", private if private_subnet is None else None),
        *default_violations("public_subnet", public if public_subnet is None else None),
    ]
    return public or private, private, broken


def default_violations(argument: str, subnet: ec2.ISubnet | None) -> Iterator[Violation]:
    """Yield why a subnet that was chosen from those of a VPC, because an argument names none, is not one."""
    for each in of_type(subnet, ec2.ISubnet | None, ()):
        example = 'ec2.Subnet.from_subnet_id(self, "Nodes", Fn.select(0, ids))'
        reason = f"its first subnet that would do; or give {argument}, such as {example}"
        yield Violation(("vpc",), each.got, each.allowed, reason)


def elsewhere(vpc: ec2.IVpc, placed: Mapping[Path, ec2.ISubnet | ec2.ISecurityGroup | None]) -> Iterator[Violation]:
    """Yield which subnets and security groups are in another VPC, as far as the app says where they are."""
    for path, each in placed.items():
        resource = None if each is None else each.node.default_child
        if isinstance(resource, ec2.CfnSubnet | ec2.CfnSecurityGroup) and not may_be_same(resource.vpc_id, vpc.vpc_id):
            kind = "a subnet" if isinstance(resource, ec2.CfnSubnet) else "a security group"
            yield Violation(path, resource.node.path.rpartition("/")[0], f"{kind} of {vpc.node.path}", "of another VPC")


def may_be_same(one: str | None, other: str | None) -> bool:
    """Return whether two texts name one resource, or CloudFormation alone knows."""
    if one is None or other is None or one == other:
        return True
    known = [_known(each) for each in (one, other)]
    return None in known or known[0] == known[1]


def is_public(vpc: ec2.IVpc, subnet: ec2.ISubnet) -> bool:
    """Return whether nodes of a subnet reach the internet by public addresses alone, as far as the app says."""
    if isinstance(subnet, ec2.Subnet):
        resource = subnet.node.default_child
        assigns = isinstance(resource, ec2.CfnSubnet) and resource.map_public_ip_on_launch is True
        return assigns or isinstance(subnet, ec2.PublicSubnet)
    return subnet.node.path in [each.node.path for each in vpc.public_subnets]


def zone_of(subnet: ec2.ISubnet) -> str | None:
    """Return the zone of a subnet that is made in this app; of others it may be a guess of CDK's."""
    resource = subnet.node.default_child
    return resource.attr_availability_zone if isinstance(resource, ec2.CfnSubnet) else None


def _known(name: str) -> str | None:
    """Return what a text names: an id, or the path of a resource of this app; None: CloudFormation alone knows."""
    if not is_token(name):
        return None if is_not_looked_up(name) else name
    token = Tokenization.reverse_string(name).first_token
    made = token.target if isinstance(token, Reference) else None
    return made.node.path if isinstance(made, CfnResource) else None
