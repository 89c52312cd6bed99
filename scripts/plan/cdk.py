"""The CDK command line, for the account of the credentials in use."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def command(*arguments: str) -> list[str]:
    """Return a command line of the CDK."""
    return ["cdk", "--no-notices", *arguments]


def environment() -> dict[str, str]:
    """Return the environment in which it is found, with Node: `make setup` puts both beside this interpreter.

    It does not ask for newer versions of itself: this project pins one.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "CDK_DISABLE_CLI_TELEMETRY": "1", "CDK_DISABLE_VERSION_CHECK": "1"}
