"""No account, address or name of who walked is in a text that is kept for others."""

from __future__ import annotations

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts.rehearse.prove.redact import Redactor, names_in
from tests.properties import QUICK

REDACTOR = Redactor("salt", ("ada@example.com", "laptop", "/home/ada", "ada"))
AROUND = st.sampled_from(
    ["", " ", ":", "/", '"', "'", "(", ")", ",", "=", "[", "]", "\n", "@", "arn:aws:iam::", "port "]
)
ACCOUNTS = st.from_regex(r"\A[0-9]{12}\Z")
IPV4 = st.ip_addresses(v=4).map(str)
IPV6 = st.ip_addresses(v=6)


@QUICK
@given(st.text(max_size=20), AROUND, ACCOUNTS, AROUND, st.text(max_size=20))
def test_no_account_stays(before: str, left: str, account: str, right: str, after: str) -> None:
    shown = REDACTOR.text(f"{before}{left}{account}{right}{after}")
    assert not re.search(r"(?<![0-9])[0-9]{12}(?![0-9])", shown)


@QUICK
@given(AROUND, IPV4, AROUND)
def test_no_ipv4_address_stays(left: str, address: str, right: str) -> None:
    assert address not in REDACTOR.text(f"{left}{address}{right}")


@QUICK
@given(
    st.sampled_from(["", " ", ":", "addr:", "/", '"', "(", "=", "[", "\n"]),
    IPV6,
    st.sampled_from(["", " ", ": ", "/64", '"', ")", "]", "%eth0"]),
    st.booleans(),
)
def test_no_ipv6_address_stays(left: str, address: ipaddress.IPv6Address, right: str, exploded: bool) -> None:
    written = address.exploded if exploded else address.compressed
    if written in ("::",):
        return
    shown = REDACTOR.text(f"{left}{written}{right}")
    assert written not in shown


TEXT = "Zq3/x+Tok9en=="
CREDENTIALS = st.sampled_from(
    [
        "X-Amz-Security-Token={}", "x-amz-security-token: {}", "X-Amz-Signature={}", "Signature={}", "Credential={}",
        "aws_session_token = {}", "AWS_SESSION_TOKEN={}", '"SessionToken": "{}"', '\\"SecretAccessKey\\": \\"{}\\"',
        "aws_secret_access_key={}", "export AWS_SECRET_ACCESS_KEY='{}'", "aws_security_token={}",
    ]
)  # fmt: skip


@QUICK
@given(AROUND, CREDENTIALS, st.sampled_from(["", " ", "&x=1", ",", '"', "\n"]))
def test_no_credential_stays(left: str, form: str, right: str) -> None:
    assert "Zq3" not in REDACTOR.text(f"{left} {form.format(TEXT)}{right}")


@QUICK
@given(AROUND, st.sampled_from(["jo", "x", "node", "Jane.Doe", "jane.doe"]), AROUND)
def test_no_word_stays_however_short_and_longer_words_do(left: str, word: str, right: str) -> None:
    shown = Redactor("salt", ("jo", "x", "node", "jane.doe")).text(f"a {left}{word}{right} nodes exec journal.")
    assert word not in re.split(r"[^A-Za-z.]+", shown)
    assert shown.endswith("nodes exec journal.")


@QUICK
@given(st.text())
def test_what_is_redacted_stays_as_it_is(text: str) -> None:
    once = REDACTOR.text(text)
    assert REDACTOR.text(once) == once


def test_no_address_stays_in_a_logical_id() -> None:
    shown = Redactor("salt", ("ada.b@example.com",)).text("Topic/ada.b@example.com (MonitoringTopicadabexamplecom0A1B)")
    assert shown == "Topic/<private> (MonitoringTopic<private>0A1B)"


def test_names_in_arns() -> None:
    session = "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Admin_0a1b2c/jane.doe"
    assert names_in(session) == ("AWSReservedSSO_Admin_0a1b2c", "jane.doe")
    assert names_in("arn:aws:iam::123456789012:user/team/jane") == ("team", "jane")
    assert names_in("arn:aws:iam::123456789012:root") == ()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("arn:aws:iam::123456789012:role/x", "arn:aws:iam::<account>:role/x"),
        ("1234-5678-9012", "<account>"),
        ("0.123456789012", "0.<account>"),
        ("10.0.0.1:22 and 10.0.0.1/24", "<address>:22 and <address>/24"),
        ("fe80::1%eth0, [2001:db8::1]:443", "<address>%eth0, [<address>]:443"),
        ("::ffff:10.0.0.1", "<address>"),
        ("02:ab:cd:ef:01:23", "<address>"),
        ("ip-10-0-1-2.us-west-2.compute.internal up", "<address> up"),
        ("mail to bob.b+c@example.org.", "mail to <e-mail>."),
        ("AKIAIOSFODNN7EXAMPLE", "<key>"),
        ("?X-Amz-Credential=AB%2Fc&X-Amz-Signature=00ff", "?X-Amz-Credential=<signed>&X-Amz-Signature=<signed>"),
        ("ada@laptop:/home/ada/x", "<private>@<private>:<private>/x"),
        ("10:33:29 PM AWS::EC2::VPC std::x 2.27.1 1,536", "10:33:29 PM AWS::EC2::VPC std::x 2.27.1 1,536"),
        ("s3://parallelcluster-0a1b2c3d4e5f6071-v1-do-not-delete/x", "s3://parallelcluster-<account>-v1-do-not-delete/x"),
        ("arn:aws:sts::123456789012:assumed-role/Admin/bob by", "arn:aws:sts::<account>:assumed-role/<private> by"),
        ("arn:aws:iam::123456789012:user/team/bob", "arn:aws:iam::<account>:user/<private>"),
        ("dev.c1a2b3c4d5e6.us-west-2.rds.amazonaws.com:3306", "<endpoint>:3306"),
        ('{"id": 7, "user": "bob", "name": "x"}', '{"id": 7, "user": "<private>", "name": "x"}'),
        ('"{\\"user\\": \\"bob\\"}"', '"{\\"user\\": \\"<private>\\"}"'),
        ("ssh-ed25519 AAAAC3NzaC1lZDI1 bob@desk", "<ssh key>"),
        ("sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1l", "<ssh key>"),
        ("SHA256:" + "a" * 43, "<ssh key>"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----.", "<key>."),
    ],
)  # fmt: skip
def test_texts(text: str, shown: str) -> None:
    redactor = Redactor("salt", ("laptop", "/home/ada", "ada"))
    assert redactor.text(text) == shown


def test_no_name_of_a_vpc_endpoint_stays() -> None:
    shown = REDACTOR.text("vpce-0123456789abcdef0-ab12cd34.ssm.us-west-2.vpce.amazonaws.com")
    assert "ab12cd34" not in shown
    assert "0123456789abcdef0" not in shown


def test_ids_of_resources_can_be_compared_and_not_known() -> None:
    first, other = "fs-0123456789abcdef0", "fs-0123456789abcdef1"
    shown = REDACTOR.text(f"{first} {other} {first}").split()
    assert shown[0] == shown[2] != shown[1]
    assert shown[0].startswith("fs-~")
    assert first not in shown
    assert Redactor("another", ()).text(first) != shown[0]
    assert "0123" not in REDACTOR.text("6f1c0123-aaaa-bbbb-cccc-0123456789ab")
