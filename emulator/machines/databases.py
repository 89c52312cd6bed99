"""The database instances of RDS, as machines with MariaDB: they start, stop and end with the instance."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from emulator.machines.fleet import Fleet
from emulator.machines.guest.database import SOCKET, statements
from emulator.machines.site import Machine, MachineSpec
from emulator.machines.support import MachineError
from emulator.moto_patches.rds import Database, DatabaseServers

_PATH: Final = "/usr/sbin:/usr/bin:/sbin:/bin"
_START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_SHUTDOWN_SECONDS: Final = 10.0


class Databases(DatabaseServers):
    """All database servers of one emulated AWS."""

    def __init__(self, fleet: Fleet) -> None:
        """Take the fleet in whose place they run."""
        self._fleet = fleet
        self._running: dict[str, Machine] = {}
        self._latest: dict[str, Database] = {}
        self._workers: dict[str, ThreadPoolExecutor] = {}
        self._lock = threading.Lock()

    def created(self, database: Database, done: Callable[[str], None]) -> None:
        """Start a server, on the data that it has, in a while."""
        self._later(database, lambda: done("available" if self._start(database) else "failed"))

    def changed(self, database: Database, done: Callable[[str], None]) -> None:
        """Let a server have another master password, in a while."""

        def change() -> None:
            self._latest[_machine(database)] = database
            done(
                "available" if self._execute(database, statements(database.user, database.password, None)) else "failed"
            )

        self._later(database, change)

    def stopped(self, database: Database, done: Callable[[str], None]) -> None:
        """Stop a server, in a while; its data stay."""

        def stop() -> None:
            self._stop(database)
            done("stopped")

        self._later(database, stop)

    def deleted(self, database: Database) -> None:
        """Stop a server, and delete its data, in a while."""

        def delete() -> None:
            self._stop(database)
            self._fleet.place().discard(_machine(database))

        self._later(database, delete)

    def reset(self) -> None:
        """Forget all servers; they end with their place."""
        with self._lock:
            workers, self._workers, self._running = self._workers, {}, {}
        for worker in workers.values():
            worker.shutdown(wait=False, cancel_futures=True)

    def _later(self, database: Database, do: Callable[[], object]) -> None:
        """Do something in a thread, after what is to be done with the same instance before."""
        with self._lock:
            worker = self._workers.setdefault(_machine(database), ThreadPoolExecutor(max_workers=1))
            worker.submit(do)

    def _start(self, database: Database) -> bool:
        """Start a server, and wait until it answers; return whether it does."""
        wanted = {name: getattr(database, name) for name in ("port", "user", "password", "schema", "parameters")}
        spec = MachineSpec(
            instance_id=_machine(database),
            address=database.address,
            network=self._fleet.network(database.region, database.vpc_id),
            cluster="rds",
            environment={"PATH": _PATH, "LANG": "C.UTF-8", "DATABASE": json.dumps(wanted)},
            program="database.py",
        )
        self._latest[spec.instance_id] = database
        answered = threading.Event()

        def ended(_: int) -> None:
            """Start a server again that has ended by itself, as RDS does."""
            if answered.is_set():
                self._later(database, again)

        def again() -> None:
            self._stop(database)
            self._start(self._latest[spec.instance_id])

        try:
            machine = self._fleet.place().start(spec, ended)
        except MachineError:
            return False
        with self._lock:
            self._running[spec.instance_id] = machine
        end = time.monotonic() + _START_SECONDS
        while machine.code is None and time.monotonic() < end:
            if self._execute(database, "SELECT 1"):
                answered.set()
                return True
            time.sleep(_LOOK_SECONDS)
        return False

    def _stop(self, database: Database) -> None:
        with self._lock:
            machine = self._running.pop(_machine(database), None)
        if machine:
            machine.stop(_SHUTDOWN_SECONDS)
            machine.close()

    def _execute(self, database: Database, sql: str) -> bool:
        """Run statements as the server's own administrator; return whether it took them."""
        with self._lock:
            machine = self._running.get(_machine(database))
        if machine is None:
            return False
        command = machine.command("mariadb", "--connect-timeout=5", f"--socket={SOCKET}")
        own = {"PATH": os.environ["PATH"]}
        return subprocess.run(command, input=sql, text=True, capture_output=True, check=False, env=own).returncode == 0


def _machine(database: Database) -> str:
    """Return the name of an instance's machine."""
    return f"db-{database.region}-{database.name}"
