"""Compare a typed name with that of a deployment, before a workflow destroys it.

Exit code 0: they are equal; 2: they are not, or the settings cannot be used.
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
    confirm = argparse.ArgumentParser(prog="python -m scripts confirm", description=__doc__)
    environments.add_argument(confirm, CONFIG)
    confirm.add_argument("typed", metavar="NAME", help="the name that was typed")
    return confirm


def main() -> int:
    """Compare the names, and return the exit code."""
    given = parser().parse_args()
    try:
        name = load(CONFIG / f"{given.environment}.yaml").name
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    if given.typed != name:
        print(f"got {given.typed!r}; allowed: {name!r}, the name of the deployment; nothing was done", file=sys.stderr)
        return 2
    print(f"The name is {name}.")
    return 0
