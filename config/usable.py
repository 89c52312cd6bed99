"""What can be used of a settings file that breaks rules, for commands that work with what is deployed already.

A file that is half edited, or was written for another version, must not keep anybody from looking at a deployment,
from stopping it and from deleting it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import PrivateAttr, ValidationError

from config.messages import SettingsError, error_path
from config.settings import PARTS, Part, Settings
from config.users_file import Sources
from config.yaml_source import YamlSource
from config.yaml_text import MAX_BYTES
from ultracluster.domain import names
from ultracluster.domain.instance_types import zone_id_prefix
from ultracluster.domain.violations import Path as KeyPath

_ROUNDS = 50
"""How often what breaks rules is left out, as one rule may hide another; then the whole file is."""
_LINE = re.compile(
    r"""^(?:(name|region|account|zone_id)|[ \t]+(generation)):[ \t]+["']?([A-Za-z0-9-]+)["']?[ \t\r]*(?:#.*)?$""",
    re.MULTILINE,
)


class UsableSettings(Settings):
    """Settings without what breaks rules in their file: the defaults, or what is deployed, are in its place."""

    _deployed: tuple[Part, ...] = PrivateAttr(default=())

    @property
    def parts(self) -> tuple[Part, ...]:
        """The stacks that there are, in the order of creation; also those that the file does not show any more."""
        parts = {*super().parts, *self._deployed}
        return tuple(part for part in PARTS if part in parts)


@dataclass(frozen=True)
class DeployedCluster:
    """What the stacks of a deployment say of its cluster.

    Attributes:
        generation: Which of the deployment's clusters it is.
        name: What ParallelCluster calls it, with the generation.
        os: Its operating system, such as ubuntu2404.
        head_node: Instance type of the head node.
        queues: Its queues, as a settings file has them.
    """

    generation: int
    name: str
    os: str
    head_node: str
    queues: tuple[Mapping[str, Any], ...]

    def section(self) -> dict[str, Any]:
        """Return the section `cluster` of a settings file of it."""
        of_head_node = {"instance_type": self.head_node}
        return {"generation": self.generation, "os": self.os, "head_node": of_head_node, "queues": [*self.queues]}


@dataclass(frozen=True)
class Deployed:
    """What the stacks of a deployment say of it.

    Attributes:
        parts: The stacks that there are.
        tags: Their tags.
        cluster: Its cluster; None: there is none.
    """

    parts: tuple[Part, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    cluster: DeployedCluster | None = None


class UsableFile:
    """What a settings file has, whatever is wrong with it.

    Attributes:
        name: Name of the deployment; the file's own where it cannot be read.
        is_named: Whether the file has the name.
        region: Its Region; None: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._raw = {**_lines(path), **_values(path)}
        self.is_named = isinstance(name := self._raw.get("name"), str) and _is(names.DEPLOYMENT_NAME_PATTERN, name)
        self.name = name if self.is_named else path.stem
        region = self._raw.get("region")
        self.region = region if isinstance(region, str) and _is(r"[a-z]{2}(-[a-z]+)+-\d", region) else None

    @property
    def generation(self) -> int | None:
        """The cluster's generation; None: it cannot be read."""
        cluster = self._raw.get("cluster")
        number = cluster.get("generation") if isinstance(cluster, dict) else None
        return number if type(number) is int and 1 <= number <= 9999 else None  # noqa: PLR2004

    def settings(self, region: str, deployed: Deployed) -> UsableSettings | None:
        """Return the settings that are right, completed by what is deployed; None: they break rules even so.

        Args:
            region: The Region.
            deployed: What is known of what is deployed.
        """
        cluster = deployed.cluster
        section = cluster.section() if cluster else {"queues": [queue("unknown", [("unknown", "trn1.32xlarge", 0, 1)])]}
        zone = f"{zone_id_prefix(region)}-az1"
        instead = {"name": self.name, "region": region, "zone_id": zone, "tags": {**deployed.tags}, "cluster": section}
        settings = _usable(self._raw, instead)
        if settings is None:
            return None
        if cluster:
            of_first = cluster.name.removesuffix(f"-{cluster.generation}") if cluster.generation > 1 else cluster.name
            own = None if of_first == settings.name else of_first
            known = {"generation": cluster.generation, "name": own, "os": cluster.os}
            settings = settings.model_copy(update={"cluster": settings.cluster.model_copy(update=known)})
        settings._deployed = deployed.parts
        return settings


def queue(name: str, resources: Iterable[tuple[str, str, int, int]]) -> Mapping[str, Any]:
    """Return a queue as a settings file has it, of the names, types, least and largest numbers of its nodes."""
    nodes = [
        {"name": each, "instance_type": kind, "min_count": least, "max_count": most}
        for each, kind, least, most in resources
    ]
    return {"name": name, "compute_resources": nodes}


def _is(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _lines(path: Path) -> dict[str, Any]:
    """Return what identifies a deployment, read line by line: the file may be no YAML."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return {}
    found: dict[str, Any] = {}
    for key, generation, value in _LINE.findall(text):
        if key:
            found[key] = value
        elif generation and value.isdecimal():
            found["cluster"] = {"generation": int(value)}
    return found


def _values(path: Path) -> dict[str, Any]:
    """Return the values of a file, with those of its file of people if that can be read; none: it is no YAML."""
    readers: tuple[Callable[[Path], Sources | YamlSource], ...] = (Sources.read, YamlSource.read)
    for read in readers:
        try:
            value = read(path).value
        except SettingsError:
            continue
        known = value if isinstance(value, dict) else {}
        return {key: each for key, each in known.items() if key in Settings.model_fields}
    return {}


def _usable(raw: Mapping[str, Any], instead: Mapping[str, Any]) -> UsableSettings | None:
    """Return settings without what breaks rules; `instead` has what must be there."""
    values = deepcopy(dict(raw))
    for _ in range(_ROUNDS):
        values = _completed(values, instead)
        try:
            return UsableSettings.model_validate(values)
        except ValidationError as error:
            places = {error_path(each) for each in error.errors(include_url=False, include_input=False)}
        for place in sorted(places, key=_order, reverse=True):
            _remove(values, place)
    try:
        return UsableSettings.model_validate(instead)
    except ValidationError:
        return None


def _completed(values: Mapping[str, Any], instead: Mapping[str, Any]) -> dict[str, Any]:
    completed = deepcopy({**instead, **values})
    if isinstance(completed["cluster"], dict):
        completed["cluster"] = deepcopy(instead["cluster"]) | completed["cluster"]
    return completed


def _order(place: KeyPath) -> list[tuple[str, int]]:
    """Return what sorts places so that of a list the later entries come last."""
    return [("", part) if isinstance(part, int) else (part, 0) for part in place]


def _remove(values: Any, place: KeyPath) -> None:
    """Remove the value at a place, or the nearest that is there around it."""
    holder, last = values, None
    for part in place:
        if not (part in holder if isinstance(holder, dict) else isinstance(holder, list) and _has(holder, part)):
            break
        last, holder = (holder, part), holder[part]
    if last is not None:
        del last[0][last[1]]


def _has(values: list[Any], part: str | int) -> bool:
    return isinstance(part, int) and part < len(values)
