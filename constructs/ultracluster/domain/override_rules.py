"""Rules of overrides: which keys of ParallelCluster are an override's, and how lists name what they change."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import isfinite
from typing import Any, get_args

from ultracluster.domain import parallelcluster_schema, slurm_rules
from ultracluster.domain.cluster import ClusterOptions, ClusterSpec
from ultracluster.domain.parallelcluster_versions import PINNED
from ultracluster.domain.spec import Setting, Spec
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
_OWN_POLICY = "give AdditionalIamPolicies, of a policy whose name begins with parallelcluster"
_OUTSIDE = "given outside of overrides, for all nodes"


def _modelled(model: type[Spec] = ClusterOptions, place: Path = ()) -> Iterator[tuple[str, str]]:
    """Yield the keys of ParallelCluster that fields set, each with a sentence that names the field."""
    for name, field in model.model_fields.items():
        kinds = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
        nested = [kind for kind in kinds if issubclass(kind, Spec)]
        for kind in nested:
            yield from _modelled(kind, (*place, name))
        keys = [each.key(model) for each in field.metadata if isinstance(each, Setting)]
        if not nested and name != "name":
            yield from ((key, f"{dotted((*place, name))} sets it") for key in keys if key)


MODELLED_KEYS = {
    **dict(_modelled()),
    "Region": "the stack's",
    "Tags": "tags sets it",
    "SharedStorage": _OUTSIDE,
    "LoginNodes": "login_nodes sets it",
    "HeadNode.Networking.SecurityGroups": _OUTSIDE,
    "HeadNode.Networking.AdditionalSecurityGroups": _OUTSIDE,
    "HeadNode.SharedStorageEfsSettings": "encrypted",
    "HeadNode.CustomActions": "Neuron software uses it",
    "HeadNode.Iam.S3Access": _OWN_POLICY,
    "HeadNode.Iam.InstanceProfile": _OWN_POLICY,
    "HeadNode.Iam.InstanceRole": _OWN_POLICY,
    "Monitoring.Logs.CloudWatch.Enabled": "without logs nobody learns why a node failed",
    "Scheduling.Scheduler": "slurm is the only one",
    "Scheduling.SlurmQueues.CapacityReservationTarget": "of compute resources",
    "Scheduling.SlurmQueues.Networking": "queues sets it",
    "Scheduling.SlurmQueues.CustomActions": "Neuron software uses it",
    "Scheduling.SlurmQueues.Iam.S3Access": _OWN_POLICY,
    "Scheduling.SlurmQueues.Iam.InstanceProfile": _OWN_POLICY,
    "Scheduling.SlurmQueues.Iam.InstanceRole": _OWN_POLICY,
    "Scheduling.SlurmQueues.ComputeResources.Instances": "queues.compute_resources.instance_type sets it",
    "Scheduling.SlurmQueues.ComputeResources.Networking": "queues sets it",
    "DevSettings.EfaInterfaceType": "efa_interface_type sets it",
}
"""Keys that an override may not touch, nor what is below them, because rules count on them, and why; without indices of
lists."""
_ORDER = {key: index for index, key in enumerate(MODELLED_KEYS)}
_DEEPEST = max(key.count(".") for key in MODELLED_KEYS) + 1
_HIDDEN: dict[str, frozenset[str]] = {
    ".".join(parts[:count]): frozenset(each for each in MODELLED_KEYS if each.startswith(f"{'.'.join(parts[:count])}."))
    for parts in (key.split(".") for key in MODELLED_KEYS)
    for count in range(1, len(parts))
}
"""Modelled keys by each key above them."""
OF_NEURON_SOFTWARE = ("CustomActions", "Iam.S3Access")
"""How keys end that belong to Neuron software: nodes without it may have actions of their own."""


def violations(spec: ClusterSpec, neuron_software: bool) -> Iterator[Violation]:
    """Yield every rule that overrides break; paths are keys of the overrides.

    The schema of another version of ParallelCluster than the pinned one is not known here: its package refuses.
    """
    own = list(_violations(spec, neuron_software))
    yield from own
    if spec.parallelcluster_version == PINNED:
        for each in parallelcluster_schema.violations(spec.overrides):
            if not any(_is_within(each.path, told.path) or _is_within(told.path, each.path) for told in own):
                yield each


def _is_within(path: Path, place: Path) -> bool:
    return path[: len(place)] == place


def _violations(spec: ClusterSpec, neuron_software: bool) -> Iterator[Violation]:
    for path, value in _leaves(spec.overrides, ()):
        if not _is_json(value):
            allowed = "text, numbers, true, false or null, and keys of text"
            yield Violation(path, value, allowed, "the configuration becomes JSON")
        key = ".".join(str(part) for part in path if not isinstance(part, int))
        hides = not isinstance(value, dict | list)
        if reason := _reason(key, hides, neuron_software):
            yield Violation(path, value, "no override of this key", reason)
        if path[-1] == "AdditionalIamPolicies" and value != []:
            yield Violation(path, value, "a list, whose policies are added", "nodes need those that they have")
        if path[-1] == "Policy" and path[0] != "LoginNodes" and str(value).endswith(_SSM_POLICY):
            allowed = "leave it out: the nodes' own policy already has Session Manager"
            yield Violation(path, value, allowed, "by it any job reads every SSM parameter of the account")
        elif path[-1] == "Policy" and "AdditionalIamPolicies" in path and not _may_be_attached(value):
            yield Violation(path, value, _ATTACHABLE, "ParallelCluster's provider may attach no others")
    known = {queue.name: {resource.name for resource in queue.compute_resources} for queue in spec.queues}
    path = ("Scheduling", "SlurmQueues")
    yield from _unnamed_violations(path, at(spec.overrides, path), known, "queue")
    for q, queue in enumerate(mappings(at(spec.overrides, path))):
        if queue.get("Name") in list(known):
            resources = known[queue["Name"]]
            below_queue = (*path, q, "ComputeResources")
            yield from _unnamed_violations(below_queue, queue.get("ComputeResources"), resources, "compute resource")
        for r, resource in enumerate(mappings(queue.get("ComputeResources"))):
            yield from _custom_setting_violations((*path, q, "ComputeResources", r), resource)


def _custom_setting_violations(path: Path, resource: Mapping[str, Any]) -> Iterator[Violation]:
    """Check Slurm's parameters of a compute resource: text, because ParallelCluster writes them as they are."""
    settings = resource.get("CustomSlurmSettings", {})
    where = (*path, "CustomSlurmSettings")
    if isinstance(settings, dict) and all(isinstance(key, str) for key in settings):
        yield from below(where, slurm_rules.violations(settings, slurm_rules.COMPUTE_RESOURCE))
    else:
        yield Violation(where, settings, "a mapping of parameters", "they become a line of slurm.conf")


def _reason(key: str, hides: bool, neuron_software: bool) -> str | None:
    """Return why no override may touch a key, nor replace what is below it if it ``hides`` that; None: it may."""
    parts = key.split(".", _DEEPEST)
    around = {".".join(parts[:count]) for count in range(1, len(parts) + 1)} & MODELLED_KEYS.keys()
    within = _HIDDEN.get(key, frozenset()) if hides else frozenset()
    for modelled in sorted(around | within, key=_ORDER.__getitem__):
        if neuron_software or not modelled.endswith(OF_NEURON_SOFTWARE):
            return MODELLED_KEYS[modelled]
    return None


def _unnamed_violations(path: Path, value: Any, known: Collection[str], kind: str) -> Iterator[Violation]:
    """Check that an override of a list is a list of mappings, each with the name of what it changes."""
    if value is not None and not isinstance(value, list):
        yield Violation(path, value, f"a list, each item with the Name of a {kind}", "merged by Name")
    names = sorted(known)
    allowed = f"one of {', '.join(names)}"
    for index, item in enumerate(mappings(value)):
        name = item.get("Name")
        if name not in names:
            yield Violation((*path, index, "Name"), name, allowed, f"names the {kind} to change")


def slurm_settings(spec: ClusterSpec) -> dict[str, Any]:
    """Return the overrides of ``SlurmSettings``."""
    settings = at(spec.overrides, ("Scheduling", "SlurmSettings"))
    return settings if isinstance(settings, dict) else {}


def at(value: Any, path: Iterable[str]) -> Any:
    """Return what is at a path, None where there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return the items of a list, empty ones in place of what is no mapping."""
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Yield path and value of everything that holds nothing further, and of mappings with other keys than text."""
    children: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        children = value.items()
    elif isinstance(value, list):
        children = enumerate(value)
    if path and (value in ({}, []) or not children):
        yield path, value
    for key, child in children:
        yield from _leaves(child, (*path, key))


def _may_be_attached(policy: object) -> bool:
    """Return whether the provider may attach a policy; what only CloudFormation knows may be one."""
    return not isinstance(policy, str) or is_token(policy) or _ATTACHED.fullmatch(policy) is not None


def _is_json(value: Any) -> bool:
    return value in (None, {}, []) or isinstance(value, str | int) or (isinstance(value, float) and isfinite(value))
