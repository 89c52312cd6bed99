"""What the commands on a deployment have in common: arguments, errors and exit codes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scripts import environments

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

CONFIG = Path(__file__).parents[1] / "config"
DONE, FAILED, UNUSABLE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: success; failure; arguments, settings or credentials that cannot be used; Ctrl-C."""

Say = Callable[[str], None]
"""Takes a message for people."""
Program = Callable[["Deployment", argparse.Namespace, "Console"], int]


class OperationError(Exception):
    """An operation is impossible or failed; the message says why and what to do."""


class UnusableError(Exception):
    """A value that was given cannot be used; the message names it and what is allowed."""


def parser(name: str, description: str | None, examples: str) -> argparse.ArgumentParser:
    """Return the parser of a command, with ENV and --json.

    Args:
        name: The command, in ``python -m scripts NAME``.
        description: Its docstring.
        examples: Command lines with what each does, a line each.
    """
    command = argparse.ArgumentParser(
        prog=f"python -m scripts {name}",
        description=description,
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    environments.add_argument(command, CONFIG)
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def above_zero(text: str) -> float:
    """Return a number above 0, for argparse, which names the argument and ends with exit code 2."""
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"got {text}; allowed: numbers above 0")
    return number


def split_at_dashes(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the arguments before and after the first ``--``."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


@contextmanager
def report_interrupted(sentence: str) -> Iterator[None]:
    """Print a sentence if Ctrl-C, expired credentials or the network end a command while AWS continues.

    Args:
        sentence: What AWS continues, and what to do.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError, KeyboardInterrupt):
        print(sentence, file=sys.stderr)
        raise


def run(parsed: argparse.Namespace, program: Program) -> int:
    """Run a program on the deployment that its command line names, and return the exit code.

    Text for people goes to a console, which is silent with --json; errors go to standard error. SIGTERM and a closed
    terminal have the effect of Ctrl-C, so that a program can cancel what it started on a node.
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
        from scripts.aws_errors import explain

        print(explain(error), file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def speaker(console: Console) -> Say:
    """Return what prints messages: to the console, or to standard error where that is silent, as with --json."""
    if console.quiet:
        return lambda message: print(message, file=sys.stderr)
    return lambda message: console.print(message, markup=False)


def confirm(question: str = "") -> None:
    """Ask, and return if the answer is yes.

    Raises:
        OperationError: It is not.
    """
    try:
        answer = input(f"{question}\nContinue? [y/N] ".lstrip())
    except EOFError:
        answer = ""
    if answer.strip().lower() not in ("y", "yes"):
        raise OperationError("Nothing was changed.")
