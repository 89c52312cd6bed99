"""A run of checks on a terminal, or in the log of a pipeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

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


def watch(checks: Sequence[Check], answers: Iterable[Sequence[CheckResult]], console: Console) -> list[CheckResult]:
    """Return the results in the order of the checks; on a terminal, say meanwhile what is awaited.

    It says so from the first answer on: until then botocore may ask for a one-time password.
    """
    results: dict[str, Sequence[CheckResult]] = {}
    with ExitStack() as stack:
        status = None
        for answer in answers:
            results[answer[0].check] = answer
            waiting = ", ".join(each.id for each in checks if each.id not in results)
            text = f"{len(results)} of {len(checks)} checks have answered; waiting for {waiting or 'none'}"
            status = status or stack.enter_context(console.status(text))
            status.update(text)
    return [result for each in checks for result in results[each.id]]


def show(report: PreflightReport, console: Console) -> None:
    """Print the table of results, how to fix those that are not PASS, and a summary."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("status", no_wrap=True, min_width=max(map(len, CheckStatus)))
    table.add_column("check", no_wrap=True)
    table.add_column("what was found", overflow="fold")
    for result in report.results:
        if not _is_bare_skip(result):
            about = f"{result.subject}: " if result.subject not in result.sentence else ""
            status = Text(result.status, _STYLES[result.status])
            table.add_row(status, Text(result.check), Text(f"{about}{result.sentence}"))
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
            console.print()
            console.print(Text(f"{result.status}  {result.id}", _STYLES[result.status]))
            if result.hint:
                console.print(Text(f"  {result.hint}"), soft_wrap=True)
            if result.command:
                console.print(Text(f"  $ {result.command}", "dim"), soft_wrap=True)
    console.print()
    console.print(_summary(report), soft_wrap=True)


def _is_bare_skip(result: CheckResult) -> bool:
    """Return whether the reason for which it was skipped is all there is to say."""
    return result.status is CheckStatus.SKIP and not result.hint


def _summary(report: PreflightReport) -> Text:
    counted = [Text(f"{count} {status}", _STYLES[status]) for status, count in report.counts.items() if count]
    endpoint = f" (endpoint {report.endpoint})" if report.endpoint else ""
    return Text.assemble(
        f"{report.environment}{endpoint}: {len(report.results)} answers in {report.elapsed:.1f} s: ",
        Text(", ").join(counted),
        ". ",
        (report.verdict, "bold"),
    )
