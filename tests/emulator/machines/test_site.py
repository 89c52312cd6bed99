"""Machines end with whoever started them, and nothing of them is left on this computer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from emulator.machines import image

pytestmark = [pytest.mark.slow, pytest.mark.system]

_PROGRAM = """
import os, signal, subprocess, sys
from pathlib import Path
from emulator.machines.site import MachineSpec, Site
from emulator.machines.support import MachineError

def start(number):
    environment = {"PATH": os.environ["PATH"]}
    return site.start(MachineSpec(f"i-{number}", f"10.0.0.{number}", "10.0.0.0/16", "c", environment), lambda _: None)

def run(machine, command):
    return subprocess.run(machine.command("bash", "-c", command), capture_output=True, text=True, check=True).stdout

site = Site(Path(sys.argv[1]), 9)
one, two = start(1), start(2)
run(one, "echo shared >/run/emulator/exports/file; echo own >/own; nohup sleep 1000 >/dev/null 2>&1 &")
shell = "(exec 3<>/dev/tcp/127.0.0.1/9 && echo endpoint); cat /run/emulator/exports/file; ls /own 2>/dev/null; hostname"
print(*run(two, shell + "; ip -oneline -4 address show eth0 | awk '{print $4}'").split())
inside = [run(machine, "readlink /proc/1/ns/pid").strip() for machine in (one, two)]
print(*inside, flush=True)
try:
    site.start(MachineSpec("i-3", "nowhere", "10.0.0.0/16", "c", {"PATH": os.environ["PATH"]}), lambda _: None)
except MachineError as error:
    print(str(error).splitlines()[0], flush=True)
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
site.stop()
"""


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_machines_share_what_they_should_and_leave_nothing(end: str, wait_for: Callable[..., None]) -> None:
    root = image.prepare()
    before = _left(root)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(root), end],
        capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    said, namespaces, failed = done.stdout.splitlines()
    assert said == "endpoint shared ip-10-0-0-2 10.0.0.2/32", done.stderr
    assert failed.startswith("i-3 did not start: "), done.stdout
    wait_for(lambda: not _namespaces() & set(namespaces.split()))
    assert _left(root) == before


def _namespaces() -> set[str]:
    """Return those of all processes of this computer."""
    found = set()
    for each in Path("/proc").glob("[0-9]*/ns/pid"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found.add(str(each.readlink()))
    return found


def _left(root: Path) -> tuple[object, ...]:
    """Return mounts below the directory of machines, interfaces of this computer, and what is beside the image."""
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    ours = [line for line in mounts if f" {root.parent}/" in line]
    return ours, *(sorted(each.glob("*")) for each in (Path("/sys/class/net"), root.with_name("site")))
