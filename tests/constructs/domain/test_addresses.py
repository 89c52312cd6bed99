from ipaddress import IPv4Network

import pytest

from ultracluster.domain.addresses import block_violations, parse, room_violations


@pytest.mark.parametrize(
    ("needed", "allowed"),
    [
        (251, []),
        (252, ["a /23 or larger"]),
        (15_036, ["a /18 or larger"]),
        (65_531, ["a /16 or larger"]),
        (65_532, ["fewer nodes: no subnet is that large"]),
    ],
)
def test_a_subnet_without_enough_addresses(needed: int, allowed: list[str]) -> None:
    broken = list(room_violations("private", "10.0.0.0/24", needed, "nodes take all"))
    assert [each.allowed for each in broken] == allowed
    assert [each.reason for each in broken] == ["nodes take all; this subnet has 251"] * len(allowed)
    assert list(room_violations("private", "no block", needed, "nodes take all")) == [], "another rule reports it"


def test_only_address_and_prefix_is_a_block() -> None:
    assert parse("10.0.64.0/18") == IPv4Network("10.0.64.0/18")
    for text in ("ten", "10.0.0.0", "10.0.0.1/16", "10.0.0.0/255.255.0.0", "010.0.0.0/16", "10.0.0.0/33", "fd00::/8"):
        assert parse(text) is None, text


OUTSIDE, APART = "a block inside 10.0.0.0/16", "a block apart from public 10.0.0.0/24"


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (("10.0.0.0/16", "10.0.0.0/17", "10.0.128.0/17"), []),
        (("172.16.0.0/27", "172.16.0.0/28", "172.16.0.16/28"), []),
        (("10.0.0.0/16", "10.1.0.0/24", "10.0.64.0/18"), [("public", OUTSIDE)]),
        (("10.0.0.0/16", "10.0.0.0/24", "10.0.0.0/18"), [("private", APART)]),
        (("10.0.0.0/16", "10.0.0.0/24", "10.0.0.0/15"), [("private", "a prefix from /16 to /28")]),
        (("10.0.0.0/29", "10.0.0.0/24", "10.0.64.0/18"), [("cidr", "a prefix from /16 to /28")]),
        (
            ("x", "10.0.0.0/30", "10.0.0.1/24"),
            [
                ("cidr", "an IPv4 block such as 10.0.0.0/16, no bits set after the prefix"),
                ("public", "a prefix from /16 to /28"),
                ("private", "an IPv4 block such as 10.0.0.0/16, no bits set after the prefix"),
            ],
        ),
    ],
)
def test_blocks_of_a_vpc(blocks: tuple[str, str, str], expected: list[tuple[str, str]]) -> None:
    broken = block_violations(dict(zip(["cidr", "public", "private"], blocks, strict=True)))
    assert [(violation.path[0], violation.allowed) for violation in broken] == expected
