"""Process 1 of a machine, which starts and ends its system: run as ``python3 /opt/emulator/init.py``.

It ends with 0 when the machine has been shut down, and with 66 when it is to start again. What it prints is the
console.
The system itself is its child, so that this process has nothing to do but to collect what has ended.
"""

# ruff: noqa: E402 - first, Python learns where this package is
from __future__ import annotations

import sys
from pathlib import Path

_PACKAGES = Path("/usr/lib/emulator")

if __name__ == "__main__":
    _parent = _PACKAGES / "emulator" / "machines"
    _parent.mkdir(parents=True, exist_ok=True)
    if not (_parent / "guest").is_symlink():
        (_parent / "guest").symlink_to(Path(__file__).parent)
    sys.path[1:1] = [str(_PACKAGES), "/opt/parallelcluster/python"]

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import Final

from emulator.machines.guest import (
    accounting,
    aws,
    cloud_init,
    compute_node,
    head_node,
    preinstalled,
    programs,
    supervisor,
    units,
    update,
)
from emulator.machines.guest import node as nodes
from emulator.machines.guest.log_agent import LogAgent
from emulator.machines.guest.node import DNA, Node, StepError

REBOOT_CODE: Final = 66
_STOP_SECONDS: Final = 5
_WANTED: Final = Path("/etc/systemd/system/multi-user.target.wants")
_SERVICES_SECONDS: Final = 1.5


def main() -> int:
    """Run the machine; return how it ended."""
    read, write = os.pipe()
    system = os.fork()
    if system == 0:
        os.close(write)
        _run_system(read)
    os.close(read)
    codes: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        codes.append(REBOOT_CODE if number == signal.SIGINT else 0)
        signal.alarm(_STOP_SECONDS)
        os.kill(system, signal.SIGUSR1)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(system, signal.SIGKILL))
    process = 0
    while process != system:
        process, status = os.wait()
        with suppress(OSError):  # it does not read when it stops
            os.write(write, f"{process} {status}\n".encode())
    return codes[0] if codes else 1


def _run_system(ends: int) -> None:
    """Start everything, and wait until the machine is to end; `ends` tells of processes that have ended."""
    stopped = threading.Event()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    threading.Thread(target=_start, args=(stopped,), daemon=True).start()
    threading.Thread(target=units.keep, args=(ends, stopped), daemon=True).start()
    signal.sigwait({signal.SIGUSR1})
    _print("Stopping.\n")
    stopped.set()
    for process in _others():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    end = time.monotonic() + _SERVICES_SECONDS
    while _others() and time.monotonic() < end:
        time.sleep(0.05)
    if _AGENTS:
        _AGENTS[0].stop()
    os._exit(0)


_AGENTS: Final[list[LogAgent]] = []


def _start(stopped: threading.Event) -> None:
    try:
        programs.install()
        preinstalled.install(aws.metadata("meta-data/instance-type"))
        supervisor.Supervisor()
        _AGENTS.append(LogAgent())
        if cloud_init.is_first_boot():
            cloud_init.run(cloud_init.parse(aws.metadata("user-data")), _print)
        else:
            _start_again()
        if DNA.exists() and Node.load().kind != "HeadNode":
            update.follow_updates(stopped)
    except Exception as error:  # the machine lives on, as one whose services failed
        _print(f"[FAILED] {type(error).__name__}: {error}\n")
        raise


def _start_again() -> None:
    """Start a node's services as its units do, after the instance was rebooted."""
    nodes.mount_all()
    if not DNA.exists():
        return
    node = Node.load()
    name, _, domain = node.ec2_hostname.partition(".")
    if node.kind == "ComputeFleet":
        name = compute_node.NODE_NAME.read_text(encoding="utf-8")
    nodes.search_domains(node, domain)
    nodes.set_host_name(node, name, str(node.cluster["dns_domain"] or domain))
    if node.kind != "ComputeFleet":
        nodes.guard_metadata(node)
    Path("/run/munge").mkdir(exist_ok=True)
    try:
        nodes.start_daemon(*compute_node.MUNGED, resource="munge")
        if node.kind == "HeadNode":
            accounting.start()
            head_node.start_controller()
        if node.kind == "ComputeFleet":
            nodes.start_daemon(*compute_node.slurmd(node), resource="slurmd")
    except StepError as error:
        _print(f"[FAILED] {error.resource}: {error}\n")
    supervisor.ask("start", "all")
    for unit in sorted(_WANTED.glob("*.service")):
        subprocess.run(["systemctl", "--quiet", "start", "--no-block", unit.name], check=False)


def _others() -> list[int]:
    """Return the processes that are neither process 1 nor this one."""
    numbers = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    return [number for number in numbers if number not in (1, os.getpid())]


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
