"""The place where machines run, and how one starts, runs commands and ends.

A site has namespaces of its own: processes, mounts and network. Its process 1 reads a pipe that only this process
holds, so that everything in it ends with this process, however that ends; its files are in memory and its mounts and
interfaces in its namespaces: nothing is left. A machine has namespaces below those of the site.

A user namespace comes first, so that root in a machine is nobody on this computer. Without root this user has all
capabilities in it and is the only user. As root it is `own_users`, where the kernel has it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path
from typing import Final

from emulator.machines import own_users
from emulator.machines.listen import OPENED
from emulator.machines.support import MachineError, has_own_users

_HERE = Path(__file__).parent
_ROOT_OF_ITS_OWN: Final = ("unshare", "--user", "--map-root-user")
_ONE_USER: Final = ("--user", "--map-user=1000", "--map-group=1000", "--keep-caps")
"""Without root: slurmd cannot start as a root who may not change groups, but as another user with all capabilities."""
_CONSOLE_LINES: Final = 1000
_IN_ITS_ENVIRONMENT: Final = """
while IFS= read -r setting; do export "${setting?}"; done </run/emulator/environment
exec "$@"
"""
"""Shell text: everybody on this computer can read the arguments of commands, and the environment has an access key."""
_START_SECONDS: Final = 300.0
"""Until a machine is given up that does not start; it takes less than one."""
REBOOT_CODE: Final = 66
"""Exit code of the guest's process 1 that asks for a reboot."""


@dataclass(frozen=True)
class MachineSpec:
    """What a machine is started with.

    Attributes:
        instance_id: Of the EC2 instance that it is.
        address: Its primary private address.
        network: What it reaches, a CIDR.
        cluster: The cluster whose exports it can mount, by a name of which there is one in the site.
        environment: Environment variables of its processes.
        pace: JSON, how long things take in it; `guest/pace.py` has the names.
        borrowed: Directories of this computer that it can read, at the same path.
        before: Shell commands that it runs before its system starts.
        program: Its process 1, a file of `guest`.
    """

    instance_id: str
    address: str
    network: str
    cluster: str
    environment: Mapping[str, str]
    pace: str = "{}"
    borrowed: Sequence[Path] = ()
    before: str = ""
    program: str = "init.py"


@dataclass(frozen=True)
class Listeners:
    """Sockets in a machine's network that the server answers at.

    `endpoint` has the address that the AWS endpoint has on this computer, `metadata` is the instance metadata service,
    and `names` takes DNS queries, as datagrams.
    """

    endpoint: socket.socket
    metadata: socket.socket
    names: socket.socket


class Site:
    """One place for machines. It ends with `stop`, or with this process."""

    def __init__(self, image: Path, port: int, borrowed: Sequence[Path] = ()) -> None:
        """Make a place for machines.

        Args:
            image: The root directory that they start from. Beside it is an empty directory, `site`.
            port: Of the AWS endpoint, on this computer's loopback interface.
            borrowed: Directories of this computer that machines may read.

        Raises:
            MachineError: It cannot be made.
        """
        directory = image.with_name("site")
        directory.mkdir(exist_ok=True)
        self._port = port
        self._numbers = count(1)
        shared = [image, _HERE, *borrowed]
        self._seen = {path: str(path) for path in shared}
        self._directory = str(directory)
        self._one_user: Sequence[str] = ()
        self._entering: Sequence[str] = ()
        before: Sequence[str] = ()
        if os.geteuid() != 0:
            self._one_user, self._entering, before = _ONE_USER, ("--user", "--preserve-credentials"), _ROOT_OF_ITS_OWN
        elif has_own_users(image):
            self._seen = {path: own_users.seen(number) for number, path in enumerate(self._seen)}
            self._directory = own_users.SITE
            self._entering, before = ("--user",), own_users.command(list(self._seen))
        self._options = ",userxattr" if self._entering else ""
        self._process = subprocess.Popen(
            [*before, "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child",
             "bash", f"{self._seen[_HERE]}/site.sh", self._seen[image], self._directory],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env=_environment(),
        )  # fmt: skip
        self._image = self._seen[image]
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE
        if (said := self._process.stdout.readline()) != "ready\n":
            self._process.stdin.close()  # type: ignore[union-attr]
            raise MachineError(f"no place for machines: {said}{self._process.stdout.read()}")
        self._init = _only_child(self._process.pid)

    def start(self, spec: MachineSpec, ended: Callable[[int], object]) -> Machine:
        """Start a machine.

        Args:
            spec: What it is.
            ended: Called with the exit code of its process 1 when that ends by itself, in a thread of its own.

        Raises:
            MachineError: It did not start.
        """
        here = self._seen[_HERE]
        command = self.inside(
            "bash", f"{here}/start.sh", self._image, self._directory, spec.instance_id, spec.cluster, self._options,
            " ".join(self._one_user), spec.address, spec.network, f"{here}/guest", str(self._port),
            spec.pace, spec.before, spec.program,
            *(argument for path in spec.borrowed for argument in (self._seen[path], str(path))),
        )  # fmt: skip
        return Machine(self, spec, command, ended)

    def connect(self, process: int) -> None:
        """Give a machine, whose process 1 this is, its interface eth0 on the site's network."""
        [inside] = (
            line.split()[2]
            for line in Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
            if line.startswith("NSpid:")
        )
        name = f"node{next(self._numbers)}"
        command = f"ip link add {name} type veth peer name eth0 netns {inside} && ip link set {name} master switch up"
        done = subprocess.run(
            self.inside("chroot", self._image, "sh", "-c", command),
            capture_output=True,
            text=True,
            check=False,
            env=_environment(),
        )
        if done.returncode:
            raise MachineError(f"no interface for a machine: {done.stdout}{done.stderr}")

    def trial(self, user: str) -> list[str]:
        """Return what runs trial.sh in it, once, with Slurm's user."""
        script = f"{self._seen[_HERE]}/trial.sh"
        one_user = " ".join(self._one_user)
        return self.inside("bash", script, self._image, self._directory, self._options, one_user, user)

    def inside(self, *command: str) -> list[str]:
        """Return what runs a command in the site's namespaces, in this computer's root directory."""
        return ["nsenter", f"--target={self._init}", "--mount", "--net", "--pid", *self._entering, *command]

    def within(self, process: int, *command: str) -> list[str]:
        """Return what runs a command in the namespaces and in the root directory of a machine's process."""
        namespaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd")
        return ["nsenter", f"--target={process}", *namespaces, *self._entering, *command]

    def discard(self, instance_id: str) -> None:
        """Delete the disk of a machine that has ended, if it had one.

        Raises:
            MachineError: It cannot be deleted.
        """
        directory = f"{self._directory}/machines/{instance_id}"
        command = '[ ! -e "$0" ] || { umount "$0/root" && rm --recursive --force -- "$0"; }'
        done = subprocess.run(
            self.inside("sh", "-c", command, directory), capture_output=True, text=True, check=False, env=_environment()
        )
        if done.returncode:
            raise MachineError(f"the disk of {instance_id} is left: {done.stderr}")

    def forget(self, cluster: str) -> None:
        """Delete what the head node of a cluster exported, once all its machines have ended.

        Raises:
            MachineError: It cannot be deleted.
        """
        self._files('rm --recursive --force -- "exports/$1"', cluster)

    def save(self, instance_id: str, cluster: str, snapshot_id: str) -> None:
        """Keep /home of a root volume, which a head node exports, for volumes that are made of a snapshot.

        Raises:
            MachineError: There is no room.
        """
        script = """
        for home in "exports/$1/home" "machines/$2/root/home"; do
            [ -d "$home" ] || continue
            mkdir "storage/snapshots/$3"
            cp --archive "$home" "storage/snapshots/$3/" && exit
            code=$?
            rm --recursive --force -- "storage/snapshots/$3"
            exit "$code"
        done
        """
        self._files(script, cluster, instance_id, snapshot_id)

    def attach(self, cluster: str, volume_id: str, snapshot_id: str) -> None:
        """Let the machines of a cluster have a volume that was made of a snapshot; `lsblk` and `mount` there know it.

        Raises:
            MachineError: There is no room.
        """
        script = """
        mkdir --parents "exports/$1/.volumes/$2"
        [ -d "storage/snapshots/$3" ] || exit 0
        cp --archive "storage/snapshots/$3/." "exports/$1/.volumes/$2" && exit
        code=$?
        rm --recursive --force -- "exports/$1/.volumes/$2"
        exit "$code"
        """
        self._files(script, cluster, volume_id, snapshot_id)

    def detach(self, cluster: str, volume_id: str) -> None:
        """Take a volume away.

        Raises:
            MachineError: It cannot be taken away.
        """
        self._files('rm --recursive --force -- "exports/$1/.volumes/$2"', cluster, volume_id)

    def erase(self, storage_id: str) -> None:
        """Delete what a snapshot, a volume or a file system has.

        Raises:
            MachineError: It cannot be deleted.
        """
        self._files('rm --recursive --force -- "storage/snapshots/$1" "storage/filesystems/$1"', storage_id)

    def _files(self, script: str, *arguments: str) -> None:
        """Run a shell script in the directory of the site.

        Raises:
            MachineError: It failed.
        """
        command = self.inside("sh", "-e", "-c", f'cd "$0"; {script}', self._directory, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
        if done.returncode:
            raise MachineError(f"{script.strip()}: {done.stderr}")

    def stop(self) -> None:
        """End everything in it."""
        assert self._process.stdin is not None  # noqa: S101 - stdin=PIPE
        self._process.stdin.close()
        self._process.wait()


class Machine:
    """A machine that runs.

    Attributes:
        listeners: Where the server has to answer it.
    """

    listeners: Listeners

    def __init__(self, site: Site, spec: MachineSpec, command: Sequence[str], ended: Callable[[int], object]) -> None:
        """Start it; `Site.start` has the arguments.

        Raises:
            MachineError: It did not start.
        """
        self.spec = spec
        self._site = site
        self._ended = ended
        self._stopped = threading.Event()
        self._open = ExitStack()
        self._console: deque[str] = deque(maxlen=_CONSOLE_LINES)
        own, other = socket.socketpair()
        with own, other:
            self._process = subprocess.Popen(
                ["bash", "-c", 'exec 3<&"$0" "$@"', str(other.fileno()), *command],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                env={**spec.environment}, pass_fds=(other.fileno(),), start_new_session=True,
            )  # fmt: skip
            other.close()
            own.settimeout(_START_SECONDS)
            self._follower = threading.Thread(target=self._follow, daemon=True)
            self._follower.start()
            try:
                self._connect(own)
            except (OSError, ValueError, MachineError) as error:
                self._stopped.set()
                with suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                self._follower.join()
                self.close()
                raise MachineError(f"{spec.instance_id} did not start: {error}: {self.console}") from error

    def _connect(self, channel: socket.socket) -> None:
        """Take the sockets of a machine that starts, give it its interface, and wait until its system starts."""
        _, received, _, _ = socket.recv_fds(channel, len(OPENED), len(fields(Listeners)))
        if not received:
            raise MachineError("it ended before it had a network")
        self.listeners = Listeners(*(self._open.enter_context(socket.socket(fileno=number)) for number in received))
        self._init = _only_child(_only_child(self._process.pid))
        self._signals = os.pidfd_open(self._init)
        self._open.callback(os.close, self._signals)
        self._site.connect(self._init)
        # What runs a command in it takes its root directory, so it is not up before that has been changed.
        if channel.recv(1) == b"":
            raise MachineError("it ended before its system started")

    @property
    def console(self) -> str:
        """Return the last lines that its process 1 printed."""
        return "".join(self._console)

    def command(self, *command: str) -> list[str]:
        """Return what runs a command in it, as root."""
        shell = ("/usr/bin/env", "--ignore-environment", "/bin/sh", "-c", _IN_ITS_ENVIRONMENT, "sh")
        return self._site.within(self._init, *shell, *command)

    def stop(self, seconds: float = 0) -> None:
        """Shut its system down, for so many seconds at most, and end it; its disk stays."""
        self._stopped.set()
        if seconds:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Close its sockets, at which nobody may serve it any more."""
        self._open.close()

    @property
    def code(self) -> int | None:
        """Return the exit code of its process 1; None: it runs."""
        return self._process.poll()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._signals, number)

    def _follow(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - stdout=PIPE
        with self._process.stdout as lines:
            self._console.extend(lines)
        code = self._process.wait()
        if not self._stopped.is_set():
            self._ended(code)


def _environment() -> dict[str, str]:
    """Return the environment with what root has in its PATH: on Debian other users find no chroot."""
    return {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}


def _only_child(process: int) -> int:
    """Return the only child of a process.

    Raises:
        OSError: The process has ended.
        ValueError: It has no child, or several.
    """
    [child] = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    return int(child)
