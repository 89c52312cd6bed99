"""supervisord's part: keeps ParallelCluster's daemons running, and starts and stops them when asked."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from emulator.machines.guest.node import LOGS, Node

_SOCKET: Final = Path("/run/supervisor.sock")
_LOG: Final = Path("/var/log/supervisord.log")
_OWN: Final = "/usr/local/sbin"
_DAEMONS: Final = "/opt/parallelcluster/bin"
_PROGRAMS: Final[Mapping[str, Mapping[str, tuple[str, Path]]]] = {
    "HeadNode": {
        "cfn-hup": (f"{_OWN}/cfn-hup", Path("/var/log/cfn-hup-output.log")),
        "clustermgtd": (f"{_OWN}/clustermgtd", LOGS / "clustermgtd"),
        "clusterstatusmgtd": (f"{_OWN}/clusterstatusmgtd", LOGS / "clusterstatusmgtd"),
    },
    "ComputeFleet": {"computemgtd": (f"{_DAEMONS}/computemgtd", LOGS / "computemgtd")},
}
_STOP_SECONDS: Final = 10
_ALWAYS: Final = "cfn-hup"
"""What starts again also after a good end (autorestart)."""
_START_SECONDS: Final = 1.0
_START_RETRIES: Final = 3
"""supervisord's own startsecs and startretries. http://supervisord.org/configuration.html#program-x-section-settings"""
_BACKOFF_SECONDS: Final = 1.0
"""Before the first retry, and as many more before each further one."""


class _Program:
    """A program that is kept running as long as it is wanted."""

    def __init__(self, name: str, command: str, output: Path) -> None:
        self.name = name
        self._command = command
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None
        self._end = "STOPPED"
        self._wanted = threading.Event()
        threading.Thread(target=self._keep, daemon=True).start()

    @property
    def status(self) -> str:
        """Return it as supervisorctl prints it."""
        if self._process is None:
            return self._end
        return f"RUNNING   pid {self._process.pid}" if self._process.poll() is None else "BACKOFF"

    def start(self) -> None:
        self._wanted.set()

    def stop(self) -> None:
        """Stop it, and wait until it has ended."""
        self._wanted.clear()
        if (process := self._process) is not None:
            process.terminate()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._finish("STOPPED")  # it may have ended by itself, and wait for its next start
            _note("INFO", f"stopped: {self.name} (terminated by SIGTERM)")

    def _keep(self) -> None:
        failures = 0
        while self._wanted.wait():
            process = self._spawn()
            is_running = self._stays_up(process)
            failures = 0 if is_running else failures + 1
            code = process.wait()
            if not self._wanted.is_set():
                failures = self._finish("STOPPED")
                continue
            is_good = code == 0 and is_running
            how = f"terminated by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
            level = "INFO" if is_good else "WARN"
            _note(level, f"exited: {self.name} ({how}; {'' if is_good else 'not '}expected)")
            if is_good and self.name != _ALWAYS:
                self._wanted.clear()
                self._finish("EXITED")
            elif failures > _START_RETRIES:
                self._wanted.clear()
                failures = self._finish("FATAL     Exited too quickly (process log may have details)")
                _note("INFO", f"gave up: {self.name} entered FATAL state, too many start retries too quickly")
            else:
                time.sleep(failures * _BACKOFF_SECONDS)
                failures = failures if self._wanted.is_set() else 0

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            process = subprocess.Popen(
                [self._command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        self._process = process
        _note("INFO", f"spawned: '{self.name}' with pid {process.pid}")
        return process

    def _stays_up(self, process: subprocess.Popen[bytes]) -> bool:
        """Return whether a process has run for so long that its start has succeeded."""
        try:
            process.wait(_START_SECONDS)
        except subprocess.TimeoutExpired:
            stays = f"process has stayed up for > than {_START_SECONDS:.0f} seconds (startsecs)"
            _note("INFO", f"success: {self.name} entered RUNNING state, {stays}")
            return True
        return False

    def _finish(self, state: str) -> int:
        self._process, self._end = None, state
        return 0


class Supervisor:
    """Answers `ask`, in a thread."""

    def __init__(self) -> None:
        self._programs: dict[str, _Program] = {}
        self._lock = threading.Lock()
        _SOCKET.unlink(missing_ok=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(_SOCKET))
        self._listener.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rw", encoding="utf-8") as file:
            action, _, name = file.readline().strip().partition(" ")
            with self._lock:
                file.write(self._do(action, name))

    def _do(self, action: str, name: str) -> str:
        if not self._programs:
            programs = _PROGRAMS.get(Node.load().kind, {})
            self._programs = {each: _Program(each, *found) for each, found in programs.items()}
            _note("INFO", f"supervisord started with pid {os.getpid()}")
        said = []
        for program in self._programs.values():
            if name not in ("all", "", program.name):
                continue
            if action in ("stop", "restart"):
                program.stop()
                said.append(f"{program.name}: stopped")
            if action in ("start", "restart"):
                program.start()
                said.append(f"{program.name}: started")
            if action == "status":
                said.append(f"{program.name:<32} {program.status}")
        return "\n".join(said or [f"{name}: ERROR (no such process)"]) + "\n"


def ask(action: str, name: str) -> str:
    """Ask the supervisor to start, stop or restart a program, or for its status, and return what it says."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(_SOCKET))
        connection.sendall(f"{action} {name}\n".encode())
        with connection.makefile(encoding="utf-8") as file:
            return file.read()


def supervisorctl(arguments: Sequence[str]) -> int:
    """Do what the command line says; return the exit code."""
    said = ask(arguments[0], arguments[1] if len(arguments) > 1 else "all")
    print(said, end="")
    return int("ERROR" in said)


def _note(level: str, text: str) -> None:
    now = datetime.now(UTC)
    with suppress(OSError), _LOG.open("a", encoding="utf-8") as file:  # programs are kept on a full disk, too
        file.write(f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03} {level} {text}\n")
