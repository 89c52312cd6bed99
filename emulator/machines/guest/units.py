"""systemd's part: starts services again as their units say, and knows how they ended; `systemctl` does all else.

https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html#Restart=
"""

from __future__ import annotations

import fcntl
import math
import os
import re
import shlex
import signal
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

STATES: Final = Path("/run/emulator/units")
"""For each service that has ended by itself a file with its state: failed, inactive, or activating before a restart."""
_LOCK: Final = Path("/run/emulator/units.lock")
_UNITS: Final = Path("/etc/systemd/system")
_STATUS: Final = Path("/run")
"""Where the replacement of systemctl writes the process of a service that it has started."""
_CLEAN: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE})
_RESTARTS: Final[Mapping[str, tuple[bool, bool, bool]]] = {
    "always": (True, True, True),
    "on-success": (True, False, False),
    "on-failure": (False, True, True),
    "on-abnormal": (False, False, True),
    "on-abort": (False, False, True),
}
"""Whether a service starts again after a clean end, an exit code other than 0, and another signal."""
_UNKNOWN: Final = 0x100
"""Wait status of what ended so early that systemctl still waited for it, which tells nobody: as with an exit code."""
_SECONDS: Final[Mapping[str, float]] = {
    name: seconds
    for names, seconds in (
        ("usec us µs μs", 1e-6),
        ("msec ms", 1e-3),
        ("seconds second sec s", 1),
        ("minutes minute min m", 60),
        ("hours hour hr h", 3600),
        ("days day d", 86_400),
        ("weeks week w", 604_800),
        ("months month M", 30.44 * 86_400),
        ("years year y", 365.25 * 86_400),
    )
    for name in names.split()
}
"""https://www.freedesktop.org/software/systemd/man/latest/systemd.time.html#Parsing%20Time%20Spans"""
_PART_OF_SPAN: Final = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Zµμ]*)\s*")
_LOOK_SECONDS: Final = 0.5
_REMEMBERED: Final = 1000


@dataclass(frozen=True)
class Unit:
    """A service, as its unit and the drop-ins say.

    Attributes:
        name: Without ``.service``.
        restart: When it starts again.
        pause: Seconds until then.
        burst: How many starts it may have in an interval.
        interval: Seconds; 0: any number of starts.
        pid_file: Where it writes its process; empty: systemctl does (`_STATUS`).
        command: What starts it.
    """

    name: str
    restart: str
    pause: float
    burst: int
    interval: float
    pid_file: str
    command: str = ""

    @property
    def process(self) -> int | None:
        """Return its main process, which may have ended; None: it was stopped, or never started."""
        path = Path(self.pid_file) if self.pid_file else _STATUS / f"{self.name}.service.status"
        try:
            text = path.read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError):
            return None
        match = re.search(r"^(?:MainPID=)?(\d+)$", text, re.MULTILINE)
        return int(match[1]) if match else None


def parse(name: str, texts: list[str]) -> Unit:
    """Return what a unit and its drop-ins say; of a setting the last one counts."""
    said = {
        key.strip(): value.strip()
        for text in texts
        for key, separator, value in (line.partition("=") for line in text.splitlines())
        if separator
    }
    return Unit(
        name,
        said.get("Restart", "no"),
        _span(said.get("RestartSec", "100ms")),
        int(said.get("StartLimitBurst", 5)),
        _span(said.get("StartLimitIntervalSec", said.get("StartLimitInterval", "10"))),
        said.get("PIDFile", "").replace("/var/run/", "/run/"),
        said.get("ExecStart", ""),
    )


def _span(text: str) -> float:
    """Return the seconds of a time span, such as ``5``, ``100ms``, ``1min 30s``, ``2 hours`` or ``infinity``.

    Raises:
        ValueError: It is none.
        KeyError: There is no such unit.
    """
    if text == "infinity":
        return math.inf
    if not re.fullmatch(f"(?:{_PART_OF_SPAN.pattern})+", text):
        raise ValueError(f"got {text!r}; allowed: a time span")
    return sum(float(number) * _SECONDS[unit or "s"] for number, unit in _PART_OF_SPAN.findall(text))


def is_restarted(restart: str, status: int) -> bool:
    """Return whether a service starts again that has ended by itself with a wait status."""
    is_clean = os.WTERMSIG(status) in _CLEAN if os.WIFSIGNALED(status) else os.WEXITSTATUS(status) == 0
    kind = 0 if is_clean else 2 if os.WIFSIGNALED(status) else 1
    return _RESTARTS.get(restart, (False,) * 3)[kind]


@dataclass
class _Service:
    ended: int | None = None
    """The process whose end was dealt with."""
    missed: int | None = None
    """One whose wait status is not known yet: process 1 may be about to tell it."""
    due: float | None = None
    starts: list[float] = field(default_factory=list)


class Keeper:
    """Starts services again.

    What somebody stops has no main process any more, as `systemctl` deletes what said so: it stays as it is.
    """

    def __init__(self, start: Callable[[Unit], object], ends: Mapping[int, int]) -> None:
        """Take what starts a service, and the wait statuses of processes that have ended."""
        self._start = start
        self._ends = ends
        self._services: dict[str, _Service] = {}

    def look(self, unit: Unit, now: float, *, is_alive: Callable[[int], bool]) -> None:
        """See to a service."""
        service = self._services.setdefault(unit.name, _Service())
        process = unit.process
        if process is None or is_alive(process):
            service.due = service.ended = service.missed = None
            (STATES / unit.name).unlink(missing_ok=True)
        elif service.ended != process:
            if process in self._ends or service.missed == process:
                self._end(unit, service, process, now)
            service.missed = process
        elif service.due is not None and now >= service.due:
            self._start_again(unit, service, now)

    def _end(self, unit: Unit, service: _Service, process: int, now: float) -> None:
        is_known, status = process in self._ends, self._ends.get(process, _UNKNOWN)
        service.ended, service.due = process, None
        if is_restarted(unit.restart, status):
            service.starts = service.starts or [now]
            service.due = now + unit.pause
            _state(unit, "activating")
        else:
            _state(unit, "failed" if is_known and is_restarted("on-failure", status) else "inactive")

    def _start_again(self, unit: Unit, service: _Service, now: float) -> None:
        service.starts = [each for each in service.starts if now - each < unit.interval]
        if unit.interval and len(service.starts) >= unit.burst:
            service.due = None
            _state(unit, "failed")
            return
        service.starts.append(now)
        service.due = now + unit.pause  # if it fails at once
        with suppress(OSError, ValueError, subprocess.SubprocessError):  # its program is not there, or is no command
            self._start(unit)


def _state(unit: Unit, state: str) -> None:
    STATES.mkdir(parents=True, exist_ok=True)
    (STATES / unit.name).write_text(f"{state}\n", encoding="ascii")


def keep(pipe: int, stopped: threading.Event) -> None:
    """Keep services running until the machine stops.

    Args:
        pipe: From which process 1 tells of each process that has ended: its number and wait status, as a line.
        stopped: Set when the machine stops.
    """
    ends: OrderedDict[int, int] = OrderedDict()
    threading.Thread(target=_read, args=(pipe, ends), daemon=True).start()
    keeper = Keeper(_start, ends)
    known: dict[Path, tuple[int, Unit]] = {}
    while not stopped.wait(_LOOK_SECONDS):
        for path in _UNITS.glob("*.service"):
            unit = _load(path, known)
            if unit:
                keeper.look(unit, time.monotonic(), is_alive=is_alive)


def _load(path: Path, known: dict[Path, tuple[int, Unit]]) -> Unit | None:
    """Return the unit of a file; it is read again when that, or one of its drop-ins, has changed."""
    files = [path, *sorted(path.with_name(f"{path.name}.d").glob("*.conf"))]
    try:
        changed = hash(tuple((each, each.stat().st_mtime_ns) for each in files))
        if path not in known or known[path][0] != changed:
            known[path] = changed, parse(path.stem, [each.read_text(encoding="utf-8") for each in files])
    except (OSError, ValueError, KeyError):  # it is being written, or is no unit that systemd takes
        return None
    return known[path][1]


def _read(pipe: int, ends: OrderedDict[int, int]) -> None:
    with os.fdopen(pipe, encoding="ascii") as lines:
        for line in lines:
            process, status = map(int, line.split())
            ends[process] = status
            if len(ends) > _REMEMBERED:
                ends.popitem(last=False)


@contextmanager
def alone() -> Iterator[None]:
    """Let no service start again meanwhile; what is about to start has done so before."""
    with os.fdopen(os.open(_LOCK, os.O_CREAT | os.O_RDWR, 0o600), "w") as lock:  # who may read it may hold it
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _start(unit: Unit) -> None:
    """Start a service, a daemon by its own command: systemctl would wait for 45 s for one that ends at once."""
    by_systemctl = ["systemctl", "--quiet", "start", f"{unit.name}.service"]
    with alone():
        process = unit.process
        if process is not None and not is_alive(process):
            command = shlex.split(unit.command) if unit.pid_file else by_systemctl
            null = subprocess.DEVNULL
            subprocess.run(
                command, stdin=null, stdout=null, stderr=null, start_new_session=True, check=False, timeout=90
            )


def is_alive(process: int) -> bool:
    """Return whether a process has not ended; one that nobody has collected has."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")
