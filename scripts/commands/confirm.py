"""Compare what somebody typed with the name of a deployment, before a workflow destroys it.

Exit code 0: it is the name; 2: it is not, or the settings cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from config.settings import SettingsError, load
from scripts import environments

CONFIG = Path(__file__).parents[2] / "config"


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(prog="python -m scripts confirm", description=__doc__)
    environments.add_argument(found, CONFIG)
    found.add_argument("typed", metavar="NAME", help="what somebody typed")
    return found


def main() -> int:
    """Compare what the command line names, and return the exit code."""
    given = parser().parse_args()
    try:
        name = load(CONFIG / f"{given.environment}.yaml").name
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    if given.typed != name:
        print(f"got {given.typed!r}; allowed: {name!r}, the name of the deployment; nothing was done", file=sys.stderr)
        return 2
    print(f"{name} it is.")
    return 0
