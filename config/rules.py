"""The rules of a settings file that its models cannot express: combinations, and limits that depend on other values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from ultracluster.domain import (
    accounting_rules,
    addresses,
    cluster_rules,
    custom_actions,
    lustre,
    names,
    snapshots,
    team_rules,
)
from ultracluster.domain import budget as budget_rules
from ultracluster.domain import homes as homes_rules
from ultracluster.domain import monitoring as monitoring_rules
from ultracluster.domain import network as network_rules
from ultracluster.domain import storage as storage_rules
from ultracluster.domain.homes import HOME
from ultracluster.domain.network import NetworkSpec
from ultracluster.domain.violations import Violation, below

if TYPE_CHECKING:
    from config.sections import NetworkSettings
    from config.settings import Settings
    from ultracluster.domain.accounting import DatabaseSpec
    from ultracluster.domain.budget import BudgetSpec
    from ultracluster.domain.cluster import ClusterOptions
    from ultracluster.domain.spec import Spec

_OTHER_PARTITIONS = ("cn-", "us-gov-", "us-iso", "eu-iso")
_FIXED_ADDRESS_RESERVE = 32
_GIB_PER_FILE_SERVER_INTERFACE = 1200


def violations(settings: Settings) -> list[Violation]:
    """Return every rule that settings break; a rule that reads a value of a wrong shape waits."""
    return [
        *below(("region",), _region(settings)),
        *below(("zone_id",), _zone(settings)),
        *below(("tags",), lambda: cluster_rules.tag_violations(settings.cluster_spec.tags)),
        *below(("tags",), _tags_of_snapshots(settings), _tag_of_budget(settings)),
        *below(("bootstrap",), _account_of_key(settings), lambda: _elsewhere(settings, settings.bootstrap)),
        *below(("roles",), _account_of_boundary(settings)),
        *below(("network",), lambda: network_rules.violations(settings.network), _existing_network(settings)),
        *below(("network",), _private_subnet(settings), _public_subnet(settings)),
        *below(("storage",), lambda: _storage(settings)),
        *below(("cluster",), lambda: _cluster(settings)),
        *below(("monitoring",), lambda: monitoring_rules.violations(settings.monitoring)),
        *below(("groups",), lambda: team_rules.group_violations(settings.groups, settings.users)),
        *below(("users",), lambda: team_rules.user_violations(settings.users)),
        *below(("users",), lambda: team_rules.gid_violations(settings.groups, settings.users)),
        *below(("users",), lambda: team_rules.membership_violations(settings.groups, settings.users)),
        *below(("users",), lambda: accounting_rules.user_violations(settings.accounting, settings.users)),
        *below(("accounting",), _accounting(settings)),
        *below(("homes",), _homes(settings)),
        *below(("budget",), _budget(settings)),
    ]


def _region(settings: Settings) -> Iterator[Violation]:
    if settings.region.startswith(_OTHER_PARTITIONS):
        yield Violation((), settings.region, "a Region of AWS's standard partition", "Trn1 is offered nowhere else")


def _zone(settings: Settings) -> Iterator[Violation]:
    if not settings.region.startswith(_OTHER_PARTITIONS):
        yield from network_rules.zone_violations(settings.region, settings.zone_id)


def _tags_of_snapshots(settings: Settings) -> Iterator[Violation]:
    if settings.cluster.head_node.snapshots is not None:
        yield from snapshots.tag_violations(settings.tags)


def _tag_of_budget(settings: Settings) -> Iterator[Violation]:
    key = names.DEPLOYMENT_TAG
    if key in settings.tags and settings.budget is not None:
        yield Violation((key,), settings.tags[key], "no such key", "a budget sets it")


def _account_of_key(settings: Settings) -> Iterator[Violation]:
    key_arn = settings.bootstrap.kms_key_arn
    if key_arn and settings.account and key_arn.split(":")[4] != settings.account:
        allowed = f"one of account {settings.account}"
        yield settings.bootstrap.violation("kms_key_arn", allowed, "the CDK uses keys of the account alone")


def _account_of_boundary(settings: Settings) -> Iterator[Violation]:
    roles = settings.roles
    if roles is not None and roles.permissions_boundary_arn and settings.account:
        account = roles.permissions_boundary_arn.split(":")[4:5]
        if account != [settings.account]:
            reason = "roles take boundaries of their own account alone"
            yield roles.violation("permissions_boundary_arn", f"one of account {settings.account}", reason)


def _existing_network(settings: Settings) -> Iterator[Violation]:
    network, existing = settings.network, settings.network.existing
    if existing is None:
        return
    yield from below((), *(_of_existing(network, field) for field in NetworkSpec.model_fields))
    if existing.public_subnet_id == existing.private_subnet_id:
        reason = "nodes of several interfaces take no public addresses"
        yield from below(("existing",), [existing.violation("private_subnet_id", "another subnet", reason)])


def _of_existing(network: NetworkSettings, field: str) -> Iterator[Violation]:
    is_block, value = field in network_rules.BLOCKS, getattr(network, field)
    if is_block and field not in network.model_fields_set:
        yield Violation((field,), None, "the block of the existing VPC or subnet", "it is not looked up")
    elif not is_block and value not in (None, NetworkSpec.model_fields[field].get_default()):
        yield network.violation(field, "leave it out", "an existing VPC is not changed")


def _private_subnet(settings: Settings) -> Iterator[Violation]:
    spec, network, pools = settings.cluster_spec, settings.network, settings.cluster.login_nodes
    file_servers = ceil(settings.storage.file_system.capacity_gib / _GIB_PER_FILE_SERVER_INTERFACE)
    others = _FIXED_ADDRESS_RESERVE + file_servers + len(settings.endpoint_services)
    others += sum(pool.count for pool in pools if not pool.public) + (settings.homes.addresses if settings.homes else 0)
    takers = (
        f"{spec.max_nodes} nodes take {spec.max_node_addresses} addresses with EFA interface type "
        f"{spec.efa_interface_type}, other things {others}"
    )
    field, needed = "private_subnet_cidr", spec.max_node_addresses + others
    yield from addresses.room_violations(field, network.private_subnet_cidr, needed, takers)


def _public_subnet(settings: Settings) -> Iterator[Violation]:
    network, pools = settings.network, settings.cluster.login_nodes
    # Room for the head node, and for the load balancer of each pool of login nodes.
    needed = network.nat_addresses + 1 + sum(pool.count for pool in pools if pool.public) + len(pools)
    takers = f"head node, NAT gateway and login nodes take {needed} addresses"
    yield from addresses.room_violations("public_subnet_cidr", network.public_subnet_cidr, needed, takers)


def _storage(settings: Settings) -> list[Violation]:
    storage = settings.storage
    file_system = (lambda: lustre.violations(storage.file_system), lambda: _elsewhere(settings, storage.file_system))
    links = below((), lambda: lustre.repository_violations(storage.file_system, storage.data_repositories))
    return [*below(("file_system",), *file_system), *links]


def _cluster(settings: Settings) -> list[Violation]:
    cluster, spec = settings.cluster, settings.cluster_spec
    return [
        *(each for each in cluster_rules.violations(spec) if each.path[:1] != ("tags",)),
        *below((), _elsewhere(settings, cluster, "munge_key_secret_arn"), _arns_of_resources(settings)),
        *below(("directory",), lambda: _elsewhere(settings, cluster.directory, "password_secret_arn")),
        *below((), lambda: cluster_rules.scratch_violations(cluster, settings.storage.file_system.mount_dir)),
        *below(("shared_storage",), lambda: storage_rules.violations(cluster.shared_storage)),
        *below(("shared_storage",), lambda: _mounts(settings)),
        *below((), lambda: _scratch_on_storage(settings)),
        *below((), lambda: () if settings.accounting is None else cluster_rules.accounting_violations(spec)),
        *below((), _stack_names(settings), _mounts_on_homes(settings)),
    ]


def script_violations(settings: Settings, folder: Path) -> list[Violation]:
    """Return which scripts of nodes are no files below a folder, or no scripts."""
    return below(
        ("cluster",),
        lambda: below(("head_node",), _refused(settings.cluster.head_node.custom_actions, folder)),
        lambda: _refused(settings.cluster.login_node_actions, folder, "login_node_actions"),
        lambda: _refused_of_queues(settings.cluster, folder),
    )


def _refused_of_queues(cluster: ClusterOptions, folder: Path) -> Iterator[Violation]:
    for index, queue in enumerate(cluster.queues):
        yield from below(("queues", index), _refused(queue.custom_actions, folder))


def _refused(actions_of: Spec | None, folder: Path, field: str = "custom_actions") -> Iterator[Violation]:
    for place, action in custom_actions.actions(actions_of):
        script = action.script
        if custom_actions.is_file(script) and (refused := custom_actions.refused_file(folder / script, folder)):
            yield Violation((field, *place, "script"), script, *refused)


def _arns_of_resources(settings: Settings) -> Iterator[Violation]:
    for q, queue in enumerate(settings.cluster.queues):
        for r, resource in enumerate(queue.compute_resources):
            elsewhere = _elsewhere(settings, resource, "capacity_reservation_group_arn")
            yield from below(("queues", q, "compute_resources", r), elsewhere)


def _stack_names(settings: Settings) -> Iterator[Violation]:
    name, spec = settings.name, settings.cluster_spec
    if re.fullmatch(rf"{name}-(network|storage|team|cluster(-\d+)?|monitoring)", spec.name):
        stacks = ", ".join(f"{name}-{part}" for part in ("network", "storage", "team", "cluster", "monitoring"))
        yield spec.violation("name", f"another name than {stacks}", "ParallelCluster makes a stack of that name")


def _mounts(settings: Settings) -> Iterator[Violation]:
    """Check names and directories of further storage against one another and what is mounted anyway."""
    earlier = [("", settings.storage.file_system.mount_dir), *([] if settings.homes is None else [("homes", HOME)])]
    for index, each in enumerate(settings.cluster.shared_storage):
        yield from lustre.mount_point_violations((index, "mount_dir"), each.mount_dir, example="/projects")
        if each.name in dict(earlier):
            yield Violation((index, "name"), each.name, "a name of its own", "given twice")
        yield from below((index, "ebs"), _elsewhere(settings, each.ebs))
        for _, mount_dir in earlier:
            if lustre.overlap(each.mount_dir, mount_dir):
                allowed = f"a path neither above nor below {mount_dir}"
                yield Violation((index, "mount_dir"), each.mount_dir, allowed, "another file system is mounted there")
        earlier.append((each.name, each.mount_dir))


def _scratch_on_storage(settings: Settings) -> Iterator[Violation]:
    for each in settings.cluster.shared_storage:
        yield from cluster_rules.scratch_violations(settings.cluster, each.mount_dir)


def _mounts_on_homes(settings: Settings) -> Iterator[Violation]:
    shared = settings.cluster.overrides.get("SharedStorage") if settings.homes is not None else None
    for index, each in enumerate(shared if isinstance(shared, list) else []):
        mount_dir = each.get("MountDir") if isinstance(each, Mapping) else None
        if isinstance(mount_dir, str) and lustre.overlap(f"/{mount_dir.strip('/')}", HOME):
            path = ("overrides", "SharedStorage", index, "MountDir")
            yield Violation(path, mount_dir, "a directory outside /home", "homes are mounted there")


def _accounting(settings: Settings) -> Iterator[Violation]:
    accounting = settings.accounting
    if accounting is None:
        return
    yield from accounting_rules.violations(accounting)
    if accounting.existing is not None:
        yield from below(("existing",), _elsewhere(settings, accounting.existing, "password_secret_arn"))
        return
    yield from below(
        ("database",),
        lambda: accounting_rules.zone_violations(accounting.database, settings.region, settings.zone_id),
        lambda: _subnets_of_database(settings, accounting.database),
    )


def _subnets_of_database(settings: Settings, database: DatabaseSpec) -> Iterator[Violation]:
    exists = settings.network.existing is not None
    return accounting_rules.subnet_violations(database, settings.network, existing_vpc=exists)


def _homes(settings: Settings) -> Iterator[Violation]:
    homes = settings.homes
    if homes is not None:
        yield from homes_rules.violations(homes)
        region = (lambda: homes_rules.place_violations(homes, settings.region), _elsewhere(settings, homes))
        yield from below((), *region, lambda: homes_rules.quota_violations(homes, len(settings.users)))


def _prices_of_budget(settings: Settings, budget: BudgetSpec) -> Iterator[Violation]:
    cluster = settings.cluster
    return budget_rules.violations(budget, settings.region, cluster.instance_types, cluster.stated_prices)


def _budget(settings: Settings) -> Iterator[Violation]:
    budget = settings.budget
    if budget is not None:
        yield from below(
            (),
            lambda: _prices_of_budget(settings, budget),
            lambda: budget_rules.email_violations(budget, settings.monitoring.emails),
            _guards(budget, settings),
        )


def _guards(budget: BudgetSpec, settings: Settings) -> Iterator[Violation]:
    if settings.monitoring.node_metrics:
        return
    reason = "monitoring.node_metrics is false, so nothing tells what runs"
    if budget.max_usd_per_hour is not None:
        yield budget.violation("max_usd_per_hour", "null", reason)
    if budget.action != "none":
        yield budget.violation("action", "none", reason)


def _elsewhere(settings: Settings, section: Spec | None, field: str = "kms_key_arn") -> Iterator[Violation]:
    arn = None if section is None else getattr(section, field)
    if section is not None and arn is not None and arn.split(":")[3:4] not in ([], [""], [settings.region]):
        yield section.violation(field, f"one in {settings.region}", "it must be in the deployment's Region")
