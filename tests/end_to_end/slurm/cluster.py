"""A real Slurm of several nodes on this machine, in namespaces of its own, for tests of what runs on nodes and in jobs.

Each node has a host name, an address, processes and a root directory of its own, and can be switched off. Nothing of
the machine that runs the tests is touched. It takes root and mmdebstrap.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from emulator.machines.hardware.files import NODE_FACTS, hardware_files, node_facts
from tests.end_to_end.slurm.base import ENVIRONMENT, MOUNTS, USER, USER_ID, ClusterError, call

HERE = Path(__file__).parent
NODES = HERE.parents[2] / "nodes"

_NAMESPACES = ("--mount", "--uts", "--ipc", "--net", "--pid")
"""Those of a machine, as unshare and nsenter name them."""

_FINAL = {"BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}


class Node:
    """A node of a cluster.

    Attributes:
        name: Its host name, and what Slurm knows it as.
    """

    def __init__(self, cluster: SlurmCluster, name: str) -> None:
        self.name = name
        self._cluster = cluster

    def sh(self, command: str, timeout: float = 600) -> str:
        """Run a shell command on the node, as root, and return what it prints.

        Raises:
            ClusterError: The command failed.
        """
        root = f"{self._directory}/root"
        inside = ["nsenter", "--target", self._processes[1], *_NAMESPACES, "chroot", root, "bash", "-c", command]
        return self._cluster.outside(*inside, timeout=timeout)

    def write(self, files: Mapping[str, str]) -> None:
        """Write files, of text by path, and the directories that they are in. What is in a bin is executable."""
        lines = ["set -e"]
        for path, text in files.items():
            mode = 755 if "/bin/" in path else 644
            lines.append(f"install -D --mode={mode} /dev/null {shlex.quote(path)}")
            lines.append(f"printf %s {shlex.quote(text)} >{shlex.quote(path)}")
        self.sh("\n".join(lines))

    def power_off(self) -> None:
        """End the node and all that runs on it, at once."""
        self._cluster.outside("kill", "-KILL", self._processes[0])

    @property
    def states(self) -> set[str]:
        """What Slurm says of it, such as IDLE and DRAIN."""
        return set(self._shown["State"].split("+"))

    @property
    def reason(self) -> str:
        """Why it is drained; empty if it is not."""
        return re.sub(r" \[\S+@\S+\]$", "", self._shown.get("Reason", ""))

    @property
    def _shown(self) -> dict[str, str]:
        return parse(self._cluster.run(f"scontrol show node --oneliner {self.name}"))

    @property
    def _directory(self) -> str:
        return f"{self._cluster.directory}/machines/{self.name}"

    @property
    def _processes(self) -> list[str]:
        return self._cluster.outside("cat", f"{self._directory}/processes").split()


class SlurmCluster:
    """A Slurm cluster, which runs within a ``with`` block.

    Attributes:
        directory: Where its files are, among them ``shared/fsx`` and ``shared/home``, which are on all nodes.
        init: Number of the first process in its namespaces.
        nodes: Its nodes, ``trn1-st-trn1-32xl-1`` and following.
    """

    init: str

    def __init__(
        self,
        base: Path,
        directory: Path,
        nodes: int = 4,
        settings: Mapping[str, str] | None = None,
        borrowed: Mapping[str, Path] | None = None,
    ) -> None:
        """Describe a cluster.

        Args:
            base: Root directory of `emulator.machines.image`.
            directory: Where its files go; an empty directory.
            nodes: How many nodes.
            settings: Lines of slurm.conf in place of those in the file next to this one.
            borrowed: Directories of this machine to mount on all machines, read-only, by absolute path there.
        """
        self.nodes = [Node(self, f"trn1-st-trn1-32xl-{index}") for index in range(1, nodes + 1)]
        self.directory = directory
        (directory / "base").symlink_to(base)
        (directory / "machines").mkdir()
        for mount in MOUNTS[:-1]:
            (directory / "shared" / mount).mkdir(parents=True)
        (directory / "shared/opt/slurm/etc").mkdir()
        (directory / "shared/fsx").chmod(0o1777)
        home = directory / "shared/home" / USER
        home.mkdir()
        os.chown(home, USER_ID, USER_ID)
        shutil.copytree(NODES, directory / "shared" / MOUNTS[-1])
        addresses = {"127.0.0.1": "localhost", "10.99.1.254": "head"}
        addresses |= {f"10.99.1.{index}": node.name for index, node in enumerate(self.nodes, start=1)}
        hosts = "".join(f"{address} {name}\n" for address, name in addresses.items())
        (directory / "hosts").write_text(hosts, encoding="utf-8")
        mounts = "".join(f"{path} {source}\n" for path, source in (borrowed or {}).items())
        (directory / "borrowed").write_text(mounts, encoding="utf-8")
        self._write_configuration(settings or {})

    def __enter__(self) -> Self:
        script = ("bash", str(HERE / "cluster.sh"), str(self.directory), *(node.name for node in self.nodes))
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                ["unshare", *_NAMESPACES, "--fork", "--kill-child", *script],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=ENVIRONMENT,
            )  # fmt: skip
        try:
            self.wait_until(lambda: (self.directory / "ready").exists() or self._process.poll() is not None)
            if self._process.poll() is not None:
                raise ClusterError(f"It did not start:\n{(self.directory / 'log').read_text(encoding='utf-8')}")
            children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
            self.init = children.read_text(encoding="utf-8").split()[0]
            self.wait_until(self.is_up)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def _write_configuration(self, settings: Mapping[str, str]) -> None:
        lines = [
            line
            for line in (HERE / "slurm.conf").read_text(encoding="utf-8").splitlines()
            if line.partition("=")[0] not in settings
        ]
        lines += [f"{name}={value}" for name, value in settings.items()]
        last = len(self.nodes)
        lines += [
            f"NodeName=trn1-st-trn1-32xl-[1-{last}] NodeAddr=10.99.1.[1-{last}] CPUs=4 "
            "Feature=static,trn1.32xlarge,trn1-32xl",
            "PartitionName=trn1 Nodes=ALL Default=YES",
        ]
        configuration = self.directory / "shared/opt/slurm/etc"
        (configuration / "slurm.conf").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (configuration / "cgroup.conf").write_text("CgroupPlugin=disabled\n", encoding="utf-8")
        for when in ("prolog", "epilog"):
            hook = self.directory / f"shared/opt/slurm/etc/scripts/{when}.d/90_pcluster"
            hook.parent.mkdir(parents=True)
            hook.write_text("#!/bin/bash\n", encoding="utf-8")
            hook.chmod(0o755)

    def is_up(self) -> bool:
        """Return whether all nodes can take jobs."""
        return self._idle_nodes() == len(self.nodes)

    def _idle_nodes(self) -> int:
        with contextlib.suppress(ClusterError):
            return len(set(self.run("sinfo --Node --noheader --format=%N --states=idle --responding").splitlines()))
        return 0

    def outside(self, *command: str, timeout: float = 600) -> str:
        """Run a command in the cluster's namespaces, but in the root directory of the machine that runs the tests."""
        return call("nsenter", "--target", self.init, *_NAMESPACES, "env", "-C", "/", *command, timeout=timeout)

    def run(self, command: str, *, user: str = "root", timeout: float = 600) -> str:
        """Run a shell command on the head node and return what it prints.

        Raises:
            ClusterError: The command failed.
        """
        root = f"{self.directory}/machines/head/root"
        inside = (
            "chroot",
            f"--userspec={user}:{user}",
            root,
            "env",
            f"HOME=/home/{user}",
            "bash",
            "-c",
            f"cd /home/{USER}; {command}",
        )
        return self.outside(*inside, timeout=timeout)

    def make_healthy(self) -> None:
        """Let all nodes look like a trn1.32xlarge without a fault."""
        for node in self.nodes:
            node.write(
                {**hardware_files("trn1.32xlarge"), NODE_FACTS: node_facts("trn1.32xlarge"), "/run/kernel.log": ""}
            )

    def add_hooks(self) -> None:
        """Let Slurm check the nodes before and after each job, as the head node's script sets it."""
        scripts = "/opt/ultracluster/current"
        self.run(f"set -e; source {scripts}/lib/common.sh; source {scripts}/install/head_node.sh; add_slurm_hooks")

    def submit(self, script: str, options: str = "") -> int:
        """Submit a batch job of bash as the user, whose output goes to ``/home/USER``, and return its number."""
        text = script if script.startswith("#!") else f"#!/bin/bash\n{script}\n"
        answer = self.run(
            f"sbatch --parsable --open-mode=append {options} <<'END-OF-SCRIPT'\n{text}\nEND-OF-SCRIPT", user=USER
        )
        return int(answer)

    def job(self, number: int) -> dict[str, str]:
        """Return what Slurm says of a job, as ``scontrol show job`` names it."""
        return parse(self.run(f"scontrol show job --oneliner {number}"))

    def wait(self, number: int, timeout: float = 900) -> dict[str, str]:
        """Wait until a job has ended, and return what Slurm says of it."""
        self.wait_until(lambda: self.job(number)["JobState"] in _FINAL, timeout)
        return self.job(number)

    def output(self, number: int) -> str:
        """Return what a batch job printed."""
        return (self.directory / f"shared/home/{USER}/slurm-{number}.out").read_text(encoding="utf-8")

    @staticmethod
    def wait_until(condition: Callable[[], bool], timeout: float = 600) -> None:
        """Wait until something holds.

        Raises:
            ClusterError: It does not in time.
        """
        end = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > end:
                raise ClusterError(f"This does not hold after {timeout} s")
            time.sleep(0.1)


def parse(line: str) -> dict[str, str]:
    """Return the values of a line of ``scontrol show --oneliner`` by name; values may have spaces."""
    return dict(re.findall(r"(\S+?)=(.*?)(?=\s+[A-Z][\w:/]*=|\s*$)", line))
