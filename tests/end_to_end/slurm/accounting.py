"""A real Slurm of several nodes with accounting: slurmdbd, and MariaDB in place of MySQL, which Debian lacks."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.end_to_end.slurm.cluster import HERE, SlurmCluster

_SLURM_USER_ID = 64030
DATABASE = "shared/home/mysql"
"""The database, below the directory of a cluster. That of a cluster that has ended can be another one's first."""


class AccountingCluster(SlurmCluster):
    """A Slurm cluster with accounting, which runs within a ``with`` block."""

    def __init__(
        self,
        base: Path,
        directory: Path,
        nodes: int = 2,
        settings: Mapping[str, str] | None = None,
        database: Path | None = None,
    ) -> None:
        """Describe a cluster.

        Args:
            base: Root directory of `emulator.machines.image`.
            directory: Where its files go; an empty directory.
            nodes: How many nodes.
            settings: Lines of slurm.conf in place of those in the file next to this one, such as those that
                ParallelCluster would get as CustomSlurmSettings.
            database: The database of a cluster that has ended, to be continued.
        """
        self._next_id = 2000
        storage = {"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": "head"}
        super().__init__(base, directory, nodes, settings={**storage, **(settings or {})})
        configuration = directory / "shared/opt/slurm/etc/slurmdbd.conf"
        shutil.copy(HERE / "slurmdbd.conf", configuration)
        configuration.chmod(0o600)  # or slurmdbd refuses to start
        os.chown(configuration, _SLURM_USER_ID, _SLURM_USER_ID)
        if database is not None:
            shutil.copytree(database, directory / DATABASE)
            for path in [directory / DATABASE, *(directory / DATABASE).rglob("*")]:
                os.chown(path, _SLURM_USER_ID, _SLURM_USER_ID)

    def stop_accounting(self) -> None:
        """Stop the controller, slurmdbd and the database, which can be copied then."""
        for program in ("slurmctld", "slurmdbd", "mariadbd"):
            self.run(f"pkill {program}; while pgrep {program}; do sleep 0.1; done")

    def start_accounting(self) -> None:
        """Start the database and slurmdbd again, and wait until they answer."""
        self.run((HERE / "accounting.sh").read_text(encoding="utf-8"))

    def add_users(self, *names: str) -> None:
        """Make users on all machines; Slurm itself knows nothing of them."""
        for name in names:
            number = self._next_id = self._next_id + 1
            command = f"useradd --uid {number} --no-create-home --shell /bin/bash {name}"
            self.run(f"{command} && install --directory --owner={name} --group={name} /home/{name}")
            for node in self.nodes:
                node.sh(command)
