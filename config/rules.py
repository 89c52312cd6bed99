"""The rules of a settings file that its models cannot express: combinations, and limits that depend on other values."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from config.sections import BootstrapSettings, ClusterSettings, MonitoringSettings, NetworkSettings, StorageSettings
from ultracluster.domain import addresses, cluster_rules, lustre
from ultracluster.domain.cluster import LOG_RETENTION_DAYS
from ultracluster.domain.instance_types import zone_id_prefix
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
    prefix = zone_id_prefix(region)
    if region.startswith(_OTHER_PARTITIONS):
        return [Violation(("region",), region, "a Region of AWS's standard partition", "Trn1 is offered nowhere else")]
    if prefix is None or zone_id.startswith(f"{prefix}-"):
        return []
    return [Violation(("zone_id",), zone_id, f"{prefix}-az1, {prefix}-az2, ...", f"a zone of {region}")]


def _bootstrap(account: str | None, region: str, bootstrap: BootstrapSettings) -> list[Violation]:
    place, arn = ("bootstrap", "kms_key_arn"), bootstrap.kms_key_arn
    found = _region_violations(place, arn, region)
    if arn is not None and account is not None and arn.split(":")[4] != account:
        found.append(Violation(place, arn, f"one of account {account}", "the CDK uses keys of the account alone"))
    return found


def _network(network: NetworkSettings) -> list[Violation]:
    blocks = ("cidr", "public_subnet_cidr", "private_subnet_cidr")
    found = list(addresses.block_violations({field: getattr(network, field) for field in blocks}))
    found += _retention_violations("flow_log_retention_days", network.flow_log_retention_days)
    if network.existing is not None:
        for field in blocks:
            if field not in network.model_fields_set:
                found.append(
                    Violation((field,), None, "the block of the existing VPC or subnet", "it is not looked up")
                )
        for field, made in (("nat_addresses", 1), ("interface_endpoints", []), ("flow_log_retention_days", 90)):
            value = getattr(network, field)
            if value not in (None, made):
                found.append(Violation((field,), value, "leave it out", "an existing VPC is not changed"))
        if network.existing.public_subnet_id == network.existing.private_subnet_id:
            subnet = network.existing.private_subnet_id
            place = ("existing", "private_subnet_id")
            found.append(
                Violation(place, subnet, "another subnet", "nodes of several interfaces take no public addresses")
            )
    return below(("network",), found)


def _storage(region: str, storage: StorageSettings) -> list[Violation]:
    file_system = storage.file_system
    found = below(("file_system",), lustre.violations(file_system))
    found += below(("file_system",), _retention_violations("log_retention_days", file_system.log_retention_days))
    found += lustre.repository_violations(file_system, storage.data_repositories)
    found += _region_violations(("file_system", "kms_key_arn"), file_system.kms_key_arn, region)
    return below(("storage",), found)


def _cluster(name: str, region: str, tags: dict[str, str], cluster: ClusterSettings) -> list[Violation]:
    spec = cluster.spec(name=name, region=region, tags=tags)
    found = cluster_rules.violations(spec)
    found += below(("monitoring",), _retention_violations("log_retention_days", cluster.monitoring.log_retention_days))
    for q, queue in enumerate(cluster.queues):
        for r, resource in enumerate(queue.compute_resources):
            place = ("queues", q, "compute_resources", r, "capacity_reservation_group_arn")
            found += _region_violations(place, resource.capacity_reservation_group_arn, region)
    stacks = [f"{name}-{part}" for part in ("network", "storage", "cluster", "monitoring")]
    if re.fullmatch(rf"{name}-(network|storage|cluster(-\d+)?|monitoring)", spec.name):
        allowed = f"another name than {', '.join(stacks)}"
        found.append(Violation(("name",), spec.name, allowed, "ParallelCluster makes a stack of that name"))
    return [violation if violation.path[0] == "tags" else below(("cluster",), [violation])[0] for violation in found]


def _monitoring(monitoring: MonitoringSettings) -> list[Violation]:
    emails = monitoring.emails
    return [
        Violation(("monitoring", "emails", index), email, "each address once", "two subscriptions would be one")
        for index, email in enumerate(emails)
        if email.lower() in [each.lower() for each in emails[:index]]
    ]


def _mounts(storage: StorageSettings, cluster: ClusterSettings) -> list[Violation]:
    mount_dir = storage.file_system.mount_dir
    return [
        Violation(
            ("cluster", "queues", index, "scratch_dir"),
            queue.scratch_dir,
            f"a path neither above nor below {mount_dir}",
            "the file system is mounted there",
        )
        for index, queue in enumerate(cluster.queues)
        if lustre.overlap(queue.scratch_dir, mount_dir)
    ]


def _private_subnet(
    name: str, region: str, network: NetworkSettings, storage: StorageSettings, cluster: ClusterSettings
) -> list[Violation]:
    file_servers = -(-storage.file_system.capacity_gib // _GIB_PER_FILE_SERVER_INTERFACE)
    logins = sum(pool.count for pool in cluster.login_nodes if not pool.public)
    found = cluster_rules.subnet_violations(
        cluster.spec(name=name, region=region, tags={}),
        private_subnet_cidr=network.private_subnet_cidr,
        reserve=_FIXED_ADDRESS_RESERVE + file_servers + len(network.endpoint_services) + logins,
    )
    return below(("network",), found)


def _public_subnet(network: NetworkSettings, cluster: ClusterSettings) -> list[Violation]:
    block = addresses.parse(network.public_subnet_cidr)
    logins = sum(pool.count for pool in cluster.login_nodes if pool.public)
    # Room for the head node, and for the load balancer of each pool of login nodes.
    needed = network.nat_addresses + 1 + logins + len(cluster.login_nodes)
    if block is None or needed <= addresses.usable(block):
        return []
    prefix = addresses.longest_prefix_for(needed)
    allowed = "fewer login nodes: no subnet is that large" if prefix is None else f"a /{prefix} or larger"
    reason = (
        f"head node, NAT gateway and login nodes take {needed} addresses; this subnet has {addresses.usable(block)}"
    )
    return [Violation(("network", "public_subnet_cidr"), network.public_subnet_cidr, allowed, reason)]


def _retention_violations(field: str, days: int | None) -> list[Violation]:
    if days is None or days in LOG_RETENTION_DAYS:
        return []
    allowed = "one of " + ", ".join(map(str, LOG_RETENTION_DAYS))
    return [Violation((field,), days, allowed, "the periods that CloudWatch Logs has")]


def _region_violations(place: tuple[str | int, ...], arn: str | None, region: str) -> list[Violation]:
    _, _, _, arn_region, *_ = (arn or "").split(":") + [""] * 4
    if arn_region in ("", region):
        return []
    return [Violation(place, arn, f"one in {region}", "it must be in the deployment's Region")]


_RULES: dict[Callable[..., list[Violation]], frozenset[str]] = {
    rule: frozenset(inspect.signature(rule).parameters)
    for rule in (_zone, _bootstrap, _network, _storage, _cluster, _monitoring, _mounts, _private_subnet, _public_subnet)
}
"""Each rule, and the sections that it needs: its parameters."""
