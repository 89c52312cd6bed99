"""Fakes of commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent


def write_commands(directory: Path, commands: Mapping[str, str]) -> None:
    """Write bash programs to a directory, by name; text that starts with a line break may be indented."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in commands.items():
        (directory / name).write_text(f"#!/bin/bash\n{dedent(text)}\n", encoding="utf-8")
        (directory / name).chmod(0o755)
