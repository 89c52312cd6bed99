"""What a deployment of the settings after a change would do where those of before are deployed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from scripts.plan.plan import plan_of_directories

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.plan.model import Plan
    from scripts.review.checkouts import Configuration

_PLACE: Final = ("name", "account", "region")
"""Settings that say which deployment it is: with another value CloudFormation finds no stack to update."""


def plan(environment: str, before: Configuration | None, after: Configuration | None) -> Plan | None:
    """Return the change plan of the golden templates, offline; None where nothing can be deployed any more."""
    if after is None or after.settings is None or after.templates is None:
        return None
    old = None if before is None or list(_moves(before, after)) else before.templates
    return plan_of_directories(environment, after.settings, old, after.templates, accepted=False)


def remarks(environment: str, before: Configuration | None, after: Configuration | None) -> Iterator[str]:
    """Yield what the templates do not tell."""
    if before is None:
        return
    if after is None:
        yield (
            "Removing the file removes nothing from AWS: what is deployed stays, and costs, until "
            f"`make destroy ENV={environment} ARGS=--all` with the file as it was."
        )
        return
    if before.settings is None:
        first, *_ = before.fault.splitlines()
        yield f"The file as it was cannot be used any more, so costs are not compared: {first}"
    moves = list(_moves(before, after))
    for move in moves:
        yield f"{move}. That is another deployment: what was deployed stays, and costs, until it is destroyed."
    if before.settings and after.settings and not moves:
        yield from _protection(before.settings, after.settings)


def _moves(before: Configuration, after: Configuration) -> Iterator[str]:
    for key in _PLACE if before.settings and after.settings else ():
        old, new = getattr(before.settings, key), getattr(after.settings, key)
        if old and new and old != new:
            yield f"`{key}` from {old} to {new}"


def _protection(before: Settings, after: Settings) -> Iterator[str]:
    old, new = set(before.termination_protection), set(after.termination_protection)
    for part in sorted(old - new):
        yield f"{after.stack_name(part)} is **no longer protected** against deletion."
    for part in sorted(new - old):
        yield f"{after.stack_name(part)} is protected against deletion from now on."
