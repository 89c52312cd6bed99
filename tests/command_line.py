"""The command line in a test's own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import click

from scripts.main import cli, main


class Printed(NamedTuple):
    """What a command ended with."""

    code: int
    output: str
    error: str


Call = Callable[..., Printed]


def ultracluster(*words: str) -> int:
    """Run ``./ultracluster WORDS``, and return its exit code."""
    return main(words)


def leaves(group: click.Group = cli, *before: str) -> Iterator[tuple[str, click.Command]]:
    """Yield all commands with the words that call them."""
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            if isinstance(command, click.Group):
                yield from leaves(command, *before, name)
            else:
                yield " ".join([*before, name]), command
