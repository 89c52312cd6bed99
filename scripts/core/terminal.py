"""What a command prints and asks: results on standard output, all else on standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import click

from scripts.core import interrupts
from scripts.core.errors import OperationError, UnusableError
from scripts.core.text import echo, fit, fit_renderable, obeyed_by_no_runner

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table
    from rich.text import Text

    from scripts.core.document import Result
    from scripts.core.report import Block

PLAIN_WIDTH = 124
"""Columns without a terminal: those of the widest table, so that none is cut off in a log."""
_NARROW = 80
"""Columns for which tables are made."""
_UNCHANGED = "Nothing was changed."
Say = Callable[[str], None]
"""Takes a message for people."""


def heading(text: str, output: str) -> None:
    """Print the first line of a result that is text, before rich is imported, which takes a quarter of the time."""
    if output == "text":
        click.secho(f"{text}\n", bold=None if os.environ.get("NO_COLOR") else True)


def console(output: str = "text", width: int | None = None, *, to_stderr: bool = False) -> Console:
    """Return the console for a command's text, which is silent unless text was asked for.

    `width` has the columns where standard output is no terminal and COLUMNS is not set; None: `PLAIN_WIDTH`.
    """
    from rich.console import Console
    from rich.table import Table

    class CommandConsole(Console):
        """A console of text that fits, which leaves a closed pipe to `scripts.main`, and shows wide tables as lists."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

        def _render_buffer(self, buffer: Iterable[Segment]) -> str:
            return obeyed_by_no_runner(super()._render_buffer(buffer))

        def render_str(self, text: str, **more: Any) -> Text:
            return super().render_str(fit(text), **more)

        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            renderable = fit_renderable(renderable)
            within = options or self.options
            if isinstance(renderable, Table) and within.max_width < _NARROW:
                longest = self.measure(renderable, options=within.update(max_width=_NARROW)).minimum
                renderable = renderable if longest <= within.max_width else _as_list(renderable, self)
            return super().render(renderable, within)

    screen = CommandConsole(
        highlight=False,
        emoji=False,
        markup=False,
        stderr=to_stderr,
        quiet=output != "text",
        color_system=None if os.environ.get("NO_COLOR") else "auto",  # rich itself leaves bold and underlined
    )
    if not screen.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        screen.width = width or PLAIN_WIDTH
    return screen


class Shows(Protocol):
    """Shows reports."""

    def show(self, blocks: Iterable[Block]) -> None:
        """Show blocks."""


class Silence:
    """Shows nothing: a program reads the output."""

    def show(self, blocks: Iterable[Block]) -> None:
        """Show nothing."""


def view(output: str = "text", width: int | None = None) -> Shows:
    """Return what shows reports to people, as text or Markdown; it is silent for programs."""
    if output not in ("text", "markdown"):
        return Silence()

    from scripts.core.view import Page, View

    if output == "text":
        return View(console(output, width))
    context = click.get_current_context()
    words = [context.command_path.partition(" ")[2], context.params.get("name")]
    return Page(f"`{' '.join(filter(None, words))}`")


def show(result: Result, output: str, width: int | None = None) -> Shows:
    """Print a result in the form that is wanted, and return what shows more to people."""
    if output == "json":
        print(result.to_json())
    shown = view(output, width)
    shown.show(result.page() if output == "markdown" else result.blocks())
    return shown


def _as_list(table: Table, screen: Console) -> Text:
    """Return a table as a line per cell that is not empty, which splits no word."""
    from rich.text import Text

    def text(cell: RenderableType) -> Text:
        return cell if isinstance(cell, Text) else screen.render_str(str(cell))

    lines = Text()
    for row in zip(*(column.cells for column in table.columns), strict=True):
        for column, cell in zip(table.columns, row, strict=True):
            title, shown = text(column.header).plain, text(cell)
            if shown:
                lines.append(f"{title}: " if title else "", "bold").append_text(shown).append("\n")
        lines.append("\n")
    lines.rstrip()
    return lines


def speaker(screen: Console) -> Say:
    """Return what prints messages: to the console, or to standard error where that is silent."""
    if screen.quiet:
        return lambda message: echo(message, err=True)
    return screen.print


def require_answers(*, given: bool, instead: str = "--yes", output: str = "text") -> None:
    """Check that a question can be asked.

    `instead` names the options that give the answer. Only text output leaves room for a question.

    Raises:
        UnusableError: Nobody can be asked.
    """
    if given:
        return
    if output != "text":
        raise UnusableError(f"--output {output} asks no questions; pass {instead}")
    if not sys.stdin.isatty():
        raise UnusableError(f"standard input is not a terminal; pass {instead}")


def require_name(name: str, confirmed: str | None, *, given: bool, output: str = "text") -> None:
    """Check that a deployment's name was given, or can be asked for.

    `confirmed` is what --confirm gives; `given`: nothing will be asked, as with --dry-run.

    Raises:
        UnusableError: Another name was given, or nobody can be asked.
    """
    if confirmed not in (None, name):
        raise UnusableError(f"--confirm: got {confirmed}; allowed: {name}, the name of the deployment")
    require_answers(given=given or confirmed is not None, instead=f"--confirm {name}, or --dry-run", output=output)


def _answer(stopped: str) -> str:
    """Return what a person types; on Ctrl-C a sentence says what that means."""
    try:
        return sys.stdin.readline().strip()
    except KeyboardInterrupt:
        echo(f"\n{stopped}", err=True)
        raise


def agreed(
    question: str = "", *, stopped: str = "Stopped before this step. The same command continues with it."
) -> bool:
    """Ask whether to continue; Enter and the end of input are no. `stopped` is what Ctrl-C means."""
    interrupts.check()
    echo(f"{question}\nContinue? [y/N] ".lstrip(), end="", err=True)
    return _answer(stopped).lower() in ("y", "yes")


def confirm(question: str = "") -> None:
    """Ask, and return if the answer is yes.

    Raises:
        OperationError: It is not.
    """
    if not agreed(question, stopped=_UNCHANGED):
        raise OperationError(_UNCHANGED)


def confirm_name(name: str) -> None:
    """Ask for a deployment's name, and return if it is given.

    Raises:
        OperationError: It is not.
    """
    interrupts.check()
    echo(f"\nTo continue, type the name of the deployment, {name}: ", end="", err=True)
    answer = _answer(_UNCHANGED)
    if answer != name:
        raise OperationError(f"got {answer!r}; nothing was changed")


@contextmanager
def report_interrupted(sentence: str) -> Iterator[None]:
    """Print a sentence if Ctrl-C, expired credentials or the network end a command while AWS continues."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError, KeyboardInterrupt):
        echo(sentence, err=True)
        raise


def suggest(command: str, purpose: str = "", *, always: bool = False) -> None:
    """Name the next sensible command to a person at a terminal who reads text, or always."""
    context = click.get_current_context(silent=True)
    if context and context.params.get("output", "text") != "text":
        return
    if always or sys.stderr.isatty():
        echo(f"\nNext: ./ultracluster {command}" + (f"  # {purpose}" if purpose else ""), err=True)
