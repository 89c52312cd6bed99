"""A run of checks on a terminal, or in the log of a pipeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table
from rich.text import Text

from scripts.preflight.check import Check, CheckStatus

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.preflight.model import CheckResult, PreflightReport

_STYLES: Mapping[CheckStatus, str] = {
    CheckStatus.PASS: "green",
    CheckStatus.WARN: "yellow",
    CheckStatus.FAIL: "bold red",
    CheckStatus.SKIP: "dim",
    CheckStatus.UNKNOWN: "bold magenta",
}
_ANY_WIDTH = 10_000
_OTHER_LINES = 3
"""Title, column names, and the line of the cursor."""
Row = tuple[Text, Text, Text]


def watch(checks: Sequence[Check], answers: Iterable[Sequence[CheckResult]], console: Console) -> list[CheckResult]:
    """Return the results in the order of the checks; on a terminal, show meanwhile what is awaited and what is wrong.

    The table appears with the first answer: until then botocore may ask for a one-time password.
    """
    results: dict[str, Sequence[CheckResult]] = {}
    with ExitStack() as stack:
        live = None
        for answer in answers:
            results[answer[0].check] = answer
            if console.is_terminal:
                live = live or stack.enter_context(Live(console=console, transient=True, auto_refresh=False))
                live.update(_progress(checks, results, console.height), refresh=True)
    return [result for each in checks for result in results[each.id]]


def show(report: PreflightReport, console: Console) -> None:
    """Print the table of results, how to fix those that are not PASS, and a summary."""
    table = _table(_row(result) for result in report.results if not _is_bare_skip(result))
    if not console.is_terminal:  # an ARN or a path that is broken can be neither copied nor searched for
        unbroken = console.measure(table, options=console.options.update(width=_ANY_WIDTH)).minimum
        table.width = max(console.width, unbroken)
    console.print(table, crop=False)
    skipped: dict[str, list[str]] = defaultdict(list)
    for result in filter(_is_bare_skip, report.results):
        skipped[result.sentence].append(result.id)
    for reason, ids in skipped.items():
        console.print()
        console.print(Text(f"SKIP  {reason}: {', '.join(ids)}", _STYLES[CheckStatus.SKIP]))
    for result in report.results:
        if result.status is not CheckStatus.PASS and not _is_bare_skip(result):
            _show_details(result, console)
    console.print()
    console.print(_summary(report), soft_wrap=True)


def _progress(checks: Sequence[Check], results: Mapping[str, Sequence[CheckResult]], height: int) -> Table:
    """Return a table that is not higher than the terminal: what scrolls out of it cannot be erased."""
    rows: list[Row] = []
    for each in checks:
        if each.id in results:
            rows += [
                _row(result) for result in results[each.id] if result.status not in (CheckStatus.PASS, CheckStatus.SKIP)
            ]
        else:
            rows.append((Text("...", "dim"), Text(each.id, "dim"), Text(each.title, "dim")))
    for _, _, text in rows:
        text.no_wrap, text.overflow = True, "ellipsis"
    table = _table(rows[: max(height - _OTHER_LINES, 0)])
    table.title = f"{len(results)} of {len(checks)} checks have answered"
    return table


def _table(rows: Iterable[Row]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, title_justify="left")
    table.add_column("status", no_wrap=True, min_width=max(map(len, CheckStatus)))
    table.add_column("check", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def _row(result: CheckResult) -> Row:
    about = f"{result.subject}: " if result.subject not in result.sentence else ""
    return Text(result.status, _STYLES[result.status]), Text(result.check), Text(f"{about}{result.sentence}")


def _is_bare_skip(result: CheckResult) -> bool:
    """Return whether the reason for which it was skipped is all there is to say."""
    return result.status is CheckStatus.SKIP and not result.hint


def _show_details(result: CheckResult, console: Console) -> None:
    """Print hint and command, each on one line however long, so that it can be copied."""
    console.print()
    console.print(Text(f"{result.status}  {result.id}", _STYLES[result.status]))
    if result.hint:
        console.print(Text(f"  {result.hint}"), soft_wrap=True)
    if result.command:
        console.print(Text(f"  $ {result.command}", "dim"), soft_wrap=True)


def _summary(report: PreflightReport) -> Text:
    counted = [Text(f"{count} {status}", _STYLES[status]) for status, count in report.counts.items() if count]
    endpoint = f" (endpoint {report.endpoint})" if report.endpoint else ""
    return Text.assemble(
        f"{report.environment}{endpoint}: {len(report.results)} answers in {report.elapsed:.1f} s: ",
        Text(", ").join(counted),
        ". ",
        (report.verdict, "bold"),
    )
