"""What a configuration that is taken over has differently here: a fixed list, with the reason of each change."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ultracluster.domain import addresses, neuron, override_rules, parallelcluster_schema, parallelcluster_versions
from ultracluster.domain.cluster_configuration import NOBODY
from ultracluster.domain.instance_types import TRAINIUM_TYPES, cards_of
from ultracluster.domain.overrides import at, mappings, sections
from ultracluster.domain.violations import Path, is_token

Section = dict[str, Any]
Ask = Callable[[str, Path, str], str | None]
"""Returns the answer to a question, by its key, what needs it and why; None: there is none yet."""
NONE = "none"
"""An answer: what is asked for is left out."""
SSH = "cluster.head_node.ssh_cidr"
OS = "cluster.os"

_GONE = {
    "Scheduling.AwsBatchQueues": "ParallelCluster 3.16.0 took AWS Batch out; there is Slurm: SlurmQueues",
    "Scheduling.AwsBatchSettings": "ParallelCluster 3.16.0 took AWS Batch out; there is Slurm: SlurmSettings",
    "Scheduling.SchedulerQueues": "ParallelCluster 3.8.0 took scheduler plugins out; there is Slurm: SlurmQueues",
    "Scheduling.SchedulerSettings": "ParallelCluster 3.8.0 took scheduler plugins out; there is Slurm: SlurmSettings",
    "DevSettings.AwsBatchCliPackage": "ParallelCluster 3.16.0 took AWS Batch out",
    "LoginNodes.Pools.Ssh.KeyName": "ParallelCluster 3.15.0 took it out; login nodes take the head node's key",
}
"""Keys that ParallelCluster had, and what replaces them (the schemas of its releases on PyPI, compared)."""
_GONE_VALUES = {
    ("Scheduling.Scheduler", "awsbatch"): "ParallelCluster 3.16.0 took AWS Batch out; there is slurm",
    ("Scheduling.Scheduler", "plugin"): "ParallelCluster 3.8.0 took scheduler plugins out; there is slurm",
}
_UNUSED = {"AwsBatchCliPackage"}
"""Of these, keys of DevSettings that Slurm never read."""
OLD_SYSTEMS = {"alinux2": "3.16.0", "centos7": "3.10.1", "ubuntu1804": "3.8.0", "ubuntu2004": "3.14.0"}
_BURSTABLE = re.compile(r"t\d")
_IMPLIED_NODES = 10
"""MaxCount where there is none (aws-parallelcluster 3.16.1, config/cluster_config.py)."""


@dataclass(frozen=True)
class Change:
    """What is different here.

    Attributes:
        path: Where the source has it, or would have it.
        was: The value there; None: none.
        now: The value here; None: none.
        reason: Why.
    """

    path: Path
    was: Any
    now: Any
    reason: str


def is_left_out(path: Path) -> bool:
    """Return whether a key that ParallelCluster had once is left out, as nothing of a cluster of Slurm needs it."""
    return ".".join(map(str, path)) in {f"DevSettings.{key}" for key in _UNUSED} or (
        path[:1] == ("LoginNodes",) and path[-2:] == ("Ssh", "KeyName")
    )


def gone(path: Path, value: Any) -> str | None:
    """Return what replaces a key or value that ParallelCluster had once; None: it had none such."""
    key = ".".join(str(part) for part in path if not isinstance(part, int))
    return _GONE.get(key) or _GONE_VALUES.get((key, str(value)))


def typed(value: Any, key: str = "") -> Any:
    """Return a value with the types of the schema: text that is a number or true, and texts where others stood.

    What is null is left out, as ParallelCluster has it.
    """
    field = parallelcluster_schema.fields().get(key)
    if isinstance(value, dict):
        of_free = field is not None and field.kind == "mapping"
        return {
            name: _text(each) if of_free and not isinstance(each, dict | list) else typed(each, _below(key, name))
            for name, each in value.items()
            if each is not None
        }
    if isinstance(value, list):
        return [typed(each, key) for each in value if each is not None]
    if field is None or value is None:
        return value
    if field.kind == "text" and not field.choices:
        return _text(value)
    return _read(value, field.kind) if isinstance(value, str) and field.kind in _READ else value


def _below(key: str, name: str) -> str:
    return key if name == "Sequence" else f"{key}.{name}".lstrip(".")


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


_READ: Mapping[str, Callable[[str], Any]] = {
    "boolean": lambda text: {"true": True, "yes": True, "false": False, "no": False}[text.lower()],
    "integer": int,
    "number": float,
}


def _read(text: str, kind: str) -> Any:
    try:
        return _READ[kind](text)
    except (KeyError, ValueError):
        return text  # the schema names it


class Changes:
    """A configuration as it is wanted here.

    Attributes:
        wanted: It.
        made: What is different.
        groups: Indices of queues whose placement group the deployment makes.
    """

    def __init__(self, configuration: Section, ask: Ask, *, new_network: bool) -> None:
        self.wanted, self.made, self._ask = _without_unknown(configuration), list[Change](), ask
        self.groups = set[int]()
        self._actions()
        self._buckets()
        self._system()
        self._metadata()
        self._encryption()
        self._sources()
        self._policies()
        self._roles()
        self._queues()
        self._volumes()
        self._mount_points()
        self._tags()
        self._others()
        if new_network:
            self._network()
        self.wanted = _without_empty(self.wanted)

    def _set(self, section: Section, path: Path, now: Any, reason: str) -> None:
        """Change a value, or with None take it away."""
        key = str(path[-1])
        was = section.get(key)
        self.made.append(Change(path, was, now, reason))
        if now is None:
            del section[key]
        else:
            section[key] = now

    def _nodes(self, *kinds: str) -> Iterator[tuple[Path, Section]]:
        """Yield the sections of nodes: those of the head node, login pools and queues."""
        wanted = kinds or ("HeadNode", "LoginNodes.Pools", "Scheduling.SlurmQueues")
        yield from sections(self.wanted, lambda key: key in wanted)

    def _system(self) -> None:
        system = at(self.wanted, ("Image", "Os"))
        if isinstance(system, str) and system not in neuron.SYSTEMS:
            allowed = ", ".join(neuron.SYSTEMS)
            since = OLD_SYSTEMS.get(system)
            reason = f"ParallelCluster {since} took {system} out" if since else "this project makes no nodes of it"
            answer = self._ask(OS, ("Image", "Os"), f"{reason}; there are {allowed}")
            if answer is not None:
                self._set(self.wanted["Image"], ("Image", "Os"), answer, reason)

    def _metadata(self) -> None:
        if at(self.wanted, ("Imds", "ImdsSupport")) not in (None, "v2.0"):
            reason = "else a forged request gets the credentials of a node"
            self._set(self.wanted["Imds"], ("Imds", "ImdsSupport"), "v2.0", reason)
        if at(self.wanted, ("HeadNode", "Imds", "Secured")) is False:
            reason = "else each user of the head node gets its credentials"
            self._set(self.wanted["HeadNode"]["Imds"], ("HeadNode", "Imds", "Secured"), True, reason)

    def _encryption(self) -> None:
        for path, section in sections(
            self.wanted, lambda key: key.endswith(("LocalStorage.RootVolume", "SharedStorageEfsSettings"))
        ):
            if section.get("Encrypted") is False:
                self._set(section, (*path, "Encrypted"), True, "what is stored is encrypted")

    def _sources(self) -> None:
        """Close ports that are open to the world, as they are where nothing is said."""
        for path, node in self._nodes("HeadNode", "LoginNodes.Pools"):
            ssh = node.get("Ssh", {})
            if path[0] == "LoginNodes" and "KeyName" in ssh:
                self._set(ssh, (*path, "Ssh", "KeyName"), None, _GONE["LoginNodes.Pools.Ssh.KeyName"])
            source = ssh.get("AllowedIps")
            if source is not None and addresses.refused_source(source):
                reason = "port 22 is open to nobody: Session Manager needs no port"
                answer = self._ask(SSH, (*path, "Ssh", "AllowedIps"), "") if path == ("HeadNode",) else None
                self._set(ssh, (*path, "Ssh", "AllowedIps"), answer, reason)
            elif source is None and path == ("HeadNode",) and (answer := self._ask(SSH, path, "")) is not None:
                ssh = node.setdefault("Ssh", {})
                self._set(ssh, (*path, "Ssh", "AllowedIps"), answer, f"as {SSH} says")
            if "KeyName" in ssh and ssh.get("AllowedIps", NOBODY) == NOBODY:
                reason = f"port 22 is open to nobody; --value {SSH}=BLOCK opens it and keeps the key"
                self._set(ssh, (*path, "Ssh", "KeyName"), None, reason)
            dcv = node.get("Dcv", {})
            if dcv.get("Enabled") is True and (
                dcv.get("AllowedIps") is None or addresses.refused_source(dcv["AllowedIps"])
            ):
                reason = "the port of the desktop is open to nobody: name your block there, or forward the port"
                self._set(dcv, (*path, "Dcv", "AllowedIps"), NOBODY, reason)

    def _policies(self) -> None:
        for path, node in self._nodes():
            iam = node.get("Iam", {})
            kept = []
            for index, item in enumerate(mappings(iam.get("AdditionalIamPolicies"))):
                where = (*path, "Iam", "AdditionalIamPolicies", index, "Policy")
                policy = str(item.get("Policy"))
                if path[0] != "LoginNodes" and override_rules.is_of_session_manager(policy):
                    reason = "the nodes' own policy has Session Manager; by this one a job reads each SSM parameter"
                    self.made.append(Change(where, policy, None, reason))
                elif not override_rules.is_attachable(policy):
                    reason = (
                        "ParallelCluster's provider may not attach it: give the ARN of a policy of yours with the path "
                        f"/parallelcluster/, or {NONE}"
                    )
                    answer = self._ask(policy.rpartition("/")[2], where, reason)
                    if answer is None or answer == NONE:
                        self.made.append(Change(where, policy, None, "ParallelCluster's provider may not attach it"))
                    else:
                        self.made.append(Change(where, policy, answer, "ParallelCluster's provider may attach it"))
                        kept.append({"Policy": answer})
                else:
                    kept.append(item)
            if "AdditionalIamPolicies" in iam:
                iam["AdditionalIamPolicies"] = kept
                if not kept:
                    del iam["AdditionalIamPolicies"]

    def _roles(self) -> None:
        """Ask for roles and a prefix of them that ParallelCluster's provider may use."""
        places: list[tuple[Path, Section, str]] = [
            ((*path, "Iam"), node["Iam"], "InstanceRole") for path, node in self._nodes() if "Iam" in node
        ]
        if "Iam" in self.wanted:
            places.append((("Iam",), self.wanted["Iam"], "ResourcePrefix"))
        for path, iam, key in places:
            if key in iam and not override_rules.is_usable(key, iam[key]):
                reason = "ParallelCluster's provider may use roles of the path /parallelcluster/ alone"
                where = (*path, key)
                answer = self._ask(
                    str(iam[key]), where, f"{reason}: give one, or {NONE}, and ParallelCluster makes them"
                )
                self._set(iam, where, None if answer == NONE else answer, reason)

    def _queues(self) -> None:
        for path, queue in self._nodes("Scheduling.SlurmQueues"):
            resources = mappings(queue.get("ComputeResources"))
            self._reservation(path, queue, resources)
            one_subnet = len(at(queue, ("Networking", "SubnetIds")) or []) <= 1
            for index, resource in enumerate(resources):
                where = (*path, "ComputeResources", index)
                types = mappings(resource.get("Instances"))
                usual = queue.get("AllocationStrategy") in (None, "lowest-price") and "InstanceType" not in resource
                if len(types) == 1 and usual and one_subnet and len(types[0]) == 1:
                    reason = "one type is launched as itself, without a fleet"
                    resource["InstanceType"] = types[0]["InstanceType"]
                    self._set(resource, (*where, "Instances"), None, f"InstanceType: {reason}")
                least = resource.get("MinCount")
                resource.setdefault("MaxCount", max(_IMPLIED_NODES, least if isinstance(least, int) else 0))
            types_of = [str(resource.get("InstanceType")) for resource in resources]
            if "AllocationStrategy" in queue and not any("Instances" in resource for resource in resources):
                reason = "it is of a fleet of several types"
                self._set(queue, (*path, "AllocationStrategy"), None, reason)
            if not any(kind in TRAINIUM_TYPES for kind in types_of):
                queue.setdefault("JobExclusiveAllocation", False)
                for resource in resources:
                    resource.setdefault("Efa", {}).setdefault("Enabled", False)

            self._group(path, queue)

    def _reservation(self, path: Path, queue: Section, resources: list[Section]) -> None:
        """Let each compute resource name the reservation of its queue, which means the same."""
        target = queue.get("CapacityReservationTarget")
        if target is not None and resources:
            for resource in resources:
                resource.setdefault("CapacityReservationTarget", target)
            reason = "each compute resource names it"
            self._set(queue, (*path, "CapacityReservationTarget"), None, reason)

    def _group(self, path: Path, queue: Section) -> None:
        """Take a placement group that ParallelCluster would make for each compute resource."""
        networking, resources = queue.get("Networking", {}), mappings(queue.get("ComputeResources"))
        group = networking.get("PlacementGroup")
        if group is None or "Name" in group or "Id" in group or not isinstance(path[-1], int):
            return
        types = [str(each.get("InstanceType")) for each in resources]
        with_efa = [each for each in resources if at(each, ("Efa", "Enabled")) or _has_efa(each)]
        if group.get("Enabled") is False and not with_efa:
            del networking["PlacementGroup"]
        reserved = any("CapacityReservationTarget" in each for each in resources)
        if group.get("Enabled") is True and not reserved and not any(map(_BURSTABLE.match, types)):
            reason = (
                "the deployment makes one group for all nodes of the queue; ParallelCluster one by compute resource"
            )
            self.groups.add(path[-1])
            self._set(networking, (*path, "Networking", "PlacementGroup"), None, reason)

    def _actions(self) -> None:
        """Write each script as a sequence, which means the same."""
        for _, section in sections(self.wanted, lambda key: key.endswith("CustomActions")):
            for event, action in section.items():
                listed = action.get("Sequence") if isinstance(action, dict) and "Sequence" in action else [action]
                steps = [{key: value for key, value in each.items() if value != []} for each in mappings(listed)]
                section[event] = {"Sequence": steps}

    def _buckets(self) -> None:
        """Leave out that nodes may only read a bucket, which means the same."""
        for _, access in sections(self.wanted, lambda key: key.endswith("Iam.S3Access")):
            if access.get("EnableWriteAccess") is False:
                del access["EnableWriteAccess"]

    def _volumes(self) -> None:
        least = parallelcluster_versions.VERSIONS[parallelcluster_versions.PINNED].root_volume_gib
        for path, volume in sections(self.wanted, lambda key: key.endswith("LocalStorage.RootVolume")):
            size = volume.get("Size")
            if isinstance(size, int) and size < least:
                reason = f"the images of ParallelCluster {parallelcluster_versions.PINNED} have {least} GiB"
                self._set(volume, (*path, "Size"), least, reason)

    def _mount_points(self) -> None:
        """Name directories in full, as nodes do (aws-parallelcluster-cookbook, efs/partial/_mount_umount.rb)."""
        for path, storage in sections(self.wanted, lambda key: key == "SharedStorage"):
            directory = storage.get("MountDir")
            if isinstance(directory, str) and not directory.startswith("/") and not is_token(directory):
                self._set(
                    storage, (*path, "MountDir"), f"/{directory}", "nodes mount it there: they put the / before it"
                )

    def _tags(self) -> None:
        for path, section in list(sections(self.wanted, lambda key: key.endswith("Tags"))):
            if str(section.get("Key")).startswith("parallelcluster:"):
                reason = "ParallelCluster's provider adds its own"
                self.made.append(Change(path, section.get("Value"), None, reason))
                section.clear()
        if "Tags" in self.wanted:
            self.wanted["Tags"] = [tag for tag in self.wanted["Tags"] if tag]

    def _others(self) -> None:
        path = ("AdditionalPackages", "IntelSoftware", "IntelHpcPlatform")
        if at(self.wanted, path) is True:
            software = self.wanted["AdditionalPackages"]["IntelSoftware"]
            self._set(software, path, None, "no system that ParallelCluster still has takes it")

        development = self.wanted.get("DevSettings", {})
        for key in _UNUSED & development.keys():
            self._set(development, ("DevSettings", key), None, _GONE[f"DevSettings.{key}"])

    def _network(self) -> None:
        """Take away what is of another VPC."""
        reason = "the deployment makes a network"
        for path, section in sections(self.wanted, lambda key: key.endswith("Networking")):
            for key in ("SubnetId", "SubnetIds", "SecurityGroups", "AdditionalSecurityGroups"):
                if key in section:
                    self._set(section, (*path, key), None, reason)


def _without_unknown(value: Any, key: str = "") -> Any:
    """Return a configuration without sections that are asked for as a whole."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if not _is_unknown(each, _below(key, name))}
        return {name: _without_unknown(each, _below(key, name)) for name, each in kept.items()}
    if isinstance(value, list):
        return [_without_unknown(each, key) for each in value if not _is_unknown(each, key)]
    return value


def _is_unknown(value: Any, key: str) -> bool:
    field = parallelcluster_schema.fields().get(key)
    return is_token(value) and field is not None and field.kind == "section"


def _without_empty(value: Any) -> Any:
    """Return a configuration without sections that say nothing."""
    if isinstance(value, dict):
        kept = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each != {}}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _has_efa(resource: Mapping[str, Any]) -> bool:
    """Return whether nodes of which nothing is said get EFA."""
    return "Efa" not in resource and cards_of(str(resource.get("InstanceType")))[1] > 0
