"""What settings outside the options of a cluster take of a configuration: further storage, and what roles have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scripts.change.init.changes import Section
from scripts.change.init.mapping import covered
from ultracluster.domain import storage
from ultracluster.domain.homes import HOME
from ultracluster.domain.overrides import mappings
from ultracluster.domain.roles import RolesSpec
from ultracluster.domain.storage import EbsVolumeSpec, SharedStorageSpec

_TYPES: dict[str, str] = {name: kind for kind, name in storage.KINDS.items()}


def take_storage(overrides: Section, configuration: Section) -> list[dict[str, Any]]:
    """Move storage that a setting takes out of overrides, and return it.

    Args:
        overrides: What no option of a cluster takes.
        configuration: What the settings lead to; it gets what storage leads to.
    """
    taken, left = list[dict[str, Any]](), list[Any]()
    for item in overrides.get("SharedStorage") or ():
        found = _storage(item) if isinstance(item, Mapping) else None
        if found is None:
            left.append(item)
            continue
        values, leads_to = found
        taken.append(values)
        shared = configuration["SharedStorage"]
        shared[[each.get("Name") for each in mappings(shared)].index(item["Name"])] = leads_to
    if taken:
        overrides.pop("SharedStorage")
        overrides |= {"SharedStorage": left} if left else {}
    return taken


def _storage(item: Mapping[str, Any]) -> tuple[dict[str, Any], Section] | None:
    """Return the settings of storage, and what they lead to; None: they do not lead to all of it."""
    kind, section = _TYPES.get(str(item.get("StorageType"))), item.get(f"{item.get('StorageType')}Settings") or {}
    if kind is None or not isinstance(section, Mapping) or item.get("MountDir") == HOME:
        return None
    model = next(each for each in SharedStorageSpec.model_fields[kind].annotation.__args__ if each is not type(None))  # type: ignore[union-attr]
    keys = {str(setting.key(model)).rpartition(".")[2]: name for name, setting in model.declared()}
    given = {keys[key]: value for key, value in section.items() if key in keys}
    if model is EbsVolumeSpec and "volume_id" not in given:
        given["retention"] = str(given.get("retention", "Delete")).lower()
    values = {"name": item.get("Name"), "mount_dir": item.get("MountDir"), kind: given}
    spec, broken = SharedStorageSpec.checked(values, lambda each: storage.violations([each]))
    if spec is None or broken:
        return None
    leads_to = storage.mount_of(spec).configuration
    return None if list(covered(dict(item), leads_to, ())) else (values, leads_to)


def take_roles(overrides: Section) -> dict[str, Any]:
    """Move what roles have out of overrides, and return it."""
    section = overrides.get("Iam")
    if not isinstance(section, dict):
        return {}
    path, slash, prefix = str(section.get("ResourcePrefix") or "").rpartition("/")
    values = {
        "permissions_boundary_arn": section.get("PermissionsBoundary"),
        "path": f"{path}{slash}" or None,
        "name_prefix": prefix or None,
    }
    values = {name: value for name, value in values.items() if value is not None}
    if not values or RolesSpec.checked(values)[1]:
        return {}
    rest = {key: value for key, value in section.items() if key not in ("PermissionsBoundary", "ResourcePrefix")}
    overrides.pop("Iam")
    overrides |= {"Iam": rest} if rest else {}
    return values
