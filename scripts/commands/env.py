"""Make Python environments for programs of your own, list and remove them.

An environment is made once, never changed, and named by what is in it. `submit --env NAME` runs a program in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode, UnusableError

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@click.group("env", cls=options.Group, help=__doc__)
def command() -> None:
    """Group what is done with environments of programs."""


@options.changing
@options.subcommand(
    command,
    """Make an environment of a requirements file, by uv on the head node, as the default user.

    It stands on the cluster's environment: PyTorch and Neuron's packages are those, and the requirements come before
    them; what they want in another version is installed beside. With --alone it has nothing but the requirements, and
    any version of Python. The same requirements are made once.

    Exit code 0: it is there; 1: it was not made, and nothing is left, or the head node is not reachable; 2: arguments,
    requirements, settings or credentials cannot be used; 130: Ctrl-C, which ends it there, too.
    """,
    ("env create research requirements.txt", "on the cluster's environment"),
    ("env create research requirements.txt --alone --python 3.11", "by itself, with another Python"),
    name="create",
)
@argument.deployed
@click.argument("file", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--alone", is_flag=True, help="Not on the cluster's environment.")
@click.option("--python", metavar="VERSION", help="Such as 3.11; with --alone.")
def create(*, deployment: Deployment, file: Path, alone: bool, python: str | None) -> int:
    """Let the head node make it, and return the exit code."""
    from scripts.use.environments import create as create_there

    if python and not alone:
        raise UnusableError("--python goes with --alone: the cluster's environment has its own Python")
    code = create_there(deployment, file, alone=alone, python=python)
    if code == ExitCode.DONE:
        terminal.suggest(f"env list {deployment.name}")
    return code


@options.subcommand(
    command,
    """List the environments of programs, the newest first.

    Exit code 0: listed; 1: the head node cannot be asked; 2: arguments, settings or credentials cannot be used.
    """,
    ("env list research", "names for submit --env"),
    name="list",
)
@argument.deployed
@options.output("json", "markdown")
def list_(*, deployment: Deployment, output: str) -> int:
    """Print them, and return the exit code."""
    from scripts.use.environments import list_environments

    terminal.show(list_environments(deployment), output)
    return ExitCode.DONE


@options.changing
@options.subcommand(
    command,
    """Remove an environment. Jobs that run in it fail.

    Exit code 0: removed; 1: there is none of this name, it is another user's, or the head node is not reachable; 2:
    arguments, settings or credentials cannot be used.
    """,
    ("env remove research 2.28.1-pytorch2.9.0-ubuntu24.04.env-0123456789ab", "a name that env list has"),
    name="remove",
)
@argument.deployed
@click.argument("environment", metavar="ENVIRONMENT")
def remove(*, deployment: Deployment, environment: str) -> int:
    """Let the head node remove it, and return the exit code."""
    from scripts.use.environments import remove as remove_there

    return remove_there(deployment, environment)
