"""Which services start again after their end, on plain values; what keeps them runs in tests of shipped deployments."""

from __future__ import annotations

import math
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emulator.machines.guest import node as nodes
from emulator.machines.guest import supervisor, units

UNIT = """\
[Unit]
StartLimitBurst=3

[Service]
Type=forking
ExecStart=/usr/sbin/slurmctld -v
PIDFile=/var/run/slurmctld.pid
Restart=no
RestartSec=1min 30s
"""
EXIT_1 = 1 << 8


def test_drop_ins_overrule_a_unit() -> None:
    assert units.parse("slurmctld", [UNIT, "[Service]\nRestart=on-failure\nRestartSec = 5\n"]) == units.Unit(
        "slurmctld", "on-failure", 5, 3, 10, "/run/slurmctld.pid", "/usr/sbin/slurmctld -v"
    )
    assert units.parse("x", [UNIT]).pause == 90
    plain = units.parse("x", ["[Service]\nExecStart=/bin/true --a=b\n"])
    assert (plain.restart, plain.pause, plain.burst, plain.interval, plain.pid_file) == ("no", 0.1, 5, 10, "")


SPANS = {
    "0": 0, "100ms": 0.1, "500us": 0.0005, "250 µs": 0.00025, "5 seconds": 5, "1minute": 60, "2h": 7200,
    "48hr": 172_800, "1d": 86_400, "1y 12month": 31_557_600 + 12 * 2_630_016, "1 M": 2_630_016, "1 m": 60,
    "2 hours 30 min": 9000,
    "55s500ms": 55.5, "300ms20s 5day": 432_020.3, "1.5h": 5400, "2 weeks": 1_209_600, "infinity": math.inf,
}  # fmt: skip


@pytest.mark.parametrize("text", SPANS)
def test_a_time_span_is_what_systemd_takes_it_for(text: str) -> None:
    """Among them are the examples of systemd.time(7)."""
    assert units.parse("x", [f"RestartSec={text}\n"]).pause == pytest.approx(SPANS[text])


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "5s!", "-1s"])
def test_what_is_no_time_span_makes_no_unit(text: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        units.parse("x", [f"RestartSec={text}\n"])


@pytest.mark.parametrize(
    ("restart", "again"),
    [
        ("no", ""),
        ("always", "exit 0, exit 1, SIGTERM, SIGKILL"),
        ("on-success", "exit 0, SIGTERM"),
        ("on-failure", "exit 1, SIGKILL"),
        ("on-abnormal", "SIGKILL"),
    ],
)
def test_how_a_service_ends_decides_whether_it_starts_again(restart: str, again: str) -> None:
    """As in the table of systemd.service(5)."""
    ends = {"exit 0": 0, "exit 1": EXIT_1, "SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}
    assert ", ".join(name for name, status in ends.items() if units.is_restarted(restart, status)) == again


class Service:
    """A service of a machine, and its clock."""

    def __init__(self, directory: Path, **settings: object) -> None:
        self.file, self.ends, self.alive = directory / "pid", dict[int, int](), set[int]()
        self.started, self.now, self.is_broken = 0, 0.0, False
        text = "".join(f"{name}={value}\n" for name, value in settings.items())
        self.unit = units.parse("slurmctld", [f"PIDFile={self.file}\n{text}"])
        self.keeper = units.Keeper(self.start, self.ends)
        self.start()

    def start(self, _: units.Unit | None = None) -> None:
        self.started += 1
        self.file.write_text(f"{self.started}\n", encoding="ascii")
        self.alive = set() if self.is_broken else {self.started}
        if self.is_broken:
            self.ends[self.started] = EXIT_1

    def end(self, status: int) -> None:
        self.ends[self.started] = status
        self.alive = set()

    def look(self, seconds: int = 0) -> str:
        """Look each second, and return what systemctl is told; empty: nothing, it runs or was stopped."""
        for _ in range(seconds + 1):
            self.keeper.look(self.unit, self.now, is_alive=self.alive.__contains__)
            self.now += 1
        told = units.STATES / "slurmctld"
        return told.read_text(encoding="ascii").strip() if told.exists() else ""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(units, "STATES", tmp_path / "states")
    return tmp_path


def test_a_killed_service_starts_again_when_its_pause_is_over(directory: Path) -> None:
    service = Service(directory, Restart="on-failure", RestartSec=5)
    assert service.look() == ""
    service.end(signal.SIGKILL)
    assert service.look() == "activating"
    assert (service.look(3), service.started) == ("activating", 1)
    service.look()
    assert (service.look(), service.started) == ("", 2)
    service.end(0)
    assert (service.look(60), service.started) == ("inactive", 2)


def test_a_service_that_somebody_stops_stays_down(directory: Path) -> None:
    """It is killed if need be, and then its file is deleted."""
    service = Service(directory, Restart="always", RestartSec=1)
    service.look()
    service.end(signal.SIGKILL)
    service.look()
    service.file.unlink()
    assert (service.look(60), service.started) == ("", 1)


def test_of_an_end_that_nobody_tells_nothing_is_said_but_that_it_is_over(directory: Path) -> None:
    """It is awaited for a moment: a service whose work is done must not start again."""
    service = Service(directory, Restart="on-abnormal", RestartSec=1)
    service.alive = set()
    assert (service.look(), service.look(60), service.started) == ("", "inactive", 1)
    late = Service(directory, Restart="on-failure", RestartSec=1)
    late.alive = set()
    late.look()
    late.end(0)
    assert (late.look(60), late.started) == ("inactive", 1)


def test_a_service_that_fails_at_each_start_is_given_up_or_not_as_its_pause_says(directory: Path) -> None:
    """A second, as ParallelCluster's slurmctld, makes five starts in ten seconds; five seconds never do."""
    given_up = Service(directory, Restart="on-failure", RestartSec=1)
    given_up.end(EXIT_1)
    given_up.is_broken = True
    assert (given_up.look(300), given_up.started) == ("failed", 5)
    never = Service(directory, Restart="on-failure", RestartSec=5)
    never.end(EXIT_1)
    never.is_broken = True
    assert never.look(300) == "activating"
    assert never.started > 40


def test_a_service_without_its_program_is_given_up_and_ends_nothing_else(directory: Path) -> None:
    """One keeper looks at all services of a machine."""
    service = Service(directory, Restart="always", RestartSec=1)
    service.end(EXIT_1)

    def missing(unit: units.Unit) -> None:
        raise FileNotFoundError(unit.command)

    service.keeper = units.Keeper(missing, service.ends)
    assert service.look(300) == "failed"


def test_supervisord_gives_a_program_up_that_ends_at_each_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    """As `diagnose` knows it: three retries after the first start."""
    log = tmp_path / "supervisord.log"
    monkeypatch.setattr(supervisor, "_LOG", log)
    monkeypatch.setattr(supervisor, "_BACKOFF_SECONDS", 0)
    program = supervisor._Program("clustermgtd", "/bin/false", tmp_path / "output")
    program.start()
    wait_for(lambda: program.status.startswith("FATAL"))
    lines = log.read_text(encoding="utf-8").splitlines()
    assert sum("exited: clustermgtd (exit status 1; not expected)" in line for line in lines) == 4
    assert lines[-1].endswith("gave up: clustermgtd entered FATAL state, too many start retries too quickly")


def test_supervisord_forgets_a_retry_of_what_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    monkeypatch.setattr(supervisor, "_LOG", tmp_path / "supervisord.log")
    monkeypatch.setattr(supervisor, "_BACKOFF_SECONDS", 3600)
    program = supervisor._Program("clustermgtd", "/bin/false", tmp_path / "output")
    program.start()
    wait_for(lambda: program.status == "BACKOFF")
    program.stop()
    assert program.status == "STOPPED"


@pytest.fixture
def daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_for: Callable[[Callable[[], bool]], None]
) -> Iterator[Path]:
    """The file with the process id of a program called `daemon`, which nobody collects when it has ended."""
    monkeypatch.setattr(units, "_LOCK", tmp_path / "lock")
    program = tmp_path / "daemon"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "3600"]) as process:
        (tmp_path / "daemon.pid").write_text(f"{process.pid}\n", encoding="ascii")
        wait_for(lambda: nodes.is_running(tmp_path / "daemon.pid"))  # /proc tells of it a moment after its start
        yield tmp_path / "daemon.pid"
        process.kill()


def test_a_daemon_that_is_stopped_has_ended_though_nobody_collects_it(daemon: Path) -> None:
    process = int(daemon.read_text(encoding="ascii"))
    nodes.stop_daemon(daemon)
    assert not units.is_alive(process)
    assert Path(f"/proc/{process}").exists()
    assert not daemon.exists()


def test_who_has_the_process_id_of_a_daemon_that_has_ended_is_left_alone(daemon: Path) -> None:
    process = int(daemon.read_text(encoding="ascii"))
    other = daemon.rename(daemon.with_name("slurmctld.pid"))
    assert not nodes.is_running(other)
    nodes.stop_daemon(other)
    assert units.is_alive(process)
    assert not other.exists()


def test_a_program_that_ignores_the_signal_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that even that does not end, stuck in the kernel, is waited for no longer."""
    monkeypatch.setattr(units, "_LOCK", tmp_path / "lock")
    monkeypatch.setattr(nodes, "_process", lambda _: 1)
    monkeypatch.setattr(nodes, "_KILLED_SECONDS", 0.2)
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _, number: sent.append(number))
    nodes.stop_daemon(tmp_path / "stuck.pid", seconds=0)
    assert sent[0] == signal.SIGTERM
    assert set(sent[1:]) == {signal.SIGKILL}
