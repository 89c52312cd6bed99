"""Rules of the people of a cluster."""

from collections.abc import Iterator, Mapping, Sequence

from ultracluster.domain import ssh_keys
from ultracluster.domain.team import UserSpec
from ultracluster.domain.violations import Path, Violation, below, listed

RESERVED = frozenset(
    # of all Linux systems, then Debian and Ubuntu, Amazon Linux, AWS and ParallelCluster
    """
    root daemon bin sys sync games man lp mail news uucp proxy backup list irc gnats nobody nogroup adm tty disk dialout
    fax voice cdrom floppy tape sudo audio dip operator src shadow utmp video sasl plugdev staff users input sgx kvm
    render crontab netdev admin wheel docker shutdown halt ftp lock kmem
    www-data _apt messagebus syslog uuidd tcpdump sshd _ssh pollinate landscape fwupd-refresh tss usbmux dnsmasq lxd
    polkitd dhcpcd sssd rdma nfsnobody munge_users
    systemd-network systemd-resolve systemd-timesync systemd-coredump systemd-oom systemd-journal systemd-bus-proxy
    chrony _chrony rpc _rpc rpcuser statd libstoragemgmt dbus stapusr stapsys stapdev stunnel printadmin
    ubuntu ec2-user ec2-instance-connect ssm-user cwagent aoss
    slurm munge slurmdbd mysql pcluster-admin pcluster-slurm-share dcv dcvextagent ultracluster
    """.split()  # noqa: SIM905 - 100 words
)
"""Names of users and groups that images of nodes have, or that services of a cluster take."""


def violations(groups: Mapping[str, int], users: Sequence[UserSpec]) -> list[Violation]:
    """Return every rule that people and groups break; paths start with ``groups`` or ``users``."""
    return [*_of_groups(groups, users), *_of_users(groups, users)]


def _of_groups(groups: Mapping[str, int], users: Sequence[UserSpec]) -> Iterator[Violation]:
    people, taken = {user.name for user in users}, dict[int, str]()
    for name, gid in groups.items():
        place: Path = ("groups", name)
        if name in RESERVED:
            yield Violation(place, name, "another name", "images have a group of that name")
        elif name in people:
            yield Violation(place, name, "another name", "each user has a group of the user's name")
        if gid in taken:
            yield Violation(place, gid, "an id of its own", f"{taken[gid]} has it")
        taken.setdefault(gid, name)


def _of_users(groups: Mapping[str, int], users: Sequence[UserSpec]) -> Iterator[Violation]:
    names, uids = set[str](), dict[int, str]()
    gids = {gid: f"group {name}" for name, gid in groups.items()}
    known = listed(groups, "none, as there are no groups")
    for index, user in enumerate(users):
        broken = []
        if user.name in RESERVED:
            broken.append(user.violation("name", "another name", "images have a user or group of that name"))
        if user.name in names:
            broken.append(user.violation("name", "a name of its own", "another user has it"))
        if user.uid in uids:
            broken.append(user.violation("uid", "an id of its own", f"{uids[user.uid]} has it"))
        field, gid = ("uid", user.uid) if user.gid is None else ("gid", user.gid)
        if gid in gids and not (user.uid in uids and field == "uid"):
            broken.append(user.violation(field, "an id that no group has", f"{gids[gid]} has it"))
        for place, group in enumerate(user.groups):
            if group not in groups:
                broken.append(Violation(("groups", place), group, known, "groups of the file", ("groups",)))
        for place, key in enumerate(user.ssh_keys):
            if fault := ssh_keys.fault(key):
                shown = "a private key" if "PRIVATE KEY" in key else key
                broken.append(Violation(("ssh_keys", place), shown, ssh_keys.ALLOWED, fault))
        yield from below(("users", index), broken)
        names.add(user.name)
        uids.setdefault(user.uid, user.name)
        gids.setdefault(gid, f"that of {user.name}")
