"""Arithmetic on IPv4 blocks, the blocks of a VPC among it."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations

from ultracluster.domain.violations import Violation, is_token

AWS_RESERVED_PER_SUBNET = 5
"""The first four addresses and the last of each subnet (Amazon VPC user guide, subnet sizing)."""

_VPC_PREFIXES = range(16, 29)
_WIDEST_SOURCE = 8
_PREFIX_LIST = re.compile(r"pl-[0-9a-f]{8}(?:[0-9a-f]{9})?")


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


def refused_source(text: object) -> tuple[str, str] | None:
    """Return what is allowed instead of a source of traffic, and why; None: it may be one."""
    if "AWS.NoValue" in str(text):
        return "a block such as 203.0.113.0/24", "without a source the port is open to the world"
    if is_token(text) or _PREFIX_LIST.fullmatch(str(text)):
        return None
    block = parse(str(text))
    if block is None:
        return "an IPv4 block such as 203.0.113.0/24, or a prefix list pl-...", "not a CIDR"
    if block.prefixlen < _WIDEST_SOURCE:
        return f"a block of /{_WIDEST_SOURCE} or smaller, best your office's", "a port of nodes open to the world"
    return None


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
