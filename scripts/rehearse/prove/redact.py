"""What a report must not show: who ran it, in which account, on which addresses."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Final

PRIVATE: Final = "<private>"
ACCOUNT: Final = "<account>"
ADDRESS: Final = "<address>"
_ACCOUNT: Final = re.compile(r"(?<![0-9])(?:[0-9]{12}|[0-9]{4}-[0-9]{4}-[0-9]{4})(?![0-9])")
_UUID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
_RESOURCE: Final = re.compile(r"\b([a-z]{1,12}(?:-[a-z]{2,8})?)-([0-9a-f]{8}|[0-9a-f]{17})\b")
"""As ``i-0123456789abcdef0``: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html."""
_KEY: Final = re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b")
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html."""
_SIGNED: Final = re.compile(
    r"\b((?:X-Amz-[a-z-]+|Signature|Credential|AWSAccessKeyId|(?:aws_?)?(?:session|security)_?token"
    r"|(?:aws_?)?secret_?(?:access_?)?key)[\\\"']*\s*[=:]\s*[\\\"']*)[^&\s\\\"',]+",
    re.IGNORECASE,
)
"""Parts of signed requests and credentials, in addresses, headers, files and JSON:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-authentication-methods.html."""
_PERSON: Final = re.compile(
    r"(\barn:aws[a-z-]*:(?:iam|sts)::[^:\s]*:(?:assumed-role|federated-user|user)/|\bassumed-role/)[\w+=,.@/-]+"
)
"""Names of people in ARNs; those of roles of the deployment stay."""
ROLE: Final = re.compile(r"\barn:aws[a-z-]*:iam::[0-9]*:(?:role|user)/[\w+=,.@/-]+")
_OWNER: Final = re.compile(r"(\\?\"(?:user|owner|user_?name)\\?\":\s*\\?\")[^\"\\]+", re.IGNORECASE)
"""Whose a job is, or an event."""
_BUCKET: Final = re.compile(r"\b(parallelcluster-)[0-9a-f]{16}(?![0-9a-f])")
"""ParallelCluster's bucket: a hash of account and Region, of which the account can be found by trying all
(aws-parallelcluster 3.16.1, pcluster/models/s3_bucket.py)."""
_ENDPOINT: Final = re.compile(r"\b[a-z0-9.-]+\.(?:rds|es|cache|redshift)\.amazonaws\.com(?:\.cn)?\b", re.IGNORECASE)
"""A database: a part of its name is the same in all of an account."""
_SUFFIX: Final = re.compile(r"\b(vpce-(?:svc-)?[0-9a-f]{8,17})-[0-9a-z]{8}\b")
"""The name of a VPC endpoint: https://docs.aws.amazon.com/vpc/latest/privatelink/privatelink-access-aws-services.html."""
_SSH_KEY: Final = re.compile(r"\b(?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+\s+AAAA[A-Za-z0-9+/=]+(?:[ \t]+[^\s\"',]+)?")
"""A public key with its comment, which is often a name and a computer."""
_FINGERPRINT: Final = re.compile(r"\bSHA256:[A-Za-z0-9+/]{43}=?")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_START, _END = r"(?<![^\W_])", r"(?![^\W_])"
"""Where a word starts and ends: beside no letter or digit."""
_EMAIL: Final = re.compile(r"[^\s@<>\"'(),;:\[\]\\]+@[^\s@<>\"'(),;:\[\]\\]+\.[A-Za-z]{2,}")
_NAME_OF_ADDRESS: Final = re.compile(r"\b(?:ip|ec2)(?:-[0-9]{1,3}){4}\b(?:\.[a-z0-9-]+)*", re.IGNORECASE)
_IPV4: Final = re.compile(r"(?<![0-9])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9])")
_MAC: Final = re.compile(r"(?<![0-9a-f:])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![0-9a-f:])", re.IGNORECASE)
_COLONS: Final = re.compile(
    r"(?<![0-9A-Za-z])[0-9A-Fa-f]*:[0-9A-Fa-f:]*:(?:(?:[0-9]{1,3}\.){3}[0-9]{1,3}|[0-9A-Fa-f]{0,4})(?![0-9A-Za-z])"
)


@dataclass(frozen=True)
class Redactor:
    """Takes out of texts what must not be shown.

    Ids of resources, which the same text may compare, become others that are the same for the same id.

    Attributes:
        salt: What makes those others; it must not be shown.
        words: Further words that must not be shown, such as the account's id and the name of this computer. Those with
            an @ are not shown without their signs either, as CloudFormation makes logical ids of them.
    """

    salt: str
    words: tuple[str, ...] = ()

    @cached_property
    def _words(self) -> re.Pattern[str]:
        """Any of the words, of whatever case, that is not a part of a longer one."""
        longest_first = sorted(self.words, key=len, reverse=True)
        alone = (
            f"{_START if each[0].isalnum() else ''}{re.escape(each)}{_END if each[-1].isalnum() else ''}"
            for each in longest_first
        )
        squeezed = (re.sub(r"[\W_]", "", each) for each in longest_first if "@" in each)
        return re.compile("|".join([*alone, *squeezed]), re.IGNORECASE)

    def text(self, text: str) -> str:
        """Return a text without them."""
        text = _PRIVATE_KEY.sub("<key>", text)
        text = _SSH_KEY.sub("<ssh key>", text)
        text = _FINGERPRINT.sub("<ssh key>", text)
        if self.words:
            text = self._words.sub(PRIVATE, text)
        text = _PERSON.sub(rf"\1{PRIVATE}", text)
        text = _OWNER.sub(rf"\1{PRIVATE}", text)
        text = _SIGNED.sub(r"\1<signed>", text)
        text = _BUCKET.sub(r"\1<account>", text)
        text = _ENDPOINT.sub("<endpoint>", text)
        text = _SUFFIX.sub(r"\1-<endpoint>", text)
        text = _UUID.sub(lambda match: f"<uuid ~{self._other(match[0])}>", text)
        text = _KEY.sub("<key>", text)
        text = _EMAIL.sub("<e-mail>", text)
        text = _NAME_OF_ADDRESS.sub(ADDRESS, text)
        text = _MAC.sub(ADDRESS, text)
        text = _COLONS.sub(_without_address, text)
        text = _IPV4.sub(ADDRESS, text)
        text = _ACCOUNT.sub(ACCOUNT, text)
        return _RESOURCE.sub(lambda match: f"{match[1]}-~{self._other(match[0])}", text)

    def _other(self, text: str) -> str:
        return hashlib.sha256(f"{self.salt} {text}".encode()).hexdigest()[:6]


def names_in(arn: str) -> tuple[str, ...]:
    """Return the names in the ARN of a user or role, with that of its session, which is often one of a person.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    """
    return tuple(each for each in arn.split(":", 5)[-1].split("/")[1:] if each)


def _without_address(match: re.Match[str]) -> str:
    """Return what stands for text with colons, which may be an IPv6 address, a time or a name of CloudFormation."""
    text = match[0]
    for start, end in product(range(2), range(2)):  # a colon before or after it is no part of it
        inner = text[start : len(text) - end]
        with suppress(ValueError):
            ipaddress.IPv6Address(inner)
            if any(each.isalnum() for each in inner):
                return f"{text[:start]}{ADDRESS}{text[len(text) - end :]}"
    return text
