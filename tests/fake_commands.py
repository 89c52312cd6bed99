"""Commands that stand in for those of a node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_commands(directory: Path, commands: Mapping[str, str]) -> None:
    """Make a directory of bash programs, by name."""
    directory.mkdir(parents=True)
    for name, text in commands.items():
        (directory / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (directory / name).chmod(0o755)
