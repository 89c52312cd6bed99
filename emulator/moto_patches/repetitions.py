"""What moto finds out again with every request or reset, though it stays the same: here it is found out once."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import moto.backends
import moto.core.responses
from moto.core.constants import MISSING
from moto.core.serialize import AttributePicker, AttributePickerContext
from moto.core.utils import get_value, method_names_from_class
from moto.ec2.models.tags import TagBackend
from moto.iam.models import IAMBackend, ManagedPolicy

_describe_all_tags: Final = TagBackend.describe_tags
_read_managed_policies: Final = IAMBackend._init_aws_policies
_managed_policies: Final[dict[tuple[str, str], list[ManagedPolicy]]] = {}


_fields: Final[dict[tuple[object, ...], tuple[tuple[str, ...], list[str]]]] = {}
"""By what a field is: the names that an object may have it under, and the transformers that may be for it."""


def avoid_repetitions() -> None:
    """Keep names of modules, of response classes' methods, and of fields, and AWS's managed policies; find tags."""
    modules = frozenset(moto.backends.list_of_moto_modules())
    moto.backends.list_of_moto_modules = lambda: modules
    moto.core.responses.method_names_from_class = cache(method_names_from_class)  # type: ignore[attr-defined]
    IAMBackend._init_aws_policies = _unattached_policies  # type: ignore[assignment,method-assign]
    TagBackend.describe_tags = _describe_tags  # type: ignore[assignment,method-assign]
    AttributePicker.__call__ = _pick  # type: ignore[assignment,method-assign]


def _pick(picker: AttributePicker, context: AttributePickerContext) -> Any:
    """Return the value of a field of an answer; by which names objects have it depends on their type alone."""
    shape, service, transformers = context.shape, context.service_model, picker.response_transformers
    kind = (
        type(picker),
        type(context.obj),
        id(transformers),
        service and service.service_name,
        context.key,
        shape and (shape.name, shape.serialization.get("name"), getattr(getattr(shape, "parent", None), "name", "")),
    )
    if kind not in _fields:
        endings = [each for each in transformers if context.key.endswith(each.rpartition(".")[2])]
        _fields[kind] = tuple(picker.get_possible_keys(context)), endings
    names, endings = _fields[kind]
    values = (get_value(context.obj, name, MISSING) for name in names)
    value = next((each for each in values if each is not MISSING), None)
    path = f"{context.key_path}.{context.key}"
    transform = next((transformers[ending] for ending in endings if path.endswith(ending)), None)
    return transform(value) if transform else value


def _describe_tags(backend: TagBackend, filters: dict[str, list[str]] | None = None) -> list[dict[str, str]]:
    """Look through the tags of the resources in question, not of all: 1,875 nodes ask one by one."""
    asked = (filters or {}).get("resource-id", [])
    if not asked or any(character in each for each in asked for character in "*?"):
        return _describe_all_tags(backend, filters)
    few = TagBackend()
    few.tags.update({each: backend.tags[each] for each in asked if each in backend.tags})
    return _describe_all_tags(few, filters)


def _unattached_policies(backend: IAMBackend) -> list[ManagedPolicy]:
    place = (backend.account_id, backend.region_name)
    if place not in _managed_policies:
        _managed_policies[place] = _read_managed_policies(backend)
    for policy in _managed_policies[place]:
        policy.attachment_count = 0  # all else of it is AWS's, and nobody's to change
    return _managed_policies[place]
