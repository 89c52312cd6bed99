"""Settings made of a configuration of ParallelCluster, and how they compare with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from pydantic import ValidationError

from config.messages import error_path, text_of
from config.settings import Settings
from scripts.change.init.additions import additions
from scripts.change.init.changes import OS, Change, Changes, Section, gone, is_left_out, typed
from scripts.change.init.elsewhere import take_roles, take_storage
from scripts.change.init.mapping import Bound, Mapped, RefusedError, covered, mapped
from scripts.change.init.source import Question, Source, asked
from scripts.core import options
from ultracluster.domain import lustre, neuron, parallelcluster_schema, snapshots
from ultracluster.domain.cluster import ClusterOptions, ComputeResourceSpec
from ultracluster.domain.cluster_configuration import Mount
from ultracluster.domain.instance_types import TRAINIUM_TYPES
from ultracluster.domain.overrides import at, mappings, named, without_indices
from ultracluster.domain.parallelcluster_versions import PINNED
from ultracluster.domain.violations import Path, dotted, is_token, shown

REGION, ZONE = "region", "zone_id"
_VPC, _PUBLIC, _PRIVATE = (f"network.existing.{name}" for name in ("vpc_id", "public_subnet_id", "private_subnet_id"))
_BLOCKS = ("network.cidr", "network.public_subnet_cidr", "network.private_subnet_cidr")
_MADE = "subnet-of-the-deployment"
_MOUNT_DIRS = ("/fsx", "/lustre", "/ultracluster")
"""Where the deployment's own file system may be mounted."""
_SMALLEST_GIB = 1200


@dataclass
class Imported:
    """What a configuration leads to.

    Attributes:
        questions: What has to be known first. While there are any, the rest is empty.
        text: The settings file.
        changes: What is different.
        additions: What the defaults of this project add.
        further: What the deployment has beside, a sentence each.
    """

    questions: list[Question] = field(default_factory=list)
    text: str = ""
    changes: list[Change] = field(default_factory=list)
    additions: list[Change] = field(default_factory=list)
    further: list[str] = field(default_factory=list)
    configuration: Section = field(default_factory=dict)


def imported(source: Source, name: str, answers: Mapping[str, str], *, new_network: bool) -> Imported:
    """Return the settings of a deployment that has what a configuration has.

    Args:
        source: The configuration.
        name: Name of the deployment.
        answers: What is known, by the keys of questions.
        new_network: Whether the deployment makes a network, instead of using the one that the configuration names.

    Raises:
        SourceError: Something cannot be taken.
    """
    return _Import(source, name, answers, new_network=new_network).result()


class _Import:
    def __init__(self, source: Source, name: str, answers: Mapping[str, str], *, new_network: bool) -> None:
        self._source, self._name, self._answers, self._new_network = source, name, answers, new_network
        self._questions: dict[str, Question] = {}
        self._further = list[str]()
        self._has_neuron = False

    def result(self) -> Imported:
        configuration = self._read()
        changes = Changes(configuration, self._ask, new_network=self._new_network)
        wanted = changes.wanted
        unknown = {key for text in _texts(wanted) for key in self._source.missing if asked(key) in text}
        self._questions |= {key: each for key, each in self._source.missing.items() if key in unknown}
        region = self._required(REGION, wanted.get("Region"), "Region", "the Region of the deployment")
        zone = self._required(ZONE, None, "", "the availability zone, by its id")
        network, public, private = self._network(wanted)
        if self._questions:
            return Imported(questions=sorted(self._questions.values(), key=lambda each: (each.line, each.key)))
        if wanted.get("Region") not in (None, region):
            changes.made.append(Change(("Region",), wanted["Region"], region, "as was asked for"))
        wanted["Region"] = region
        self._has_neuron = _has_neuron(wanted)
        tags = {str(tag.get("Key")): str(tag.get("Value")) for tag in mappings(wanted.get("Tags"))}
        storage, mount_dir = self._storage(wanted, changes.made)
        mounts = (Mount("FsxLustre", self._name, mount_dir, "fs-0123456789abcdef0"),)
        bound = Bound(public, private, region, mounts, tags)
        found = self._mapped(wanted, bound, changes)
        overrides = found.options.pop("overrides", {})
        roles, shared = take_roles(overrides), take_storage(overrides, found.configuration)
        found.options |= {"shared_storage": shared} if shared else {}
        found.options |= {"overrides": overrides} if overrides else {}
        values: dict[str, Any] = {
            "name": self._name,
            "region": region,
            "zone_id": zone,
            "tags": tags,
            "network": network,
            "storage": storage,
            "roles": roles,
            "cluster": {"parallelcluster_version": PINNED, **found.options},
        }
        if not self._has_neuron:
            values["cluster"] = {"parallelcluster_version": PINNED, "neuron_sdk": None, **found.options}
            self._further.append("no Neuron SDK and no programs of training jobs: no node has chips of AWS Neuron")
        elif (pytorch := _pytorch(str(found.options.get("os", ClusterOptions.model_fields["os"].default)))) is not None:
            values["cluster"]["pytorch"] = pytorch
        if any(snapshots.tag_violations(tags)):
            values["cluster"].setdefault("head_node", {})["snapshots"] = None
            self._further.append("no snapshots of the head node: keys of tags have what they do not take")
        values = {key: value for key, value in values.items() if value != {}}
        self._check(values, found)
        self._compare(wanted, found)
        return Imported(
            text=self._text(values),
            changes=changes.made,
            additions=list(additions(wanted, found.configuration)),
            further=self._further,
            configuration=found.configuration,
        )

    def _read(self) -> Section:
        """Return the configuration with the types of the schema, which knows all of it."""
        if not isinstance(self._source.value, dict):
            raise self._source.report([((), "got no mapping; allowed: a configuration of ParallelCluster 3")])
        configuration = typed(self._source.value)
        problems: list[tuple[Path, str]] = []
        for each in parallelcluster_schema.violations(configuration):
            replaced = gone(each.path, each.got)
            if is_left_out(each.path) or without_indices(each.path) == "Image.Os":
                continue
            problems.append((each.path, f"got {shown(each.got)}; {replaced}" if replaced else str(each)))
        told = {path for path, _ in problems}
        for path, key in parallelcluster_schema.missing(configuration):
            where = (*path, key)
            if not any(where[: len(each)] == each or each[: len(where) - 1] == path for each in told):
                problems.append((where, f"missing; ParallelCluster {PINNED} needs it"))
        if not at(configuration, ("Scheduling", "SlurmQueues")) and not problems:
            problems.append((("Scheduling", "SlurmQueues"), "missing; there is at least one queue"))
        if problems:
            raise self._source.report(problems)
        assert isinstance(configuration, dict)  # noqa: S101 - its root is a mapping
        return configuration

    def _ask(self, key: str, path: Path, reason: str) -> str | None:
        """Return an answer; without one, ask if there is a reason."""
        if (answer := self._answers.get(key)) is None and reason:
            question = Question(key, self._source.line(path), dotted(path), reason, or_none=key != OS)
            self._questions.setdefault(key, question)
        return answer

    def _required(self, key: str, known: Any, where: str, reason: str) -> str:
        """Return the answer for a setting; without one what is known, or a question."""
        if (answer := self._answers.get(key)) is not None:
            return answer
        if isinstance(known, str) and not is_token(known):
            return known
        if not is_token(known):
            self._questions.setdefault(key, Question(key, 0, where, reason))
        return ""

    def _network(self, wanted: Section) -> tuple[dict[str, Any], str, str]:
        """Return the settings of the network, with its public and private subnet."""
        if self._new_network:
            return {}, _MADE, f"{_MADE}-private"
        head = at(wanted, ("HeadNode", "Networking", "SubnetId"))
        queues = mappings(at(wanted, ("Scheduling", "SlurmQueues")))
        subnets = [subnet for queue in queues for subnet in at(queue, ("Networking", "SubnetIds")) or []]
        private = str(subnets[0] if subnets else head)
        reason = "of the VPC of the subnets; or --new-network, which uses none of them"
        vpc = self._required(_VPC, None, "", f"the id {reason}")
        public = str(head) if head != private else ""
        if not public or self._answers.get(_PUBLIC):
            public = self._required(_PUBLIC, None, "", "a public subnet: the file has one subnet for all nodes")
        cidr, *blocks = (
            self._required(key, None, "", f"the IPv4 block of the {of}")
            for key, of in zip(_BLOCKS, ("VPC", "public subnet", f"subnet {private}"), strict=True)
        )
        existing = {"vpc_id": vpc, "public_subnet_id": public, "private_subnet_id": private}
        network = {"cidr": cidr, "public_subnet_cidr": blocks[0], "private_subnet_cidr": blocks[1]}
        return {**network, "existing": existing}, public, private

    def _storage(self, wanted: Section, made: list[Change]) -> tuple[dict[str, Any], str]:
        """Return the settings of the deployment's file system, and where it is mounted."""
        shared = mappings(wanted.get("SharedStorage"))
        for index, each in enumerate(shared):
            taken = _file_system(each)
            if taken is not None:
                del wanted["SharedStorage"][index]
                reason = "the deployment makes it, as its own file system, which outlives the cluster"
                made.append(Change(("SharedStorage", index), each.get("Name"), "storage.file_system", reason))
                return taken, str(taken["file_system"].get("mount_dir", "/fsx"))
        others = [str(each.get("MountDir")) for each in shared]
        others += [
            str(at(queue, ("ComputeSettings", "LocalStorage", "EphemeralVolume", "MountDir")))
            for queue in mappings(at(wanted, ("Scheduling", "SlurmQueues")))
        ]
        free = [each for each in _MOUNT_DIRS if not any(lustre.overlap(each, f"/{o.strip('/')}") for o in others)]
        own = free[0] if free else "/ultracluster-files"
        file_system: dict[str, Any] = {"capacity_gib": _SMALLEST_GIB}
        if own != _MOUNT_DIRS[0]:
            file_system["mount_dir"] = own
        use = "the software of jobs is there" if self._has_neuron else "nodes tell there why they do not start"
        self._further.append(f"a file system of {_SMALLEST_GIB} GiB, the smallest, at {own}: {use}")
        return {"file_system": file_system}, own

    def _mapped(self, wanted: Section, bound: Bound, changes: Changes) -> Mapped:
        try:
            return mapped(wanted, bound, changes.groups)
        except RefusedError as error:
            raise self._source.report(error.problems) from None
        except ValidationError as error:
            problems = [
                (("Scheduling",), f"{text_of(each, {})} (cluster.{dotted(error_path(each))})")
                for each in error.errors(include_url=False)
            ]
            raise self._source.report(problems) from None

    def _check(self, values: dict[str, Any], found: Mapped) -> None:
        """Check the settings by their rules.

        Raises:
            SourceError: They break some; the messages name what of the source leads to it.
        """
        try:
            Settings.model_validate(values)
        except ValidationError as error:
            problems = []
            for each in error.errors(include_url=False):
                place = error_path(each)
                problems.append((self._origin(place, found), f"{text_of(each, {})} ({dotted(place)})"))
            raise self._source.report(problems) from None

    def _origin(self, place: Path, found: Mapped) -> Path:
        """Return where the source has what is at a place of the settings."""
        if place[:2] == ("cluster", "overrides"):
            return self._in_source(place[2:], found.options["overrides"])
        if place[:2] == ("cluster", "shared_storage"):
            return self._of_storage(place[2:], found.options["shared_storage"])
        own = place[1:] if place[:1] == ("cluster",) else ()
        while own and own not in found.origins:
            own = own[:-1]
        return found.origins.get(own, ("Tags",) if place[:1] == ("tags",) else ())

    def _of_storage(self, path: Path, taken: list[dict[str, Any]]) -> Path:
        """Return the place in the source of further storage in settings, which are all of it or one by its index."""
        names = [each.get("Name") for each in mappings(at(self._source.value, ("SharedStorage",)))]
        if not path or not isinstance(path[0], int) or (name := taken[path[0]]["name"]) not in names:
            return ("SharedStorage",)
        where: Path = ("SharedStorage", names.index(name))
        return (*where, "MountDir") if path[1:] == ("mount_dir",) else where

    def _in_source(self, path: Path, overrides: Any) -> Path:
        """Return the place in the source of one in overrides, whose lists lack what settings set."""
        result: Path = ()
        value, source = overrides, self._source.value
        for part in path:
            if isinstance(part, int) and isinstance(value, list) and isinstance(source, list) and part < len(value):
                key, item = named(result, value[part]), value[part]
                same = [i for i, each in enumerate(source) if key and at(each, (key,)) == at(item, (key,))]
                own: str | int = same[0] if same else part
            else:
                own = part
            value = value[part] if _has(value, part) else None
            source = source[own] if _has(source, own) else None
            result = (*result, own)
        return result

    def _compare(self, wanted: Section, found: Mapped) -> None:
        """Compare what the settings lead to with what is wanted.

        Raises:
            SourceError: Something would be lost.
        """
        lost = list(covered(wanted, found.configuration, ()))
        if lost:
            problems = [(path, "no setting and no override leads to it") for path in lost]
            raise self._source.report(problems)

    def _text(self, values: dict[str, Any]) -> str:
        """Return the settings file."""
        head = (
            "# yaml-language-server: $schema=schema.json\n"
            f"# Deployment {self._name}, from {self._source.name}. Next: ./ultracluster estimate {self._name}\n"
            f"# All other settings have their defaults: {options.SETTINGS_REFERENCE}\n\n"
        )
        return head + yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


_AS_NUMBER = re.compile(r"[-+.\d][\dxo.eE_+-]*")


class _Dumper(yaml.SafeDumper):
    """Writes lists below their keys with an indent, and texts that look like numbers in quotes."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists, too."""
        super().increase_indent(flow, indentless=False)

    def ignore_aliases(self, data: Any) -> bool:
        """Write what stands at two places twice."""
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _AS_NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _quoted)


def _has_neuron(wanted: Section) -> bool:
    """Return whether nodes of any queue have chips of AWS Neuron; all types of a fleet have as many."""
    queues = mappings(at(wanted, ("Scheduling", "SlurmQueues")))
    resources = [each for queue in queues for each in mappings(queue.get("ComputeResources"))]
    default = ComputeResourceSpec.model_fields["instance_type"].get_default()
    first = [at(next(iter(mappings(each.get("Instances"))), each), ("InstanceType",)) for each in resources]
    return any((each or default) in TRAINIUM_TYPES for each in first)


def _pytorch(system: str) -> str | None:
    """Return the newest PyTorch that an operating system has, where it is not the default's."""
    release = neuron.RELEASES[neuron.DEFAULT_SDK]
    fitting = [version for version, each in release.pytorch.items() if neuron.blocker(each, system) is None]
    return None if neuron.DEFAULT_PYTORCH in fitting or not fitting else max(fitting)


def _file_system(storage: Section) -> dict[str, Any] | None:
    """Return the settings of a Lustre file system that ParallelCluster would make; None: they cannot have it."""
    given = dict(storage.get("FsxLustreSettings") or {})
    if storage.get("StorageType") != "FsxLustre" or "FileSystemId" in given:
        return None
    fields = {
        key.rpartition(".")[2]: name
        for name, setting in lustre.LustreSpec.declared()
        if (key := setting.key(lustre.LustreSpec)) is not None and key.startswith(lustre.LustreSpec.aws)
    }
    given.setdefault(
        "DeploymentType", "SCRATCH_2"
    )  # its default (aws-parallelcluster 3.16.1, config/cluster_config.py)
    retain = given.pop("DeletionPolicy", "Delete") == "Retain"
    if not given.keys() <= fields.keys():
        return None
    values: dict[str, Any] = {fields[key]: value for key, value in given.items()}
    if values["deployment_type"] == "SCRATCH_2":
        values |= {"throughput_mbps_per_tib": None, "backup_retention_days": 0}
    values |= {"mount_dir": f"/{str(storage.get('MountDir')).strip('/')}"}
    spec, broken = lustre.LustreSpec.checked(values, lustre.violations)
    if spec is None or broken:
        return None
    return {"file_system": spec.changed(), **({} if retain else {"retain": False})}


def _texts(value: Any) -> Iterator[str]:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in members:
        yield from _texts(each)
    if isinstance(value, str):
        yield value


def _has(value: Any, key: str | int) -> bool:
    return key in value if isinstance(value, dict) else isinstance(value, list) and key in range(len(value))
