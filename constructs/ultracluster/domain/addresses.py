"""Arithmetic on IPv4 blocks, the blocks of a VPC among it."""

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations

from ultracluster.domain.violations import Violation

AWS_RESERVED_PER_SUBNET = 5
"""The first four addresses and the last of each subnet (Amazon VPC user guide, subnet sizing)."""

_VPC_PREFIXES = range(16, 29)


def usable(block: IPv4Network) -> int:
    """Return how many addresses of a subnet of this block can be given to interfaces."""
    return max(0, block.num_addresses - AWS_RESERVED_PER_SUBNET)


def parse(text: str) -> IPv4Network | None:
    """Return the block, or None when the text is not ADDRESS/PREFIX or has bits set beyond its prefix."""
    try:
        block = IPv4Network(text)
    except ValueError:
        return None
    return block if str(block) == text else None


def room_violations(field: str, cidr: str, needed: int, takers: str) -> Iterator[Violation]:
    """Check that a subnet has enough addresses for what a sentence says. `block_violations` has the others."""
    block = parse(cidr)
    if block is None or needed <= usable(block):
        return
    fitting = [prefix for prefix in _VPC_PREFIXES if 2 ** (32 - prefix) - AWS_RESERVED_PER_SUBNET >= needed]
    allowed = f"a /{max(fitting)} or larger" if fitting else "fewer nodes: no subnet is that large"
    yield Violation((field,), cidr, allowed, f"{takers}; this subnet has {usable(block)}")


def block_violations(cidrs: dict[str, str]) -> Iterator[Violation]:
    """Check a VPC's block, which is the first, and those of its subnets, by field name."""
    blocks: dict[str, IPv4Network] = {}
    for field, text in cidrs.items():
        block = parse(text)
        if block is None:
            allowed = "an IPv4 block such as 10.0.0.0/16, no bits set after the prefix"
            yield Violation((field,), text, allowed, "not a CIDR")
        elif block.prefixlen not in _VPC_PREFIXES:
            yield Violation((field,), text, "a prefix from /16 to /28", "limit of Amazon VPC")
        else:
            blocks[field] = block
    vpc_field = next(iter(cidrs))
    vpc = blocks.pop(vpc_field, None)
    for field, block in blocks.items():
        if vpc and not block.subnet_of(vpc):
            yield Violation((field,), cidrs[field], f"a block inside {vpc}", f"a subnet lies within {vpc_field}")
    for one, other in combinations(blocks, 2):
        if blocks[one].overlaps(blocks[other]):
            yield Violation((other,), cidrs[other], f"a block apart from {one} {cidrs[one]}", "subnets overlap")
