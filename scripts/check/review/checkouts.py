"""A configuration in checkouts before and after a change: its settings, and its golden templates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from config import files
from config.settings import Settings, SettingsError, load
from scripts.check.plan.plan import plan_of_directories

if TYPE_CHECKING:
    from scripts.check.plan.report import Plan

_IDENTITY: Final = ("name", "account", "region")
"""Settings that identify a deployment: with another value CloudFormation finds no stack to update."""


@dataclass(frozen=True)
class Configuration:
    """A configuration as a checkout has it.

    Attributes:
        settings: The settings of the file in config/; None: it cannot be used.
        templates: The directory of its golden templates; None: there are none.
        problem: What is wrong with it; empty for nothing.
    """

    settings: Settings | None
    templates: Path | None
    problem: str = ""


def names(*checkouts: Path) -> list[str]:
    """Return the names of the configurations that are in any of the checkouts."""
    return sorted({name for checkout in checkouts for name in files.deployments(checkout / "config")})


def find(checkout: Path, deployment_name: str) -> Configuration | None:
    """Return a configuration of a checkout, None where there is no such file in its config/.

    Settings are read by the rules of the code that runs, which is that of the change.
    """
    path = checkout / "config" / f"{deployment_name}.yaml"
    if not path.exists():
        return None
    folder = checkout / "tests" / "snapshots" / deployment_name
    templates = folder if any(folder.glob("*.json")) else None
    try:
        settings = load(path)
    except SettingsError as error:
        return Configuration(None, templates, str(error).replace(f"{checkout}/", ""))
    missing = f"there are no golden templates of {deployment_name}: run `make snapshots`"
    return Configuration(settings, templates, "" if templates else missing)


def plan(deployment_name: str, before: Configuration | None, after: Configuration | None) -> Plan | None:
    """Return the plan by the golden templates, offline; None where nothing can be deployed any more."""
    if after is None or after.settings is None or after.templates is None:
        return None
    old = None if before is None or list(_moves(before, after)) else before.templates
    return plan_of_directories(deployment_name, after.settings, old, after.templates, accepted=False)


def remarks(deployment_name: str, before: Configuration | None, after: Configuration | None) -> Iterator[str]:
    """Yield what the templates do not show."""
    if before is None:
        return
    if after is None:
        yield (
            "Removing the file removes nothing from AWS: what is deployed stays, and costs, until "
            f"`./ultracluster destroy {deployment_name} --all` with the old file."
        )
        return
    if before.settings is None:
        first, *_ = before.problem.splitlines()
        yield f"The old file cannot be used any more, so costs are not compared: {first}"
    moves = list(_moves(before, after))
    for move in moves:
        yield f"{move}. That is another deployment: what was deployed stays, and costs, until it is destroyed."
    if before.settings and after.settings and not moves:
        yield from _protection(before.settings, after.settings)


def _moves(before: Configuration, after: Configuration) -> Iterator[str]:
    for key in _IDENTITY if before.settings and after.settings else ():
        old, new = getattr(before.settings, key), getattr(after.settings, key)
        if old and new and old != new:
            yield f"`{key}` from {old} to {new}"


def _protection(before: Settings, after: Settings) -> Iterator[str]:
    old, new = set(before.termination_protection), set(after.termination_protection)
    for part in sorted(old - new):
        yield f"{after.stack_name(part)} is **no longer protected** against deletion."
    for part in sorted(new - old):
        yield f"{after.stack_name(part)} is protected against deletion from now on."
