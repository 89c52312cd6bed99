"""A settings file to be, from a template."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any

import click

from config.edit import set_values
from config.settings import SettingsError, load
from scripts.core import options
from scripts.core.temporary import temporary_directory
from scripts.core.text import echo
from ultracluster.domain.instance_types import TRAINIUM_TYPES, zone_id_prefix

Keys = tuple[str | int, ...]
"""Where a value is in the settings."""
REGION: Keys = ("region",)
ZONE: Keys = ("zone_id",)
NODES: Keys = ("cluster", "queues", 0, "compute_resources", 0, "max_count")
_NAME: Keys = ("name",)
_CLUSTER: Keys = ("cluster", "name")
_VERSION: Keys = ("cluster", "parallelcluster_version")
"""Written out: a file that has a cluster keeps its version when the default moves."""
_COUNT = click.IntRange(min=1)


class Draft:
    """A settings file to be: a template with other values, each of which is checked when it is set."""

    def __init__(self, name: str, template: str) -> None:
        self._name, self._template = name, template
        self._settings = options.settings_of(template)
        self._values: dict[Any, Any] = {_NAME: name, _VERSION: self._settings.cluster.parallelcluster_version}
        if self._settings.cluster.name is not None:
            self._values[_CLUSTER] = name

    def set(self, values: Mapping[Keys, Any], *, guesses_zone: bool = True) -> None:
        """Set values; with a Region also a zone of it, unless that is among them.

        Unless `guesses_zone`, a Region that is not known to have the instances keeps the zone as it is.

        Raises:
            UsageError: The settings cannot have them.
        """
        region = check_region(values.get(REGION, self._settings.region))
        zone, zones, prefix = values.get(ZONE), self._zones(region), zone_id_prefix(region)
        if zone and zones and zone not in zones:
            allowed = f"{', '.join(zones)}, which have {self._instance_type}"
            raise click.UsageError(f"zone_id: got {zone}; allowed: {allowed}")
        if REGION in values and zone is None and self._settings.zone_id not in zones:
            zone = zones[-1] if zones else f"{prefix}-az1" if guesses_zone and prefix else self._settings.zone_id
        self._load({**self._values, **values, **({ZONE: zone} if zone else {})})

    def ask(self, keys: Keys) -> None:
        """Ask for a value at the terminal, again until it can be used."""
        zones = ", ".join(self._zones(self._settings.region)) or "none there"
        question, default = {
            REGION: ("Region", self._settings.region),
            ZONE: (f"Zone id (known to have {self._instance_type}: {zones})", self._settings.zone_id),
            NODES: ("Compute nodes at most", str(self._settings.cluster.queues[0].compute_resources[0].max_count)),
        }[keys]
        convert = _COUNT if keys == NODES else click.STRING
        while True:
            try:
                self.set({keys: convert(click.prompt(question, default, err=True))})
            except click.UsageError as error:
                echo(f"error: {error.message}", err=True)
            else:
                return

    def report(self, kept: Collection[Keys]) -> str:
        """Return the values that a person chooses, a line each, and for those that nobody gave where they are from."""
        resource = self._settings.cluster.queues[0].compute_resources[0]
        template = options.settings_of(self._template)
        lines = []
        for keys, value, option in (
            (REGION, self._settings.region, "--region"),
            (ZONE, self._settings.zone_id, "--zone"),
            (NODES, resource.max_count, "--nodes"),
        ):
            origin = f"as in {options.shown(options.settings_file(self._template))}"
            if keys == ZONE and value != template.zone_id:
                origin = f"known to have {self._instance_type}"
            lines.append(f"  {keys[-1]}: {value}" + (f", {origin}; another: {option}" if keys in kept else ""))
        return "\n".join(lines)

    @property
    def _instance_type(self) -> str:
        return self._settings.cluster.queues[0].compute_resources[0].instance_type

    def _zones(self, region: str) -> list[str]:
        """Return the zones of a Region that offered the instances when the project's data was packed."""
        kind, prefix = TRAINIUM_TYPES.get(self._instance_type), zone_id_prefix(region)
        return [zone for zone in kind.zones if zone.startswith(f"{prefix}-")] if kind else []

    def _load(self, values: dict[Any, Any]) -> None:
        """Make the text with other values than the template's, and load it."""
        name, template = self._name, self._template
        text = options.settings_file(template).read_text(encoding="utf-8")
        schema, *lines = text.splitlines(keepends=True)
        while lines[0].startswith("#") or lines[0].isspace():  # about the template
            del lines[0]
        head = (
            f"# Deployment {name}, from config/{template}.yaml. Next: ./ultracluster estimate {name}\n"
            f"# All other settings have their defaults: {options.SETTINGS_REFERENCE}\n\n"
        )
        body = re.sub(rf"(?<=#)(.*)\b{template}-", rf"\1{name}-", "".join(lines))
        with temporary_directory() as directory:
            path = directory / f"{name}.yaml"
            path.write_text(f"{schema}{head}{body}", encoding="utf-8")
            set_values(path, values)
            try:
                self._settings = load(path)
            except SettingsError as error:
                raise click.UsageError(
                    str(error).replace(str(path), options.shown(options.settings_file(name)))
                ) from None
            self.text, self._values = path.read_text(encoding="utf-8"), values


def check_region(region: str) -> str:
    """Return a Region that botocore knows.

    Raises:
        BadParameter: It knows none of that name.
    """
    from botocore.session import get_session

    known = get_session().get_available_regions("ec2")
    if region not in known:
        similar = ", ".join(get_close_matches(region, known)) or "such as us-west-2"
        raise click.BadParameter(f"got {region}; allowed: a Region of AWS, {similar}", param_hint="--region")
    return region
