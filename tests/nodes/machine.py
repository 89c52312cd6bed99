"""A machine under test: the real scripts in a root directory of its own, with its own network, kernel and hardware.

What a machine is made of is written before it runs. What it wrote itself is kept between its runs.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from emulator.machines.hardware.files import instance_files
from scripts.check.estimate.hardware import TRAINIUM_HARDWARE
from tests.end_to_end.slurm.base import ENVIRONMENT
from tests.nodes.base import NODES, Base
from tests.nodes.packages import HERE, KERNELS

ADDRESS = "10.0.64.17"
"""Primary address of each machine."""

OS_RELEASE = {
    "ubuntu2404": 'ID=ubuntu\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n',
    "ubuntu2204": 'ID=ubuntu\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\n',
    "alinux2023": 'ID="amzn"\nVERSION_ID="2023"\n',
}
SITES = "sites"
NO_INTERNET = "-"
MIRROR_FAULT = "/etc/mirror-fault"
"""File with the fault of all mirrors, see internet.py."""


@dataclass(frozen=True)
class Outcome:
    """What a script did.

    Attributes:
        code: Its exit code.
        output: Standard output; there must not be anything else.
    """

    code: int
    output: str

    @property
    def last_line(self) -> str:
        return self.output.splitlines()[-1]


class Machine:
    """A machine, off until a script runs on it.

    Attributes:
        os_name: ParallelCluster's name of the operating system.
        name: Host name.
    """

    def __init__(
        self,
        base: Base,
        os_name: str = "ubuntu2404",
        instance_type: str = "trn1.32xlarge",
        name: str = "trn1-dy-trn1-32xl-1",
    ) -> None:
        self.os_name = os_name
        self.name = name
        self._base = base
        self._directory = self._new_directory()
        self.mount("fsx")
        self.mount("scratch")
        self.write("/etc/os-release", OS_RELEASE[os_name])
        self.write("/etc/kernel-release", KERNELS[os_name] + "\n")
        self.protected_regular = 0
        self._fit(instance_type)

    def clone(self, *, instance_type: str | None = None) -> Machine:
        """Return another machine, in the state of this one, or with the state but the hardware of a type."""
        other = Machine.__new__(Machine)
        other.__dict__.update(self.__dict__)
        other._directory = self._new_directory()
        for part in ("upper", "mounts", "meminfo", "protected_regular"):
            # shutil has no copy of overlayfs's marks for what was deleted
            subprocess.run(["cp", "--archive", self._directory / part, other._directory], check=True)
        if instance_type:
            other._fit(instance_type)
        return other

    def discard(self) -> None:
        """Delete all that there is of the machine."""
        shutil.rmtree(self._directory)

    def mount(self, name: str, mode: int = 0o1777) -> None:
        """Mount a file system below the root directory."""
        directory = self._directory / "mounts" / name
        directory.mkdir()
        directory.chmod(mode)

    def unmount(self, name: str) -> None:
        shutil.rmtree(self._directory / "mounts" / name)

    def limit(self, what: str, size: str) -> None:
        """Give ``root`` or ``fsx`` a size such as ``1m``, and nothing on it but what was there before."""
        (self._directory / f"{what}.size").write_text(size, encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        target = self._upper / path.removeprefix("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def write_program(self, path: str, commands: str) -> None:
        """Put commands of bash in the place of a program, or with /usr/local before it."""
        self.write(path, f"#!/bin/bash\n{commands}\n")
        self.path(path).chmod(0o755)

    def prepare(self, commands: str) -> None:
        """Let commands of bash run on the machine before each script."""
        self.write("/prepare.sh", commands)

    def hang(self, path: str, command: str) -> None:
        """Let a program hang, and the time limit be over as soon as a command is run with it."""
        self.write_program(path, "exec /usr/bin/sleep infinity")
        self.end_time_for(command)

    def end_time_for(self, command: str) -> None:
        """Let the time limit be over as soon as a command is run with it."""
        shorten = f'[[ " $* " != *{shlex.quote(f" {command} ")}* ]] || set -- "$1" 1 "${{@:3}}"'
        self.write_program("/usr/local/bin/timeout", f'{shorten}\nexec /usr/bin/timeout "$@"')

    def remove(self, path: str) -> None:
        """Remove a file or directory that was written here or by a script."""
        target = self.path(path)
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink()

    def path(self, path: str) -> Path:
        """Return where a file that was written here or by a script is on the machine that runs the tests."""
        name = path.removeprefix("/")
        mounted = self._directory / "mounts" / name
        return mounted if mounted.exists() else self._upper / name

    def read(self, path: str) -> str:
        return self.path(path).read_text(encoding="utf-8")

    @property
    def protected_regular(self) -> int:
        """The kernel's setting of that name, of which a kernel has one for all machines; ParallelCluster leaves 0."""
        return int((self._directory / "protected_regular").read_text(encoding="utf-8"))

    @protected_regular.setter
    def protected_regular(self, value: int) -> None:
        (self._directory / "protected_regular").write_text(f"{value}\n", encoding="utf-8")

    def remove_efa(self, *, from_bus: bool) -> None:
        """Take an EFA device away: from its driver, or from the instance."""
        self.remove("/sys/class/infiniband/rdmap0s26")
        if from_bus:
            self.remove("/sys/bus/pci/devices/0000:00:1a.0")

    def keep_devices(self, count: int) -> None:
        """Let neuron-ls tell of fewer devices."""
        self.write("/etc/neuron-ls.json", json.dumps(json.loads(self.read("/etc/neuron-ls.json"))[:count]))

    def run(
        self, script: str, facts: Mapping[str, str], *, sites: str = SITES, seconds_left: int | None = None
    ) -> Outcome:
        """Run a script of the bundle, as its node does.

        Args:
            script: Its name.
            facts: Its arguments.
            sites: What of the internet is there: a directory of the base's build, or ``NO_INTERNET``.
            seconds_left: What is left of its time limit; None: all of it.
        """
        with self.start(script, facts, sites=sites, seconds_left=seconds_left) as process:
            try:
                output, errors = process.communicate(timeout=600)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        assert errors == "", errors
        return Outcome(process.returncode, output)

    def run_killed(self, script: str, facts: Mapping[str, str]) -> None:
        """Run a script, and switch the machine off in the middle of the driver's installation."""
        self.write("/hold", "")
        with self.start(script, facts) as process:
            while not (self._upper / "held").exists():
                assert process.poll() is None, "the script ended before the driver was installed"
                time.sleep(0.05)
            process.kill()
        for flag in ("hold", "held"):
            (self._upper / flag).unlink()

    def start(
        self, script: str, facts: Mapping[str, str], *, sites: str = SITES, seconds_left: int | None = None
    ) -> subprocess.Popen[str]:
        """Start a script of the bundle."""
        passed = 0 if seconds_left is None else time_limit(script) - seconds_left
        prepared = '[[ ! -e /prepare.sh ]] || source /prepare.sh; exec "$@"'
        command = ["env", f"SECONDS={passed}", "bash", f"/opt/ultracluster/current/{script}"]
        arguments = [f"{name}={value}" for name, value in facts.items()]
        return self.execute(["bash", "-c", prepared, "prepared", *command, *arguments], sites=sites)

    def execute(self, command: Sequence[str], *, sites: str = SITES) -> subprocess.Popen[str]:
        """Start a command on the machine."""
        internet = [
            sys.executable,
            str(HERE / "internet.py"),
            sites if sites == NO_INTERNET else str(self._base.build / sites),
            str(self._base.build / "certificate.pem"),
            json.dumps({"instance-type": self._instance_type, "local-ipv4": ADDRESS}),
            str(self._upper / MIRROR_FAULT.removeprefix("/")),
        ]
        namespaces = ["--mount", "--net", "--uts", "--pid", "--ipc", "--fork", "--kill-child"]
        return subprocess.Popen(
            ["unshare", *namespaces, "bash", str(HERE / "enter.sh"), str(self._base.workspace), str(self._directory),
             self.name, shlex.join(internet), *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT,
        )  # fmt: skip

    def output_of(self, command: str) -> str:
        """Return what a command of bash prints on the machine, which has no internet; it must succeed."""
        with self.execute(["bash", "-c", command], sites=NO_INTERNET) as process:
            output, errors = process.communicate(timeout=600)
        assert (process.returncode, errors) == (0, ""), errors
        return output

    def manifest(self) -> dict[str, str]:
        """Return everything that the machine ever wrote: kind, mode, time and content by path."""
        states = {}
        for top in (self._upper, self._directory / "mounts"):
            for path in sorted(top.rglob("*")):
                status = path.lstat()
                content = ""
                if path.is_symlink():
                    content = str(path.readlink())
                elif path.is_file():
                    content = hashlib.sha256(path.read_bytes()).hexdigest()
                states[str(path.relative_to(self._directory))] = f"{status.st_mode:o} {status.st_mtime_ns} {content}"
        return states

    @property
    def _upper(self) -> Path:
        return self._directory / "upper"

    def _new_directory(self) -> Path:
        directory = Path(tempfile.mkdtemp(prefix="machine-", dir=self._base.workspace))
        directory.chmod(0o755)
        for part in ("upper", "work", "root", "mounts"):
            (directory / part).mkdir()
        return directory

    def _fit(self, instance_type: str) -> None:
        """Give the machine what an instance of a type has."""
        self._instance_type = instance_type
        for path in ("/sys/class/infiniband", "/sys/bus/pci/devices"):
            if self.path(path).exists():
                self.remove(path)
        hardware = TRAINIUM_HARDWARE.get(instance_type)
        memory_kib = int(hardware.memory_gib if hardware else 8) * 1024**2
        (self._directory / "meminfo").write_text(f"MemTotal: {memory_kib} kB\n", encoding="utf-8")
        for path, text in instance_files(instance_type, hardware.vcpus if hardware else 4).items():
            self.write(path, text)


def time_limit(script: str) -> int:
    """Return the seconds that a script of the bundle may take."""
    limits = [
        re.search(r"\bTIME_LIMIT=(\d+)$", (NODES / path).read_text(encoding="utf-8"), re.MULTILINE)
        for path in (script, "lib/common.sh")
    ]
    return int(next(match[1] for match in limits if match))
