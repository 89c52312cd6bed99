"""What a node knows of itself, and how it runs, mounts and starts things."""

from __future__ import annotations

import json
import logging
import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from emulator.machines.guest import aws, units

DNA: Final = Path("/etc/chef/dna.json")
SHARED: Final = Path("/opt/parallelcluster/shared")
CLUSTER_CONFIGURATION: Final = SHARED / "cluster-config.yaml"
LOGS: Final = Path("/var/log/parallelcluster")
BOOTSTRAP_ERROR: Final = LOGS / "bootstrap_error_msg"
RUN: Final = Path("/run/emulator")
ENVIRONMENT: Final = RUN / "environment"
IS_ROOT: Final = os.geteuid() == 0
"""Whether there are other users. Otherwise one user, with all capabilities, is everybody."""

_EXPORTED: Final = {
    "home": Path("/home"),
    "opt_slurm": Path("/opt/slurm"),
    "opt_parallelcluster_shared": SHARED,
    "opt_intel": Path("/opt/intel"),
}
_EXPORT_SECONDS: Final = 60
_KILLED_SECONDS: Final = 10
"""Until a program counts as ended that was killed; it may be stuck in the kernel."""
_METADATA: Final = "169.254.169.254/32"
_METADATA_CHAIN: Final = "PARALLELCLUSTER_IMDS"
_INTERNAL: Final = tuple(str(path) for path in _EXPORTED.values())
_HOME: Final = _EXPORTED["home"]
_FSTAB: Final = Path("/etc/fstab")
log = logging.getLogger("node")


class StepError(RuntimeError):
    """A step of a recipe failed.

    Attributes:
        resource: What Chef calls the resource of the cookbook's recipe, such as ``retrieve compute node info``.
    """

    def __init__(self, resource: str, message: str) -> None:
        super().__init__(message)
        self.resource = resource


@dataclass(frozen=True)
class Node:
    """A node of a cluster.

    Attributes:
        cluster: The section of that name in dna.json.
    """

    cluster: dict[str, Any]

    @classmethod
    def load(cls) -> Node:
        """Return the node that this is, once it has its dna.json."""
        return cls(json.loads(DNA.read_text(encoding="utf-8"))["cluster"])

    @property
    def kind(self) -> str:
        """Return HeadNode, ComputeFleet or LoginNode."""
        return str(self.cluster["node_type"])

    @property
    def table(self) -> str:
        """Return the DynamoDB table of the cluster's status."""
        return f"parallelcluster-{self.cluster['stack_name']}"

    @cached_property
    def instance_id(self) -> str:
        """Return the id of its instance."""
        return aws.metadata("meta-data/instance-id")

    @cached_property
    def instance_type(self) -> str:
        """Return the type of its instance."""
        return aws.metadata("meta-data/instance-type")

    @cached_property
    def address(self) -> str:
        """Return its first private address."""
        return aws.metadata("meta-data/local-ipv4")

    @cached_property
    def ec2_hostname(self) -> str:
        """Return its name in the VPC's DNS."""
        return aws.metadata("meta-data/local-hostname")


def read_yaml(text: str) -> Any:
    """Return what a text in YAML says."""
    import yaml  # noqa: PLC0415 - most programs need none

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - the safe one, faster


def cluster_configuration() -> dict[str, Any]:
    """Return the cluster's configuration, with implied values."""
    configuration: dict[str, Any] = read_yaml(CLUSTER_CONFIGURATION.read_text(encoding="utf-8"))
    return configuration


def run(resource: str, *command: str) -> str:
    """Run a command and return what it prints.

    Raises:
        StepError: It failed.
    """
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        raise StepError(resource, f"Expected process to exit with [0], but received '{done.returncode}': "
                        f"{' '.join(command)}: {done.stdout.strip()}")  # fmt: skip
    return done.stdout


def write(path: str | Path, text: str, mode: int = 0o644, user: str = "root") -> None:
    """Write a file of a user."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    if user != "root":
        own(path, user)


def own(path: Path, user: str) -> None:
    """Give a file to a user, if there are others than this one."""
    if IS_ROOT:
        entry = pwd.getpwnam(user)
        os.chown(path, entry.pw_uid, entry.pw_gid)


def add_line(path: Path, line: str) -> None:
    """Append a line to a file, unless it is there."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if line not in text.splitlines():
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n" if text.endswith("\n") or not text else f"\n{line}\n")


def set_host_name(node: Node, name: str, domain: str) -> None:
    """Set the host name, and let /etc/hosts know it (cookbook: init_dns.rb)."""
    socket.sethostname(name)
    write("/etc/hostname", f"{name}\n")
    hosts = Path("/etc/hosts")
    lines = hosts.read_text(encoding="utf-8").splitlines() if hosts.exists() else []
    kept = [line for line in lines if line.split()[:1] != [node.address]]
    kept = kept if any("localhost" in line.split() for line in kept) else ["127.0.0.1 localhost", *kept]
    hosts.write_text("\n".join([*kept, f"{node.address} {name}.{domain.rstrip('.')} {name}", ""]), encoding="utf-8")


def search_domains(node: Node, domain: str) -> None:
    """Look for short names in the cluster's domain, if it has one, and in that of EC2."""
    domains = [each.rstrip(".") for each in (str(node.cluster["dns_domain"] or ""), domain) if each]
    add_line(Path("/etc/resolv.conf"), f"search {' '.join(domains)}")


def guard_metadata(node: Node) -> None:
    """Let few users of a head or login node reach the metadata service, and so the key of its role.

    Cookbook: imds.rb, imds-access.sh, attributes/environment.rb. Beside these, slurm: on AWS its programs call AWS as
    pcluster-admin, by sudo. One user alone, who is everybody, is the default user, too.
    """
    if not IS_ROOT or str(node.cluster.get("head_node_imds_secured", "true")) != "true":
        return
    users = ("root", "pcluster-admin", str(node.cluster.get("cluster_user", "")), "slurm")
    uids = {each.pw_uid for each in pwd.getpwall() if each.pw_name in users}
    rules = "\n".join(metadata_rules(sorted(uids)))
    done = subprocess.run(
        ["iptables-restore", "--wait"], input=rules, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False,
    )  # fmt: skip
    if done.returncode:  # some kernels have no match of owners
        log.warning("IMDS lockdown enable: the metadata service stays open to all users: %s", done.stdout.strip())


def metadata_rules(uids: Iterable[int]) -> list[str]:
    """Return what lets only these users reach the metadata service, as iptables-restore reads it."""
    return [
        "*filter",
        f":{_METADATA_CHAIN} - [0:0]",
        f"-A OUTPUT -d {_METADATA} -j {_METADATA_CHAIN}",
        *(f"-A {_METADATA_CHAIN} -m owner --uid-owner {uid} -j ACCEPT" for uid in uids),
        f"-A {_METADATA_CHAIN} -j REJECT",
        "COMMIT",
        "",
    ]


def mount(source: Path, target: Path, resource: str) -> None:
    """Mount a directory, now and when the machine starts again.

    Raises:
        StepError: It cannot be mounted.
    """
    target.mkdir(parents=True, exist_ok=True)
    if not source.is_dir():
        raise StepError(resource, f"mount: {target}: no file system {source.name}")
    if not target.is_mount():
        run(resource, "mount", "--bind", str(source), str(target))
    add_line(_FSTAB, f"{source} {target} none bind 0 0")


def mount_local_disks(node: Node) -> None:
    """Mount the local disks of the instance type, if it has any (cookbook: ephemeral_drives.rb).

    They are memory here, and full when they have a tenth of this computer's.
    """
    types = json.loads((SHARED / "instance-types-data.json").read_text(encoding="utf-8"))
    if types.get(node.instance_type, {}).get("InstanceStorageSupported"):
        add_line(_FSTAB, f"tmpfs {node.cluster['ephemeral_dir']} tmpfs mode=1777,size=10% 0 0")
        mount_all()


def mount_all() -> None:
    """Mount what is to be mounted and is not; what is missing is left out."""
    lines = _FSTAB.read_text(encoding="utf-8").splitlines() if _FSTAB.exists() else []
    for source, target, kind, options, *_ in (line.split() for line in lines if line and line[0] != "#"):
        if not Path(target).is_mount():
            Path(target).mkdir(parents=True, exist_ok=True)
            how = ["--bind"] if options == "bind" else ["-t", kind, "-o", options]
            subprocess.run(["mount", *how, source, target], check=False)


def export_directories(*names: str) -> None:
    """Share directories of the head node with the other nodes, with what is in them."""
    for name in names:
        exported, path = RUN / "exports" / name, _EXPORTED[name]
        path.mkdir(parents=True, exist_ok=True)
        exported.mkdir(parents=True, exist_ok=True)
        if not path.is_mount():
            run(f"export {path}", "cp", "--archive", "--update", f"{path}/.", str(exported))
        mount(exported, path, f"export {path}")


def share_home(node: Node) -> None:
    """Share /home of the head node with the other nodes, or mount the cluster's own file system on it.

    That keeps what it has, and gets what else is in /home of the image (cookbook: mount_home.rb).

    Raises:
        StepError: It cannot be mounted.
    """
    source = _homes(node)
    if source is None:
        export_directories("home")
        return
    source.mkdir(parents=True, exist_ok=True)
    if not _HOME.is_mount():
        run("mount home", "rsync", "--archive", "--ignore-existing", f"{_HOME}/", str(source))
    mount(source, _HOME, "mount home")


def mount_home(node: Node) -> None:
    """Mount /home, of the head node or the cluster's own file system.

    Raises:
        StepError: It cannot be mounted.
    """
    source = _homes(node)
    if source is None:
        mount_exports("home")
    else:
        source.mkdir(parents=True, exist_ok=True)  # a login node may be faster than the head node
        mount(source, _HOME, "mount home")


def _homes(node: Node) -> Path | None:
    """Return the file system that the cluster has on /home; None: that of the head node."""
    return next((source for _, source, target in _file_systems(node) if Path(target) == _HOME), None)


def _file_systems(node: Node) -> Iterator[tuple[str, Path, str]]:
    """Yield kind, source and mount directory of the cluster's EBS, EFS and FSx file systems.

    A volume of OpenZFS is a directory of its file system, as clients write it: DNS name and path.
    """
    for kind, ids, directories in (
        ("ebs", "volume", "ebs_shared_dirs"),
        ("efs", "efs_fs_ids", "efs_shared_dirs"),
        ("fsx", "fsx_fs_ids", "fsx_shared_dirs"),
    ):
        names, targets = _listed(node.cluster.get(ids, "")), _listed(node.cluster.get(directories, ""))
        if kind == "ebs" and not names:  # only the head node is told of volumes
            names = [_exported_volume(target) for target in targets]
        hosts = str(node.cluster.get("fsx_dns_names", "")).split(",")
        paths = str(node.cluster.get("fsx_volume_junction_paths", "")).split(",")
        for index, (name, target) in enumerate(zip(names, targets, strict=False)):
            source = RUN / "filesystems" / name
            if kind == "ebs" and not name.startswith("vol-"):
                source = RUN / "exports" / name
            if kind == "fsx" and name.startswith("fsvol-"):
                source = RUN / "filesystems" / hosts[index].partition(".")[0] / paths[index].lstrip("/")
            yield kind, source, target if target.startswith("/") else f"/{target}"


def mount_exports(*names: str) -> None:
    """Mount directories of the head node, for which nodes wait a minute (cookbook: mount_internal_use_ebs.rb).

    Raises:
        StepError: It does not export them.
    """
    end = time.monotonic() + _EXPORT_SECONDS
    for name in names:
        while not (RUN / "exports" / name).is_dir() and time.monotonic() < end:
            time.sleep(0.5)
        mount(RUN / "exports" / name, _EXPORTED[name], f"mount {_EXPORTED[name]}")


def mount_file_systems(node: Node) -> None:
    """Mount the cluster's EBS, EFS and FSx file systems.

    Raises:
        StepError: One cannot be mounted.
    """
    for kind, source, target in _file_systems(node):
        if not target.startswith(_INTERNAL):
            if kind == "ebs":
                _share_volume(source, target)
            try:
                source.mkdir(parents=True, exist_ok=True)  # the first node that mounts it finds it empty
            except OSError as error:
                failed = f"mount.lustre: mount {source.name} at {target} failed: Connection timed out"
                raise StepError(f"mount {kind}", failed) from error
            mount(source, Path(target), f"mount {kind}")
            Path(target).chmod(0o1777)  # cookbook: resources/fsx/partial/_mount_umount.rb, and those of EBS and EFS


def _exported_volume(directory: str) -> str:
    """Return under which name the head node shares a volume of EBS that it has on a directory."""
    return f"ebs{directory if directory.startswith('/') else f'/{directory}'}".replace("/", "-")


def _share_volume(source: Path, target: str) -> None:
    """Share a volume of the head node, or wait until it does (cookbook: manage_ebs.rb)."""
    if source.parent.name == "exports":
        end = time.monotonic() + _EXPORT_SECONDS
        while not source.is_dir() and time.monotonic() < end:
            time.sleep(0.5)
        return
    source.mkdir(parents=True, exist_ok=True)
    exported = RUN / "exports" / _exported_volume(target)
    exported.unlink(missing_ok=True)
    exported.symlink_to(Path("..") / "filesystems" / source.name)


def start_daemon(*command: str, resource: str, attempts: int = 1) -> None:
    """Start a program that goes into the background by itself.

    Raises:
        StepError: It does not start.
    """
    log.info("Starting %s", " ".join(command))
    with Path(f"/var/log/{Path(command[0]).name}-start.log").open("w", encoding="utf-8") as file:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, check=False).returncode
    if code and attempts > 1:
        time.sleep(1)
        start_daemon(*command, resource=resource, attempts=attempts - 1)
    elif code:
        raise StepError(resource, Path(file.name).read_text(encoding="utf-8").strip())


def stop_daemon(pid_file: Path, seconds: float = 90) -> None:
    """Stop a program that left its process id in a file, and does not start again; kill it after so many seconds."""
    with units.alone():
        process, end = _process(pid_file), time.monotonic() + seconds
        if process is not None:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        while process is not None and _process(pid_file) == process and time.monotonic() < end + _KILLED_SECONDS:
            if time.monotonic() >= end:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.05)
        pid_file.unlink(missing_ok=True)


def is_running(pid_file: Path) -> bool:
    """Return whether the program runs that left its process id in a file."""
    return _process(pid_file) is not None


def _process(pid_file: Path) -> int | None:
    """Return the program that left its process id in a file of its name; None: it has ended, whoever has the id now."""
    try:
        process = int(pid_file.read_text(encoding="ascii"))
        program = Path(f"/proc/{process}/cmdline").read_bytes().partition(b"\0")[0].decode(errors="replace")
    except (OSError, ValueError):
        return None
    is_it = program.rpartition("/")[2].startswith(pid_file.stem)
    return process if is_it and units.is_alive(process) else None


def service(name: str, pid_file: str, command: Sequence[str], restart: str = "no") -> None:
    """Describe a daemon to systemctl, as a unit; `start_daemon` starts it faster.

    One that is killed starts again after a second, if `restart` says so: `units` sees to that.

    Debian's slurmdbd 24.11 does not end when it is told to: it is killed, as by systemd, but after 5 s instead of 90.
    """
    write(
        f"/etc/systemd/system/{name}.service",
        f"[Unit]\nDescription={name}\n[Service]\nType=forking\nPIDFile={pid_file}\nTimeoutStopSec=5\n"
        f"Restart={restart}\nRestartSec=1\n"
        f"EnvironmentFile={ENVIRONMENT}\nExecStart={' '.join(command)}\n[Install]\nWantedBy=multi-user.target\n",
    )


def only_user() -> str:
    """Return the name of the user that is everybody, where there are no others."""
    return pwd.getpwuid(os.geteuid()).pw_name


def _listed(text: str) -> list[str]:
    return [each for each in text.split(",") if each not in ("", "NONE")]
