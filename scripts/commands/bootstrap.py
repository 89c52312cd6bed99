"""Print the arguments of `cdk bootstrap` for a configuration, for `make bootstrap`.

Exit code 2: arguments or settings cannot be used.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from scripts import environments

CONFIG = Path(__file__).parents[2] / "config"


def main() -> int:
    """Print them, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m scripts bootstrap", description=__doc__)
    environments.add_argument(parser, CONFIG)
    environment = parser.parse_args().environment

    from config.settings import SettingsError, load
    from toolchain import bootstrap

    try:
        settings = load(CONFIG / f"{environment}.yaml")
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    print(shlex.join(bootstrap.arguments(settings.bootstrap)))
    return 0
