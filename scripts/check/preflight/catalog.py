"""All checks, the choice among them, and the IAM policy that they need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from scripts.check.preflight import (
    access,
    accounting,
    budget,
    capacity,
    cluster,
    data,
    homes,
    images,
    names,
    network,
    quotas,
    roles,
    routes,
    tools,
    update,
    zones,
)
from scripts.check.preflight.check import Check, Permission
from scripts.core.errors import UnusableError

CATALOG: tuple[Check, ...] = (
    *access.CHECKS,
    *tools.CHECKS,
    *zones.CHECKS,
    *quotas.CHECKS,
    *capacity.CHECKS,
    *names.CHECKS,
    *images.CHECKS,
    *network.CHECKS,
    *routes.CHECKS,
    *roles.CHECKS,
    *data.CHECKS,
    *accounting.CHECKS,
    *homes.CHECKS,
    *cluster.CHECKS,
    *update.CHECKS,
    *budget.CHECKS,
)
"""In the order in which people read them. The first tells whether AWS can be called at all."""


def select(checks: Sequence[Check], only: Sequence[str], skip: Sequence[str]) -> tuple[Check, ...]:
    """Return the selected checks, in their order.

    Args:
        checks: All checks; the first is always selected together with checks that call AWS.
        only: Ids, or prefixes of ids that end in a hyphen; none: all.
        skip: Ids, or prefixes, to leave out.

    Raises:
        UnusableError: A name fits no check, or no check is left.
    """
    wanted = _named(checks, only) if only else list(checks)
    if checks[0] not in wanted and any(each.permissions for each in wanted):
        wanted.append(checks[0])
    unwanted = _named(checks, skip)
    selected = tuple(each for each in checks if each in wanted and each not in unwanted)
    if not selected:
        raise UnusableError("--only and --skip leave nothing to check")
    return selected


def allowing(permissions: Iterable[Permission]) -> dict[str, Any]:
    """Return an IAM policy with these permissions, and nothing more."""
    actions: dict[str, set[str]] = defaultdict(set)
    for permission in permissions:
        actions[permission.resource].add(permission.action)
    statements = [
        {"Effect": "Allow", "Action": sorted(actions[resource]), "Resource": resource} for resource in sorted(actions)
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def policy(checks: Iterable[Check]) -> dict[str, Any]:
    """Return the IAM policy that these checks need, and nothing more."""
    return allowing(permission for each in checks for permission in each.permissions)


def _named(checks: Sequence[Check], names: Sequence[str]) -> list[Check]:
    named = []
    for name in names:
        fitting = [each for each in checks if each.id == name or (name.endswith("-") and each.id.startswith(name))]
        if not fitting:
            allowed = ", ".join(each.id for each in checks)
            raise UnusableError(f"got {name}; allowed: {allowed}", "a prefix of several ends in -, such as quota-")
        named += fitting
    return named
