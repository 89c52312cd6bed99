"""The access keys of this emulated AWS. moto verifies no signature, so here the key itself is the secret."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from hmac import compare_digest

import moto.iam.models
from moto.core.utils import utcnow
from moto.iam.models import iam_backends
from moto.sts.models import AssumedRole, sts_backends

_KEY = re.compile(r"Credential=([^/,\s]+)/")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"


def access_key(authorization: str) -> str | None:
    """Return the access key in a request's header; None: it is not signed."""
    match = _KEY.search(authorization)
    return match[1] if match else None


class Keys:
    """Those that this process made when it started, and what IAM and STS have made since.

    Attributes:
        own: Of the emulator's own calls, and of those that prepare an account: they are not counted. Followed by
            letters and digits it is the key of somebody whose calls are.
        node: Of what nodes do by themselves: not counted, and allowed whatever the user of an account may do. Followed
            by the id of an instance it is the key of that one, which the boundary of its role bounds.
    """

    def __init__(self) -> None:
        self.own = f"own{secrets.token_hex(16)}"
        self.node = f"node{secrets.token_hex(16)}"

    def are_of_owner(self, key: str) -> bool:
        """Tell whether a key is one of those who started this process, who may do everything."""
        return compare_digest(key[: len(self.own)].encode(), self.own.encode())

    def of_instance(self, instance_id: str) -> str:
        """Return the key of a node."""
        return f"{self.node}{instance_id}"

    def are_of_node(self, key: str) -> bool:
        """Tell whether a key is a node's, or that by which nodes are started and watched."""
        return compare_digest(key[: len(self.node)].encode(), self.node.encode())

    def instance_of(self, key: str) -> str:
        """Return the id of the instance that a node's key is of; empty: of none."""
        return key[len(self.node) :]

    def accept(self, key: str) -> bool:
        """Tell whether a key is one of this emulated AWS."""
        return (
            self.are_of_owner(key)
            or self.are_of_node(key)
            or any(key in iam.access_keys for account in list(iam_backends.values()) for iam in list(account.values()))
        )

    def have_expired(self, key: str) -> bool:
        """Tell whether a key is that of a role's session whose time is over."""
        return any(each.access_key_id == key and each.expiration <= utcnow() for each in _sessions())

    def expire(self, role_arn: str) -> None:
        """Let the time of a role's sessions be over now, as if the hours had passed for which they were asked.

        Raises:
            ValueError: It has none.
        """
        sessions = [each for each in _sessions() if each.role_arn == role_arn]
        if not sessions:
            raise ValueError(f"{role_arn} has no session")
        for each in sessions:
            each.expiration = utcnow()


def _sessions() -> Iterator[AssumedRole]:
    for account in list(sts_backends.values()):
        for sts in list(account.values()):
            yield from sts.assumed_roles


KEYS = Keys()
"""Those of the server's process, and of its clones: moto's response classes have nowhere to be told."""


def make_keys_unguessable() -> None:
    """Let IAM and STS choose keys by chance: moto's begin with the account, and the 35 bits after it are no secret."""

    def generate(account_id: str, prefix: str, total_length: int = 20) -> str:
        del account_id
        return prefix + "".join(secrets.choice(_ALPHABET) for _ in range(total_length - len(prefix)))

    moto.iam.models.generate_access_key_id_from_account_id = generate  # type: ignore[attr-defined]
