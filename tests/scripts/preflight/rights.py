"""What checks may call, and what they do call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from scripts.deployment import Account
from scripts.preflight.check import Check
from scripts.preflight.cluster import parallelcluster
from scripts.preflight.selection import policy
from tests.scripts.preflight.conftest import GoodAccount

FREE = "sts:GetCallerIdentity"
"""Nobody can be denied it: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html."""
_ACTIONS = {
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListBuckets": "s3:ListAllMyBuckets",
    "s3:ListObjectsV2": "s3:ListBucket",
}
"""Actions that have another name than the operation that they allow.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html
"""
_DRY_RUN = {"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"}
"""ParallelCluster's validators ask EC2 for a dry run, which is no right to look: no check names it."""


def actions(check: Check) -> set[str]:
    """Return the actions that a check says to call."""
    return {permission.action for permission in check.permissions}


@contextmanager
def allowed(account: GoodAccount, rights: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have these rights alone, until the block ends."""
    with account.aws.restricted(rights) as environment, monkeypatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        yield


@contextmanager
def only_what_it_names(check: Check, account: GoodAccount, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a check call what it says to call, and nothing else, until the block ends."""
    if not check.permissions:
        yield
        return
    rights = policy([check])
    if check is parallelcluster:
        rights["Statement"].append(_DRY_RUN)
    with allowed(account, rights, monkeypatch), _calls() as called:
        yield
    assert called <= actions(check)


@contextmanager
def _calls() -> Iterator[set[str]]:
    """Yield a set that gets the actions that checks call from now on."""
    found: set[str] = set()

    def note(model: Any, **_: object) -> None:
        action = f"{model.service_model.signing_name}:{model.name}"
        found.add(_ACTIONS.get(action, action))

    client = Account.client

    def noting(account: Account, *arguments: Any) -> Any:
        made = client(account, *arguments)
        made.meta.events.register("before-call", note, unique_id="preflight")
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Account, "client", noting)
        yield found
