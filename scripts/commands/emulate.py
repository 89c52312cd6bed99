"""Emulate an account that is ready for a deployment, or has one thing wrong, until Ctrl-C.

It is for trying `make preflight` and `make deploy` without an AWS account, in another shell. Exit code 1: the account
could not be made; 2: the settings cannot be used, or have nothing that the scenario is about; 130: ended.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.scenarios import GOOD, SCENARIOS, NotApplicableError
from scripts import environments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.settings import Settings

CONFIG = Path(__file__).parents[2] / "config"
_QUEUE = "cluster.queues[0]"
_RESERVATION = {
    f"{_QUEUE}.placement_group": "none",
    f"{_QUEUE}.compute_resources[0].capacity_reservation_id": "cr-0123456789abcdef0",
}
_EXISTING = {
    "network.existing": {
        "vpc_id": "vpc-0123456789abcdef0",
        "public_subnet_id": "subnet-0123456789abcdef0",
        "private_subnet_id": "subnet-0fedcba9876543210",
    }
}
EXAMPLES: Mapping[str, Mapping[str, Any]] = {
    "a network of its own": {"network.existing": None},
    "capacity_reservation_id in an ONDEMAND queue": {f"{_QUEUE}.capacity_type": "ONDEMAND", **_RESERVATION},
    "capacity_reservation_id in a CAPACITY_BLOCK queue": {
        f"{_QUEUE}.capacity_type": "CAPACITY_BLOCK",
        **_RESERVATION,
        f"{_QUEUE}.compute_resources[0].min_count": 1,
        f"{_QUEUE}.compute_resources[0].max_count": 1,
    },
    "cluster.head_node.ssh_key_name": {
        "cluster.head_node.ssh_key_name": "somebody",
        "cluster.head_node.ssh_cidr": "203.0.113.0/24",
    },
    "network.existing": _EXISTING,
    "a bucket in storage.data_repositories": {
        "storage.file_system.backup_retention_days": 0,
        "storage.data_repositories": [{"path": "/data", "bucket": "our-training-data"}],
    },
    "storage.file_system.kms_key_arn": {
        "storage.file_system.kms_key_arn": "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    },
}
"""Settings that have what a scenario needs (`Scenario.needs`); the keys are paths."""


class BootstrapError(RuntimeError):
    """The CDK could not prepare the account; the message is what it said."""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    parser = argparse.ArgumentParser(
        prog="python -m scripts emulate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="scenarios:\n" + "\n".join(f"  {name:21} {each.what}" for name, each in SCENARIOS.items()),
    )
    environments.add_argument(parser, CONFIG)
    parser.add_argument("--spoil", choices=SCENARIOS, metavar="NAME", help="an account with one thing wrong; see below")
    return parser


def main() -> int:
    """Emulate what the command line asks for, and return the exit code."""
    arguments = parser().parse_args()

    from config.settings import SettingsError, load

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the server ends with this process
    try:
        emulate(arguments.environment, load(CONFIG / f"{arguments.environment}.yaml"), arguments.spoil)
    except KeyboardInterrupt:
        pass
    except BootstrapError as error:
        print(error, file=sys.stderr)
        return 1
    except NotApplicableError as error:
        example = EXAMPLES[SCENARIOS[arguments.spoil].needs]
        print(
            f"{arguments.spoil}: {error}. In config/{arguments.environment}.yaml, or in a copy, set for example:",
            file=sys.stderr,
        )
        print(*(f"  {path}: {json.dumps(value)}" for path, value in example.items()), sep="\n", file=sys.stderr)
        return 2
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    return 130


def emulate(environment: str, settings: Settings, name: str | None) -> None:
    """Make the account, tell how to look at it, and wait for Ctrl-C.

    Raises:
        BootstrapError: The CDK could not prepare it.
        NotApplicableError: The settings have nothing that the scenario is about.
    """
    print("Bootstrapping an emulated account, some seconds ...", flush=True)
    from emulator import scenarios
    from emulator.aws import EmulatedAws
    from emulator.cdk import CommandLine
    from scripts.emulated import exports, prerequisites_of, wait_for_ctrl_c
    from toolchain.bootstrap import arguments

    scenario = SCENARIOS[name] if name else GOOD
    with EmulatedAws() as aws, closing(CommandLine(aws)) as cdk:

        def bootstrap() -> None:
            said: list[str] = []
            if cdk.bootstrap(settings.region, said.append, arguments(settings.bootstrap)) != 0:
                raise BootstrapError("\n".join(said))

        with scenarios.account(aws, prerequisites_of(settings), scenario, bootstrap) as variables:
            print(f"It has what config/{environment}.yaml names, and is bootstrapped for the CDK.")
            if name:
                print(f"What is wrong ({name}): {scenario.what}. The check {scenario.caught_by} must say so.")
            print("\nIn another shell:\n")
            print(*(f"  {line}" for line in exports(variables, settings.region)), sep="\n")
            print(f"  make preflight ENV={environment}\n  make deploy ENV={environment}")
            print("\nCtrl-C here stops it and discards everything in it.", flush=True)
            wait_for_ctrl_c()
