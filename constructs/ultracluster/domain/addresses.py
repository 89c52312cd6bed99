"""Arithmetic on IPv4 blocks, the blocks of a VPC among it."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from ultracluster.domain.violations import Violation

AWS_RESERVED_PER_SUBNET = 5
"""The first four addresses and the last of each subnet (Amazon VPC user guide, subnet sizing)."""

_VPC_PREFIXES = range(16, 29)


def usable(block: IPv4Network) -> int:
    """Return how many addresses of a subnet of this block can be given to interfaces."""
    return max(0, block.num_addresses - AWS_RESERVED_PER_SUBNET)


def longest_prefix_for(addresses: int) -> int | None:
    """Return the prefix length of the smallest subnet that holds so many addresses, or None when no subnet does."""
    fitting = [p for p in _VPC_PREFIXES if 2 ** (32 - p) - AWS_RESERVED_PER_SUBNET >= addresses]
    return max(fitting, default=None)


def parse(text: str) -> IPv4Network | None:
    """Return the block, or None when the text is not ADDRESS/PREFIX or has bits set beyond its prefix."""
    try:
        block = IPv4Network(text)
    except ValueError:
        return None
    return block if str(block) == text else None


def block_violations(cidrs: dict[str, str]) -> Iterator[Violation]:
    """Check a VPC's block and those of its subnets.

    Args:
        cidrs: CIDR by field name; the first is the VPC's, the others are its subnets'.
    """
    blocks: dict[str, IPv4Network] = {}
    for field, text in cidrs.items():
        block = parse(text)
        if block is None:
            yield Violation(
                (field,), text, "an IPv4 block such as 10.0.0.0/16, no bits set after the prefix", "not a CIDR"
            )
        elif block.prefixlen not in _VPC_PREFIXES:
            yield Violation((field,), text, "a prefix from /16 to /28", "limit of Amazon VPC")
        else:
            blocks[field] = block
    vpc_field, *subnet_fields = cidrs
    vpc = blocks.get(vpc_field)
    seen: list[str] = []
    for field in (name for name in subnet_fields if name in blocks):
        if vpc and not blocks[field].subnet_of(vpc):
            yield Violation((field,), cidrs[field], f"a block inside {vpc}", f"a subnet lies within {vpc_field}")
        for other in seen:
            if blocks[field].overlaps(blocks[other]):
                yield Violation((field,), cidrs[field], f"a block apart from {other} {cidrs[other]}", "subnets overlap")
        seen.append(field)
