from ipaddress import IPv4Network

from ultracluster.domain.addresses import block_violations, longest_prefix_for, parse, usable


def test_aws_keeps_five_addresses() -> None:
    counts = {"10.0.0.0/28": 11, "10.0.0.0/24": 251, "10.0.0.0/16": 65_531}
    assert {block: usable(IPv4Network(block)) for block in counts} == counts


def test_a_subnet_is_never_less_than_empty() -> None:
    assert usable(IPv4Network("10.0.0.0/31")) == 0


def test_the_smallest_subnet_that_holds_them() -> None:
    prefixes = {0: 28, 11: 28, 12: 27, 251: 24, 252: 23, 1911: 21, 15_036: 18, 65_531: 16, 65_532: None}
    assert {addresses: longest_prefix_for(addresses) for addresses in prefixes} == prefixes
    for addresses, prefix in prefixes.items():
        assert prefix is None or usable(IPv4Network(f"10.0.0.0/{prefix}")) >= addresses


def test_only_address_and_prefix_is_a_block() -> None:
    odd = ["", "ten", "10.0.0.0", "10.0.0.1/16", "10.0.0.0/255.255.0.0", "010.0.0.0/16", "10.0.0.0/33", "fd00::/8"]
    for text in odd:
        assert parse(text) is None, text
        assert [(violation.path, violation.got) for violation in block_violations({"cidr": text})] == [
            (("cidr",), text)
        ]


def test_a_block_is_read() -> None:
    assert parse("10.0.64.0/18") == IPv4Network("10.0.64.0/18")


def told(*cidrs: str) -> list[tuple[str | int, str]]:
    found = block_violations(dict(zip(["cidr", "public", "private"], cidrs, strict=True)))
    return [(violation.path[0], violation.allowed) for violation in found]


def test_blocks_beside_each_other_within_the_vpc_are_sound() -> None:
    assert told("10.0.0.0/16", "10.0.0.0/24", "10.0.64.0/18") == []
    assert told("10.0.0.0/16", "10.0.0.0/17", "10.0.128.0/17") == []
    assert told("172.16.0.0/27", "172.16.0.0/28", "172.16.0.16/28") == []


def test_blocks_nest_and_do_not_overlap() -> None:
    assert told("10.0.0.0/16", "10.1.0.0/24", "10.0.64.0/18") == [("public", "a block inside 10.0.0.0/16")]
    assert told("10.0.0.0/17", "10.0.0.0/24", "10.0.0.0/16") == [
        ("private", "a block inside 10.0.0.0/17"),
        ("private", "a block apart from public 10.0.0.0/24"),
    ]
    assert told("10.0.0.0/16", "10.0.64.0/24", "10.0.64.0/18") == [
        ("private", "a block apart from public 10.0.64.0/24")
    ]


def test_prefixes_are_those_of_a_vpc() -> None:
    for prefix, sound in {15: False, 16: True, 28: True, 29: False}.items():
        assert told(f"10.0.0.0/{prefix}", "10.1.0.0/16", "10.2.0.0/16")[:1] == (
            [("public", f"a block inside 10.0.0.0/{prefix}")] if sound else [("cidr", "a prefix from /16 to /28")]
        )


def test_every_fault_of_the_blocks_is_told() -> None:
    assert [field for field, _ in told("x", "10.0.0.0/30", "10.0.0.1/24")] == ["cidr", "public", "private"]
