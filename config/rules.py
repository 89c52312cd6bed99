"""The rules of a settings file that its models cannot express: combinations, and limits that depend on other values."""

import inspect
import re
from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from config.sections import BootstrapSettings, ClusterSettings, NetworkSettings, StorageSettings
from ultracluster.domain import accounting_rules, addresses, cluster_rules, lustre, names, snapshots, team_rules
from ultracluster.domain import budget as budget_rules
from ultracluster.domain import homes as homes_rules
from ultracluster.domain import monitoring as monitoring_rules
from ultracluster.domain import network as network_rules
from ultracluster.domain.accounting import AccountingSpec
from ultracluster.domain.budget import BudgetSpec
from ultracluster.domain.homes import HOME, HomesSpec
from ultracluster.domain.monitoring import ClusterMonitoringSpec
from ultracluster.domain.network import NetworkSpec
from ultracluster.domain.spec import Spec
from ultracluster.domain.team import UserSpec
from ultracluster.domain.violations import Violation, below

_OTHER_PARTITIONS = ("cn-", "us-gov-", "us-iso", "eu-iso")
_FIXED_ADDRESS_RESERVE = 32
_GIB_PER_FILE_SERVER_INTERFACE = 1200


def violations(sections: Mapping[str, Any]) -> list[Violation]:
    """Return every rule that the sections break.

    Args:
        sections: Sections of a file by name, those whose shape is in order. A rule that needs another is left out.
    """
    broken = []
    for rule, needed in _RULES.items():
        if sections.keys() >= needed:
            broken += rule(**{section: sections[section] for section in needed})
    return broken


def _zone(region: str, zone_id: str) -> list[Violation]:
    if region.startswith(_OTHER_PARTITIONS):
        return [Violation(("region",), region, "a Region of AWS's standard partition", "Trn1 is offered nowhere else")]
    return [*network_rules.zone_violations(region, zone_id)]


def _bootstrap(account: str | None, region: str, bootstrap: BootstrapSettings) -> list[Violation]:
    broken = _region_violations(bootstrap, "kms_key_arn", region)
    if bootstrap.kms_key_arn and account and bootstrap.kms_key_arn.split(":")[4] != account:
        allowed = f"one of account {account}"
        broken.append(bootstrap.violation("kms_key_arn", allowed, "the CDK uses keys of the account alone"))
    return below(("bootstrap",), broken)


def _network(network: NetworkSettings) -> list[Violation]:
    broken = list(network_rules.violations(network))
    existing = network.existing
    if existing is not None:
        for field in NetworkSpec.model_fields:
            is_block, value = field in network_rules.BLOCKS, getattr(network, field)
            if is_block and field not in network.model_fields_set:
                reason = "it is not looked up"
                broken.append(Violation((field,), None, "the block of the existing VPC or subnet", reason))
            elif not is_block and value not in (None, NetworkSpec.model_fields[field].get_default()):
                broken.append(network.violation(field, "leave it out", "an existing VPC is not changed"))
        if existing.public_subnet_id == existing.private_subnet_id:
            reason = "nodes of several interfaces take no public addresses"
            broken += below(("existing",), [existing.violation("private_subnet_id", "another subnet", reason)])
    return below(("network",), broken)


def _storage(region: str, storage: StorageSettings) -> list[Violation]:
    file_system = storage.file_system
    broken = [
        *lustre.violations(file_system),
        *_region_violations(file_system, "kms_key_arn", region),
    ]
    of_links = lustre.repository_violations(file_system, storage.data_repositories)
    return below(("storage",), [*below(("file_system",), broken), *of_links])


def _cluster(name: str, region: str, tags: dict[str, str], cluster: ClusterSettings) -> list[Violation]:
    spec = cluster.spec(name=name, region=region, tags=tags)
    of_snapshots = [] if cluster.head_node.snapshots is None else snapshots.tag_violations(tags)
    broken = [*cluster_rules.violations(spec), *of_snapshots, *_region_violations(spec, "munge_key_secret_arn", region)]
    if spec.directory is not None:
        broken += below(("directory",), _region_violations(spec.directory, "password_secret_arn", region))
    for q, queue in enumerate(cluster.queues):
        for r, resource in enumerate(queue.compute_resources):
            elsewhere = _region_violations(resource, "capacity_reservation_group_arn", region)
            broken += below(("queues", q, "compute_resources", r), elsewhere)
    if re.fullmatch(rf"{name}-(network|storage|team|cluster(-\d+)?|monitoring)", spec.name):
        stacks = ", ".join(f"{name}-{part}" for part in ("network", "storage", "team", "cluster", "monitoring"))
        broken.append(
            spec.violation("name", f"another name than {stacks}", "ParallelCluster makes a stack of that name")
        )
    of_tags = [violation for violation in broken if violation.path[0] == "tags"]
    return of_tags + below(("cluster",), [violation for violation in broken if violation not in of_tags])


def _monitoring(monitoring: ClusterMonitoringSpec) -> list[Violation]:
    return below(("monitoring",), monitoring_rules.violations(monitoring))


def _budget(
    region: str,
    tags: dict[str, str],
    cluster: ClusterSettings,
    monitoring: ClusterMonitoringSpec,
    budget: BudgetSpec | None,
) -> list[Violation]:
    if budget is None:
        return []
    broken = [
        *budget_rules.violations(budget, region, cluster.instance_types),
        *budget_rules.email_violations(budget, monitoring.emails),
    ]
    reason = "monitoring.node_metrics is false, so nothing tells what runs"
    if not monitoring.node_metrics and budget.max_usd_per_hour is not None:
        broken.append(budget.violation("max_usd_per_hour", "null", reason))
    if not monitoring.node_metrics and budget.action != "none":
        broken.append(budget.violation("action", "none", reason))
    of_tags = []
    if names.DEPLOYMENT_TAG in tags:
        path = ("tags", names.DEPLOYMENT_TAG)
        of_tags.append(Violation(path, tags[names.DEPLOYMENT_TAG], "no such key", "a budget sets it"))
    return of_tags + below(("budget",), broken)


def _accounting(region: str, accounting: AccountingSpec | None) -> list[Violation]:
    if accounting is None:
        return []
    broken = accounting_rules.violations(accounting)
    if accounting.existing is not None:
        elsewhere = _region_violations(accounting.existing, "password_secret_arn", region)
        broken += below(("existing",), elsewhere)
    return below(("accounting",), broken)


def _accounts_of_users(users: list[UserSpec], accounting: AccountingSpec | None) -> list[Violation]:
    return [*accounting_rules.user_violations(accounting, users)]


def _accounting_network(
    region: str, zone_id: str, network: NetworkSettings, accounting: AccountingSpec | None
) -> list[Violation]:
    if accounting is None or accounting.existing is not None:
        return []
    in_existing = network.existing is not None
    broken = accounting_rules.place_violations(
        accounting.database, network, region=region, zone_id=zone_id, existing_vpc=in_existing
    )
    return below(("accounting", "database"), broken)


def _accounting_cluster(
    name: str, region: str, cluster: ClusterSettings, accounting: AccountingSpec | None
) -> list[Violation]:
    if accounting is None:
        return []
    spec = cluster.spec(name=name, region=region, tags={})
    return below(("cluster",), cluster_rules.accounting_violations(spec))


def _mounts(storage: StorageSettings, cluster: ClusterSettings) -> list[Violation]:
    return below(("cluster",), cluster_rules.scratch_violations(cluster.queues, storage.file_system.mount_dir))


def _homes(region: str, homes: HomesSpec | None, users: list[UserSpec], cluster: ClusterSettings) -> list[Violation]:
    if homes is None:
        return []
    of_homes = [*homes_rules.violations(homes, len(users), region), *_region_violations(homes, "kms_key_arn", region)]
    broken = below(("homes",), of_homes)
    shared = cluster.overrides.get("SharedStorage")
    for index, each in enumerate(shared if isinstance(shared, list) else []):
        mount_dir = each.get("MountDir") if isinstance(each, Mapping) else None
        if isinstance(mount_dir, str) and lustre.overlap(f"/{mount_dir.strip('/')}", HOME):
            path = ("cluster", "overrides", "SharedStorage", index, "MountDir")
            broken.append(Violation(path, mount_dir, "a directory outside /home", "homes are mounted there"))
    return broken


def _subnets(
    *,
    name: str,
    region: str,
    network: NetworkSettings,
    storage: StorageSettings,
    homes: HomesSpec | None,
    cluster: ClusterSettings,
) -> list[Violation]:
    spec = cluster.spec(name=name, region=region, tags={})
    file_servers = ceil(storage.file_system.capacity_gib / _GIB_PER_FILE_SERVER_INTERFACE)
    endpoints = network_rules.endpoint_services(network.interface_endpoints, login_nodes=bool(cluster.login_nodes))
    private_logins = sum(pool.count for pool in cluster.login_nodes if not pool.public)
    others = _FIXED_ADDRESS_RESERVE + file_servers + len(endpoints) + private_logins
    others += homes.addresses if homes else 0
    in_private = (
        f"{spec.max_nodes} nodes take {spec.max_node_addresses} addresses with EFA interface type "
        f"{spec.efa_interface_type}, other things {others}"
    )
    # Room for the head node, and for the load balancer of each pool of login nodes.
    public_logins = sum(pool.count for pool in cluster.login_nodes if pool.public)
    public = network.nat_addresses + 1 + public_logins + len(cluster.login_nodes)
    in_public = f"head node, NAT gateway and login nodes take {public} addresses"
    broken = [
        *addresses.room_violations(
            "private_subnet_cidr", network.private_subnet_cidr, spec.max_node_addresses + others, in_private
        ),
        *addresses.room_violations("public_subnet_cidr", network.public_subnet_cidr, public, in_public),
    ]
    return below(("network",), broken)


def _region_violations(section: Spec, field: str, region: str) -> list[Violation]:
    parts = (getattr(section, field) or "").split(":")
    if parts[3:4] in ([], [""], [region]):
        return []
    return [section.violation(field, f"one in {region}", "it must be in the deployment's Region")]


_RULES: dict[Callable[..., list[Violation]], frozenset[str]] = {
    rule: frozenset(inspect.signature(rule).parameters)
    for rule in (
        *(_zone, _bootstrap, _network, _storage, _cluster, _monitoring, _budget, _mounts, _homes, _subnets),
        *(team_rules.violations, _accounting, _accounts_of_users, _accounting_network, _accounting_cluster),
    )
}
"""Each rule, and the sections that it needs: its parameters."""
