"""A run of checks on a terminal, or in the log of a pipeline."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from scripts.check.preflight.check import CREDENTIALS, Check
from scripts.check.preflight.model import CheckResult, FailOn, PreflightReport
from scripts.check.preflight.runner import run
from scripts.core.findings import CheckStatus

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.account.deployment import Deployment

_STYLES: Mapping[CheckStatus, str] = {
    CheckStatus.PASS: "green",
    CheckStatus.WARN: "yellow",
    CheckStatus.FAIL: "bold red",
    CheckStatus.SKIP: "dim",
    CheckStatus.UNKNOWN: "bold magenta",
}
_WORST = (CheckStatus.FAIL, CheckStatus.UNKNOWN, CheckStatus.WARN)
_WIDTH = max(map(len, CheckStatus))


def watch(deployment: Deployment, checks: Sequence[Check], fail_on: FailOn, console: Console) -> PreflightReport:
    """Run checks, and return their results in this order; on a terminal, say meanwhile what is awaited."""
    started, results = time.monotonic(), dict[str, Sequence[CheckResult]]()
    status = console.status("")
    try:
        for answer in run(checks, deployment):
            results[answer[0].check] = answer
            waiting = ", ".join(each.id for each in checks if each.id not in results)
            status.update(f"{len(results)} of {len(checks)} checks have answered; waiting for {waiting or 'none'}")
            status.start()  # only now: until the first answer botocore may ask for a one-time password
    finally:
        status.stop()
    ordered = tuple(result for each in checks for result in results[each.id])
    is_known = any(result.check == CREDENTIALS and result.status is CheckStatus.PASS for result in ordered)
    return PreflightReport(
        deployment=deployment.name,
        account=deployment.account.ask("sts", "get_caller_identity")["Account"] if is_known else None,
        results=ordered,
        fail_on=fail_on,
        endpoint=os.environ.get("AWS_ENDPOINT_URL"),
        elapsed=time.monotonic() - started,
    )


def show(report: PreflightReport, console: Console) -> None:
    """Print a line for each result, how to fix those that are not PASS, and a summary."""
    _show_results(report.results, console)
    console.print(_summary(report), soft_wrap=True)


def show_in_short(report: PreflightReport, console: Console) -> None:
    """Print the summary first, then what is wrong, the worst first, then the ids of those that are right."""
    console.print(_summary(report))
    wrong = [each for status in _WORST for each in report.results if each.status is status]
    _show_results([*wrong, *(each for each in report.results if each.status is CheckStatus.SKIP)], console)
    if right := [each.id for each in report.results if each.status is CheckStatus.PASS]:
        _print(console, CheckStatus.PASS, ", ".join(right))


def _show_results(results: Iterable[CheckResult], console: Console) -> None:
    skipped: dict[str, list[str]] = defaultdict(list)
    for result in results:
        if result.status is CheckStatus.SKIP and not result.hint:
            skipped[result.sentence].append(result.id)
            continue
        _print(console, result.status, f"{result.id}: {result.sentence}")
        if result.status is not CheckStatus.PASS:
            for line in filter(None, (result.hint, result.command and f"$ {result.command}")):
                console.print(Text(f"{'':{_WIDTH}}  {line}", "dim" if line != result.hint else ""), soft_wrap=True)
    for reason, ids in skipped.items():
        _print(console, CheckStatus.SKIP, f"{reason}: {', '.join(ids)}")


def _summary(report: PreflightReport) -> Text:
    counted = [Text(f"{count} {status}", _STYLES[status]) for status, count in report.counts.items() if count]
    endpoint = f" (endpoint {report.endpoint})" if report.endpoint else ""
    return Text.assemble(
        f"\n{report.deployment}{endpoint}: {len(report.results)} answers in {report.elapsed:.1f} s: ",
        Text(", ").join(counted),
        ". ",
        (report.verdict, "bold"),
    )


def _print(console: Console, status: CheckStatus, text: str) -> None:
    console.print(Text.assemble((f"{status:{_WIDTH}}", _STYLES[status]), f"  {text}"), soft_wrap=True)
