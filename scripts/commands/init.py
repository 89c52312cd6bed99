"""Write a settings file of your own, config/DEPLOYMENT.yaml, from a template, and check it.

What is not given by options is asked for at a terminal. Without a terminal, the template's values are kept. An existing
file is never overwritten.

Exit code 0: written; 1: the file exists already; 2: the values or arguments cannot be used, and nothing is
written; 130: Ctrl-C.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from scripts import options, terminal
from scripts.errors import ExitCode, OperationError, UnusableError

NAME = re.compile(r"[a-z][a-z0-9-]{1,39}")
_COMPUTE = ("cluster", "queues", 0, "compute_resources", 0)


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
@click.option("--nodes", type=click.IntRange(min=1), metavar="N", help="Compute nodes at most.")
@click.option(
    "--template",
    type=options.DeploymentName(),
    default="trn1-16",
    show_default=True,
    help="Settings to start from: a file in config/.",
)
def command(*, name: str, aws_region: str | None, zone: str | None, nodes: int | None, template: str) -> int:
    """Write the file, and return the exit code."""
    path = options.CONFIG / f"{name}.yaml"
    if path.exists():
        raise OperationError(f"config/{name}.yaml exists already", f"./ultracluster estimate {name}")
    region = None if aws_region is None else check_region(aws_region)
    of_template = options.settings_of(template)
    if sys.stdin.isatty():
        region = region or _ask("Region", of_template.region, check_region)
        zone = zone or _ask(
            f"Zone id (known to have trn1.32xlarge: {', '.join(_known_zones(region)) or 'none there'})",
            _default_zone(region, of_template.zone_id),
        )
        nodes = nodes or _ask("Compute nodes at most", of_template.cluster.queues[0].compute_resources[0].max_count)
    elif region and not zone:
        zone = _default_zone(region, of_template.zone_id)
    values: dict[Any, Any] = {
        ("name",): name,
        ("region",): region,
        ("zone_id",): zone,
        (*_COMPUTE, "max_count"): nodes,
        ("cluster", "name"): None if of_template.cluster.name is None else name,
    }
    _write(name, template, {keys: value for keys, value in values.items() if value is not None})
    print(f"Wrote config/{name}.yaml; each setting is explained in it.", file=sys.stderr)
    terminal.suggest(f"estimate {name}", "sizes and costs")
    return ExitCode.DONE


def _ask(question: str, default: Any, check: Callable[[str], str] | None = None) -> Any:
    """Ask at the terminal, again until the answer can be used."""
    return click.prompt(question, default=default, type=type(default), value_proc=check, err=True)


def check_region(region: str) -> str:
    """Return a Region that botocore knows.

    Raises:
        BadParameter: It knows none of that name.
    """
    from botocore.session import get_session

    known = get_session().get_available_regions("ec2")
    if region not in known:
        similar = ", ".join(get_close_matches(region, known)) or "such as us-west-2"
        raise click.BadParameter(f"got {region}; allowed: a Region of AWS, {similar}")
    return region


def _known_zones(region: str) -> list[str]:
    """Return the zones of a Region that offered trn1.32xlarge when the project's data was packed."""
    from ultracluster.domain.instance_types import TRAINIUM_TYPES, zone_id_prefix

    prefix = zone_id_prefix(region)
    return [zone for zone in TRAINIUM_TYPES["trn1.32xlarge"].zones if prefix and zone.startswith(f"{prefix}-")]


def _default_zone(region: str, otherwise: str) -> str:
    zones = _known_zones(region)
    return otherwise if otherwise in zones else (zones or [otherwise])[-1]


def _write(name: str, template: str, values: dict[Any, Any]) -> None:
    """Write a settings file with other values than a template's.

    Raises:
        UnusableError: The values break rules; the message names all of them.
    """
    from config.edit import set_values
    from config.settings import SettingsError, load

    text = (options.CONFIG / f"{template}.yaml").read_text(encoding="utf-8")
    schema, *lines = text.splitlines(keepends=True)
    while lines[0].startswith("#") or lines[0].isspace():  # about the template
        del lines[0]
    head = f"# Deployment {name}, from config/{template}.yaml. Next: ./ultracluster estimate {name}\n\n"
    body = re.sub(rf"(?<=#)(.*)\b{template}-", rf"\1{name}-", "".join(lines))
    with TemporaryDirectory() as directory:
        draft = Path(directory) / f"{name}.yaml"
        draft.write_text(f"{schema}{head}{body}", encoding="utf-8")
        set_values(draft, values)
        try:
            load(draft)
        except SettingsError as error:
            problem = str(error).replace(str(draft), f"config/{name}.yaml")
            raise UnusableError(f"{problem}\nNothing was written.") from None
        with (options.CONFIG / f"{name}.yaml").open("x", encoding="utf-8") as file:
            file.write(draft.read_text(encoding="utf-8"))
