"""What a report must not show: who ran it, in which account, on which addresses."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

ACCOUNT: Final = "<account>"
ADDRESS: Final = "<address>"
_ACCOUNT: Final = re.compile(r"(?<![0-9])(?:[0-9]{12}|[0-9]{4}-[0-9]{4}-[0-9]{4})(?![0-9])")
_UUID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
_RESOURCE: Final = re.compile(r"\b([a-z]{1,12}(?:-[a-z]{2,8})?)-([0-9a-f]{8}|[0-9a-f]{17})\b")
"""As ``i-0123456789abcdef0``: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/resource-ids.html."""
_KEY: Final = re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b")
"""https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html."""
_SIGNED: Final = re.compile(r"\b(X-Amz-[A-Za-z-]+=)[^&\s\"']+")
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
        words: Further words that must not be shown, such as the account's id and the name of this computer.
    """

    salt: str
    words: tuple[str, ...] = ()

    def text(self, text: str) -> str:
        """Return a text without them."""
        for word in self.words:
            text = text.replace(word, "<private>")
        text = _SIGNED.sub(r"\1<signed>", text)
        text = _UUID.sub(lambda match: f"<uuid ~{self._other(match[0])}>", text)
        text = _KEY.sub("<key>", text)
        text = _EMAIL.sub("<e-mail>", text)
        text = _NAME_OF_ADDRESS.sub(ADDRESS, text)
        text = _MAC.sub(ADDRESS, text)
        text = _COLONS.sub(_without_address, text)
        text = _IPV4.sub(ADDRESS, text)
        text = _ACCOUNT.sub(ACCOUNT, text)
        return _RESOURCE.sub(lambda match: f"{match[1]}-~{self._other(match[0])}", text)

    def value(self, value: Any) -> Any:
        """Return a value of JSON without them."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {key: self.value(each) for key, each in value.items()}
        return value

    def _other(self, text: str) -> str:
        return hashlib.sha256(f"{self.salt} {text}".encode()).hexdigest()[:6]


def private_words(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words that are long enough to be replaced everywhere, longest first."""
    return tuple(sorted({each for each in words if len(each) > 3}, key=lambda each: (-len(each), each)))  # noqa: PLR2004


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
