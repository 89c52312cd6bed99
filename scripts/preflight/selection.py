"""Which checks the command line asks for, and the rights that they need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from scripts.preflight.check import Check, Permission


class SelectionError(ValueError):
    """There is no such check, or none is left."""


def select(checks: Sequence[Check], only: Sequence[str], skip: Sequence[str]) -> tuple[Check, ...]:
    """Return the checks that are asked for, in their order.

    Args:
        checks: All that there are; the first tells whether the account can be asked, and comes along with those that
            call AWS.
        only: Ids, or beginnings of ids that end in a hyphen; none: all.
        skip: Ids, or beginnings, of what is left out all the same.

    Raises:
        SelectionError: A name fits no check, or no check is left.
    """
    wanted = _named(checks, only) if only else list(checks)
    if checks[0] not in wanted and any(each.permissions for each in wanted):
        wanted.append(checks[0])
    unwanted = _named(checks, skip)
    found = tuple(each for each in checks if each in wanted and each not in unwanted)
    if not found:
        raise SelectionError("--only and --skip leave nothing to check")
    return found


def policy(checks: Sequence[Check]) -> dict[str, Any]:
    """Return the IAM policy that lets these checks look, and nothing more."""
    return allowing(permission for each in checks for permission in each.permissions)


def allowing(permissions: Iterable[Permission]) -> dict[str, Any]:
    """Return an IAM policy with these rights, and nothing more."""
    actions: dict[str, set[str]] = defaultdict(set)
    for permission in permissions:
        actions[permission.resource].add(permission.action)
    statements = [
        {"Effect": "Allow", "Action": sorted(actions[resource]), "Resource": resource} for resource in sorted(actions)
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def _named(checks: Sequence[Check], names: Sequence[str]) -> list[Check]:
    found = []
    for name in names:
        fitting = [each for each in checks if each.id == name or (name.endswith("-") and each.id.startswith(name))]
        if not fitting:
            ids = [each.id for each in checks]
            close = get_close_matches(name, ids) or ids
            raise SelectionError(f"no check {name!r}; there is {', '.join(close)}")
        found += fitting
    return found
