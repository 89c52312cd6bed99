"""Write a settings file of your own, config/DEPLOYMENT.yaml, from a template, and check it.

What is not given by options is asked for at a terminal. Without a terminal, the template's values are kept. An existing
file is never overwritten.

Exit code 0: written; 1: the file exists already; 2: the values or arguments cannot be used, and nothing is
written; 130: Ctrl-C.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from scripts import options, terminal
from scripts.errors import ExitCode, OperationError

Place = tuple[str | int, ...]
NAME = re.compile(r"[a-z][a-z0-9-]{1,39}")
_NAME: Place = ("name",)
_REGION: Place = ("region",)
_ZONE: Place = ("zone_id",)
_CLUSTER: Place = ("cluster", "name")
_NODES: Place = ("cluster", "queues", 0, "compute_resources", 0, "max_count")
_COUNT = click.IntRange(min=1)


class NewName(click.ParamType[str]):
    """The name of a deployment to be."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, if stacks can have it."""
        if not NAME.fullmatch(value):
            self.fail(f"got {value}; allowed: 2 to 40 of a-z, 0-9 and -, a letter first", param, ctx)
        return value


@options.command(
    __doc__,
    ("init research", "asks for Region, zone and number of nodes"),
    ("init research --region us-east-1 --zone use1-az6 --nodes 4", "asks nothing"),
    ("init research --template dev", "small, and nothing is retained"),
)
@click.argument("name", metavar="DEPLOYMENT", type=NewName())
@click.option("--region", "aws_region", metavar="REGION", help="AWS Region, such as us-west-2.")
@click.option("--zone", metavar="ZONE-ID", help="Availability zone id, such as usw2-az4: the same in every account.")
@click.option("--nodes", type=_COUNT, metavar="N", help="Compute nodes at most.")
@click.option(
    "--template",
    type=options.DeploymentName(),
    default="trn1-16",
    show_default=True,
    help="Settings to start from: a file in config/.",
)
def command(*, name: str, aws_region: str | None, zone: str | None, nodes: int | None, template: str) -> int:
    """Write the file, and return the exit code."""
    if (options.CONFIG / f"{name}.yaml").exists():
        raise OperationError(f"config/{name}.yaml exists already", f"./ultracluster estimate {name}")
    draft, is_asking = Draft(name, template), sys.stdin.isatty()
    answers: dict[Place, Any] = {_REGION: aws_region, _ZONE: zone, _NODES: nodes}
    draft.set({place: answer for place, answer in answers.items() if answer is not None}, guesses_zone=is_asking)
    if is_asking:
        for place in [place for place, answer in answers.items() if answer is None]:
            draft.ask(place)
    with (options.CONFIG / f"{name}.yaml").open("x", encoding="utf-8") as file:
        file.write(draft.text)
    print(f"Wrote config/{name}.yaml; each setting is explained in it.", file=sys.stderr)
    terminal.suggest(f"estimate {name}", "sizes and costs")
    return ExitCode.DONE


class Draft:
    """A settings file to be: a template with other values, each of which is checked when it is set.

    Attributes:
        text: The file.
    """

    def __init__(self, name: str, template: str) -> None:
        self._name, self._template = name, template
        self._settings = options.settings_of(template)
        self._values: dict[Any, Any] = {_NAME: name}
        if self._settings.cluster.name is not None:
            self._values[_CLUSTER] = name

    def set(self, values: Mapping[Place, Any], *, guesses_zone: bool = True) -> None:
        """Set values; with a Region also a zone of it, unless that is among them.

        Args:
            values: The values by place.
            guesses_zone: Whether any zone will do in a Region that is not known to have the instances.

        Raises:
            UsageError: The settings cannot have them.
        """
        from ultracluster.domain.instance_types import zone_id_prefix

        region = check_region(values.get(_REGION, self._settings.region))
        zone, zones, prefix = values.get(_ZONE), self._zones(region), zone_id_prefix(region)
        if zone and zones and zone not in zones:
            allowed = f"{', '.join(zones)}, which have {self._instance_type}"
            raise click.UsageError(f"zone_id: got {zone}; allowed: {allowed}")
        if _REGION in values and zone is None and self._settings.zone_id not in zones:
            zone = zones[-1] if zones else f"{prefix}-az1" if guesses_zone and prefix else self._settings.zone_id
        self._load({**self._values, **values, **({_ZONE: zone} if zone else {})})

    def ask(self, place: Place) -> None:
        """Ask for a value at the terminal, again until it can be used."""
        zones = ", ".join(self._zones(self._settings.region)) or "none there"
        question, default = {
            _REGION: ("Region", self._settings.region),
            _ZONE: (f"Zone id (known to have {self._instance_type}: {zones})", self._settings.zone_id),
            _NODES: ("Compute nodes at most", str(self._settings.cluster.queues[0].compute_resources[0].max_count)),
        }[place]
        convert = _COUNT if place == _NODES else click.STRING
        click.prompt(question, default, value_proc=lambda text: self.set({place: convert(text)}), err=True)

    @property
    def _instance_type(self) -> str:
        return self._settings.cluster.queues[0].compute_resources[0].instance_type

    def _zones(self, region: str) -> list[str]:
        """Return the zones of a Region that offered the instances when the project's data was packed."""
        from ultracluster.domain.instance_types import TRAINIUM_TYPES, zone_id_prefix

        kind, prefix = TRAINIUM_TYPES.get(self._instance_type), zone_id_prefix(region)
        return [zone for zone in kind.zones if zone.startswith(f"{prefix}-")] if kind else []

    def _load(self, values: dict[Any, Any]) -> None:
        """Make the text with other values than the template's, and load it."""
        from config.edit import set_values
        from config.settings import SettingsError, load

        name, template = self._name, self._template
        text = (options.CONFIG / f"{template}.yaml").read_text(encoding="utf-8")
        schema, *lines = text.splitlines(keepends=True)
        while lines[0].startswith("#") or lines[0].isspace():  # about the template
            del lines[0]
        head = f"# Deployment {name}, from config/{template}.yaml. Next: ./ultracluster estimate {name}\n\n"
        body = re.sub(rf"(?<=#)(.*)\b{template}-", rf"\1{name}-", "".join(lines))
        with TemporaryDirectory() as directory:
            path = Path(directory) / f"{name}.yaml"
            path.write_text(f"{schema}{head}{body}", encoding="utf-8")
            set_values(path, values)
            try:
                self._settings = load(path)
            except SettingsError as error:
                raise click.UsageError(str(error).replace(str(path), f"config/{name}.yaml")) from None
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
