"""Rules of a cluster that can be checked without AWS.

Unless another source is named, a rule is one of aws-parallelcluster 3.16.1's own validators or limits (``schemas``,
``validators``, ``constants.py``), reported here before anything is deployed.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ultracluster.domain import (
    addresses,
    custom_actions,
    directory,
    instance_type_names,
    lustre,
    names,
    neuron,
    override_rules,
    overrides,
    slurm,
    slurm_rules,
    type_facts,
)
from ultracluster.domain.cluster import (
    ALLOCATION_STRATEGIES,
    MAX_QUEUES,
    QUEUES,
    ClusterOptions,
    ClusterSpec,
    ComputeResourceSpec,
    HeadNodeSpec,
    LoginPoolSpec,
    QueueSpec,
)
from ultracluster.domain.homes import HOME
from ultracluster.domain.instance_types import (
    TRAINIUM_TYPES,
    EfaInterfaceType,
    cards_of,
    interfaces_per_node,
    is_arm,
    memory_gib,
)
from ultracluster.domain.parallelcluster_versions import PINNED, VERSIONS, ParallelClusterVersion
from ultracluster.domain.validators import ACCEPTABLE, VALIDATORS
from ultracluster.domain.violations import Path, Violation, below, is_token

MAX_COMPUTE_RESOURCES = 50
MAX_LOGIN_POOLS = 10
MAX_STORAGE_NAME = 30
MAX_TAGS = 39
"""One fewer than ParallelCluster takes: its CloudFormation provider adds one."""
MAX_TAG_KEY, MAX_TAG_VALUE = 128, 256
_TAG_SIGNS = "_.:/=+-@"
_TAG_TEXT = f"letters, digits, spaces and {' '.join(_TAG_SIGNS)}"
"""What the narrowest of the services take that carry the tags: FSx, EFS, IAM, Systems Manager, Elastic Load Balancing
(https://docs.aws.amazon.com/fsx/latest/APIReference/API_Tag.html). EC2 takes more."""
_WITHOUT_IMAGES = ("rocky8", "rocky9")
_BURSTABLE = re.compile(r"t\d")
_OTHER_ACCELERATORS = re.compile(r"(p|g|gr|inf|dl|f|vt)\d")
"""GPUs, Inferentia, Gaudi, FPGAs, video: accelerated computing in https://aws.amazon.com/ec2/instance-types/."""
RESERVED_TAG_PREFIXES = ("parallelcluster:", "aws:")
MOST_NODES_WITHOUT_IMAGE = 64
"""Nodes of a queue that may download the Neuron packages, about 100 MB each, from the same mirrors when they start.

No figure of AWS: it is 6 GB at once through the NAT gateway. Where a mirror refuses some of so many, more bootstraps
fail than the ten after which ParallelCluster closes a queue (aws-parallelcluster-node 3.16.1, clustermgtd.py,
protected_failure_count)."""
SPOT_TYPES = ", ".join(sorted(name for name, kind in TRAINIUM_TYPES.items() if kind.spot))
CAPACITY_BLOCK_TYPES = ", ".join(sorted(name for name, kind in TRAINIUM_TYPES.items() if kind.capacity_blocks))

_ACCOUNTING = {"Database", "ExternalSlurmdbd"}


def violations(spec: ClusterSpec, *, neuron_software: bool = True) -> list[Violation]:
    """Return every rule that a cluster breaks; paths are field names of the spec.

    Without the scripts of nodes, Neuron's release and PyTorch do not count.
    """
    return [
        *below((), lambda: name_violations(spec.name), _image_violations(spec, neuron_software)),
        *(_of_scripts(spec) if neuron_software else []),
        *below((), _version_violations(spec), _head_node_violations(spec)),
        *below((), _login_pool_violations(spec), _queue_list_violations(spec), _queues_violations(spec)),
        *below((), _accounting_override_violations(spec)),
        *below(("login_node_actions",), lambda: custom_actions.violations(spec.login_node_actions)),
        *below(("directory",), lambda: () if spec.directory is None else directory.violations(spec.directory)),
        *below(
            ("slurm", "custom_settings"),
            lambda: slurm_rules.violations(spec.slurm.custom_settings, slurm_rules.CLUSTER),
        ),
        *below(("tags",), lambda: tag_violations(spec.tags)),
        *below(("overrides",), override_rules.violations(spec)),
        *below(("accepted_warnings",), _accepted_warning_violations(spec)),
    ]


def accounting_violations(spec: ClusterSpec) -> list[Violation]:
    """Return every rule that a cluster with a database for accounting breaks beside those of all clusters."""
    return below((), _accounting_name_violations(spec), _accounting_settings_violations(spec))


def _accounting_override_violations(spec: ClusterSpec) -> Iterator[Violation]:
    overridden = override_rules.slurm_settings(spec)
    if _ACCOUNTING & overridden.keys():
        yield from _accounting_name_violations(spec)
    if "Database" in overridden:
        yield from _accounting_settings_violations(spec)


def _accounting_name_violations(spec: ClusterSpec) -> Iterator[Violation]:
    if len(spec.name) > names.CLUSTER_NAME_MAX_WITH_ACCOUNTING:
        allowed = f"at most {names.CLUSTER_NAME_MAX_WITH_ACCOUNTING} characters"
        yield spec.violation("name", allowed, "with Slurm accounting, table names hold the cluster's name")


def _accounting_settings_violations(spec: ClusterSpec) -> Iterator[Violation]:
    reserved = slurm_rules.reserved(spec.slurm.custom_settings, slurm.RESERVED_ACCOUNTING_SETTINGS)
    yield from below(("slurm", "custom_settings"), reserved)


def scratch_violations(cluster: ClusterOptions, mount_dir: str) -> Iterator[Violation]:
    """Check that no queue has its local storage where a file system is mounted."""
    for index, queue in enumerate(cluster.queues):
        yield from below(("queues", index), _scratch(queue, mount_dir))


def _scratch(queue: QueueSpec, mount_dir: str) -> Iterator[Violation]:
    if lustre.overlap(queue.scratch_dir, mount_dir):
        allowed = f"a path neither above nor below {mount_dir}"
        yield queue.violation("scratch_dir", allowed, "the file system is mounted there")


def mount_violations(mounts: Sequence[tuple[str, str]], spec: ClusterSpec) -> list[Violation]:
    """Check names and directories of the file systems that all nodes mount."""
    return below((), _mounts(mounts), *(scratch_violations(spec, mount_dir) for _, mount_dir in mounts))


def _mounts(mounts: Sequence[tuple[str, str]]) -> Iterator[Violation]:
    named = Counter(name for name, _ in mounts)
    for index, (name, mount_dir) in enumerate(mounts):
        path: Path = ("shared_storage", index)
        if mount_dir != HOME:  # in place of the head node's
            yield from lustre.mount_point_violations((*path, "mount_dir"), mount_dir, example="/fsx")
        if not 1 <= len(name) <= MAX_STORAGE_NAME or named[name] > 1:
            allowed = f"1 to {MAX_STORAGE_NAME} characters, and a name of its own"
            yield Violation((*path, "name"), name, allowed, "limit of ParallelCluster")
        for _, earlier in mounts[:index]:
            if lustre.overlap(earlier, mount_dir):
                allowed = f"a path neither above nor below {earlier}"
                yield Violation((*path, "mount_dir"), mount_dir, allowed, "another file system is mounted there")


def name_violations(name: str) -> Iterator[Violation]:
    """Yield why a cluster cannot have a name."""
    if not re.fullmatch(names.CLUSTER_NAME_PATTERN, name):
        allowed = f"a letter, then letters, digits and hyphens, 2 to {names.CLUSTER_NAME_MAX} characters in all"
        yield Violation(("name",), name, allowed, "ParallelCluster's rule")


def _fqdn_violations(spec: ClusterSpec, queue: QueueSpec, resource: ComputeResourceSpec) -> Iterator[Violation]:
    fqdn = names.longest_node_fqdn(spec.name, queue.name, resource.name, resource.max_count)
    if len(fqdn) > names.NODE_FQDN_MAX and resource.has_neuron_devices:
        allowed = f"shorter names: {fqdn} has {len(fqdn)} characters, {names.NODE_FQDN_MAX} are allowed"
        yield resource.violation("name", allowed, "the Neuron runtime does not resolve longer node names")


def _version_violations(spec: ClusterSpec) -> Iterator[Violation]:
    """Check that the version of ParallelCluster is known, and root volumes against its images."""
    row = VERSIONS.get(spec.parallelcluster_version)
    if row is None:
        reason = "how it differs must be known: ultracluster.domain.parallelcluster_versions has a row for each"
        yield spec.violation("parallelcluster_version", " or ".join(VERSIONS), reason)
        return
    nodes: list[tuple[Path, HeadNodeSpec | QueueSpec]] = [(("head_node",), spec.head_node)]
    nodes += [(("queues", index), queue) for index, queue in enumerate(spec.queues)]
    for place, node in nodes:
        yield from below(place, _volume_violations(node, row))


def _volume_violations(node: HeadNodeSpec | QueueSpec, row: ParallelClusterVersion) -> Iterator[Violation]:
    if node.root_volume_gib is not None and node.root_volume_gib < row.root_volume_gib:
        allowed = f"{row.root_volume_gib} or more, or null"
        reason = f"the images of ParallelCluster {row.version} have {row.root_volume_gib} GiB"
        yield node.violation("root_volume_gib", allowed, reason)


def _of_scripts(spec: ClusterSpec) -> list[Violation]:
    """Return which rules of what nodes run are broken, with a release of the Neuron SDK or without."""
    return below(
        (),
        _system_violations(spec),
        lambda: _without_sdk(spec) if spec.neuron_sdk is None else _software_violations(spec, spec.neuron_sdk),
        _driver_violations(spec),
        _chip_violations(spec),
    )


def _system_violations(spec: ClusterSpec) -> Iterator[Violation]:
    if spec.os not in neuron.SYSTEMS:
        allowed = " or ".join(neuron.SYSTEMS)
        yield spec.violation("os", allowed, "what AWS makes the Neuron SDK for, and the scripts of nodes are for")


def _without_sdk(spec: ClusterSpec) -> Iterator[Violation]:
    """Check that nothing needs the Neuron SDK where there is none."""
    for place, resource in _compute_resources(spec):
        if resource.has_neuron_devices:
            allowed = f"a type without chips of AWS Neuron, or neuron_sdk: {neuron.DEFAULT_SDK}"
            reason = "neuron_sdk is null, and without a driver nothing reaches its chips"
            yield from below(place, [resource.violation("instance_type", allowed, reason)])
    if spec.neuron_driver is not None:
        yield spec.violation("neuron_driver", "null", "neuron_sdk is null, and the driver is a part of it")
    if spec.pytorch != neuron.DEFAULT_PYTORCH:
        yield spec.violation("pytorch", "leave it out", "neuron_sdk is null, and PyTorch is installed with it alone")


def _software_violations(spec: ClusterSpec, sdk: str) -> Iterator[Violation]:
    release = neuron.RELEASES.get(sdk)
    if release is None:
        reason = (
            "2.28 is the last line that trains with PyTorch on Trn1 by all of AWS's pages; no other is verified here"
        )
        yield spec.violation("neuron_sdk", " or ".join([*neuron.RELEASES, "null"]), reason)
        return
    if spec.os not in neuron.SYSTEMS:
        return
    blockers = {version: neuron.blocker(pytorch, spec.os) for version, pytorch in release.pytorch.items()}
    blocker = blockers.get(spec.pytorch, f"what Neuron SDK {sdk} has for {spec.os}")
    if blocker is not None:
        yield spec.violation("pytorch", " or ".join(each for each in blockers if blockers[each] is None), blocker)


def _driver_violations(spec: ClusterSpec) -> Iterator[Violation]:
    release = _release(spec)
    if release is not None and spec.neuron_driver is not None and not _fits(spec.neuron_driver, release):
        oldest, first = release.driver_range()
        allowed = f"newer than {oldest} and older than {first}, or null"
        reason = f"Neuron SDK {spec.neuron_sdk} has {oldest}; from {first} on a driver does not take its runtime"
        yield spec.violation("neuron_driver", allowed, reason)


def _release(spec: ClusterSpec) -> neuron.Release | None:
    return None if spec.neuron_sdk is None else neuron.RELEASES.get(spec.neuron_sdk)


def _fits(driver: str, release: neuron.Release) -> bool:
    oldest, first = map(neuron.as_numbers, release.driver_range())
    return oldest < neuron.as_numbers(driver) < first


def _chip_violations(spec: ClusterSpec) -> Iterator[Violation]:
    """Check that the release of the Neuron SDK knows the chips of all nodes."""
    for place, resource in _compute_resources(spec):
        first = _first_sdk(resource)
        if first is None or spec.neuron_sdk is None or spec.neuron_sdk not in neuron.RELEASES:
            continue
        if neuron.as_numbers(spec.neuron_sdk) < neuron.as_numbers(first):
            newer = [each for each in neuron.RELEASES if neuron.as_numbers(each) >= neuron.as_numbers(first)]
            allowed = f"a type that Neuron SDK {spec.neuron_sdk} knows" + "".join(
                f", or neuron_sdk: {each}" for each in newer
            )
            reason = f"the first release that knows its chips is {first}" + (
                "" if newer else ", and this project installs none so new"
            )
            yield from below(place, [resource.violation("instance_type", allowed, reason)])


def _first_sdk(resource: ComputeResourceSpec) -> str | None:
    if resource.type_facts is not None:
        return resource.type_facts.first_neuron_sdk if resource.has_neuron_devices else None
    kind = TRAINIUM_TYPES.get(resource.instance_type)
    return None if kind is None else kind.first_sdk


def _compute_resources(spec: ClusterSpec) -> Iterator[tuple[Path, ComputeResourceSpec]]:
    for q, queue in enumerate(spec.queues):
        for r, resource in enumerate(queue.compute_resources):
            yield ("queues", q, "compute_resources", r), resource


def chip_warnings(spec: ClusterSpec) -> Iterator[Violation]:
    """Tell which nodes get a release of the Neuron SDK that this project has not verified on their chips."""
    for place, resource in _compute_resources(spec):
        kind = None if resource.type_facts is not None else TRAINIUM_TYPES.get(resource.instance_type)
        if not resource.has_neuron_devices or (kind is not None and spec.neuron_sdk in kind.chip.verified_sdks):
            continue
        first = _first_sdk(resource)
        known = (
            "whether it knows the chip is not said" if first is None else f"it knows the chip, as all from {first} on"
        )
        if kind is not None:
            known += f"; with PyTorch/XLA, AWS trains on {kind.chip.name} up to {kind.chip.last_xla_sdk}"
            if kind.chip.native_sdk is not None:
                known += f", and from {kind.chip.native_sdk} on with a native PyTorch, which is not installed here"
        verified = [name for name, each in TRAINIUM_TYPES.items() if spec.neuron_sdk in each.chip.verified_sdks]
        reason = (
            f"nodes get Neuron SDK {spec.neuron_sdk}, which this project has not verified on them: {known}. The jobs "
            "and the acceptance test of this project are for Trn1"
        )
        allowed = f"one that it is verified for, {', '.join(verified)}"
        yield from below(place, [resource.violation("instance_type", allowed, reason)])


def untested_warnings(spec: ClusterSpec) -> Iterator[Violation]:
    """Tell of a version that nobody has tried here, and of a driver that AWS does not test with the runtime."""
    if not VERSIONS[spec.parallelcluster_version].tried:
        reason = "this project's tests never ran it; what is known of it is from its public notes"
        yield spec.violation("parallelcluster_version", PINNED, reason)
    release = _release(spec)
    if spec.neuron_driver is not None and release is not None:
        reason = (
            f"nobody tests it with the runtime {release.runtime} of Neuron SDK {spec.neuron_sdk}, whose own is "
            f"{release.driver}: run the acceptance test, and set it back to null once a release has it"
        )
        yield spec.violation("neuron_driver", "null", reason)


def _image_violations(spec: ClusterSpec, neuron_software: bool) -> Iterator[Violation]:
    """Check that there is an image for all nodes: of one architecture, of an operating system that has one."""
    if spec.os in _WITHOUT_IMAGES and spec.custom_ami is None:
        yield spec.violation("custom_ami", "an image of yours", f"ParallelCluster has none of {spec.os}")
    arm = is_arm(spec.head_node.instance_type)
    if arm and neuron_software and spec.neuron_sdk is not None:
        arm = False
        allowed = "an x86 instance type, or neuron_sdk: null"
        of_head = spec.head_node.violation("instance_type", allowed, "the Neuron SDK is for x86 alone")
        yield from below(("head_node",), [of_head])
    others: list[tuple[Path, LoginPoolSpec | ComputeResourceSpec]] = [
        (("login_nodes", index), pool) for index, pool in enumerate(spec.login_nodes)
    ]
    for q, queue in enumerate(spec.queues):
        others += [(("queues", q, "compute_resources", r), each) for r, each in enumerate(queue.compute_resources)]
    for place, node in others:
        yield from below(place, _architecture_violations(node, arm))


def _architecture_violations(node: LoginPoolSpec | ComputeResourceSpec, arm: bool) -> Iterator[Violation]:
    if is_arm(node.instance_type) != arm:
        allowed = f"an {'Arm' if arm else 'x86'} instance type, as the head node has"
        yield node.violation("instance_type", allowed, "all nodes share one image")


def tag_violations(tags: Mapping[str, str]) -> Iterator[Violation]:
    """Yield the rules that tags break; paths start with their keys."""
    if len(tags) > MAX_TAGS:
        yield Violation((), len(tags), f"at most {MAX_TAGS} tags", "limit of ParallelCluster")
    for key, value in tags.items():
        if not (1 <= len(key) <= MAX_TAG_KEY and _is_tag_text(key)):
            yield Violation((key,), key, f"a key of 1 to {MAX_TAG_KEY} characters: {_TAG_TEXT}", "limit of AWS")
        if not (1 <= len(value) <= MAX_TAG_VALUE and _is_tag_text(value)):
            yield Violation((key,), value, f"a value of 1 to {MAX_TAG_VALUE} characters: {_TAG_TEXT}", "limit of AWS")
        if key.lower().startswith(RESERVED_TAG_PREFIXES):
            allowed = f"no key that begins with {' or '.join(RESERVED_TAG_PREFIXES)}"
            yield Violation((key,), key, allowed, "reserved")


def _is_tag_text(text: str) -> bool:
    """Return whether text consists of what tags may have; tokens of the CDK do."""
    return is_token(text) or all(
        each in _TAG_SIGNS or unicodedata.category(each)[0] in "LN" or unicodedata.category(each) == "Zs"
        for each in text
    )


def _head_node_violations(spec: ClusterSpec) -> Iterator[Violation]:
    head = spec.head_node
    yield from below(("head_node", "custom_actions"), lambda: custom_actions.violations(head.custom_actions))
    yield from below(("head_node",), lambda: _bucket_violations(head))
    own = (_size_violations(head, spec), _memory_violations(head, spec), _ssh_violations(head), _key_violations(head))
    yield from below(("head_node",), *own)


def _memory_violations(head: HeadNodeSpec, spec: ClusterSpec) -> Iterator[Violation]:
    memory = memory_gib(head.instance_type)
    needed = min(spec.max_nodes / 25 + 0.6, 16)
    if memory is not None and memory < needed:
        allowed = f"a type with at least {needed:.1f} GiB of memory (this one has {memory:g})"
        yield head.violation("instance_type", allowed, f"the head node serves {spec.max_nodes} nodes")


def _key_violations(head: HeadNodeSpec) -> Iterator[Violation]:
    if head.ssh_key_name and not head.ssh_cidr:
        allowed = "your own address range, such as 203.0.113.0/24"
        yield head.violation("ssh_cidr", allowed, "an SSH key is given, but port 22 is shut")


def _ssh_violations(node: HeadNodeSpec | LoginPoolSpec) -> Iterator[Violation]:
    if node.ssh_cidr is not None and (refused := addresses.refused_source(node.ssh_cidr)) is not None:
        yield node.violation("ssh_cidr", *refused)


def _login_pool_violations(spec: ClusterSpec) -> Iterator[Violation]:
    pools = spec.login_nodes
    yield from below(("login_nodes",), _group_name_violations(pools))
    if len(pools) > MAX_LOGIN_POOLS:
        allowed = f"at most {MAX_LOGIN_POOLS} pools"
        yield Violation(("login_nodes",), len(pools), allowed, "limit of ParallelCluster")
    for index, pool in enumerate(pools):
        yield from below(("login_nodes", index), _ssh_violations(pool))


def _queue_list_violations(spec: ClusterSpec) -> Iterator[Violation]:
    if not 1 <= len(spec.queues) <= MAX_QUEUES:
        yield Violation(("queues",), len(spec.queues), QUEUES, "limit of ParallelCluster")
    yield from below(("queues",), _group_name_violations(spec.queues))
    resources = sum(len(queue.compute_resources) for queue in spec.queues)
    if resources > MAX_COMPUTE_RESOURCES:
        allowed = f"at most {MAX_COMPUTE_RESOURCES} compute resources over all queues"
        yield Violation(("queues",), resources, allowed, "limit of ParallelCluster")


def _queues_violations(spec: ClusterSpec) -> Iterator[Violation]:
    yield from below((), _facts_of_types(spec))
    for index, queue in enumerate(spec.queues):
        yield from below(("queues", index), _queue_violations(queue, spec), _placement_group_violations(queue))


def _facts_of_types(spec: ClusterSpec) -> Iterator[Violation]:
    """Check that a type has the same facts wherever it is: prices and quotas go by types."""
    first: dict[str, ComputeResourceSpec] = {}
    for place, resource in _compute_resources(spec):
        earlier = first.setdefault(resource.instance_type, resource)
        if resource.type_facts != earlier.type_facts:
            allowed = f"the same as of {earlier.name}"
            got = None if resource.type_facts is None else resource.type_facts.changed()
            yield Violation((*place, "type_facts"), got, allowed, f"both are {resource.instance_type}")


def _queue_violations(queue: QueueSpec, spec: ClusterSpec) -> Iterator[Violation]:
    scratch_dir = ("scratch_dir",)
    yield from below((), lambda: lustre.mount_point_violations(scratch_dir, queue.scratch_dir, example="/scratch"))
    yield from below(
        ("custom_slurm_settings",), lambda: slurm_rules.violations(queue.custom_slurm_settings, slurm_rules.QUEUE)
    )
    yield from below(("custom_actions",), lambda: custom_actions.violations(queue.custom_actions))
    yield from below((), lambda: _fleet_violations(queue), lambda: _bucket_violations(queue))
    yield from _resources_violations(queue, spec)


def _resources_violations(queue: QueueSpec, spec: ClusterSpec) -> Iterator[Violation]:
    resources = queue.compute_resources
    if not resources:
        yield Violation(("compute_resources",), 0, "at least 1 compute resource", "a queue without nodes runs nothing")
    yield from below(("compute_resources",), _group_name_violations(resources))
    for index, resource in enumerate(resources):
        nodes = (_fqdn_violations(spec, queue, resource), _count_violations(resource), _type_violations(resource))
        capacity = (_reservation_violations(resource), _spot_violations(resource, queue))
        block = [rule(resource, queue) for rule in (_block_id, _block_size, _block_type)]
        fleet = (_efa_violations(resource), _alternative_violations(resource, queue))
        own = (*nodes, *fleet, *capacity, *block, _size_violations(resource, spec))
        yield from below(("compute_resources", index), *own)


def _placement_group_violations(queue: QueueSpec) -> Iterator[Violation]:
    field = "existing_placement_group" if queue.existing_placement_group else "placement_group"
    group = queue.placement_group_label or queue.existing_placement_group
    if queue.existing_placement_group and queue.placement_group:
        yield queue.violation(field, "this or placement_group, not both", "a node is launched in one group")
    if group and queue.capacity_type == "CAPACITY_BLOCK":
        yield Violation((field,), group, "none", "a Capacity Block has its own placement")
    elif queue.placement_group_label and any(resource.reserved for resource in queue.compute_resources):
        allowed = "none, or existing_placement_group: the group that the reservation was made in"
        yield queue.violation(field, allowed, "reserved capacity lies where the reservation was made")
    if group and any(_BURSTABLE.match(resource.instance_type) for resource in queue.compute_resources):
        yield Violation((field,), group, "none", "burstable types take no cluster placement group")


def _count_violations(resource: ComputeResourceSpec) -> Iterator[Violation]:
    if resource.min_count > resource.max_count:
        yield resource.violation("min_count", f"at most max_count, {resource.max_count}", "min exceeds max")


def _type_violations(resource: ComputeResourceSpec) -> Iterator[Violation]:
    known, facts = resource.instance_type in TRAINIUM_TYPES, resource.type_facts
    if resource.instance_type.startswith("trn") and not known and facts is None:
        allowed = f"another family, one of {', '.join(TRAINIUM_TYPES)}, or with type_facts any that EC2 has"
        reason = "not known to this project: its nodes would get no EFA and no Neuron software"
        yield resource.violation("instance_type", allowed, reason)
    if facts is None:
        return
    if known:
        got, reason = facts.changed(), f"what {resource.instance_type} has is known to this project"
        yield Violation(("type_facts",), got, "null", reason)
    if resource.alternative_types:
        reason = "type_facts are those of instance_type alone, and nodes would not know the others"
        yield Violation(("alternative_types",), list(resource.alternative_types), "none", reason)
    yield from below(("type_facts",), lambda: type_facts.violations(facts))


def _alternative_violations(resource: ComputeResourceSpec, queue: QueueSpec) -> Iterator[Violation]:
    """Check the further types of nodes, and what excludes a fleet (aws-parallelcluster, instances_validators.py)."""
    for index, each in enumerate(resource.alternative_types):
        if each in resource.types[: index + 1]:
            yield Violation(("alternative_types", index), each, "each type once", "given twice")
        kinds = [TRAINIUM_TYPES.get(name) for name in (resource.instance_type, each)]
        if len({None if kind is None else kind.vcpus for kind in kinds}) > 1:
            allowed = f"a type with the vCPUs and accelerators of {resource.instance_type}"
            yield Violation(("alternative_types", index), each, allowed, "jobs see nodes of one kind")
        if is_arm(each) != is_arm(resource.instance_type):
            allowed = f"a type of the architecture of {resource.instance_type}"
            yield Violation(("alternative_types", index), each, allowed, "all nodes share one image")
        if resource.has_efa and not cards_of(each)[1]:
            allowed = "a type that has EFA, or efa: false"
            yield Violation(("alternative_types", index), each, allowed, f"{each} is not known to have it")
    if (resource.alternative_types or queue.further_subnet_ids) and resource.capacity_reservation_id:
        allowed = "null, or capacity_reservation_group_arn"
        reason = "nodes of several types or subnets are launched as a fleet, which takes no reservation by its id"
        yield resource.violation("capacity_reservation_id", allowed, reason)


def _fleet_violations(queue: QueueSpec) -> Iterator[Violation]:
    """Check strategy and subnets of nodes that are launched as fleets."""
    strategy, offered = queue.allocation_strategy, ALLOCATION_STRATEGIES[queue.capacity_type]
    fleets = queue.further_subnet_ids or any(each.alternative_types for each in queue.compute_resources)
    if strategy is not None and strategy not in offered:
        allowed = " or ".join((*offered, "null"))
        yield queue.violation("allocation_strategy", allowed, f"what EC2 has for {queue.capacity_type}")
    elif strategy and not fleets:
        reason = "nodes of one type in one subnet are launched without it"
        yield queue.violation("allocation_strategy", "null, or alternative_types in a compute resource", reason)
    if queue.further_subnet_ids:
        place, got = ("further_subnet_ids",), list(queue.further_subnet_ids)
        if any(each.has_efa for each in queue.compute_resources):
            yield Violation(place, got, "none, or efa: false in each compute resource", "EFA does not cross subnets")
        if queue.placement_group_label or queue.existing_placement_group:
            yield Violation(place, got, "none, or placement_group: none", "a group is in one zone")
        if len(set(got)) < len(got):
            yield Violation(place, got, "each subnet once", "given twice")


def _bucket_violations(node: HeadNodeSpec | QueueSpec) -> Iterator[Violation]:
    if node.s3_access and node.instance_role_arn is not None:
        reason = "ParallelCluster gives buckets to no role of yours: its own policies name them"
        yield node.violation("s3_access", "none beside instance_role_arn", reason)
    times = Counter(each.bucket for each in node.s3_access)
    for index, each in enumerate(node.s3_access):
        if times[each.bucket] > 1:
            reason = "of two entries of one bucket ParallelCluster's update check sees changes that are none"
            yield Violation(("s3_access", index, "bucket"), each.bucket, "each bucket once", reason)


def _efa_violations(resource: ComputeResourceSpec) -> Iterator[Violation]:
    if resource.efa and not resource.cards[1]:
        reason = f"{resource.instance_type} is not known to have EFA"
        yield resource.violation(
            "efa", "null or false, or an instance type that has it, by its type_facts if need be", reason
        )


def _reservation_violations(resource: ComputeResourceSpec) -> Iterator[Violation]:
    if resource.capacity_reservation_id and resource.capacity_reservation_group_arn:
        allowed = "this or capacity_reservation_id, not both"
        yield resource.violation("capacity_reservation_group_arn", allowed, "nodes have one target")


def _spot_violations(resource: ComputeResourceSpec, queue: QueueSpec) -> Iterator[Violation]:
    if resource.reserved and queue.capacity_type == "SPOT":
        field = "capacity_reservation_id" if resource.capacity_reservation_id else "capacity_reservation_group_arn"
        yield resource.violation(field, "null", "Spot takes no reservation")
    kind = TRAINIUM_TYPES.get(resource.instance_type)
    if queue.capacity_type == "SPOT" and kind is not None and not kind.spot:
        yield resource.violation("instance_type", SPOT_TYPES, "sold as Spot")


def _block_id(resource: ComputeResourceSpec, queue: QueueSpec) -> Iterator[Violation]:
    if queue.capacity_type == "CAPACITY_BLOCK" and resource.capacity_reservation_id is None:
        allowed = "the id of the Capacity Block, cr-..."
        yield resource.violation("capacity_reservation_id", allowed, "nodes come from it alone")


def _block_size(resource: ComputeResourceSpec, queue: QueueSpec) -> Iterator[Violation]:
    if queue.capacity_type == "CAPACITY_BLOCK" and not 0 < resource.min_count == resource.max_count:
        allowed = f"the same as max_count, {resource.max_count}"
        yield resource.violation("min_count", allowed, "the nodes of a Capacity Block run all the time")


def _block_type(resource: ComputeResourceSpec, queue: QueueSpec) -> Iterator[Violation]:
    kind = TRAINIUM_TYPES.get(resource.instance_type)
    if queue.capacity_type == "CAPACITY_BLOCK" and kind is not None and not kind.capacity_blocks:
        yield resource.violation("instance_type", CAPACITY_BLOCK_TYPES, "sold as Capacity Blocks")


def _size_violations(node: HeadNodeSpec | ComputeResourceSpec, spec: ClusterSpec) -> Iterator[Violation]:
    if node.instance_type.endswith((".nano", ".micro")) and spec.os != "alinux2023":
        yield node.violation("instance_type", "a type larger than micro", f"too small for {spec.os}")


def _group_name_violations(groups: Sequence[QueueSpec | ComputeResourceSpec | LoginPoolSpec]) -> Iterator[Violation]:
    group_names = [group.name for group in groups]
    times = Counter(group_names)
    for index, name in enumerate(group_names):
        if name == "default" or not re.fullmatch(names.NODE_GROUP_NAME_PATTERN, name):
            allowed = "a lower-case letter, then letters, digits and hyphens, at most 25 in all, not `default`"
            yield Violation((index, "name"), name, allowed, "becomes part of node names")
        if times[name] > 1:
            yield Violation((index, "name"), name, "a name of its own", "given twice")


def zone_warnings(spec: ClusterSpec, zone_id: str) -> Iterator[Violation]:
    """Tell which instance types the zone was not seen to offer, with the zones that did, those of the region first."""
    for q, queue in enumerate(spec.queues):
        for r, resource in enumerate(queue.compute_resources):
            kind = TRAINIUM_TYPES.get(resource.instance_type)
            if kind is not None and zone_id not in kind.zones:
                prefix = zone_id.partition("-")[0]
                zones = sorted(kind.zones, key=lambda zone: (zone.partition("-")[0] != prefix, zone))
                allowed = "zones that offer it: " + ", ".join(zones)
                elsewhere = resource.violation("instance_type", allowed, f"{zone_id} was not seen to")
                yield from below(("queues", q, "compute_resources", r), [elsewhere])


def types_with_several_interfaces(queue: QueueSpec, interface_type: EfaInterfaceType) -> list[str]:
    """Return the instance types of a queue whose nodes have more than one network interface."""
    types = (
        each.instance_type
        for each in queue.compute_resources
        if interfaces_per_node(each.cards, efa=each.has_efa, interface_type=interface_type) > 1
    )
    return list(dict.fromkeys(types))


def type_warnings(spec: ClusterSpec) -> Iterator[Violation]:
    """Tell which instance types are not among those that are known, as a misspelt one is not."""
    nodes: list[tuple[Path, HeadNodeSpec | LoginPoolSpec | ComputeResourceSpec]] = [(("head_node",), spec.head_node)]
    nodes += [(("login_nodes", index), pool) for index, pool in enumerate(spec.login_nodes)]
    nodes += [
        (("queues", q, "compute_resources", r), resource)
        for q, queue in enumerate(spec.queues)
        for r, resource in enumerate(queue.compute_resources)
    ]
    for place, node in nodes:
        for index, each in enumerate(node.alternative_types if isinstance(node, ComputeResourceSpec) else ()):
            if not instance_type_names.is_known(each):
                allowed = " or ".join([*instance_type_names.similar(each), "a newer type"])
                told = Violation(("alternative_types", index), each, allowed, "not known to this project")
                yield from below(place, [told])
        of_queue = isinstance(node, ComputeResourceSpec)
        stated = isinstance(node, ComputeResourceSpec) and node.type_facts is not None
        if not instance_type_names.is_known(node.instance_type) and not stated:
            meant = instance_type_names.similar(node.instance_type)
            allowed = " or ".join([*meant, "this one with type_facts" if of_queue else "a newer type"])
            reason = "not known to this project, which takes it for a type without EFA and accelerators: "
            if of_queue:
                reason += "type_facts says what it has; `aws ec2 describe-instance-types` shows it"
            else:
                reason = "not known to this project; a deployment would tell whether EC2 has it"
            yield from below(place, [node.violation("instance_type", allowed, reason)])


def accelerator_warnings(spec: ClusterSpec) -> Iterator[Violation]:
    """Tell which nodes have accelerators that no software is installed for."""
    for q, queue in enumerate(spec.queues):
        for r, resource in enumerate(queue.compute_resources):
            if spec.custom_ami is None and _has_other_accelerators(resource):
                reason = (
                    "its nodes get no driver, health checks or metrics of their accelerators: the image must have them"
                )
                other = resource.violation("instance_type", "a Trn type, or an image of yours in custom_ami", reason)
                yield from below(("queues", q, "compute_resources", r), [other])


def _has_other_accelerators(resource: ComputeResourceSpec) -> bool:
    return _OTHER_ACCELERATORS.match(resource.instance_type) is not None and not resource.has_neuron_devices


def _accepted_warning_violations(spec: ClusterSpec) -> Iterator[Violation]:
    row = VERSIONS.get(spec.parallelcluster_version)
    may_be_new = row is not None and not row.tried
    times = Counter(each.validator for each in spec.accepted_warnings)
    for index, each in enumerate(spec.accepted_warnings):
        if each.validator not in ACCEPTABLE and not (may_be_new and each.validator not in VALIDATORS):
            reason = "other warnings stop no deployment, mean a broken cluster, or do not exist"
            yield from below((index,), [each.violation("validator", " or ".join(ACCEPTABLE), reason)])
        elif times[each.validator] > 1:
            yield from below((index,), [each.violation("validator", "each validator once", "it has one reason")])
        if not each.reason.strip():
            yield from below((index,), [each.violation("reason", "a sentence", "every report of the warning has it")])


def image_warnings(spec: ClusterSpec) -> Iterator[Violation]:
    """Tell which queues have so many nodes that their image should have the Neuron software."""
    changed = {
        queue.get("Name")
        for queue in overrides.mappings(overrides.at(spec.overrides, ("Scheduling", "SlurmQueues")))
        if overrides.at(queue, ("Image", "CustomAmi"))
    }
    for queue in spec.queues:
        nodes = sum(each.max_count for each in queue.compute_resources if each.has_neuron_devices)
        if nodes > MOST_NODES_WITHOUT_IMAGE and spec.custom_ami is None and queue.name not in changed:
            reason = (
                f"each of the {nodes:,} nodes of {queue.name} downloads it when it starts, and ten that fail close the "
                f"queue; up to {MOST_NODES_WITHOUT_IMAGE} nodes that is fine"
            )
            yield spec.violation("custom_ami", "an image with the Neuron software, docs/guides/images.md", reason)
