"""Rules of accounting that can be checked without AWS and without Slurm."""

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from ultracluster.domain import addresses
from ultracluster.domain.accounting import DEFAULT_ACCOUNT, AccountingSpec, DatabaseSpec
from ultracluster.domain.network import BLOCKS, NetworkSpec
from ultracluster.domain.network import zone_violations as any_zone_violations
from ultracluster.domain.team import AccountSpec, Limits, QosSpec, UserSpec
from ultracluster.domain.violations import Path, Violation, below, listed

_ROOT, _NORMAL = "root", "normal"
"""Slurm's own account and QoS."""
_SUBNETS = 2
_PREFIX = 28
"""Of the default subnets: 11 addresses, of which the database takes one, and a second while RDS replaces it."""


def violations(spec: AccountingSpec) -> list[Violation]:
    """Return every rule that accounts and QoS break among themselves; paths are field names."""
    return [
        *below(("accounts",), _names(spec, "accounts", _ROOT), _parents(spec), _limits(spec, "accounts")),
        *below(("qos",), _names(spec, "qos", _NORMAL), _preempted(spec), _accounts_of_qos(spec), _limits(spec, "qos")),
        *below(("database",), _unused_database(spec)),
    ]


def _unused_database(spec: AccountingSpec) -> Iterator[Violation]:
    for field in spec.database.changed() if spec.existing is not None else ():
        yield spec.database.violation(field, "leave it out", "existing names a database, so none is made")


def warnings(spec: AccountingSpec, max_nodes: int) -> Iterator[Violation]:
    """Tell which limits never hold in a cluster of some nodes; paths are field names."""
    limited: dict[str, Sequence[AccountSpec] | Sequence[QosSpec]] = {"accounts": spec.accounts, "qos": spec.qos}
    for field, all_limits in limited.items():
        for index, each in enumerate(all_limits):
            if each.max_nodes is not None and each.max_nodes > max_nodes:
                reason = "queues have no more nodes, so it limits nothing"
                yield Violation((field, index, "max_nodes"), each.max_nodes, f"at most {max_nodes}", reason)


def user_violations(spec: AccountingSpec | None, users: Sequence[UserSpec]) -> Iterator[Violation]:
    """Check that the accounts of users exist; paths start with their index."""
    accounts = set[str]() if spec is None else {each.name for each in spec.accounts} | {DEFAULT_ACCOUNT}
    known = _listed(accounts)
    for index, user in enumerate(users):
        yield from below((index,), _account_of_user(user, accounts, known))


def _account_of_user(user: UserSpec, accounts: Collection[str], known: str) -> Iterator[Violation]:
    if user.account is not None and user.account not in accounts:
        allowed = known if accounts else "null, or accounting with that account"
        yield user.violation("account", allowed, "accounts of accounting" if accounts else "accounts need accounting")


def zone_violations(database: DatabaseSpec, region: str, zone_id: str) -> Iterator[Violation]:
    """Check the zone of the database's second subnet; paths are field names of the database."""
    if database.second_zone_id is not None:
        yield from below(("second_zone_id",), any_zone_violations(region, database.second_zone_id))
        if database.second_zone_id == zone_id:
            yield database.violation("second_zone_id", f"another zone than {zone_id}", "RDS wants subnets in two zones")


def subnet_violations(database: DatabaseSpec, network: NetworkSpec, *, existing_vpc: bool) -> Iterator[Violation]:
    """Check the blocks of the database's subnets; paths are field names of the database."""
    if database.subnet_cidrs is None:
        if existing_vpc:
            yield database.violation(
                "subnet_cidrs", "two blocks of the existing VPC", "what is free there is not known"
            )
        elif len(_free_blocks(network)) < _SUBNETS:
            allowed = f"a larger block than {network.cidr}, or subnet_cidrs of the database"
            yield database.violation("subnet_cidrs", allowed, "the VPC has no room for the database's subnets")
        return
    others = {f"network.{field}": getattr(network, field) for field in BLOCKS}
    named = {f"subnet_cidrs[{index}]": cidr for index, cidr in enumerate(database.subnet_cidrs)}
    for each in addresses.block_violations({**others, **named}):
        if each.path[0] in named:
            yield Violation(("subnet_cidrs", [*named].index(str(each.path[0]))), each.got, each.allowed, each.reason)


def zone_ids(database: DatabaseSpec, zone_id: str) -> tuple[str, str]:
    """Return the zones of the database's subnets: the deployment's, then another one."""
    prefix = zone_id.partition("-")[0]
    other = f"{prefix}-az1" if zone_id != f"{prefix}-az1" else f"{prefix}-az2"
    return zone_id, database.second_zone_id or other


def subnet_cidrs(database: DatabaseSpec, network: NetworkSpec) -> Sequence[str]:
    """Return the blocks of the database's subnets."""
    return database.subnet_cidrs or _free_blocks(network)


def _free_blocks(network: NetworkSpec) -> list[str]:
    """Return the last blocks of the VPC that no subnet has."""
    vpc, *taken = (addresses.parse(getattr(network, field)) for field in BLOCKS)
    if vpc is None or vpc.prefixlen > _PREFIX:
        return []
    last = int(vpc.broadcast_address) + 1 - 2 ** (32 - _PREFIX)
    candidates = (
        type(vpc)((start, _PREFIX)) for start in range(last, int(vpc.network_address) - 1, -(2 ** (32 - _PREFIX)))
    )
    free = (each for each in candidates if not any(block and each.overlaps(block) for block in taken))
    return [str(each) for each in islice(free, _SUBNETS)][::-1]


def _names(spec: AccountingSpec, field: str, reserved: str) -> Iterator[Violation]:
    names = [each.name for each in getattr(spec, field)]
    times = Counter(names)
    for index, name in enumerate(names):
        if name == reserved:
            yield Violation((index, "name"), name, f"another name than {reserved}", "Slurm's own")
        if times[name] > 1:
            yield Violation((index, "name"), name, "a name of its own", "given twice")


def _parents(spec: AccountingSpec) -> Iterator[Violation]:
    accounts = spec.accounts
    parents = {each.name: [each.parent] if each.parent else [] for each in accounts}
    for index, account in enumerate(accounts):
        others = parents.keys() - {account.name}
        if account.parent is not None and account.parent not in parents:
            reason = "accounts of accounting; null: the cluster's root"
            yield Violation((index, "parent"), account.parent, _listed(others), reason)
        elif loop := _loop(account.name, parents):
            reason = f"{account.name} would be part of itself: {loop}"
            yield Violation((index, "parent"), account.parent, "null, or an account that is not below it", reason)


def _preempted(spec: AccountingSpec) -> Iterator[Violation]:
    qos = spec.qos
    preempted = {each.name: each.preempts for each in qos}
    preempted_in_turn = {name: _reachable(name, preempted) for name in preempted}
    for index, each in enumerate(qos):
        place: Path = (index, "preempts")
        known = {_NORMAL, *preempted} - {each.name}
        others = _listed(known)
        for position, name in enumerate(each.preempts):
            if name == each.name:
                yield Violation((*place, position), name, others, "a QoS does not preempt itself")
            elif name not in known:
                yield Violation((*place, position), name, others, "QoS of accounting")
            elif name != _NORMAL and each.name in preempted_in_turn[name]:
                loop = _loop(each.name, {**preempted, each.name: [name]})
                yield Violation((*place, position), name, f"a QoS that does not preempt {each.name}", f"a loop: {loop}")


def _accounts_of_qos(spec: AccountingSpec) -> Iterator[Violation]:
    accounts = {each.name for each in spec.accounts}
    for index, each in enumerate(spec.qos):
        for position, name in enumerate(each.accounts):
            if name not in accounts:
                yield Violation((index, "accounts", position), name, _listed(accounts), "accounts of accounting")


def _limits(spec: AccountingSpec, field: str) -> Iterator[Violation]:
    for index, each in enumerate(getattr(spec, field)):
        yield from below((index,), _purse(each))


def _purse(each: Limits) -> Iterator[Violation]:
    """Find a limit under which no job starts that asks for no time: it has all of ``max_hours``."""
    hours, month = each.max_hours, each.node_hours_per_month
    if hours is not None and month is not None and month < hours:
        reason = f"max_hours is {hours}, so no job would start that asks for no shorter time"
        yield each.violation("node_hours_per_month", f"at least {hours}", reason)


def _reachable(name: str, following: Mapping[str, Sequence[str]]) -> set[str]:
    """Return what follows a name, with all that follows that."""
    seen, left = set[str](), [name]
    while left:
        new = set(following.get(left.pop(), ())) - seen
        seen |= new
        left += new
    return seen


def _loop(name: str, following: Mapping[str, Sequence[str]]) -> str | None:
    """Return the shortest way from a name to itself in words, a -> b -> a, if there is one."""
    ways, seen = deque([[name]]), set[str]()
    while ways:
        way = ways.popleft()
        for each in following.get(way[-1], ()):
            if each == name:
                return " -> ".join([*way, name])
            if each not in seen:
                seen.add(each)
                ways.append([*way, each])
    return None


def _listed(names: Collection[str]) -> str:
    return listed(sorted(names), "none, as there are none")
