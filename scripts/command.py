"""What the programs have in common that look at, change and end a deployment: arguments, errors and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scripts import environments

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

CONFIG = Path(__file__).parents[1] / "config"
DONE, FAILED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: it is as asked for; it is not; arguments, settings or credentials cannot be used; Ctrl-C."""

Say = Callable[[str], None]
"""Is told what happens, a sentence at a time."""
Program = Callable[["Deployment", argparse.Namespace, "Console"], int]


class OperationError(Exception):
    """What was asked for cannot be done, or did not work; the message says why, and what helps."""


class UnusableError(Exception):
    """What was given cannot be used; the message says what was got and what is allowed."""


def parser(name: str, description: str | None, examples: str) -> argparse.ArgumentParser:
    """Return the parser of a program, with ENV and --json.

    Args:
        name: The program, in ``python -m scripts NAME``.
        description: Its docstring.
        examples: Command lines with what each does, a line each.
    """
    found = argparse.ArgumentParser(
        prog=f"python -m scripts {name}",
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    environments.add_argument(found, CONFIG)
    found.add_argument("--json", action="store_true", help=f"print JSON, as docs/schemas/{name}.json describes it")
    return found


def above_zero(text: str) -> float:
    """Return the number that an argument gives, for argparse, which names the argument and ends with exit code 2."""
    found = float(text)
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"got {text}; allowed: numbers above 0")
    return found


@contextmanager
def going_on(sentence: str) -> Iterator[None]:
    """Say where things stand when Ctrl-C, credentials that expire or the network end what AWS goes on with.

    Args:
        sentence: What AWS goes on with, and what to do.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError, KeyboardInterrupt):
        print(sentence, file=sys.stderr)
        raise


def run(parsed: argparse.Namespace, program: Program) -> int:
    """Run a program on the deployment that its command line names, and return the exit code.

    What people read goes to a console, which is silent with --json; faults go to standard error. A request to end, and
    a terminal that goes away, are as Ctrl-C: what a program has begun on a node it can end there.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from rich.console import Console

    from config.settings import SettingsError, load
    from scripts.deployment import Deployment
    from scripts.interrupts import clean_up_as_after_ctrl_c

    clean_up_as_after_ctrl_c()
    try:
        settings = load(CONFIG / f"{parsed.environment}.yaml")
        console = Console(highlight=False, emoji=False, quiet=parsed.json)
        return program(Deployment(parsed.environment, settings), parsed, console)
    except (SettingsError, UnusableError) as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    except OperationError as error:
        print(error, file=sys.stderr)
        return FAILED
    except (BotoCoreError, ClientError) as error:
        from scripts.preflight.access import hint_about

        print(error, *filter(None, [hint_about(error)]), sep="\n", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # who read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
