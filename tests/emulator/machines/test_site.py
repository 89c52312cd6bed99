"""Machines end with whoever started them, and nothing of them is left; their root is nobody on this computer."""

from __future__ import annotations

import json
import os
import re
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
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
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
run(one, "mkdir --parents /run/emulator/filesystems/fs-1 /run/emulator/exports/home")
run(one, "seq 99999 >/run/emulator/exports/home/numbers")
site.save("i-1", "c", "snap-1")
site.erase("snap-1"), site.erase("fs-1")
storage = f"{site._directory}/storage"
small = ("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", f"{storage}/snapshots")
left = []
for command in (small, ("find", storage), ("umount", f"{storage}/snapshots"), ("find", storage)):
    left += subprocess.run(site.inside(*command), capture_output=True, text=True, check=True).stdout.split()
    if command == small:
        try:
            site.save("i-1", "c", "snap-2")
        except MachineError:
            left.append("refused")
print(*sorted({each.removeprefix(storage) for each in left}))
one.stop(), two.stop()
site.forget("c")
size = "df --block-size=1 --output=size /run/emulator/filesystems | tail -n 1"
print(run(start(4), f"ls -A /run/emulator/exports; {size}; grep MemTotal: /proc/meminfo"))
site.stop()
"""


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_machines_share_what_they_should_and_leave_nothing(end: str, wait_for: Callable[..., None]) -> None:
    """Users other than root have no /usr/sbin in their PATH on Debian."""
    root = image.prepare()
    before = _left(root)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(root), end],
        capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    said, namespaces, failed, *after = done.stdout.split("\n")
    assert said == "endpoint shared ip-10-0-0-2 10.0.0.2/32", done.stderr
    assert failed.startswith("i-3 did not start: "), done.stdout
    wait_for(lambda: not _namespaces() & set(namespaces.split()))
    assert _left(root) == before
    if end == "stop":
        assert after.pop(0).split() == ["/filesystems", "/snapshots", "refused"], "of what was deleted, or has no room"
        # What a cluster exported is gone with it, and its file systems are full before the memory is.
        size, total = (int(re.sub(r"\D", "", line)) for line in after if line)
        assert size < 0.26 * total * 1024


_ATTACK = """
import json, os, subprocess, sys
from pathlib import Path
from emulator.machines import image, support
from emulator.machines.site import MachineSpec, Site

root = image.prepare()
site = Site(root, 9)
environment = {"PATH": os.environ["PATH"], "SECRET_OF_THE_NODE": "secret"}
machine = site.start(MachineSpec("i-1", "10.0.0.1", "10.0.0.0/16", "c", environment), lambda _: None)
command = machine.command("python3", "-c", *sys.argv[2:])
as_users = machine.command("bash", "-c", sys.argv[1])
inside = [line for line in Path(f"/proc/{machine._init}/status").read_text().splitlines() if line.startswith("Uid:")]
said = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]})
users = subprocess.run(as_users, capture_output=True, text=True)
told = [inside[0].split()[1], support.warning(root), machine.command(), said.stdout, said.stderr, users.stdout]
print(json.dumps(told))
site.stop()
"""
_AS_USERS = """
until [[ -e /usr/lib/emulator/emulator/machines/guest ]]; do sleep 0.1; done
python3 - <<'PYTHON'
import sys
sys.path[1:1] = ["/usr/lib/emulator", "/opt/parallelcluster/python"]
from emulator.machines.guest.node import Node, guard_metadata
guard_metadata(Node({"cluster_user": "ubuntu"}))
PYTHON
runuser --user=nobody -- grep --recursive --files-with-matches --no-messages secret /run/emulator /proc/1/environ
for user in root pcluster-admin ubuntu slurm nobody; do
    runuser --user=$user -- timeout 5 bash -c "exec 3<>/dev/tcp/169.254.169.254/80" 2>/dev/null && echo reaches $user
done
"""
_AS_ROOT = """
import os, subprocess, sys
secret, device, process = sys.argv[1:]

def leave():
    os.mkdir("/tmp/prison")
    above = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/prison")
    os.fchdir(above)
    for _ in range(20):
        os.chdir("..")
    os.chroot(".")
    return open(secret).read()

def make_device():
    os.mknod("/tmp/disk", 0o600 | 0o060000, int(device))
    return open("/tmp/disk", "rb").read(1)

def read_memory():
    return open(f"/proc/{process}/environ", "rb").read()

def mount_devices():
    subprocess.run(["mount", "-t", "devtmpfs", "devtmpfs", "/mnt"], check=True)

def write_kernel():
    open("/proc/sys/kernel/core_pattern", "w").write("|/tmp/x")

def write_loan():
    open("/opt/emulator/init.py", "a").close()

def remount_loan():
    subprocess.run(["mount", "-o", "remount,bind,rw", "/opt/emulator"], check=True)
    write_loan()

def set_clock():
    import time
    time.clock_settime(time.CLOCK_REALTIME, time.time())

assert os.geteuid() in (0, 1000) and os.environ["SECRET_OF_THE_NODE"] == "secret"
for attack in (make_device, read_memory, mount_devices, write_kernel, write_loan, remount_loan, set_clock, leave):
    try:
        attack()
    except (OSError, subprocess.CalledProcessError):
        print(attack.__name__, "fails")
    else:
        print(attack.__name__, "WORKS")
"""
_WITHOUT_OWN_USERS = {"make_device", "mount_devices", "remount_loan"}
"""What documents say that root of a machine can do where the kernel does not let it have users of its own."""


@pytest.mark.parametrize("by", [(), ("unshare", "--user", "--map-user=1000", "--map-group=1000")])
def test_root_of_a_machine_is_nobody_here(by: tuple[str, ...], tmp_path: Path) -> None:
    """As this user, and as one who has this user's files and no privilege."""
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    device = Path("/").stat().st_dev
    done = subprocess.run(
        [*by, sys.executable, "-c", _ATTACK, _AS_USERS, _AS_ROOT, str(secret), str(device), str(os.getpid())],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    user, warning, command, said, error, users = json.loads(done.stdout)
    results = dict(line.split() for line in said.splitlines())
    works = {attack for attack, result in results.items() if result == "WORKS"}
    assert len(results) == 8, error
    assert works <= (_WITHOUT_OWN_USERS if warning else set())
    assert (int(user) == 0) == bool(warning)
    assert not [argument for argument in command if "secret" in argument]
    if not by:  # there are other users, who read no secret of the machine, nor reach the key of a head node's role
        assert users.splitlines() == [f"reaches {name}" for name in ("root", "pcluster-admin", "ubuntu", "slurm")]


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
