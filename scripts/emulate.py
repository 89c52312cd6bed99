"""Emulate an account that is ready for a deployment, or spoilt in one way, until Ctrl-C.

It is for trying `make preflight` and `make deploy` without an AWS account, in another shell. Exit code 1: the account
could not be made; 2: the settings have nothing that can be spoilt in this way; 130: ended.
"""

from __future__ import annotations

import argparse
import signal
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from rehearsal.spoils import GOOD, SPOILS, NothingToSpoilError

if TYPE_CHECKING:
    from config.settings import Settings

CONFIG = Path(__file__).parents[1] / "config"


class BootstrapError(RuntimeError):
    """The CDK could not prepare the account; the message is what it said."""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(
        prog="python -m scripts.emulate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="spoilt accounts:\n" + "\n".join(f"  {name:21} {spoil.what}" for name, spoil in SPOILS.items()),
    )
    found.add_argument("environment", metavar="ENV", help="file name in config/ without .yaml")
    found.add_argument("--spoil", choices=SPOILS, metavar="NAME", help="spoil the account in this way; see below")
    return found


def main() -> int:
    """Emulate what the command line asks for, and return the exit code."""
    arguments_parser = parser()
    arguments = arguments_parser.parse_args()
    known = sorted(path.stem for path in CONFIG.glob("*.yaml"))
    if arguments.environment not in known:
        arguments_parser.error(f"no such file in config/: {arguments.environment}; there is {', '.join(known)}")

    from config.settings import SettingsError, load

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the server ends with this process
    try:
        emulate(arguments.environment, load(CONFIG / f"{arguments.environment}.yaml"), arguments.spoil)
    except KeyboardInterrupt:
        pass
    except BootstrapError as error:
        print(error, file=sys.stderr)
        return 1
    except (NothingToSpoilError, SettingsError) as error:
        print(error, file=sys.stderr)
        return 2
    return 130


def emulate(environment: str, settings: Settings, name: str | None) -> None:
    """Make the account, tell how to look at it, and wait for Ctrl-C.

    Raises:
        BootstrapError: The CDK could not prepare it.
        NothingToSpoilError: The settings have nothing that can be spoilt in this way.
    """
    from rehearsal import spoils
    from rehearsal.aws import EmulatedAws
    from rehearsal.cdk import CommandLine
    from rehearsal.shell import exports, wait_for_ctrl_c

    spoil = SPOILS[name] if name else GOOD
    print(f"An account that has what config/{environment}.yaml names, and the CDK's bootstrap stack ...", flush=True)
    with EmulatedAws() as aws, closing(CommandLine(aws)) as cdk:

        def bootstrap() -> None:
            said: list[str] = []
            if cdk.bootstrap(settings.region, said.append) != 0:
                raise BootstrapError("\n".join(said))

        with spoils.account(aws, settings, spoil, bootstrap) as variables:
            if name:
                print(f"Spoilt ({name}): {spoil.what}. The check {spoil.caught_by} must say so.")
            print("\nIn another shell:\n")
            print(*(f"  {line}" for line in exports(variables, settings.region)), sep="\n")
            print(f"  make preflight ENV={environment}\n  make deploy ENV={environment}")
            print("\nCtrl-C here ends it, and all that is in it.", flush=True)
            wait_for_ctrl_c()


if __name__ == "__main__":
    sys.exit(main())
