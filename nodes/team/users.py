"""Gives the people of a document accounts on this node, the same on all nodes. Arguments: KIND DOCUMENT [--if-changed].

KIND is head, compute or login. Home directories are made on the head node, whose /home all nodes share. With
--if-changed it looks only at what a restart forgets, unless the document is another one than the last time: a service
and Slurm's prolog run it so. A document that cannot be read is taken to be the last one.

Nothing is changed if anything of the document contradicts what the node has, such as another id of a user; each
contradiction is a line. A person who is no longer in the document keeps account, id and home, which nobody else can
take, and loses keys, groups and sudo; the account is locked. Jobs that run continue. Those that wait are cancelled, and
on head and login nodes the person's processes are killed; each run tries again what is left of that.

Exit code 0: the node is as the document says. 3: it is not, and lines say why. 1: an error, such as that jobs could
take the node's credentials, or whoever logs in all homes. It runs as root, with the Python of Ubuntu 22.04 and 24.04
(3.10, 3.12) or Amazon Linux 2023 (3.9).
"""

from __future__ import annotations

import configparser
import contextlib
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CONTRADICTED = 3
STATE = Path("/var/lib/ultracluster/team.json")
"""The last document, the names of all people and groups that were ever on this node, and of locked people of whom
processes or waiting jobs may be left."""
KEYS = Path("/etc/ssh/ultracluster")
"""A file of keys for each person. Nobody's home holds them: what root writes there could lead elsewhere."""
SSHD = Path("/etc/ssh/sshd_config.d/60-ultracluster.conf")
SSHD_TEXT = f"AuthorizedKeysFile .ssh/authorized_keys {KEYS}/%u.keys\n"
DEFAULT_USERS = ("root", "ubuntu", "ec2-user")
"""Who of the image may log in to compute nodes, besides administrators: others would work there without a job."""
SUDOERS = Path("/etc/sudoers.d/zz-ultracluster")
"""Behind the files of cloud-init and Systems Manager's agent (ssm-agent-users): the last match wins (man sudoers)."""
WITHOUT_SUDO = ("ec2-user", "ssm-user", "ubuntu")
"""Accounts of images that may do everything as long as there are no people."""
CHAIN, NFS_CHAIN = "ULTRACLUSTER_IMDS", "ULTRACLUSTER_NFS"
METADATA = (
    ("iptables", "169.254.169.254/32", "127.0.0.0/8", "icmp-port-unreachable"),
    ("ip6tables", "fd00:ec2::254/128", "::1/128", "icmp6-port-unreachable"),
)
"""Where EC2's metadata service is, which gives the node's credentials to whoever asks; the node itself."""
NFS_PORT = 2049
"""EFS and FSx believe which user a client claims to be, root included: the kernel's client tells the truth, one that a
user runs need not."""
EFS_UTILS = Path("/etc/amazon/efs/efs-utils.conf")
"""Tunnels to EFS listen on the node itself, on ports of a range that this file has: with no file, or no range in it,
efs-utils makes none (https://github.com/aws/efs-utils, get_tls_port_range)."""
NOT_ROOT = "1-4294967294"
"""As a range: packets of the kernel's own sockets, which may have no owner, match what is negated (xt_owner.c)."""
WITH_METADATA = ("root", "pcluster-admin", "ec2-instance-connect")
"""Who may ask on a compute node: ParallelCluster's computemgtd is pcluster-admin; nobody logs in as any of them."""
NO_PASSWORD, EXPIRED = "*", "1"
"""In /etc/shadow: no password matches, keys do; the day after which the account is closed."""


class FailedError(RuntimeError):
    """A program failed, or the document contradicts the node; a line for each."""


@dataclass(frozen=True)
class Account:
    """A line of /etc/passwd, and whether /etc/shadow has it locked."""

    uid: int
    gid: int
    is_locked: bool = False


@dataclass(frozen=True)
class Group:
    """A line of /etc/group."""

    gid: int
    members: frozenset[str] = frozenset()


@dataclass(frozen=True)
class System:
    """The accounts and groups of a node, by name."""

    accounts: Mapping[str, Account]
    groups: Mapping[str, Group]

    @classmethod
    def read(cls, directory: Path = Path("/etc")) -> System:
        """Read those of the node itself, without those of a directory service."""
        shadow = {name: values for name, *values in _lines(directory / "shadow")}
        accounts = {
            name: Account(int(uid), int(gid), is_locked=shadow.get(name, [""] * 8)[6] == EXPIRED)
            for name, _, uid, gid, *_ in _lines(directory / "passwd")
        }
        groups = {
            name: Group(int(gid), frozenset(filter(None, members.split(","))))
            for name, _, gid, members in _lines(directory / "group")
        }
        return cls(accounts, groups)


@dataclass(frozen=True)
class Person:
    """A user of the document."""

    name: str
    uid: int
    gid: int
    groups: Sequence[str] = ()
    keys: Sequence[str] = ()
    admin: bool = False


@dataclass(frozen=True)
class Team:
    """What a document says of people."""

    groups: Mapping[str, int] = field(default_factory=dict)
    people: Sequence[Person] = ()

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Team:
        """Return the people of a document."""
        people = [
            Person(
                each["name"],
                each["uid"],
                each["uid"] if each.get("gid") is None else each["gid"],
                each.get("groups", ()),
                each.get("ssh_keys", ()),
                each.get("admin", False),
            )
            for each in document.get("users", ())
        ]
        return cls(document.get("groups", {}), people)

    @property
    def gids(self) -> dict[str, int]:
        """The ids of all groups: those of the document, then each person's own."""
        return {**self.groups, **{each.name: each.gid for each in self.people}}


def contradictions(team: Team, system: System) -> Iterator[str]:
    """Yield what of a document cannot be, because the node has something else; nothing is changed then."""
    names = {account.uid: name for name, account in system.accounts.items()}
    for each in team.people:
        account = system.accounts.get(each.name)
        if account is None and each.uid in names:
            locked = ", which is locked" if system.accounts[names[each.uid]].is_locked else ""
            yield f"uid {each.uid} of {each.name} is that of {names[each.uid]}{locked}; take another one"
        if account is not None and (account.uid, account.gid) != (each.uid, each.gid):
            yield (
                f"{each.name} has uid {account.uid} and gid {account.gid} here, and {each.uid} and {each.gid} in the "
                "document; files would belong to somebody else: take those of here, or another name"
            )
    owners = {group.gid: name for name, group in system.groups.items()}
    for name, gid in team.gids.items():
        if name in system.groups and system.groups[name].gid != gid:
            yield f"group {name} has gid {system.groups[name].gid} here, and {gid} in the document"
        elif name not in system.groups and gid in owners:
            yield f"gid {gid} of group {name} is that of {owners[gid]}"


def commands(
    team: Team, system: System, known_people: Iterable[str], known_groups: Iterable[str]
) -> Iterator[list[str]]:
    """Yield the commands after which accounts and groups are as a document says; none: they are.

    Args:
        team: What the document says.
        system: What the node has.
        known_people: Who was ever in a document; members of a group who were not are left in it.
        known_groups: Which groups ever were.
    """
    wanted = {each.name: each for each in team.people}
    ours = {*known_people, *wanted}
    for name in sorted(ours - wanted.keys()):
        account = system.accounts.get(name)
        if account is not None and not account.is_locked:
            yield ["usermod", "--lock", "--expiredate", EXPIRED, name]
    for name, gid in team.gids.items():
        if name not in system.groups:
            yield ["groupadd", "--gid", str(gid), name]
    for each in team.people:
        account = system.accounts.get(each.name)
        if account is None:
            ids = ["--uid", str(each.uid), "--gid", str(each.gid)]
            place = ["--no-create-home", "--home-dir", f"/home/{each.name}", "--shell", "/bin/bash"]
            yield ["useradd", *ids, *place, "--no-log-init", "--password", NO_PASSWORD, each.name]
        elif account.is_locked:
            yield ["usermod", "--expiredate", "", "--password", NO_PASSWORD, each.name]
    for name in sorted({*known_groups, *team.groups}):
        before = system.groups[name].members if name in system.groups else frozenset()
        members = before - ours
        if name in team.groups:
            members |= {each.name for each in team.people if name in each.groups}
        if members != before:
            yield ["gpasswd", "--members", ",".join(sorted(members)), name]


def sudoers(team: Team) -> str:
    """Return who may do everything and who may not; empty: as the image has it."""
    if not team.people:
        return ""
    return "".join(
        [
            "# Written by ultracluster; changes are lost\n",
            *(f"{name} ALL=(ALL:ALL) !ALL\n" for name in WITHOUT_SUDO),
            *(f"{each.name} ALL=(ALL:ALL) NOPASSWD: ALL\n" for each in team.people if each.admin),
        ]
    )


def metadata_rules(uids: Iterable[int], rejection: str) -> list[str]:
    """Return the rules of our chain, as `iptables -S` prints them."""
    allowed = [f"-A {CHAIN} -m owner --uid-owner {uid} -j RETURN" for uid in uids]
    return [f"-N {CHAIN}", *allowed, f"-A {CHAIN} -j REJECT --reject-with {rejection}"]


def tunnel_ports(efs_utils: str) -> str:
    """Return the ports of tunnels to EFS as iptables writes them, by efs-utils.conf; empty: there are none."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(efs_utils)
        return ":".join(str(parser.getint("mount", f"port_range_{each}_bound")) for each in ("lower", "upper"))
    except (configparser.NoSectionError, configparser.NoOptionError):
        return ""
    except (configparser.Error, ValueError) as error:
        raise ValueError(f"{EFS_UTILS} does not say on which ports tunnels to EFS listen: {error}") from None


def nfs_rules(itself: str, rejection: str, tunnels: str) -> list[str]:
    """Return the rules of our chain for all but root, as `iptables -S` prints them."""
    ports = [f"-p {each} -m {each} --dport {NFS_PORT}" for each in ("tcp", "udp")]
    if tunnels:
        ports.append(f"-d {itself} -p tcp -m tcp --dport {tunnels}")
    return [f"-N {NFS_CHAIN}", *(f"-A {NFS_CHAIN} {each} -j REJECT --reject-with {rejection}" for each in ports)]


class Node:
    """This node, changed by programs that its distribution has."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def apply(self, path: Path, *, if_changed: bool) -> None:
        """Make the node what a document says.

        Raises:
            FailedError: It cannot be.
        """
        none: dict[str, Any] = {"document": "", "people": [], "groups": [], "ending": []}
        state = {**none, **json.loads(_read(STATE) or "{}")}
        text = _read(path) or state["document"]
        if not text:
            return
        team, system = Team.of(json.loads(text)), System.read()
        self._guard(system, is_guarded=bool(team.people))
        try:
            if not (if_changed and state["document"] == text):
                self._follow(team, system, state)
                state["document"] = text
        finally:
            locked = {name for name, account in System.read().accounts.items() if account.is_locked}
            state["ending"] = self._end(sorted(locked & {*state["ending"]}))
            _write(STATE, json.dumps(state), 0o600)

    def _follow(self, team: Team, system: System, state: dict[str, Any]) -> None:
        """Give the node the people of a document."""
        broken = [*contradictions(team, system), *self._contradicting_homes(team, system)]
        if broken:
            raise FailedError("\n".join(broken))
        state["people"] = sorted({*state["people"], *(each.name for each in team.people)})
        state["groups"] = sorted({*state["groups"], *team.groups})
        todo = list(commands(team, system, state["people"], state["groups"]))
        state["ending"] += [each[-1] for each in todo if each[:2] == ["usermod", "--lock"]]
        # The names come first: an interrupted run leaves nobody whom the next does not know.
        _write(STATE, json.dumps(state), 0o600)
        self._write_sudoers(team)
        self._write_keys(team)
        for command in todo:
            _run(*command)
        _tell(todo)
        if self._kind == "head" and team.people:
            _close_homes()
            for each in team.people:
                _make_home(each)

    def _end(self, locked: Sequence[str]) -> list[str]:
        """End what would start more in the name of locked people, and return of whom something may be left.

        logind does not know all of it: Systems Manager's agent starts shells without PAM.
        """
        if self._kind == "compute":  # processes there may be those of a job
            return []
        for name in locked:
            _try("loginctl", "terminate-user", name)
        # Whoever had a process may have started another one meanwhile: the next run looks again.
        left = {name for name in locked if _try("pkill", "-KILL", "--uid", name) is not None}
        waiting = [*locked] if self._kind == "head" else []
        try:
            while waiting:
                _run("timeout", "30", "scancel", "--state=PENDING", f"--user={waiting[0]}")
                del waiting[0]
        except RuntimeError as error:
            print(f"users.py: jobs that wait are not cancelled yet: {', '.join(waiting)}: {error}")
        return sorted({*left, *waiting})

    def _contradicting_homes(self, team: Team, system: System) -> Iterator[str]:
        """Yield homes of others: where a person's would be, or of the uid of a new person. Homes outlive head nodes."""
        if self._kind != "head":
            return
        owners = {each.lstat().st_uid: each for each in Path("/home").iterdir() if not each.name.startswith(".")}
        for each in team.people:
            home = Path("/home", each.name)
            if os.path.lexists(home):
                if home.is_symlink() or home.lstat().st_uid != each.uid:
                    yield f"{home} is not a directory of uid {each.uid}: ls -ld {home}; move it away, or take its uid"
            elif each.name not in system.accounts and each.uid in owners:
                yield f"uid {each.uid} of {each.name} is that of {owners[each.uid]}; take another one"

    def _write_sudoers(self, team: Team) -> None:
        """Write who may use sudo. A node without sudo has nobody who may."""
        text = sudoers(team)
        if not SUDOERS.parent.is_dir() or shutil.which("visudo") is None:
            return
        if not text:
            SUDOERS.unlink(missing_ok=True)
        elif _read(SUDOERS) != text:
            new = STATE.with_name("sudoers.new")
            _write(new, text, 0o440)
            _run("visudo", "--check", "--quiet", f"--file={new}")
            _write(SUDOERS, text, 0o440)
            print(f"users.py: wrote {SUDOERS}")

    def _write_keys(self, team: Team) -> None:
        """Write everybody's keys, and let sshd look there. Compute nodes let in only administrators."""
        wanted = {f"{each.name}.keys": "".join(f"{key}\n" for key in each.keys) for each in team.people if each.keys}
        if not team.people and not KEYS.exists():
            return
        KEYS.mkdir(mode=0o755, parents=True, exist_ok=True)
        for path in KEYS.iterdir():
            if path.name not in wanted:
                path.unlink()
        for name, text in wanted.items():
            _write(KEYS / name, text, 0o644)
        admins = [each.name for each in team.people if each.admin]
        is_limited = self._kind == "compute" and team.people
        text = SSHD_TEXT + (f"AllowUsers {' '.join((*DEFAULT_USERS, *admins))}\n" if is_limited else "")
        if _read(SSHD) != text:
            _write(SSHD, text, 0o644)
            for unit in "ssh.service", "sshd.service":  # of Ubuntu, of Amazon Linux
                _try("systemctl", "--quiet", "try-reload-or-restart", unit)

    def _guard(self, system: System, *, is_guarded: bool) -> None:
        """Close NFS servers and, on compute nodes, EC2's metadata service, or open them. A restart opens them."""
        uids = [system.accounts[name].uid for name in WITH_METADATA if name in system.accounts]
        tunnels = tunnel_ports(_read(EFS_UTILS)) if is_guarded else ""
        for program, address, itself, rejection in METADATA:
            if shutil.which(program) is None:
                if is_guarded:
                    raise RuntimeError(f"{program} is missing, so users would reach the node's credentials and homes")
                continue
            owner = ["-m", "owner", "--uid-owner", NOT_ROOT]
            who = f"NFS servers ({program}) are", "root"
            _set_chain(program, owner, nfs_rules(itself, rejection, tunnels), who, is_wanted=is_guarded)
            if self._kind == "compute":
                who = f"{address} is", ", ".join(WITH_METADATA)
                _set_chain(program, ["-d", address], metadata_rules(uids, rejection), who, is_wanted=is_guarded)


def _set_chain(program: str, match: list[str], rules: list[str], who: tuple[str, str], *, is_wanted: bool) -> None:
    """Let what matches in OUTPUT go through a chain of rules, whose first one makes it, or remove the chain."""
    chain = rules[0].rpartition(" ")[2]
    jump = ["OUTPUT", *match, "-j", chain]
    has_jump = _try(program, "--wait", "--check", *jump) is not None
    current = (_try(program, "--wait", "--list-rules", chain) or "").splitlines()
    if is_wanted and not (has_jump and current == rules):
        added = [] if has_jump else [f"-I OUTPUT 1 {' '.join(jump[1:])}"]
        text = "\n".join(["*filter", f":{chain} - [0:0]", *rules[1:], *added, "COMMIT", ""])
        _run(f"{program}-restore", "--wait", "--noflush", text=text)
        print(f"users.py: {who[0]} closed to all but {who[1]}")
    elif not is_wanted and current:
        if has_jump:
            _run(program, "--wait", "--delete", *jump)
        _run(program, "--wait", "--flush", chain)
        _run(program, "--wait", "--delete-chain", chain)
        print(f"users.py: {who[0]} open again")


def _close_homes(homes: Path = Path("/home")) -> None:
    """Let only root add to /home. ParallelCluster makes other file systems 1777 there; OpenZFS may refuse a change."""
    with contextlib.suppress(OSError):
        if homes.stat().st_mode & 0o022:
            homes.chmod(0o755)
    status = homes.stat()
    if status.st_uid != 0 or (status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX):
        raise RuntimeError(f"{homes} can be changed by others than root, so homes can be exchanged: ls -ld {homes}")


def _make_home(person: Person) -> None:
    """Make a home directory, complete or not at all, where nobody but root gets until it is in its place."""
    home = Path("/home", person.name)
    if home.exists():
        return
    with tempfile.TemporaryDirectory(prefix=".ultracluster-", dir=home.parent) as directory:
        new = Path(directory, person.name)
        new.mkdir(mode=0o700)
        if Path("/etc/skel").is_dir():
            shutil.copytree("/etc/skel", new, symlinks=True, dirs_exist_ok=True)
        new.chmod(0o700)
        for path in (*new.rglob("*"), new):
            os.chown(path, person.uid, person.gid, follow_symlinks=False)
        new.rename(home)


def _tell(done: Sequence[Sequence[str]]) -> None:
    """Say who has an account from now on, and who has none any more."""
    new = [command[-1] for command in done if command[0] == "useradd"]
    locked = [command[-1] for command in done if command[:2] == ["usermod", "--lock"]]
    opened = [command[-1] for command in done if command[:2] == ["usermod", "--expiredate"]]
    for what, names in (("new", new), ("open again", opened), ("locked", locked)):
        if names:
            print(f"users.py: {what}: {', '.join(names)}")
    if locked:
        print(
            "users.py: who is locked keeps uid and home; jobs that run continue until scancel, and the IAM tag "
            "SSMSessionRunAs has to be removed, too"
        )


def _lines(path: Path) -> Iterator[list[str]]:
    return (line.split(":") for line in path.read_text(encoding="utf-8").splitlines() if ":" in line)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _write(path: Path, text: str, mode: int) -> None:
    """Write a file of root, at once, unless it is there already."""
    if _read(path) == text and path.stat().st_mode & 0o7777 == mode:
        return
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
    new.replace(path)


def _run(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}: {done.stdout.strip()}")
    return done.stdout


def _try(*command: str) -> str | None:
    try:
        return _run(*command)
    except (OSError, RuntimeError):
        return None


def main(arguments: Sequence[str]) -> int:
    """Run the program, once at a time."""
    kind, document, *options = arguments
    os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin"
    os.umask(0o022)
    STATE.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with STATE.with_name("team.lock").open("a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            Node(kind).apply(Path(document), if_changed="--if-changed" in options)
        except FailedError as error:
            for line in str(error).splitlines():
                print(f"users.py: failed: {line}")
            return CONTRADICTED
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            print(f"users.py: failed: {error}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
