"""Emulate an account that is ready for a deployment, or has one thing wrong, until Ctrl-C.

It is for trying `preflight`, `deploy` and the other commands without an AWS account, in another shell. Where
`rehearse` can run nodes, this can: a cluster that you deploy has the real Slurm. With --scenario there are no nodes.

Exit code 1: the account could not be made, or its server was killed; 2: arguments or settings cannot be used, or the
settings have nothing that the scenario is about; 130: ended by Ctrl-C.
"""

from __future__ import annotations

import click

from scripts.core import options
from scripts.core.errors import ExitCode
from scripts.core.text import echo

SCENARIOS = (
    *("no-credentials", "no-read-permissions", "missing-bootstrap", "wrong-zone", "no-quota", "no-addresses"),
    *("small-reservation", "expired-block", "rsa-key", "name-taken", "missing-image", "missing-provider", "dns-off"),
    *("full-subnet", "no-default-route", "bucket-elsewhere", "key-pending-deletion"),
)
"""Those of emulator.scenarios, which help must not import; a test compares them."""


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from scripts.rehearse.emulate import described

        echo("\n".join(f"{each:21} {described(each)}" for each in SCENARIOS))
        context.exit()


@options.command(
    __doc__,
    ("emulate dev", "an account that is ready for config/dev.yaml"),
    ("emulate dev --scenario no-quota", "one in which no Trn instance may run"),
)
@click.option(
    "--list-scenarios", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the scenarios."
)
@options.deployment_name
@click.option("--scenario", type=click.Choice(SCENARIOS), metavar="NAME", help="An account with one thing wrong.")
def command(*, name: str, scenario: str | None) -> int:
    """Emulate, and return the exit code."""
    settings = options.settings_of(name)
    echo("Bootstrapping an emulated account, some seconds ...")

    from scripts.rehearse.emulate import emulate

    emulate(name, settings, scenario)
    return ExitCode.INTERRUPTED
