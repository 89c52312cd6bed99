"""An emulated account that is ready for a deployment, or has one thing wrong, until Ctrl-C."""

from __future__ import annotations

from contextlib import closing

from config.settings import Settings
from emulator import scenarios
from emulator.aws import EmulatedAws
from emulator.cdk import CommandLine
from scripts.emulated import exports, prerequisites_of, wait_for_ctrl_c
from scripts.errors import OperationError, UnusableError
from toolchain.bootstrap import arguments


def described(scenario: str) -> str:
    """Return what is wrong in a scenario."""
    return scenarios.SCENARIOS[scenario].what


def emulate(environment: str, settings: Settings, name: str | None) -> None:
    """Make the account, tell how to use it, and wait for Ctrl-C.

    Raises:
        OperationError: The CDK could not prepare it.
        UnusableError: The settings have nothing that the scenario is about.
    """
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
