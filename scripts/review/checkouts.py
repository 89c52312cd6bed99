"""A configuration in a checkout: its settings, and the golden templates that belong to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from config.settings import Settings, SettingsError, load


@dataclass(frozen=True)
class Configuration:
    """A configuration as a checkout has it.

    Attributes:
        settings: What the file in config/ says; None: it cannot be used.
        templates: The directory of its golden templates; None: there are none.
        fault: What is wrong with it; empty for nothing.
    """

    settings: Settings | None
    templates: Path | None
    fault: str = ""


def names(*checkouts: Path) -> list[str]:
    """Return the names of the configurations that are in any of the checkouts."""
    return sorted({path.stem for checkout in checkouts for path in (checkout / "config").glob("*.yaml")})


def find(checkout: Path, environment: str) -> Configuration | None:
    """Return a configuration of a checkout, None where there is no such file in its config/.

    Settings are read by the rules of the code that runs, which is that of the change.
    """
    path = checkout / "config" / f"{environment}.yaml"
    if not path.exists():
        return None
    folder = checkout / "tests" / "snapshots" / environment
    templates = folder if any(folder.glob("*.json")) else None
    try:
        settings = load(path)
    except SettingsError as error:
        return Configuration(None, templates, str(error).replace(f"{checkout}/", ""))
    missing = f"there are no golden templates of {environment}: run `make snapshots`"
    return Configuration(settings, templates, "" if templates else missing)
