"""The shell of a head node to which programs go: what it calls are fakes, and some directories are a test's."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

_FAKES = 'export REAL="$PATH"; PATH=$WORLD/fakes:$PATH exec sh'
_DIRECTORIES = 'for directory in home etc/skel run; do mount --bind "$WORLD/$directory" "/$directory"; done'


class HeadNodeShell:
    """A shell whose input is a script, as Systems Manager's agent starts it.

    Attributes:
        world: The test's directory, which fakes know as $WORLD; the real commands are at $REAL.
    """

    def __init__(self, world: Path, **fakes: str) -> None:
        """Write fakes: shell text by name of a command."""
        self.world = world
        (world / "fakes").mkdir()
        for name, text in fakes.items():
            (world / "fakes" / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
            (world / "fakes" / name).chmod(0o755)

    @property
    def plain(self) -> list[str]:
        """The command that starts it with the directories of this computer."""
        return ["env", f"WORLD={self.world}", "sh", "-euc", _FAKES]

    @property
    def rooted(self) -> list[str]:
        """The command that starts it as root, with /home, /etc/skel and /run of the test. It needs namespaces."""
        for directory in ("home", "etc/skel", "run/lock"):
            (self.world / directory).mkdir(parents=True, exist_ok=True)
        root = ("unshare", "--user", "--map-root-user", "--mount")
        return ["env", f"WORLD={self.world}", *root, "sh", "-euc", f"{_DIRECTORIES}; {_FAKES}"]


def run(shell: Sequence[str], words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command as the text of a script, outside of the user's environment."""
    environment = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        shell, input=shlex.join(words), capture_output=True, text=True, check=False, env=environment, timeout=60
    )
