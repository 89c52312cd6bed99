"""Settings that lead to a configuration: found by the declarations of the fields, and by rendering them.

A field names the key that it sets (`Setting`). What value of it leads to one of the key is tried out: the renderer
decides, so that there is no table beside it. What no field leads to becomes an override.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from config.messages import text_of
from scripts.change.init.changes import Section
from ultracluster.domain import custom_actions, override_rules, parallelcluster_schema, slurm_rules
from ultracluster.domain.cluster import NO_PLACEMENT_GROUP, ClusterOptions, ClusterSpec, S3AccessSpec
from ultracluster.domain.cluster_configuration import Bindings, Mount, render
from ultracluster.domain.custom_actions import NodeActionsSpec, QueueActionsSpec
from ultracluster.domain.instance_types import TRAINIUM_TYPES
from ultracluster.domain.names import NODE_GROUP_NAME_PATTERN
from ultracluster.domain.overrides import at, mappings, named, without_indices
from ultracluster.domain.spec import Setting, Spec
from ultracluster.domain.types import Existing
from ultracluster.domain.violations import Path

_ACTIONS = (NodeActionsSpec, QueueActionsSpec)
_UNSET = object()
_NEEDED = ("name", "instance_type", "max_count", "count")
"""Fields by which checks, quotas and prices go: an override of them alone would deceive those."""


_LISTS_OF_NODES = ("queues", "compute_resources", "login_nodes")


class RefusedError(ValueError):
    """Fields that are needed do not take what a configuration has: where, and why."""

    def __init__(self, problems: Sequence[tuple[Path, str]]) -> None:
        self.problems = problems
        super().__init__(str(problems))


@dataclass
class _Leaf:
    """A key of the configuration, and values of a field that may lead to it; the first is tried."""

    place: Path
    path: Path
    wanted: Any
    candidates: list[Any]


@dataclass(frozen=True)
class Bound:
    """Where nodes are, and what they mount, beside what the settings of a cluster say.

    Attributes:
        public_subnet: Id of the subnet of nodes that are public.
        private_subnet: Id of that of the others.
        region: The Region.
        mounts: File systems of the deployment.
        tags: Those of the deployment.
    """

    public_subnet: str
    private_subnet: str
    region: str
    mounts: tuple[Mount, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Mapped:
    """What leads to a configuration.

    Attributes:
        options: The section `cluster` of settings, without what is the default.
        configuration: What it leads to.
        origins: Where the source has what is at a place of the options.
    """

    options: dict[str, Any]
    configuration: Section
    origins: dict[Path, Path]


def mapped(wanted: Section, bound: Bound, groups: Collection[int]) -> Mapped:
    """Return the settings that lead to a configuration.

    Args:
        wanted: The configuration.
        bound: What the cluster is attached to.
        groups: Which queues have a placement group that the deployment makes.
    """
    return _Mapping(wanted, bound, groups).result()


def covered(wanted: Any, has: Any, path: Path) -> Iterator[Path]:
    """Yield where a configuration lacks what is wanted."""
    if wanted in ({}, []):
        return
    if isinstance(wanted, dict) and isinstance(has, dict):
        for key, value in wanted.items():
            yield from covered(value, has.get(key), (*path, key))
    elif path[-1:] == ("CustomSlurmSettings",) and isinstance(wanted, list) and isinstance(has, list):
        lines = {name.lower(): str(value) for item in mappings(has) for name, value in item.items()}
        for index, item in enumerate(mappings(wanted)):
            is_one = len(item) > 1 and slurm_rules.named(item) is not None
            others = any(not _line_holds(name, str(value), lines.get(name.lower())) for name, value in item.items())
            if item not in has if is_one else others:
                yield (*path, index)
        repeated = [name.lower() for item in mappings(wanted) for name in item]
        if len(set(repeated)) < len(repeated) and not all(item in has for item in wanted):
            yield path
    elif isinstance(wanted, list) and isinstance(has, list):
        yield from _covered_list(wanted, has, path)
    elif not _same(wanted, has):
        yield path


def _covered_list(wanted: list[Any], has: list[Any], path: Path) -> Iterator[Path]:
    """Yield what a list lacks: of what has a name, or of security groups, there may be more."""
    key = named(path, wanted[0])
    if key is None and path[-1] != "AdditionalSecurityGroups":
        if len(has) != len(wanted):
            yield path
            return
        for index, (item, own) in enumerate(zip(wanted, has, strict=True)):
            yield from covered(item, own, (*path, index))
        return
    for index, item in enumerate(wanted):
        own = next((each for each in has if each == item or (key and at(each, (key,)) == at(item, (key,)))), None)
        yield from covered(item, own, (*path, index))


def _line_holds(name: str, wanted: str, has: str | None) -> bool:
    """Return whether a setting of slurm.conf has what is wanted; flags of the scheduler may be among others."""
    if has is None or name.lower() != "schedulerparameters":
        return has == wanted
    flags = {each.strip().lower() for each in has.split(",")}
    return {each.strip().lower() for each in wanted.split(",")} <= flags


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return str(one).lower() == str(other).lower()
    return one == other or (not isinstance(one, dict | list) and str(one) == str(other))


class _Mapping:
    def __init__(self, wanted: Section, bound: Bound, groups: Collection[int]) -> None:
        self._wanted, self._bound = wanted, bound
        self._options: dict[str, Any] = {}
        self._origins: dict[Path, Path] = {}
        self._actions = _Actions(wanted)
        self._leaves = list(self._walk(ClusterOptions, (), "", (), wanted))
        self._nodes_of_queues(groups)

    def result(self) -> Mapped:
        self._try()
        self._drop_defaults(self._rendered())
        rest = _overrides(self._wanted, self._rendered(), ())
        options = _ordered(ClusterOptions, _without_empty(self._options))
        if rest:
            options["overrides"] = rest
        self._options = options
        return Mapped(options, self._rendered(), self._origins)

    def _walk(self, model: type[Spec], place: Path, key: str, path: Path, value: Any) -> Iterator[_Leaf]:
        """Yield what fields of a model may set, from a section of the configuration on."""
        keys = {name: _key(model, name, place) for name in model.model_fields}
        named_before = [keys[name] for name, info in model.model_fields.items() if _names_existing(info)]
        for name, info in model.model_fields.items():
            where, nested = (*place, name), next(_models(info.annotation), None)
            of_field = keys[name] or (nested.aws if nested else None)
            if of_field in named_before and not _names_existing(info):
                continue  # what a configuration names exists
            if nested in _ACTIONS:
                self._take_actions(where, path)
                continue
            if not of_field:
                continue
            is_below = bool(key) and of_field.startswith(f"{key}.")
            inner = tuple(of_field.removeprefix(f"{key}." if is_below else "").split("."))
            base, at_path = (value, path) if is_below else (self._wanted, ())
            found = at(base, inner)
            if found is None:
                continue
            self._origins[where] = (*at_path, *inner)
            if nested is None or nested is S3AccessSpec:
                candidates = [_buckets(found)] if nested else _candidates(found, info)
                if name == "alternative_types":  # the first is instance_type
                    candidates = [[each.get("InstanceType") for each in mappings(found)[1:]]]
                elif name == "further_subnet_ids" and isinstance(found, list):  # the first is the deployment's
                    candidates = [[each for each in found if each != self._bound.private_subnet]]
                yield _Leaf(where, (*at_path, *inner), found, candidates)
            elif isinstance(found, list):
                self._put(where, [{} for _ in found])
                for index, item in enumerate(mappings(found)):
                    yield from self._walk(nested, (*where, index), of_field, (*at_path, *inner, index), item)
            elif isinstance(found, dict):
                yield from self._walk(nested, where, key, path, value)

    def _put(self, place: Path, value: Any) -> None:
        """Set an option, or with `_UNSET` take it away."""
        holder: Any = self._options
        for part in place[:-1]:
            holder = holder.setdefault(part, {}) if isinstance(holder, dict) else holder[part]
        if value is _UNSET:
            holder.pop(place[-1], None)
        else:
            holder[place[-1]] = value

    def _take_actions(self, place: Path, path: Path) -> None:
        found = self._actions.of(place, path)
        if found:
            self._put(place, found)
            self._origins[place] = (*path, "CustomActions")

    def _nodes_of_queues(self, groups: Collection[int]) -> None:
        """Name what no key says as it is: placement groups that the deployment makes, and the first type of a fleet."""
        for q, queue in enumerate(mappings(at(self._wanted, ("Scheduling", "SlurmQueues")))):
            group, resources = at(queue, ("Networking", "PlacementGroup")), mappings(queue.get("ComputeResources"))
            with_efa = any(at(each, ("Efa", "Enabled")) for each in resources)
            is_trainium = any(each.get("InstanceType") in TRAINIUM_TYPES for each in resources)
            if q in groups and not (with_efa or is_trainium) and _is_label(queue.get("Name")):
                self._put(("queues", q, "placement_group"), queue.get("Name"))
            elif at(group, ("Enabled",)) is False or (q not in groups and not group and with_efa and not is_trainium):
                self._put(("queues", q, "placement_group"), NO_PLACEMENT_GROUP)
            for r, resource in enumerate(resources):
                types = mappings(resource.get("Instances"))
                if types and "InstanceType" not in resource:
                    self._put(("queues", q, "compute_resources", r, "instance_type"), types[0].get("InstanceType"))

    def _try(self) -> None:
        """Set fields to the first of their candidates that leads to what is wanted."""
        by_place = {leaf.place: leaf for leaf in self._leaves}
        for leaf in self._leaves:
            self._put(leaf.place, leaf.candidates[0])
        for _ in range(200):
            try:
                rendered = self._rendered()
            except ValidationError as error:
                errors = error.errors(include_url=False)
                refused = [(_leaf_at(by_place, each["loc"]), each) for each in errors if each["type"] != "missing"]
                wrong = [leaf for leaf, _ in refused if leaf is not None]
                needed = [(leaf, each) for leaf, each in refused if leaf is not None and leaf.place[-1] in _NEEDED]
                if needed:
                    raise RefusedError([(leaf.path, text_of(each, {})) for leaf, each in needed]) from None
                others = [each["loc"] for each in errors if each["type"] == "missing"]
                others += [each["loc"] for leaf, each in refused if leaf is None]
                if not wrong and not self._leave_out(others):
                    raise
            else:
                wrong = [
                    leaf
                    for leaf in self._leaves
                    if leaf.candidates[0] is not _UNSET
                    and list(covered(leaf.wanted, _at(rendered, leaf.path), leaf.path))
                ]
                if not wrong:
                    return
            for leaf in {id(leaf): leaf for leaf in wrong}.values():
                leaf.candidates = leaf.candidates[1:] or [_UNSET]
                self._put(leaf.place, leaf.candidates[0])

    def _leave_out(self, places: Sequence[tuple[Any, ...]]) -> bool:
        """Leave out the sections that hold what is missing or wrong; return whether there are any."""
        left_out = {holder for place in places if (holder := _optional(place))}
        for place in left_out:
            self._put(place, _UNSET)
            self._leaves = [leaf for leaf in self._leaves if leaf.place[: len(place)] != place]
        return bool(left_out)

    def _drop_defaults(self, rendered: Section) -> None:
        """Take away the fields without which the configuration is the same."""
        for leaf in self._leaves:
            if leaf.candidates[0] is _UNSET or leaf.place[-1] in _NEEDED:
                continue
            self._put(leaf.place, _UNSET)
            try:
                is_default = self._rendered() == rendered
            except ValidationError:  # it is required
                is_default = False
            if not is_default:
                self._put(leaf.place, leaf.candidates[0])

    def _rendered(self) -> Section:
        options = _without_empty(self._options)
        names = {"name": "cluster", "region": self._bound.region, "tags": dict(self._bound.tags)}
        spec = ClusterSpec.model_validate({"queues": [], **options, **names})
        return render(spec, self._bindings(spec))

    def _bindings(self, spec: ClusterSpec) -> Bindings:
        return Bindings(
            public_subnet_id=self._bound.public_subnet,
            private_subnet_id=self._bound.private_subnet,
            shared_storage=self._bound.mounts,
            head_node=_events(spec.head_node.custom_actions),
            login_nodes=_events(spec.login_node_actions),
            queues={queue.name: _events(queue.custom_actions) for queue in spec.queues},
        )


class _Actions:
    """Scripts of nodes that settings take; the others stay what they are."""

    def __init__(self, wanted: Section) -> None:
        pools = mappings(at(wanted, ("LoginNodes", "Pools")))
        given = [pool.get("CustomActions") for pool in pools]
        self._of_pools = given[0] if given and all(each == given[0] for each in given) else None
        self._wanted = wanted

    def of(self, place: Path, path: Path) -> dict[str, Any] | None:
        """Return the options of scripts that nodes run."""
        if place == ("login_node_actions",):
            return _actions(self._of_pools, NodeActionsSpec)
        section = _at(self._wanted, path) if path else self._wanted.get("HeadNode", {})
        return _actions(at(section, ("CustomActions",)), QueueActionsSpec if path else NodeActionsSpec)


def _actions(section: Any, model: type[Spec]) -> dict[str, Any] | None:
    events: dict[str, Any] = {}
    for event in model.model_fields:
        action = at(section, (_pascal(event),))
        if action is not None:
            listed = action.get("Sequence") if "Sequence" in action else [action]
            events[event] = [
                {"script": each.get("Script"), **({"args": each["Args"]} if each.get("Args") else {})}
                for each in mappings(listed)
            ]
    if not events:
        return None
    spec, broken = model.checked(events, custom_actions.violations)
    scripts = [action["script"] for actions in events.values() for action in actions]
    return None if spec is None or broken or any(custom_actions.is_file(each) for each in scripts) else events


def _buckets(section: Any) -> list[dict[str, Any]]:
    """Return the options of buckets that nodes may use."""
    return [
        {
            "bucket": each.get("BucketName"),
            **({"key": each["KeyName"]} if "KeyName" in each else {}),
            **({"write": True} if each.get("EnableWriteAccess") is True else {}),
        }
        for each in mappings(section)
    ]


def _events(actions: Spec | None) -> Section:
    """Return scripts as ParallelCluster has them."""
    section: Section = {}
    for (event, _), action in custom_actions.actions(actions):
        step = {"Script": action.script, **({"Args": list(action.args)} if action.args else {})}
        section.setdefault(_pascal(str(event)), {"Sequence": []})["Sequence"].append(step)
    return {"CustomActions": section} if section else {}


def _pascal(name: str) -> str:
    return "".join(part.title() for part in name.split("_"))


def _candidates(value: Any, info: Any) -> list[Any]:
    """Return the values of a field that may lead to one of the configuration."""
    kinds = [info.annotation, *get_args(info.annotation)]
    choices = [choice for kind in kinds if get_origin(kind) is Literal for choice in get_args(kind)]
    choices += [True, False] if bool in kinds else []
    found = [value]
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        found.append({name: str(text) for each in value for name, text in each.items()})
        found.append([text for each in value for text in each.values()])
    if isinstance(value, dict):
        found.append({name: str(text) for name, text in value.items()})
    found += sorted(choices, key=lambda each: str(each).lower() != str(value).lower())
    found += [None] if type(None) in kinds else []
    return [each for index, each in enumerate(found) if not any(each is earlier for earlier in found[:index])]


def _key(model: type[Spec], name: str, place: Path) -> str | None:
    """Return the key of ParallelCluster that a field sets."""
    own = next((each.key(model) for each in model.model_fields[name].metadata if isinstance(each, Setting)), None)
    where = (*(part for part in place if isinstance(part, str)), name)
    return own or next((key for key, at_field in override_rules.FIELDS.items() if at_field == where), None)


def _names_existing(info: Any) -> bool:
    """Return whether values of a field name what exists."""
    return any(isinstance(each, Existing) for each in info.metadata)


def _models(kind: Any) -> Iterator[type[Spec]]:
    if isinstance(kind, type) and issubclass(kind, Spec):
        yield kind
    for each in get_args(kind):
        yield from _models(each)


def _optional(place: tuple[Any, ...]) -> Path:
    """Return the innermost section around a place that settings may do without; empty: there is none."""
    while place := place[:-1]:
        if isinstance(place[-1], str) and place[-1] not in _LISTS_OF_NODES:
            return place
    return ()


def _is_label(name: Any) -> bool:
    return isinstance(name, str) and re.fullmatch(NODE_GROUP_NAME_PATTERN, name) is not None


def _leaf_at(leaves: Mapping[Path, _Leaf], place: tuple[Any, ...]) -> _Leaf | None:
    while place:
        if place in leaves:
            return leaves[place]
        place = place[:-1]
    return None


def _at(value: Any, path: Path) -> Any:
    """Return what is at a path with indices; None: nothing."""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, dict) else None
    return value


def _without_empty(value: Any) -> Any:
    """Return options without sections that say nothing, but for items of lists."""
    if isinstance(value, dict):
        kept = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in ({}, [])}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _ordered(model: type[Spec], options: Any) -> Any:
    """Return options in the order of the fields of their model."""
    if isinstance(options, list):
        return [_ordered(model, each) for each in options]
    nested = {name: next(_models(info.annotation), None) for name, info in model.model_fields.items()}
    return {
        name: _ordered(kind, options[name]) if kind and isinstance(options[name], dict | list) else options[name]
        for name, kind in nested.items()
        if name in options
    }


def _overrides(wanted: Section, has: Section, path: Path) -> Section:
    """Return the least that leads from a configuration to what is wanted."""
    result: Section = {}
    for key, value in wanted.items():
        where, own = (*path, key), has.get(key)
        if not list(covered(value, own, where)):
            continue
        schema = parallelcluster_schema.fields().get(without_indices(where))
        if isinstance(value, dict) and isinstance(own, dict) and not (schema and schema.or_sequence):
            result[key] = _overrides(value, own, where)
        elif (
            isinstance(value, list)
            and isinstance(own, list)
            and (by := parallelcluster_schema.told_apart_by(without_indices(where)))
        ):
            result[key] = [item for item in (_item(each, own, by, where) for each in value) if item]
        else:
            result[key] = value
    return result


def _item(item: Any, has: list[Any], by: str, path: Path) -> Section | None:
    """Return what changes an item of a list; None: nothing."""
    of_name = [each for each in mappings(has) if each.get(by) == item.get(by)]
    if not of_name:
        return dict(item)
    further = _overrides(item, of_name[0], path)
    return {by: item[by], **further} if further else None
