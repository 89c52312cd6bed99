"""What moto computes again with every request or reset, though it stays the same: here it is computed once."""

from __future__ import annotations

from functools import cache
from typing import Final

import moto.backends
import moto.core.responses
from moto.core.utils import method_names_from_class
from moto.ec2.models.tags import TagBackend
from moto.iam.models import IAMBackend, ManagedPolicy

_describe_all_tags: Final = TagBackend.describe_tags
_read_managed_policies: Final = IAMBackend._init_aws_policies
_managed_policies: Final[dict[tuple[str, str], list[ManagedPolicy]]] = {}


def avoid_repetitions() -> None:
    """Keep names of modules and of response classes' methods, and AWS's managed policies; find tags."""
    modules = frozenset(moto.backends.list_of_moto_modules())
    moto.backends.list_of_moto_modules = lambda: modules
    moto.core.responses.method_names_from_class = cache(method_names_from_class)  # type: ignore[attr-defined]
    IAMBackend._init_aws_policies = _unattached_policies  # type: ignore[assignment,method-assign]
    TagBackend.describe_tags = _describe_tags  # type: ignore[assignment,method-assign]


def _describe_tags(backend: TagBackend, filters: dict[str, list[str]] | None = None) -> list[dict[str, str]]:
    """Look through the tags of the resources in question, not of all: 1,875 nodes ask one by one."""
    asked = (filters or {}).get("resource-id", [])
    if not asked or any(character in each for each in asked for character in "*?"):
        return _describe_all_tags(backend, filters)
    few = TagBackend()
    few.tags.update({each: backend.tags[each] for each in asked if each in backend.tags})
    return _describe_all_tags(few, filters)


def _unattached_policies(backend: IAMBackend) -> list[ManagedPolicy]:
    owner = (backend.account_id, backend.region_name)
    if owner not in _managed_policies:
        _managed_policies[owner] = _read_managed_policies(backend)
    for policy in _managed_policies[owner]:
        policy.attachment_count = 0  # all else of it is AWS's, and nobody's to change
    return _managed_policies[owner]
