"""The argument ENV of command lines."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_argument(parser: argparse.ArgumentParser, folder: Path) -> None:
    """Add ENV to a command line: the name of a settings file in a folder, without .yaml."""

    def existing(name: str) -> str:
        known = sorted(path.stem for path in folder.glob("*.yaml"))
        if name not in known:
            raise argparse.ArgumentTypeError(f"no such file in config/: {name}; there is {', '.join(known)}")
        return name

    parser.add_argument("environment", metavar="ENV", type=existing, help="file name in config/ without .yaml")
