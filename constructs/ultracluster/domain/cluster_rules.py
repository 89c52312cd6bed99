"""Rules of a cluster that can be checked without AWS.

Unless another source is named, a rule is one of aws-parallelcluster 3.16.1's own validators or limits (``schemas``,
``validators``, ``constants.py``), told here before anything is deployed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from ipaddress import IPv4Network
from typing import Any

from ultracluster.domain import addresses, names, neuron, slurm
from ultracluster.domain.cluster import ClusterSpec, ComputeResourceSpec, HeadNodeSpec, LoginPoolSpec, QueueSpec
from ultracluster.domain.faults import Fault, below
from ultracluster.domain.instance_types import TRAINIUM_TYPES, has_efa, is_arm, memory_gib

MAX_QUEUES = 50
MAX_COMPUTE_RESOURCES = 50
MAX_LOGIN_POOLS = 10
MAX_TAGS = 40
WIDEST_SSH_PREFIX = 8
RESERVED_TAG_PREFIXES = ("parallelcluster:", "aws:")
EFA_TYPES = ", ".join(sorted(name for name, kind in TRAINIUM_TYPES.items() if kind.efa))
CAPACITY_BLOCK_TYPES = ", ".join(sorted(name for name, kind in TRAINIUM_TYPES.items() if kind.capacity_blocks))

MODELLED_KEYS = {
    "Region": "region",
    "Image*": "cluster.os or cluster.custom_ami",
    "Tags*": "tags",
    "SharedStorage*": "storage.file_system",
    "LoginNodes*": "cluster.login_nodes",
    "HeadNode.InstanceType": "cluster.head_node.instance_type",
    "HeadNode.Networking.SubnetId": "cluster.head_node.public",
    "HeadNode.Networking.SecurityGroups*": "network",
    "HeadNode.Networking.AdditionalSecurityGroups*": "network",
    "HeadNode.Ssh*": "cluster.head_node.ssh_key_name or cluster.head_node.ssh_cidr",
    "HeadNode.CustomActions*": "cluster.neuron_sdk",
    "Scheduling.Scheduler": "nothing else than slurm",
    "Scheduling.SlurmSettings.ScaledownIdletime": "cluster.slurm.idle_minutes",
    "Scheduling.SlurmSettings.QueueUpdateStrategy": "cluster.slurm.queue_update_strategy",
    "Scheduling.SlurmSettings.CustomSlurmSettings*": "cluster.slurm.custom_settings",
    "Scheduling.SlurmQueues[[]*].CapacityType": "cluster.queues",
    "Scheduling.SlurmQueues[[]*].Networking*": "cluster.queues",
    "Scheduling.SlurmQueues[[]*].CustomActions*": "cluster.neuron_sdk",
    "Scheduling.SlurmQueues[[]*].ComputeResources[[]*].InstanceType": "cluster.queues",
    "Scheduling.SlurmQueues[[]*].ComputeResources[[]*].Instances*": "cluster.queues",
    "Scheduling.SlurmQueues[[]*].ComputeResources[[]*].M??Count": "cluster.queues",
    "Scheduling.SlurmQueues[[]*].ComputeResources[[]*].Efa*": "cluster.queues",
    "DevSettings.EfaInterfaceType": "cluster.efa_interface_type",
}
"""Keys that an override may not touch, because rules count on them, and the setting to use instead."""


def faults(spec: ClusterSpec) -> list[Fault]:
    """Return every rule that a cluster breaks; paths are field names of the spec."""
    found = [*_name_faults(spec), *_software_faults(spec), *_tag_faults(spec.tags)]
    found += below(("head_node",), _head_node_faults(spec.head_node, spec))
    found += _login_pool_faults(spec.login_pools)
    found += _queue_list_faults(spec)
    for index, queue in enumerate(spec.queues):
        found += below(("queues", index), _queue_faults(queue))
    found += below(
        ("slurm", "custom_settings"),
        _slurm_faults(spec.slurm.custom_settings, slurm.RESERVED_CLUSTER_SETTINGS),
    )
    found += below(("overrides",), _override_faults(spec))
    return found


def _name_faults(spec: ClusterSpec) -> Iterator[Fault]:
    accounting = {"Database", "ExternalSlurmdbd"} & set(_get(_get(spec.overrides, "Scheduling"), "SlurmSettings"))
    if accounting and len(spec.name) > names.CLUSTER_NAME_MAX_WITH_ACCOUNTING:
        allowed = f"at most {names.CLUSTER_NAME_MAX_WITH_ACCOUNTING} characters"
        yield Fault(("name",), spec.name, allowed, "with Slurm accounting, table names hold the cluster's name")
    for q, queue in enumerate(spec.queues):
        for r, resource in enumerate(queue.compute_resources):
            fqdn = names.longest_node_fqdn(spec.name, queue.name, resource.name, resource.max_count)
            if len(fqdn) > names.NODE_FQDN_MAX:
                yield Fault(
                    ("queues", q, "compute_resources", r, "name"),
                    resource.name,
                    f"shorter names: {fqdn} has {len(fqdn)} characters, {names.NODE_FQDN_MAX} are allowed",
                    "the Neuron runtime does not resolve longer node names",
                )


def _software_faults(spec: ClusterSpec) -> Iterator[Fault]:
    releases = neuron.PYTORCH_BY_OS
    if spec.neuron_sdk not in releases:
        allowed = " or ".join(releases)
        yield Fault(
            ("neuron_sdk",), spec.neuron_sdk, allowed, "releases whose PyTorch trains on Trn1, as verified here"
        )
        return
    versions = releases[spec.neuron_sdk].get(spec.os, ())
    if spec.pytorch not in versions:
        yield Fault(
            ("pytorch",),
            spec.pytorch,
            " or ".join(versions),
            f"what Neuron SDK {spec.neuron_sdk} has for {spec.os}",
        )


def _tag_faults(tags: Iterable[str]) -> Iterator[Fault]:
    keys = list(tags)
    if len(keys) > MAX_TAGS:
        yield Fault(("tags",), len(keys), f"at most {MAX_TAGS} tags", "limit of ParallelCluster")
    for key in keys:
        if key.startswith(RESERVED_TAG_PREFIXES):
            yield Fault(("tags", key), key, f"no key that begins with {' or '.join(RESERVED_TAG_PREFIXES)}", "reserved")


def _head_node_faults(head: HeadNodeSpec, spec: ClusterSpec) -> Iterator[Fault]:
    yield from _x86_faults(head.instance_type)
    memory = memory_gib(head.instance_type)
    needed = min(spec.max_nodes / 25 + 0.6, 16)
    if memory is not None and memory < needed:
        yield Fault(
            ("instance_type",),
            head.instance_type,
            f"a type with at least {needed:.1f} GiB of memory (this one has {memory:g})",
            f"the head node serves {spec.max_nodes} nodes",
        )
    if head.instance_type.endswith((".nano", ".micro")) and spec.os.startswith("ubuntu"):
        yield Fault(("instance_type",), head.instance_type, "a type larger than micro", f"too small for {spec.os}")
    if head.ssh_cidr is not None:
        yield from _ssh_faults(head.ssh_cidr)
    if head.ssh_key_name and not head.ssh_cidr:
        yield Fault(
            ("ssh_cidr",),
            None,
            "your own address range, such as 203.0.113.0/24",
            "an SSH key is given, but port 22 is shut",
        )


def _ssh_faults(cidr: str) -> Iterator[Fault]:
    if re.fullmatch(r"pl-[0-9a-f]{8}(?:[0-9a-f]{9})?", cidr):
        return
    try:
        block = IPv4Network(cidr)
    except ValueError:
        yield Fault(("ssh_cidr",), cidr, "an IPv4 block such as 203.0.113.0/24, or a prefix list pl-...", "not a CIDR")
        return
    if block.prefixlen < WIDEST_SSH_PREFIX:
        yield Fault(
            ("ssh_cidr",),
            cidr,
            f"a block of /{WIDEST_SSH_PREFIX} or smaller, best your office's",
            "port 22 open to the world",
        )


def _login_pool_faults(pools: Iterable[LoginPoolSpec]) -> Iterator[Fault]:
    pools = list(pools)
    if len(pools) > MAX_LOGIN_POOLS:
        yield Fault(("login_nodes",), len(pools), f"at most {MAX_LOGIN_POOLS} pools", "limit of ParallelCluster")
    yield from below(("login_nodes",), _group_name_faults([pool.name for pool in pools]))
    for index, pool in enumerate(pools):
        yield from below(("login_nodes", index), _x86_faults(pool.instance_type))


def _queue_list_faults(spec: ClusterSpec) -> Iterator[Fault]:
    if not 1 <= len(spec.queues) <= MAX_QUEUES:
        yield Fault(("queues",), len(spec.queues), f"1 to {MAX_QUEUES} queues", "limit of ParallelCluster")
    resources = sum(len(queue.compute_resources) for queue in spec.queues)
    if resources > MAX_COMPUTE_RESOURCES:
        allowed = f"at most {MAX_COMPUTE_RESOURCES} compute resources over all queues"
        yield Fault(("queues",), resources, allowed, "limit of ParallelCluster")
    yield from below(("queues",), _group_name_faults([queue.name for queue in spec.queues]))


def _queue_faults(queue: QueueSpec) -> Iterator[Fault]:
    if not queue.compute_resources:
        yield Fault(("compute_resources",), 0, "at least 1 compute resource", "a queue without nodes runs nothing")
    yield from below(("compute_resources",), _group_name_faults([r.name for r in queue.compute_resources]))
    for index, resource in enumerate(queue.compute_resources):
        yield from below(("compute_resources", index), _compute_resource_faults(resource, queue))
    if queue.existing_placement_group and queue.placement_group:
        yield Fault(
            ("existing_placement_group",),
            queue.existing_placement_group,
            "this or placement_group, not both",
            "a node is launched in one group",
        )
    placed = queue.placement_group_label or queue.existing_placement_group
    if queue.capacity_type == "CAPACITY_BLOCK" and placed:
        field = "existing_placement_group" if queue.existing_placement_group else "placement_group"
        yield Fault((field,), placed, "none", "a Capacity Block has its own placement")
    if not queue.scratch_dir.startswith("/") or queue.scratch_dir == "/":
        yield Fault(("scratch_dir",), queue.scratch_dir, "an absolute path below /", "a mount point")
    yield from below(
        ("custom_slurm_settings",), _slurm_faults(queue.custom_slurm_settings, slurm.RESERVED_QUEUE_SETTINGS)
    )


def _compute_resource_faults(resource: ComputeResourceSpec, queue: QueueSpec) -> Iterator[Fault]:
    if resource.min_count > resource.max_count:
        yield Fault(("min_count",), resource.min_count, f"at most max_count, {resource.max_count}", "min exceeds max")
    yield from _x86_faults(resource.instance_type)
    if resource.efa and not has_efa(resource.instance_type):
        yield Fault(
            ("efa",), True, f"false, or one of {EFA_TYPES}", f"{resource.instance_type} is not known to have EFA"
        )
    if resource.capacity_reservation_id and resource.capacity_reservation_group_arn:
        yield Fault(
            ("capacity_reservation_group_arn",),
            resource.capacity_reservation_group_arn,
            "this or capacity_reservation_id, not both",
            "nodes have one target",
        )
    if resource.reserved and queue.capacity_type == "SPOT":
        yield Fault(("capacity_reservation_id",), resource.capacity_reservation_id, "null", "Spot takes no reservation")
    if queue.capacity_type == "CAPACITY_BLOCK":
        yield from _capacity_block_faults(resource)


def _capacity_block_faults(resource: ComputeResourceSpec) -> Iterator[Fault]:
    if resource.capacity_reservation_id is None:
        yield Fault(
            ("capacity_reservation_id",), None, "the id of the Capacity Block, cr-...", "nodes come from it alone"
        )
    if resource.min_count != resource.max_count or resource.min_count == 0:
        yield Fault(
            ("min_count",),
            resource.min_count,
            f"the same as max_count, {resource.max_count}",
            "the nodes of a Capacity Block run all the time",
        )
    kind = TRAINIUM_TYPES.get(resource.instance_type)
    if kind is not None and not kind.capacity_blocks:
        yield Fault(("instance_type",), resource.instance_type, CAPACITY_BLOCK_TYPES, "sold as Capacity Blocks")


def _x86_faults(instance_type: str) -> Iterator[Fault]:
    if is_arm(instance_type):
        yield Fault(("instance_type",), instance_type, "an x86 instance type", "all nodes of a cluster share one image")


def _group_name_faults(group_names: list[str]) -> Iterator[Fault]:
    times = Counter(group_names)
    for index, name in enumerate(group_names):
        if not names.is_node_group_name(name):
            allowed = "a lower-case letter, then letters, digits and hyphens, at most 25 in all, not `default`"
            yield Fault((index, "name"), name, allowed, "becomes part of node names")
        if times[name] > 1:
            yield Fault((index, "name"), name, "a name of its own", "given twice")


def _slurm_faults(settings: Iterable[str], reserved: frozenset[str]) -> Iterator[Fault]:
    for key in settings:
        if key.lower() in reserved:
            yield Fault((key,), key, "any parameter that ParallelCluster does not set itself", "reserved")


def _override_faults(spec: ClusterSpec) -> Iterator[Fault]:
    for path, value in _leaves(spec.overrides, ()):
        dotted = re.sub(r"\.\[", "[", ".".join(f"[{part}]" if isinstance(part, int) else part for part in path))
        for pattern, setting in MODELLED_KEYS.items():
            if fnmatchcase(dotted, pattern):
                yield Fault(path, value, f"the setting {setting}", "the rules of this stack count on it")
    known = {queue.name: {resource.name for resource in queue.compute_resources} for queue in spec.queues}
    path = ("Scheduling", "SlurmQueues")
    for q, queue in enumerate(_items(_get(spec.overrides, "Scheduling"), "SlurmQueues")):
        if queue.get("Name") not in known:
            yield Fault(
                (*path, q, "Name"), queue.get("Name"), f"one of {', '.join(known)}", "names the queue to change"
            )
            continue
        resources = known[queue["Name"]]
        for r, resource in enumerate(_items(queue, "ComputeResources")):
            if resource.get("Name") not in resources:
                yield Fault(
                    (*path, q, "ComputeResources", r, "Name"),
                    resource.get("Name"),
                    f"one of {', '.join(sorted(resources))}",
                    "names the compute resource to change",
                )


def _items(mapping: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = mapping.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    children: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    empty = True
    for key, child in children:
        empty = False
        yield from _leaves(child, (*path, key))
    if empty and path:
        yield path, value


def _get(mapping: Any, key: str) -> Any:
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, dict) else {}


def subnet_faults(spec: ClusterSpec, *, private_subnet_cidr: str, reserve: int) -> Iterator[Fault]:
    """Check that the private subnet holds every node at its MaxCount.

    Args:
        spec: The cluster.
        private_subnet_cidr: Block of the subnet.
        reserve: Addresses that other things in the subnet take (file system, endpoints, head and login nodes).
    """
    block = addresses.parse(private_subnet_cidr)
    if block is None:
        return
    needed = spec.max_node_addresses + reserve
    if needed > addresses.usable(block):
        prefix = addresses.longest_prefix_for(needed)
        yield Fault(
            ("private_subnet_cidr",),
            private_subnet_cidr,
            f"a /{prefix} or larger" if prefix is not None else "fewer nodes: no subnet is that large",
            f"{spec.max_nodes} nodes take {spec.max_node_addresses} addresses with EFA interface type "
            f"{spec.efa_interface_type}, other things {reserve}; this subnet has {addresses.usable(block)}",
        )


def zone_warnings(spec: ClusterSpec, zone_id: str) -> Iterator[Fault]:
    """Tell which instance types the zone was not seen to offer, with the zones that did, those of the region first."""
    for q, queue in enumerate(spec.queues):
        for r, resource in enumerate(queue.compute_resources):
            kind = TRAINIUM_TYPES.get(resource.instance_type)
            if kind is not None and zone_id not in kind.zones:
                prefix = zone_id.partition("-")[0]
                zones = sorted(kind.zones, key=lambda zone: (zone.partition("-")[0] != prefix, zone))
                yield Fault(
                    ("queues", q, "compute_resources", r, "instance_type"),
                    resource.instance_type,
                    "zones that offer it: " + ", ".join(zones),
                    f"{zone_id} was not seen to",
                )
