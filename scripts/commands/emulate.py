"""Emulate an account that is ready for a deployment, or has one thing wrong, until Ctrl-C.

It is for trying `preflight`, `deploy` and the other commands without an AWS account, in another shell. The head
node of an emulated AWS never answers, so nothing is known of Slurm.

Exit code 1: the account could not be made; 2: arguments or settings cannot be used, or the settings have nothing that
the scenario is about; 130: ended by Ctrl-C.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click

from scripts import options
from scripts.errors import ExitCode, OperationError, UnusableError

if TYPE_CHECKING:
    from config.settings import Settings

SCENARIOS = (
    *("no-credentials", "no-read-permissions", "missing-bootstrap", "wrong-zone", "no-quota", "no-addresses"),
    *("small-reservation", "expired-block", "rsa-key", "name-taken", "missing-image", "missing-provider", "dns-off"),
    *("full-subnet", "no-default-route", "bucket-elsewhere", "key-pending-deletion"),
)
"""Those of emulator.scenarios, which help must not import; a test compares them."""


def _list(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from emulator.scenarios import SCENARIOS as described

        print(*(f"{each:21} {described[each].what}" for each in SCENARIOS), sep="\n")
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
    emulate(name, options.settings_of(name), scenario)
    return ExitCode.INTERRUPTED


def emulate(environment: str, settings: Settings, name: str | None) -> None:
    """Make the account, tell how to use it, and wait for Ctrl-C.

    Raises:
        OperationError: The CDK could not prepare it.
        UnusableError: The settings have nothing that the scenario is about.
    """
    print("Bootstrapping an emulated account, some seconds ...", flush=True)
    from emulator import scenarios
    from emulator.aws import EmulatedAws
    from emulator.cdk import CommandLine
    from scripts.emulated import exports, prerequisites_of, wait_for_ctrl_c
    from toolchain.bootstrap import arguments

    scenario = scenarios.SCENARIOS[name] if name else scenarios.GOOD
    with EmulatedAws() as aws, closing(CommandLine(aws)) as cdk:

        def bootstrap() -> None:
            said: list[str] = []
            if cdk.bootstrap(settings.region, said.append, arguments(settings.bootstrap)) != 0:
                raise OperationError("\n".join(said))

        try:
            with scenarios.account(aws, prerequisites_of(settings), scenario, bootstrap) as variables:
                print(f"It has what config/{environment}.yaml names, and is bootstrapped for the CDK.")
                if name:
                    print(f"What is wrong ({name}): {scenario.what}. The check {scenario.caught_by} must say so.")
                print("\nIn another shell, which `exit` leads out of:\n\n  unset AWS_PROFILE")
                print(*(f"  {line}" for line in exports(variables, settings.region)), sep="\n")
                print(f"  ./ultracluster preflight {environment}\n  ./ultracluster deploy {environment}")
                print("\nCtrl-C here stops it and discards everything in it.", flush=True)
                wait_for_ctrl_c()
        except scenarios.NotApplicableError as error:
            raise UnusableError(f"{name}: {error}", f"set it in config/{environment}.yaml, or in a copy") from None
