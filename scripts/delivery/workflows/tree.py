"""Clean clones of a working tree, as jobs check them out."""

from __future__ import annotations

import filecmp
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import yaml

from config.edit import set_value, set_values
from scripts.operations.command import UnusableError

ENVIRONMENTS = (".venv", ".venv-pcluster", ".venv-training", "node_modules")
PINS = ("requirements*.txt", "constraints*.txt", "package*.json", ".npmrc", "scripts/nodes/requirements-training.txt")
"""What the environments are built from: where one is newer than them, make leaves it as it is."""


class Tree:
    """A working tree under git.

    Attributes:
        root: Where it is.
        sha: Its newest commit, which is what jobs get.
    """

    def __init__(self, root: Path, *, reuse_environments: bool) -> None:
        """Look at it.

        Args:
            root: Where it is.
            reuse_environments: Whether clones get the tree's environments in place of building their own.

        Raises:
            UnusableError: It is no git repository, or has no commit.
        """
        self.root = root
        self._reuse = reuse_environments
        try:
            self.sha = self._git("rev-parse", "HEAD")
        except subprocess.CalledProcessError as error:
            raise UnusableError(f"got {root}; allowed: a git repository with a commit: {error.stderr}") from None

    def checkout(self, directory: Path, ref: str) -> None:
        """Clone a commit into a directory, which may be there if it is empty.

        Raises:
            UnusableError: Environments are to be reused that were built from other pins.
        """
        self._git("clone", "--quiet", str(self.root), str(directory))
        subprocess.run(
            ["git", "-C", str(directory), "checkout", "--quiet", "--detach", ref or self.sha],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        if self._reuse:
            self._link(directory)

    def fill_in(self, directory: Path, repository: str, account: str) -> None:
        """Fill in what a team fills in after its fork: the first two values of pipeline.yaml.

        Where it has done so, what else names its account goes: the identity provider, and `account` in settings.
        """
        path = directory / "pipeline.yaml"
        if path.exists():
            set_values(path, {("repository",): repository, ("account",): account, ("oidc_provider_arn",): None})
        for each in sorted((directory / "config").glob("*.yaml")):
            if yaml.safe_load(each.read_text(encoding="utf-8")).get("account") is not None:
                set_value(each, ("account",), None)

    def parent(self) -> str:
        """Return the commit before the newest one; where there is none, that one."""
        return self._git("rev-list", "--max-count=2", "HEAD").splitlines()[-1]

    def _link(self, directory: Path) -> None:
        """Give a clone the tree's environments, and let make take them for newer than the clone's pins."""
        pins = [path for pattern in PINS for path in directory.glob(pattern)]
        for path in pins:
            own = self.root / path.relative_to(directory)
            if not own.exists() or not filecmp.cmp(path, own, shallow=False):
                raise UnusableError(f"got {own}, which differs from the newest commit: the environments are of others")
            os.utime(path, (0, 0))
        for name in ENVIRONMENTS:
            if (self.root / name).exists():
                (directory / name).symlink_to(self.root / name)

    def _git(self, *arguments: str) -> str:
        command: Sequence[str] = ("git", "-C", str(self.root), *arguments)
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
