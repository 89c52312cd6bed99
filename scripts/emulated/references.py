"""What settings name as existing: by the types of their fields, and in overrides by how ids and ARNs look."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, get_args

from config.settings import Settings
from ultracluster.domain.spec import Spec
from ultracluster.domain.types import Existing

POLICY: Final = "AWS::IAM::ManagedPolicy"
_POLICY: Final = r"^arn:aws[a-z-]*:iam::\d{12}:policy/.+$"
"""Of an account: AWS's own have `aws` in its place."""
_OF_THE_NETWORK: Final = ("AWS::EC2::VPC", "AWS::EC2::Subnet")
_SECTIONS: Final = {
    "EfsSettings": "AWS::EFS::FileSystem",
    "FsxLustreSettings": "AWS::FSx::FileSystem",
    "FsxOpenZfsSettings": "AWS::FSx::Volume",
    "FsxOntapSettings": "AWS::FSx::StorageVirtualMachine",
}
_IN_OVERRIDES: Final = {
    "AWS::FSx::FileCache": r"^fc-[0-9a-f]{8,17}$",
    "AWS::Route53::HostedZone": r"^Z[A-Z0-9]{6,31}$",
}
"""What only overrides name."""


def references(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return ids, names and ARNs of what settings name as existing, by type in CloudFormation, each once."""
    found: dict[str, dict[str, None]] = {}
    named = [*_named(settings), *_overridden(settings.cluster.overrides)]
    for resource_type, name in named:
        if resource_type != "AWS::EC2::PrefixList" or name.startswith("pl-"):
            found.setdefault(resource_type, {})[name] = None
    return {resource_type: tuple(names) for resource_type, names in found.items()}


def fields(model: type[Spec], path: str = "") -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield path, annotation and everything within the annotation of each field, below a model and its sections."""
    for name, field in model.model_fields.items():
        parts = tuple(_parts(field.annotation, *field.metadata))
        yield f"{path}{name}", field.annotation, parts
        for part in parts:
            if isinstance(part, type) and issubclass(part, Spec):
                yield from fields(part, f"{path}{name}.")


def marker(parts: tuple[Any, ...]) -> str | None:
    """Return the type of what the values of a field name, if they name something that exists."""
    return next((part.resource_type for part in parts if isinstance(part, Existing)), None)


def _parts(*annotations: Any) -> Iterator[Any]:
    for annotation in annotations:
        yield annotation
        yield from _parts(*get_args(annotation), *getattr(annotation, "__metadata__", ()))


def _named(spec: Spec) -> Iterator[tuple[str, str]]:
    for name, field in type(spec).model_fields.items():
        resource_type = marker(tuple(_parts(field.annotation, *field.metadata)))
        value = getattr(spec, name)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Spec):
                yield from _named(each)
            elif resource_type and isinstance(each, str):
                yield resource_type, each


def _patterns() -> dict[str, str]:
    """Return what ids and ARNs look like, where the types of fields say it."""
    found = dict[str, str]()
    for _, _, parts in fields(Settings):
        resource_type = marker(parts)
        for part in parts:
            for limit in (part, *getattr(part, "metadata", ())):  # of a field itself, and of one within None or a list
                if resource_type and (pattern := getattr(limit, "pattern", None)):
                    found[resource_type] = pattern
    found[POLICY] = _POLICY  # fields take fewer
    return {key: pattern for key, pattern in found.items() if key not in _OF_THE_NETWORK}


def _overridden(value: Any, key: str = "", section: str = "") -> Iterator[tuple[str, str]]:
    """Yield types and names within overrides. Ids of storage look alike: the section says of which type they are."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _overridden(each, name, section if name not in _SECTIONS else name)
    elif isinstance(value, list):
        for each in value:
            yield from _overridden(each, key, section)
    elif isinstance(value, str):
        of_section = _SECTIONS.get(section)
        for resource_type, pattern in {**_patterns(), **_IN_OVERRIDES}.items():
            is_storage = resource_type in _SECTIONS.values()
            if re.match(pattern, value) and (not is_storage or resource_type == of_section):
                yield resource_type, value
