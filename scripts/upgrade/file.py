"""What an upgrade changes in a settings file: tried on a copy, and written only as a whole."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scripts.command import UnusableError

if TYPE_CHECKING:
    from config.settings import Settings

GENERATION = ("cluster", "generation")
_VERSION = ("cluster", "parallelcluster_version")
_KEPT = (GENERATION, ("cluster", "name"))
_KEY = re.compile(r"cluster(\.[a-z_]+|\[\d+\])+")


class Edit(NamedTuple):
    """A value that is to stand in a settings file.

    Attributes:
        place: Keys and indices on the way to it.
        value: The value.
    """

    place: tuple[str | int, ...]
    value: str | int | float | None


class Candidate(NamedTuple):
    """A copy of a settings file after edits.

    Attributes:
        path: Where it is; its name is that of the file.
        settings: What is in it, without fault.
    """

    path: Path
    settings: Settings


def edit(text: str) -> Edit:
    """Return what ``KEY=VALUE`` asks for: the key as messages about settings write it, the value as YAML.

    Raises:
        UnusableError: It is no such thing, or a key that an upgrade leaves alone.
    """
    import yaml

    key, equals, value = text.partition("=")
    if not (equals and _KEY.fullmatch(key)):
        raise UnusableError(f"--set: got {text}; allowed: cluster.KEY=VALUE, such as cluster.os=ubuntu2204")
    place = tuple(int(part) if part.isdigit() else part for part in re.findall(r"\w+", key))
    if place in _KEPT:
        raise UnusableError(f"--set: got {text}; allowed: other keys: this one stays, or is counted by the upgrade")
    try:
        found = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise UnusableError(f"--set: got {text}; allowed: a value in YAML ({error})") from None
    if not isinstance(found, str | int | float | None):
        raise UnusableError(f"--set: got {text}; allowed: one value, no list and no mapping; edit the file for those")
    return Edit(place, found)


def candidate(path: Path, directory: Path, edits: Sequence[Edit], generation: int) -> Candidate:
    """Return a copy of a settings file with other values and another generation.

    Args:
        path: The file, which stays as it is.
        directory: Where the copy is put.
        edits: Other values.
        generation: Which cluster of the deployment it is for.

    Raises:
        UnusableError: The copy breaks rules; all of them are named, a line each.
    """
    from config.edit import EditError
    from config.settings import SettingsError, load

    copy = directory / path.name
    shutil.copy(path, copy)
    try:
        _set(copy, edits, generation)
        return Candidate(copy, load(copy))
    except (EditError, SettingsError) as error:
        hint = ""
        if any(each.place == _VERSION for each in edits):
            hint = "\nAnother version of ParallelCluster: first let the project know it (CONTRIBUTING.md, Versions)."
        faults = str(error).replace(str(copy), f"config/{path.name}")
        raise UnusableError(f"{faults}{hint}\nThe settings file is as it was.") from None


def write(path: Path, edits: Sequence[Edit], generation: int) -> None:
    """Write other values and another generation into a settings file; what was changed in it meanwhile stays.

    Raises:
        UnusableError: It was changed so that they can no longer be written.
    """
    from config.edit import EditError

    try:
        _set(path, edits, generation)
    except EditError as error:
        raise UnusableError(f"config/{path.name} was changed meanwhile: {error}") from None


def _set(path: Path, edits: Sequence[Edit], generation: int) -> None:
    from config.edit import set_values

    set_values(path, {each.place: each.value for each in (*edits, Edit(GENERATION, generation))})
