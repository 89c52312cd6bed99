"""Raw keys of a ParallelCluster configuration, merged over one that is rendered.

Lists of what has a name are merged by it, as ParallelCluster's update check tells items apart; others are replaced, but
for those of security groups, scripts and settings of Slurm, to which items are added. Null takes a key away. Where
ParallelCluster takes one of two keys, what is given takes the place of what was rendered.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ultracluster.domain import parallelcluster_schema
from ultracluster.domain.violations import Path

Section = dict[str, Any]

_INSTEAD: dict[str, tuple[str, ...]] = {
    "Iam.InstanceRole": ("InstanceProfile", "AdditionalIamPolicies", "S3Access"),
    "Iam.InstanceProfile": ("InstanceRole", "AdditionalIamPolicies", "S3Access"),
    "ComputeResources.Instances": ("InstanceType",),
    "ComputeResources.InstanceType": ("Instances",),
    "CapacityReservationTarget.CapacityReservationId": ("CapacityReservationResourceGroupArn",),
    "CapacityReservationTarget.CapacityReservationResourceGroupArn": ("CapacityReservationId",),
    "PlacementGroup.Name": ("Id", "Enabled"),
    "PlacementGroup.Id": ("Name", "Enabled"),
    "SlurmSettings.Database": ("ExternalSlurmdbd",),
    "SlurmSettings.ExternalSlurmdbd": ("Database",),
}
"""Keys that a key excludes (aws-parallelcluster 3.16.1, schemas/cluster_schema.py and its validators)."""


def merged(configuration: Section, overrides: Mapping[str, Any]) -> Section:
    """Return a configuration with overrides."""
    return _section(configuration, overrides, ())


def plain(value: object, depth: int = 50) -> Any:
    """Return a value with the mappings and lists of JSON in place of others, not deeper than some levels."""
    if isinstance(value, Mapping) and depth:
        return {key: plain(each, depth - 1) for key, each in value.items()}
    return [plain(each, depth - 1) for each in value] if isinstance(value, list | tuple) and depth else value


def without_indices(path: Path) -> str:
    """Return a path as the schema has it: ``Scheduling.SlurmQueues.Name``."""
    return ".".join(str(part) for part in path if not isinstance(part, int))


def named(path: Path, item: object) -> str | None:
    """Return the key by which the schema tells items of a list apart, if an item has it."""
    key = parallelcluster_schema.told_apart_by(without_indices(path))
    return key if key is not None and isinstance(item, Mapping) and isinstance(item.get(key), str) else None


def at(value: Any, path: Iterable[str]) -> Any:
    """Return what is at a path, None where there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def mappings(value: Any) -> list[Section]:
    """Return the items of a list, empty ones in place of what is no mapping."""
    return [item if isinstance(item, dict) else {} for item in value] if isinstance(value, list) else []


def given(overrides: Mapping[str, Any], configuration: Any, path: Path) -> Path:
    """Return where overrides have what is at a path of the configuration with them, or what is above it."""
    place: Path = ()
    value: Any = overrides
    for key in path:
        inner = configuration[key] if _has(configuration, key) else None
        own = _same(value, inner, place) if isinstance(value, list) else key
        if own is None or not _has(value, own):
            break
        place, value, configuration = (*place, own), value[own], inner
    return place


def _same(items: list[Any], item: Any, path: Path) -> int | None:
    """Return which item of a list is called as one is."""
    key = named(path, item)
    names = [at(each, (key,)) for each in items] if key else []
    return names.index(item[key]) if key and item[key] in names else None


def _has(value: Any, key: str | int) -> bool:
    return key in value if isinstance(value, dict) else isinstance(value, list) and key in range(len(value))


def _section(base: Section, override: Mapping[str, Any], path: Path) -> Section:
    result = dict(base)
    for key, value in override.items():
        where = (*path, key)
        for other in _excluded(where, value):
            if other not in override:
                result.pop(other, None)
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _value(result[key], value, where) if key in result else _without_nulls(value)
    if override.get("SecurityGroups") is not None:  # beside which ParallelCluster takes no others
        result["SecurityGroups"] = _added(result["SecurityGroups"], result.pop("AdditionalSecurityGroups", []))
    return result


def _excluded(path: Path, value: object) -> tuple[str, ...]:
    """Return the keys that a value excludes; one that is taken away excludes none."""
    key = ".".join(str(part) for part in path[-2:])
    if key == "PlacementGroup.Enabled":
        return ("Name", "Id") if parallelcluster_schema.truth(value) is False else ()
    return () if value is None else _INSTEAD.get(key, ())


def _value(base: Any, override: Any, path: Path) -> Any:
    field = parallelcluster_schema.fields().get(without_indices(path))
    if isinstance(base, dict) and isinstance(override, Mapping):
        if field is not None and field.or_sequence:
            return {"Sequence": [*_actions(base), *_actions(override)]}
        return _section(base, override, path)
    if isinstance(base, list) and isinstance(override, list):
        if path[-1] == "AdditionalSecurityGroups":
            return _added(base, override)
        if path[-1] == "CustomSlurmSettings":
            return _settings(base, override)
        return _list(base, override, path)
    return _without_nulls(override)


def _list(base: list[Any], override: list[Any], path: Path) -> list[Any]:
    key = named(path, base[0]) if base else None
    if key is None or not all(named(path, item) for item in [*base, *override]):
        return [_without_nulls(item) for item in override]
    changes = {item[key]: item for item in override}
    kept = [_item(item, changes.pop(item[key], {}), path) for item in base]
    return [*kept, *map(_without_nulls, changes.values())]


def _item(base: Section, change: Mapping[str, Any], path: Path) -> Section:
    """Return a changed item; storage of another type is another one."""
    if change.get("StorageType", base.get("StorageType")) != base.get("StorageType"):
        return dict(_without_nulls(change))
    return _section(base, change, path)


def _actions(action: Mapping[str, Any]) -> Sequence[Any]:
    sequence = action.get("Sequence")
    return sequence if isinstance(sequence, list) else [action]


def _added(base: Any, further: Any) -> Any:
    both = isinstance(base, list) and isinstance(further, list)
    return list({repr(each): each for each in [*base, *further]}.values()) if both else base


def _settings(base: list[Any], override: list[Any]) -> list[Any]:
    """Return lines of slurm.conf, those given in place of others of that name."""
    names = {str(name).lower() for item in mappings(override) for name in item}
    kept = [item for item in base if not {str(name).lower() for name in item} & names]
    return [*kept, *override]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def sections(configuration: Any, wanted: Callable[[str], bool]) -> Iterator[tuple[Path, Section]]:
    """Yield place and content of every section whose place in the schema is wanted."""
    yield from _sections(configuration, (), wanted)


def _sections(value: Any, path: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[Path, Section]]:
    if isinstance(value, dict):
        if wanted(without_indices(path)):
            yield path, value
        for key, each in value.items():
            yield from _sections(each, (*path, key), wanted)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _sections(each, (*path, index), wanted)
