"""Rules of overrides: what ParallelCluster or a promise of SECURITY.md refuses, and what they take from features."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, get_args

from ultracluster.domain import addresses, parallelcluster_schema, slurm_rules
from ultracluster.domain.cluster import ClusterOptions, ClusterSpec
from ultracluster.domain.cluster_configuration import Bindings, render
from ultracluster.domain.overrides import at, given, mappings, sections, without_indices
from ultracluster.domain.parallelcluster_versions import PINNED
from ultracluster.domain.spec import Setting, Spec
from ultracluster.domain.types import PASSED_ROLES
from ultracluster.domain.violations import Path, Violation, below, dotted, is_token

_SSM_POLICY = ":aws:policy/AmazonSSMManagedInstanceCore"
_ATTACHED = re.compile(
    r"arn:[a-z-]+:iam::(\d{12}:policy/parallelcluster[\w+=,.@/-]*|aws:policy/("
    r"CloudWatchAgentServerPolicy|AmazonSSMManagedInstanceCore|AWSBatchFullAccess|AmazonS3ReadOnlyAccess|"
    r"EC2InstanceProfileForImageBuilder|service-role/(AWSBatchServiceRole|AmazonEC2ContainerServiceforEC2Role|"
    r"AmazonECSTaskExecutionRolePolicy|AmazonEC2SpotFleetTaggingRole|AWSLambdaBasicExecutionRole)))"
)
"""Policies that ParallelCluster's provider may attach to roles of nodes
(https://github.com/aws/aws-parallelcluster, cloudformation/policies/parallelcluster-policies.yaml, IamPolicy)."""
_ATTACHABLE = (
    "the ARN of a policy of yours whose name begins with parallelcluster, or whose path is /parallelcluster/, or of "
    "AWS's CloudWatchAgentServerPolicy or AmazonS3ReadOnlyAccess"
)
_PASSED = re.compile(PASSED_ROLES)
_DEEPEST = 40
"""Levels of mappings and lists; the schema has ten."""

_SUBNET = "subnet-0123456789abcdef0"
_PLACES = Bindings(public_subnet_id=_SUBNET, private_subnet_id=_SUBNET)

_NEEDED = f"ParallelCluster {PINNED} needs it"
_OPEN = "without it the port is open to the world"
_HEAD_NODE_KEYS = "else each of its users gets the credentials of the head node"
_WORTH = "what checks, counts and prices it goes by that alone"
_UNENCRYPTED = "the volume is not encrypted"
_OF_ROLES = "the roles of stacks and of ParallelCluster's provider have none by this key"


def _is_off(value: object) -> bool:
    return value is None or parallelcluster_schema.truth(value) is False


_FEATURES: Mapping[str, tuple[Callable[[Any], bool], str, str]] = {
    "Monitoring.Logs.CloudWatch.Enabled": (_is_off, "true", "nobody learns why a node has failed"),
    "HeadNode.LocalStorage.RootVolume.Encrypted": (_is_off, "true", _UNENCRYPTED),
    "HeadNode.SharedStorageEfsSettings.Encrypted": (_is_off, "true", "/home is not encrypted"),
    "Scheduling.SlurmQueues.ComputeSettings.LocalStorage.RootVolume.Encrypted": (
        _is_off,
        "true",
        _UNENCRYPTED,
    ),
    "SharedStorage.EbsSettings.Encrypted": (_is_off, "true", _UNENCRYPTED),
    "SharedStorage.EfsSettings.Encrypted": (_is_off, "true", "the file system is not encrypted"),
    "AdditionalResources": (
        lambda value: value is not None,
        "none",
        "its template may open ports of nodes and give them permissions: nothing here looks into it",
    ),
    "Scheduling.SlurmQueues.ComputeResources.LaunchTemplateOverrides": (
        lambda value: value is not None,
        "none",
        "it may give nodes other security groups and public addresses: nothing here looks into it",
    ),
    **{
        f"{nodes}.Iam.{key}": (
            lambda value: value is not None,
            "AdditionalIamPolicies, which are added",
            "the nodes have its permissions alone: none for Session Manager, their scripts and metrics, or by a grant",
        )
        for nodes in ("HeadNode", "LoginNodes.Pools", "Scheduling.SlurmQueues")
        for key in ("InstanceRole", "InstanceProfile")
    },
    **{
        f"{nodes}.Networking.SecurityGroups": (
            lambda value: value is not None,
            "AdditionalSecurityGroups",
            "ParallelCluster makes no groups then: these must let nodes reach one another, and SSH",
        )
        for nodes in ("HeadNode", "LoginNodes.Pools", "Scheduling.SlurmQueues")
    },
    **{
        f"{nodes}.CustomActions.{event}": (
            lambda value: value is not None,
            "OnNodeUpdated" if nodes == "HeadNode" else "none",
            "ParallelCluster refuses each later change of it, its arguments among them",
        )
        for nodes in ("HeadNode", "LoginNodes.Pools")
        for event in ("OnNodeStart", "OnNodeConfigured")
    },
    **{
        f"DevSettings.{key}": (
            lambda value: value is not None,
            "none",
            "nodes run other code than ParallelCluster's release: no check and no rehearsal has seen it",
        )
        for key in ("Cookbook", "NodePackage", "ClusterTemplate")
    },
    "Scheduling.SlurmQueues.AllocationStrategy": (
        lambda value: value is not None,
        "with Instances in each compute resource",
        "nodes of one InstanceType are launched without it",
    ),
}
"""By key: when an override of it disables something, what keeps it, and what is disabled."""
_OF_ACCOUNTING = ("Database", "ExternalSlurmdbd", "CustomSlurmSettingsIncludeFile")


def _modelled(model: type[Spec] = ClusterOptions, place: Path = ()) -> Iterator[tuple[str, Path]]:
    """Yield the keys of ParallelCluster that fields set, each with its field."""
    for name, field in model.model_fields.items():
        kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
        nested = [kind for kind in kinds if issubclass(kind, Spec)]
        for kind in nested:
            yield from _modelled(kind, (*place, name))
        keys = [each.key(model) for each in field.metadata if isinstance(each, Setting)]
        if not nested and name != "name":
            yield from ((key, (*place, name)) for key in keys if key)


FIELDS: Mapping[str, Path] = {
    **dict(_modelled()),
    "Tags": ("tags",),
    "Iam.PermissionsBoundary": ("roles", "permissions_boundary_arn"),
    "Iam.ResourcePrefix": ("roles", "path"),
    "DevSettings.EfaInterfaceType": ("efa_interface_type",),
    "Scheduling.SlurmQueues.Networking.SubnetIds": ("queues",),
    "Scheduling.SlurmQueues.ComputeResources.Instances": ("queues", "compute_resources", "instance_type"),
}
"""Fields that set keys of ParallelCluster."""
_TAKEN: Mapping[str, str] = {
    **{
        f"{nodes}.CustomActions": "what nodes run for training, their health checks and metrics"
        for nodes in ("HeadNode", "LoginNodes.Pools", "Scheduling.SlurmQueues")
    },
    **{
        f"{nodes}.Iam": "what nodes may do: Session Manager, their scripts and metrics, what is granted"
        for nodes in ("HeadNode", "LoginNodes.Pools", "Scheduling.SlurmQueues")
    },
    "SharedStorage": "all file systems, the deployment's and homes among them",
    "Scheduling.SlurmSettings.Database": "the database of accounting",
    "LoginNodes": "the pools of login nodes",
    **{key: f"what {dotted(field)} sets" for key, field in FIELDS.items()},
}
"""What a null takes away, by key, whatever it is in."""


def violations(spec: ClusterSpec) -> Iterator[Violation]:
    """Yield every rule that overrides break; paths are keys of the overrides.

    The schema of another version of ParallelCluster than the pinned one is not known here: its package refuses.
    """
    own = list(_violations(spec))
    schema = list(parallelcluster_schema.violations(spec.overrides)) if spec.parallelcluster_version == PINNED else []
    own += [each for each in schema if not any(_meet(each.path, told.path) for told in own)]
    yield from own
    if spec.overrides and not own:
        yield from _together(spec)


def warnings(spec: ClusterSpec, called: Callable[[Path], Path] = lambda field: field) -> Iterator[Violation]:
    """Yield what overrides take from features; paths are keys of the overrides.

    Args:
        spec: The cluster.
        called: Returns how those who gave the overrides call a field.
    """
    known = {queue.name: {resource.name for resource in queue.compute_resources} for queue in spec.queues}
    for path, value in _members(spec.overrides, ()):
        key = without_indices(path)
        if value is None and (lost := [each for each in _TAKEN if f"{each}.".startswith(f"{key}.")]):
            yield Violation(path, value, "leave it", f"null takes away {_TAKEN[lost[0]]}")
        elif key in _FEATURES and _FEATURES[key][0](value):
            yield Violation(path, value, *_FEATURES[key][1:])
        elif key in FIELDS:
            reason = _OF_ROLES if key.startswith("Iam.") else _WORTH
            yield Violation(path, value, f"{dotted(called(FIELDS[key]))} sets it", reason)
    for index, storage in enumerate(mappings(spec.overrides.get("SharedStorage"))):
        if "StorageType" in storage:
            allowed = f"{dotted(called(('shared_storage',)))}, which has most kinds"
            yield Violation(("SharedStorage", index, "StorageType"), storage["StorageType"], allowed, _WORTH)
        if "EfsSettings" in storage and _is_new_and_open(storage["EfsSettings"]):
            where: Path = ("SharedStorage", index, "EfsSettings")
            yield Violation(where, storage["EfsSettings"], "Encrypted: true", "the file system is not encrypted")
    head = spec.overrides.get("HeadNode")
    if at(head, ("SharedStorageType",)) == "Efs" and not at(head, ("SharedStorageEfsSettings", "Encrypted")):
        where = ("HeadNode", "SharedStorageType")
        yield Violation(where, "Efs", "SharedStorageEfsSettings: {Encrypted: true} beside it", "/home is not encrypted")
    for q, queue in enumerate(mappings(at(spec.overrides, ("Scheduling", "SlurmQueues")))):
        place: Path = ("Scheduling", "SlurmQueues", q)
        name = queue.get("Name")
        if name not in known:
            yield Violation((*place, "Name"), name, f"one of {', '.join(known)}, or a queue of queues", _WORTH)
            continue
        for r, resource in enumerate(mappings(queue.get("ComputeResources"))):
            if resource.get("Name") not in known[name]:
                allowed = f"one of {', '.join(sorted(known[name]))}, or a compute resource of queues"
                yield Violation((*place, "ComputeResources", r, "Name"), resource.get("Name"), allowed, _WORTH)


def _is_new_and_open(settings: object) -> bool:
    """Return whether EFS would make a file system that is not encrypted."""
    return isinstance(settings, Mapping) and not settings.get("FileSystemId") and "Encrypted" not in settings


def is_of_session_manager(policy: str) -> bool:
    """Return whether a policy is AWS's for Session Manager, which nodes other than those for logins may not have."""
    return policy.endswith(_SSM_POLICY)


def is_attachable(policy: object) -> bool:
    """Return whether ParallelCluster's provider may attach a policy to roles of nodes."""
    return _matches(policy, _ATTACHED)


def is_usable(key: str, value: object) -> bool:
    """Return whether ParallelCluster's provider may use a role (InstanceRole), or make some (ResourcePrefix)."""
    if key == "InstanceRole":
        return _matches(value, _PASSED)
    return value is None or (isinstance(value, str) and ("/" not in value or value.startswith("/parallelcluster/")))


def accounting_warnings(spec: ClusterSpec) -> Iterator[Violation]:
    """Yield what overrides take from accounting."""
    settings = slurm_settings(spec)
    for key in _OF_ACCOUNTING:
        if (value := settings.get(key)) is not None or (key == "Database" and key in settings):
            reason = "accounting sets the database, and settings of Slurm beside it, which are not used then"
            yield Violation(("Scheduling", "SlurmSettings", key), value, "none beside accounting", reason)


def slurm_settings(spec: ClusterSpec) -> dict[str, Any]:
    """Return the overrides of ``SlurmSettings``."""
    settings = at(spec.overrides, ("Scheduling", "SlurmSettings"))
    return settings if isinstance(settings, dict) else {}


def _violations(spec: ClusterSpec) -> Iterator[Violation]:
    """Yield what is wrong with overrides as they stand."""
    if no_json := [*json_violations(spec.overrides)]:
        yield from no_json
        return
    for path, value in _members(spec.overrides, ()):
        yield from _nameless(path, value)
        if path[-1] == "AdditionalIamPolicies" and not isinstance(value, list):
            yield Violation(path, value, "a list, whose policies are added", "nodes need those that they have")
        elif path[-1] == "Policy" and "AdditionalIamPolicies" in path:
            yield from _policy_violations(path, value)
        elif path[-1] == "InstanceRole" and value is not None and not is_usable("InstanceRole", value):
            allowed = "the ARN of a role with the path /parallelcluster/"
            yield Violation(path, value, allowed, "ParallelCluster's provider may pass no others to nodes")
        elif path[-1] == "ExtraChefAttributes" and "imds" in str(value).lower():
            yield Violation(path, value, "attributes other than those of the metadata service", _HEAD_NODE_KEYS)
        elif path[-1] == "CustomSlurmSettings":
            yield from _custom_setting_violations(path, value)
    yield from _place_violations(spec)


def _nameless(path: Path, value: Any) -> Iterator[Violation]:
    """Yield which items of a list lack the key by which they are told apart."""
    key = parallelcluster_schema.told_apart_by(without_indices(path))
    if key is None or not isinstance(value, list):
        return
    items = [item.get(key) if isinstance(item, dict) else "" for item in value]
    for index, (item, name) in enumerate(zip(value, items, strict=True)):
        if isinstance(item, dict) and not isinstance(name, str):
            yield Violation((*path, index, key), name, f"its {key}, as text", "lists are merged by it")
        elif isinstance(item, dict) and items.count(name) > 1:
            yield Violation((*path, index, key), name, "each once", "items are merged by it")


def _policy_violations(path: Path, value: Any) -> Iterator[Violation]:
    if path[0] != "LoginNodes" and is_of_session_manager(str(value)):
        allowed = "leave it out: the nodes' own policy already has Session Manager"
        yield Violation(path, value, allowed, "by it any job reads every SSM parameter of the account")
    elif not is_attachable(value):
        yield Violation(path, value, _ATTACHABLE, "ParallelCluster's provider may attach no others")


def _place_violations(spec: ClusterSpec) -> Iterator[Violation]:
    """Yield where overrides have another Region, or a prefix of roles that the provider may not make."""
    region, prefix = spec.overrides.get("Region"), at(spec.overrides, ("Iam", "ResourcePrefix"))
    if region is not None and region != spec.region and not is_token(spec.region):
        yield Violation(("Region",), region, spec.region, "ParallelCluster's provider is in the Region of the stack")
    if not is_usable("ResourcePrefix", prefix):
        allowed = "a prefix without /, or a path below /parallelcluster/"
        yield Violation(("Iam", "ResourcePrefix"), prefix, allowed, "the provider may make no other roles")


def _custom_setting_violations(path: Path, value: Any) -> Iterator[Violation]:
    """Check Slurm's parameters: ParallelCluster writes them into slurm.conf as they are."""
    line = slurm_rules.COMPUTE_RESOURCE if "ComputeResources" in path else slurm_rules.QUEUE
    items = [(path, value)]
    if path[:-1] == ("Scheduling", "SlurmSettings"):
        line = slurm_rules.CLUSTER
        items = [((*path, index), item) for index, item in enumerate(value)] if isinstance(value, list) else items
    for where, item in items:
        if isinstance(item, dict) and all(isinstance(key, str) for key in item):
            is_line = line is slurm_rules.CLUSTER
            yield from below(
                where, slurm_rules.line_violations(item) if is_line else slurm_rules.violations(item, line)
            )
        else:
            yield Violation(where, item, "a mapping of parameters", "they become a line of slurm.conf")


def _together(spec: ClusterSpec) -> Iterator[Violation]:
    """Yield what is wrong with the configuration that overrides lead to, at what of them leads to it."""
    plain = render(spec.model_copy(update={"overrides": {}}), _PLACES)
    merged = render(spec, _PLACES)
    before = {(each.path, each.allowed) for each in _of_configuration(plain, spec)}
    told = set[Path]()
    for each in _of_configuration(merged, spec):
        place = given(spec.overrides, merged, each.path)
        if (each.path, each.allowed) not in before and place not in told:
            told.add(place)
            further = dotted(each.path[len(place) :])
            allowed = each.allowed
            if further:
                allowed = further if each.path[-1] == each.allowed else f"{each.allowed} in {further}"
            yield Violation(place, _value_at(spec.overrides, place), allowed, each.reason)


def _of_configuration(configuration: dict[str, Any], spec: ClusterSpec) -> Iterator[Violation]:
    if spec.parallelcluster_version == PINNED:
        yield from _missing(configuration, spec)
    if at(configuration, ("Imds", "ImdsSupport")) != "v2.0":
        yield Violation(("Imds", "ImdsSupport"), None, "v2.0", "else a forged request gets the credentials of a node")
    if parallelcluster_schema.truth(at(configuration, ("HeadNode", "Imds", "Secured"))) is not True:
        yield Violation(("HeadNode", "Imds", "Secured"), None, "true", _HEAD_NODE_KEYS)
    nodes: list[tuple[Path, Any]] = [(("HeadNode",), configuration.get("HeadNode"))]
    pools = at(configuration, ("LoginNodes", "Pools"))
    nodes += [(("LoginNodes", "Pools", index), each) for index, each in enumerate(pools or ())]
    for place, node in nodes:
        if isinstance(node, Mapping):
            yield from below(place, _source_violations(node))
        else:
            yield Violation(place, node, "a mapping", "else it is not known who reaches its nodes")


def _source_violations(node: Mapping[str, Any]) -> Iterator[Violation]:
    if "Dcv" in node and at(node, ("Dcv", "Enabled")) is None:
        yield Violation(("Dcv", "Enabled"), None, "true or false", _NEEDED)
    is_shut = "Dcv" not in node or parallelcluster_schema.truth(at(node, ("Dcv", "Enabled"))) is False
    for key in ("Ssh", *([] if is_shut else ["Dcv"])):
        source = at(node, (key, "AllowedIps"))
        if source is None:
            yield Violation((key, "AllowedIps"), None, "a block such as 203.0.113.0/24", _OPEN)
        elif (refused := addresses.refused_source(source)) is not None:
            yield Violation((key, "AllowedIps"), source, *refused)


_EXIST = ("FsxOpenZfs", "FsxOntap", "FileCache")
"""Storage that ParallelCluster only mounts."""
_EMPTY = "ParallelCluster takes none"


def _missing(configuration: dict[str, Any], spec: ClusterSpec) -> Iterator[Violation]:
    """Yield what sections lack, also where the schema of ParallelCluster has no word for it."""
    queues = {queue.name for queue in spec.queues}
    for path, name in parallelcluster_schema.missing(configuration):
        reason = _NEEDED
        if path[:2] == ("Scheduling", "SlurmQueues"):
            reason += f"; to change a queue of {', '.join(sorted(queues))}, give its Name"
        yield Violation((*path, name), None, name, reason)
    for path, section in sections(configuration, lambda place: place == "Scheduling.SlurmQueues"):
        resources = section.get("ComputeResources")
        if not resources:
            yield Violation((*path, "ComputeResources"), resources, "at least one", _EMPTY)
        for index, resource in enumerate(mappings(resources)):
            if not resource.get("InstanceType") and not resource.get("Instances"):
                where = (*path, "ComputeResources", index, "Instances")
                yield Violation(where, None, "InstanceType or Instances", _NEEDED)
            if "Instances" in resource and at(resource, ("CapacityReservationTarget", "CapacityReservationId")):
                where = (*path, "ComputeResources", index, "CapacityReservationTarget", "CapacityReservationId")
                allowed = "CapacityReservationResourceGroupArn"
                yield Violation(where, None, allowed, "fleets of several types take no reservation by its id")
    for path, section in sections(configuration, lambda place: place == "SharedStorage"):
        yield from below(path, _storage_violations(section))
    for path, section in sections(configuration, lambda place: "CustomActions." in place):
        if section.get("Sequence") == []:
            yield Violation((*path, "Sequence"), [], "at least one script", _EMPTY)
    if at(configuration, ("AdditionalPackages", "IntelSoftware", "IntelHpcPlatform")):
        path = ("AdditionalPackages", "IntelSoftware", "IntelHpcPlatform")
        yield Violation(path, True, "false", "no system that ParallelCluster still has takes it")


def _storage_violations(storage: Mapping[str, Any]) -> Iterator[Violation]:
    kind = str(storage.get("StorageType"))
    wanted = f"{kind}Settings"
    if kind in _EXIST and not storage.get(wanted):
        yield Violation((wanted,), None, wanted, "it names what exists: ParallelCluster makes none")
    for key in storage:
        if key.endswith("Settings") and key != wanted:
            yield Violation((key,), None, wanted, f"the StorageType is {kind}")


def _value_at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def _meet(one: Path, other: Path) -> bool:
    """Return whether one path is the other or within it."""
    return one[: len(other)] == other or other[: len(one)] == one


def _members(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of everything in a value; mappings with other keys than text are not looked into."""
    children: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    if path:
        yield path, value
    if len(path) <= _DEEPEST:
        for key, child in children:
            yield from _members(child, (*path, key))


def _matches(value: Any, pattern: re.Pattern[str]) -> bool:
    """Return whether a value is a text of a pattern; a token of the CDK may stand for one, a function may not."""
    return isinstance(value, str) and (is_token(value) or pattern.fullmatch(value) is not None)


def json_violations(configuration: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield what of a configuration, or a part of one, cannot be JSON."""
    for path, value in _members(configuration, ()):
        if len(path) > _DEEPEST:
            yield Violation(path[:3], "...", f"at most {_DEEPEST} levels", "the configuration becomes JSON")
            return
        if not _is_json(value):
            allowed = "text, numbers, true, false or null, and keys of text"
            yield Violation(path, value, allowed, "the configuration becomes JSON")


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) for key in value)
    if isinstance(value, int):
        return abs(value) < 2**63
    return value is None or isinstance(value, str | list) or is_token(value) or _is_finite(value)


def _is_finite(value: Any) -> bool:
    return isinstance(value, float) and isfinite(value)
