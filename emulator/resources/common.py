"""What the models of several services need."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError

from emulator.resources.model import Context, Properties, ResourceError


def taken(properties: Mapping[str, Any], keys: Iterable[str]) -> Properties:
    """Return the named properties, as far as they are there."""
    return {key: properties[key] for key in keys if key in properties}


def without(properties: Mapping[str, Any], *keys: str) -> Properties:
    """Return all properties but the named ones."""
    return {key: value for key, value in properties.items() if key not in keys}


def lowered(properties: Mapping[str, Any]) -> Properties:
    """Return properties as parameters of an API whose names start with a small letter."""
    return {key[0].lower() + key[1:]: value for key, value in properties.items()}


def renamed(properties: Mapping[str, Any], **names: str) -> Properties:
    """Return properties as parameters, some of which have other names."""
    return {names.get(key, key): value for key, value in properties.items()}


def short_name(context: Context, limit: int) -> str:
    """Shorten the name that CloudFormation would make up: its beginning, and the suffix that makes it unique."""
    suffix = context.name.rpartition("-")[2]
    if len(context.name) <= limit:
        return context.name
    return f"{context.name[: limit - len(suffix) - 1]}-{suffix}"


def already_exists(resource_type: str, name: str) -> ResourceError:
    """Return CloudFormation's refusal of a name in use, where the API itself would give what exists under the name."""
    return ResourceError(f"Resource of type '{resource_type}' with identifier '{name}' already exists.")


@contextmanager
def unless_gone(*codes: str) -> Iterator[None]:
    """Let a call pass about what does not exist: the API then answers with one of these error codes."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise


@contextmanager
def undone_on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Undo a first step when one in the `with` block fails: a resource that could not be made leaves nothing."""
    try:
        yield
    except Exception:
        undo()
        raise
