"""Rules of accounting that can be checked without AWS and without Slurm."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from ultracluster.domain import addresses
from ultracluster.domain.accounting import DEFAULT_ACCOUNT, AccountingSpec, DatabaseSpec
from ultracluster.domain.network import BLOCKS, NetworkSpec, zone_violations
from ultracluster.domain.team import AccountSpec, QosSpec, UserSpec
from ultracluster.domain.violations import Path, Violation, below

_ROOT, _NORMAL = "root", "normal"
"""Slurm's own account and QoS."""
_SUBNETS = 2
_PREFIX = 28
"""Of the default subnets: 11 addresses, of which the database takes one, and a second while RDS replaces it."""


def violations(spec: AccountingSpec) -> list[Violation]:
    """Return every rule that accounts and QoS break among themselves; paths are field names."""
    accounts = [each.name for each in spec.accounts]
    qos = [each.name for each in spec.qos]
    broken = [*_name_violations("accounts", accounts, _ROOT), *_name_violations("qos", qos, _NORMAL)]
    broken += below(("accounts",), _parent_violations(spec.accounts))
    broken += below(("qos",), _qos_violations(spec.qos, accounts))
    if spec.existing is not None and spec.database != DatabaseSpec():
        got = sorted(spec.database.model_fields_set)
        broken.append(Violation(("database",), got, "leave it out", "existing names a database, and none is made"))
    return broken


def user_violations(spec: AccountingSpec | None, users: Sequence[UserSpec]) -> Iterator[Violation]:
    """Check that the accounts of users exist; paths start with ``users``."""
    if spec is None:  # an account of any name is one too many then, which the rules of people say
        return
    accounts = {each.name for each in spec.accounts} | {DEFAULT_ACCOUNT}
    for index, user in enumerate(users):
        if user.account is not None and user.account not in accounts:
            yield Violation(("users", index, "account"), user.account, _listed(accounts), "accounts of accounting")


def place_violations(
    database: DatabaseSpec, network: NetworkSpec, *, region: str, zone_id: str, existing_vpc: bool
) -> Iterator[Violation]:
    """Check zone and blocks of the database's subnets; paths are field names of the database."""
    if database.second_zone_id is not None:
        for each in zone_violations(region, database.second_zone_id):
            yield Violation(("second_zone_id",), each.got, each.allowed, each.reason)
        if database.second_zone_id == zone_id:
            yield database.violation("second_zone_id", f"another zone than {zone_id}", "RDS wants subnets in two zones")
    if database.subnet_cidrs is None:
        if existing_vpc:
            yield database.violation(
                "subnet_cidrs", "two blocks of the existing VPC", "what is free there is not known"
            )
        elif len(_free_blocks(network)) < _SUBNETS:
            allowed = f"a larger block than {network.cidr}, or subnet_cidrs of accounting.database"
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


def _name_violations(field: str, names: Sequence[str], reserved: str) -> Iterator[Violation]:
    times = Counter(names)
    for index, name in enumerate(names):
        if name == reserved:
            yield Violation((field, index, "name"), name, f"another name than {reserved}", "Slurm's own")
        if times[name] > 1:
            yield Violation((field, index, "name"), name, "a name of its own", "given twice")


def _parent_violations(accounts: Sequence[AccountSpec]) -> Iterator[Violation]:
    parents = {each.name: [each.parent] if each.parent else [] for each in accounts}
    for index, account in enumerate(accounts):
        others = parents.keys() - {account.name}
        if account.parent is not None and account.parent not in parents:
            reason = "accounts of accounting; null: the cluster's root"
            yield Violation((index, "parent"), account.parent, _listed(others), reason)
        elif _is_in_loop(account.name, parents):
            reason = f"{account.name} would be part of itself"
            yield Violation((index, "parent"), account.parent, "null, or an account that is not below it", reason)


def _qos_violations(qos: Sequence[QosSpec], accounts: Sequence[str]) -> Iterator[Violation]:
    preempted = {each.name: each.preempts for each in qos}
    for index, each in enumerate(qos):
        place: Path = (index, "preempts")
        known = {_NORMAL, *preempted} - {each.name}
        for position, name in enumerate(each.preempts):
            if name == each.name:
                yield Violation((*place, position), name, _listed(known), "a QoS does not preempt itself")
            elif name not in known:
                yield Violation((*place, position), name, _listed(known), "QoS of accounting")
            elif _is_in_loop(each.name, {**preempted, each.name: [name]}):
                yield Violation((*place, position), name, f"a QoS that does not preempt {each.name}", "a loop")
        for position, name in enumerate(each.accounts):
            if name not in accounts:
                yield Violation((index, "accounts", position), name, _listed(accounts), "accounts of accounting")


def _is_in_loop(name: str, following: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a name follows itself."""
    seen, ahead = set[str](), list(following[name])
    while ahead:
        current = ahead.pop()
        if current not in seen:
            seen.add(current)
            ahead += following.get(current, ())
    return name in seen


def _listed(names: "Sequence[str] | set[str]") -> str:
    return " or ".join(sorted(names)) or "none, as there are none"
