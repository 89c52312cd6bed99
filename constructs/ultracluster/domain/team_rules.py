"""Rules of the people of a cluster."""

from collections.abc import Iterator, Mapping, Sequence

from ultracluster.domain import ssh_keys
from ultracluster.domain.team import UserSpec
from ultracluster.domain.violations import Violation, below, listed

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
    of_users = below(
        ("users",), user_violations(users), gid_violations(groups, users), membership_violations(groups, users)
    )
    return [*below(("groups",), group_violations(groups, users)), *of_users]


def group_violations(groups: Mapping[str, int], users: Sequence[UserSpec]) -> Iterator[Violation]:
    """Yield what is wrong with groups; paths start with their names."""
    taken = dict[int, str]()
    for name, gid in groups.items():
        if name in RESERVED:
            yield Violation((name,), name, "another name", "images have a group of that name")
        if gid in taken:
            yield Violation((name,), gid, "an id of its own", f"{taken[gid]} has it")
        taken.setdefault(gid, name)
    people = {user.name for user in users}
    for name in groups:
        if name in people and name not in RESERVED:
            yield Violation((name,), name, "another name", "each user has a group of the user's name")


def user_violations(users: Sequence[UserSpec]) -> Iterator[Violation]:
    """Yield what is wrong with people whatever groups there are; paths start with their index."""
    names, uids = set[str](), dict[int, str]()
    for index, user in enumerate(users):
        yield from below((index,), _name_violations(user, names), _uid_violations(user, uids), _key_violations(user))


def _name_violations(user: UserSpec, names: set[str]) -> Iterator[Violation]:
    if user.name in RESERVED:
        yield user.violation("name", "another name", "images have a user or group of that name")
    if user.name in names:
        yield user.violation("name", "a name of its own", "another user has it")
    names.add(user.name)


def _uid_violations(user: UserSpec, uids: dict[int, str]) -> Iterator[Violation]:
    if user.uid in uids:
        yield user.violation("uid", "an id of its own", f"{uids[user.uid]} has it")
    uids.setdefault(user.uid, user.name)


def _key_violations(user: UserSpec) -> Iterator[Violation]:
    for place, key in enumerate(user.ssh_keys):
        if fault := ssh_keys.fault(key):
            shown = "a private key" if "PRIVATE KEY" in key else key
            yield Violation(("ssh_keys", place), shown, ssh_keys.ALLOWED, fault)


def gid_violations(groups: Mapping[str, int], users: Sequence[UserSpec]) -> Iterator[Violation]:
    """Yield whose own group has the id of another one; paths start with the index of people."""
    uids, gids = set[int](), {gid: f"group {name}" for name, gid in groups.items()}
    for index, user in enumerate(users):
        yield from below((index,), _gid_violations(user, uids, gids))


def _gid_violations(user: UserSpec, uids: set[int], gids: dict[int, str]) -> Iterator[Violation]:
    field, gid = ("uid", user.uid) if user.gid is None else ("gid", user.gid)
    if gid in gids and not (user.uid in uids and field == "uid"):
        yield user.violation(field, "an id that no group has", f"{gids[gid]} has it")
    uids.add(user.uid)
    gids.setdefault(gid, f"that of {user.name}")


def membership_violations(groups: Mapping[str, int], users: Sequence[UserSpec]) -> Iterator[Violation]:
    """Yield which groups of people there are not; paths start with their index."""
    known = listed(groups, "none, as there are no groups")
    for index, user in enumerate(users):
        yield from below((index, "groups"), _unknown_groups(user, groups, known))


def _unknown_groups(user: UserSpec, groups: Mapping[str, int], known: str) -> Iterator[Violation]:
    for place, group in enumerate(user.groups):
        if group not in groups:
            yield Violation((place,), group, known, "groups that are declared")
