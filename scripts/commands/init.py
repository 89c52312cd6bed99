"""Write a settings file of your own, config/DEPLOYMENT.yaml, from a template, and check it.

What is not given by options is asked for at a terminal. Without a terminal the template's values are kept, with a zone
of the Region, and named. An existing file is never overwritten. All settings are in
docs/reference/settings.md.

Exit code 0: written; 1: the file exists already; 2: the values or arguments cannot be used, and nothing is
written; 130: Ctrl-C.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import click

from config import files
from scripts.core import options, terminal
from scripts.core.errors import ExitCode, OperationError
from scripts.core.text import echo
from ultracluster.domain import names


class NewName(click.ParamType[str]):
    """The name of a deployment to be."""

    name = "name"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, if stacks can have it."""
        if not re.fullmatch(names.DEPLOYMENT_NAME_PATTERN, value):
            self.fail(f"got {value}; allowed: 2 to 40 of a-z, 0-9 and -, a letter first", param, ctx)
        if not files.is_settings(value):
            self.fail(f"got {value}; allowed: a name that does not end in users: {value}.yaml has users", param, ctx)
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
    path = options.settings_file(name)
    if path.exists():
        raise OperationError(f"{options.shown(path)} exists already", f"./ultracluster estimate {name}")

    from scripts.change.init import NODES, REGION, ZONE, Draft, Keys

    draft, is_asking = Draft(name, template), sys.stdin.isatty()
    answers: dict[Keys, Any] = {REGION: aws_region, ZONE: zone, NODES: nodes}
    draft.set({keys: answer for keys, answer in answers.items() if answer is not None}, guesses_zone=is_asking)
    missing = [keys for keys, answer in answers.items() if answer is None]
    while is_asking and missing:
        draft.ask(missing.pop(0))
    with path.open("x", encoding="utf-8") as file:
        file.write(draft.text)
    echo(f"Wrote {options.shown(path)}:\n{draft.report(missing)}", err=True)
    echo(f"All settings: {options.SETTINGS_REFERENCE}", err=True)
    terminal.suggest(f"estimate {name}", "sizes and costs", always=True)
    return ExitCode.DONE
