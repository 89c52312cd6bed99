"""The result of drift detection for a terminal, and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.core.markdown import escaped, folded, table

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.watch.drift.model import DriftReport


def show(report: DriftReport, console: Console) -> None:
    """Print a report, for a terminal of 80 columns or more."""

    def line(text: str, style: str = "") -> None:
        console.print(text, style=style, overflow="fold")

    for each in report.drifts:
        line(f"{each.subject} ({each.kind})", "bold")
        line(f"  {each.sentence}")
    for reason in report.not_compared:
        line(f"Not compared: {reason}", "yellow")
    line(report.verdict, "green" if report.ok else "bold red")
    line(report.coverage, "dim")


def as_markdown(report: DriftReport) -> str:
    """Return a report as GitHub's Markdown, the verdict first."""
    parts = [f"### `drift {report.deployment}`", f"**{report.verdict}** {report.coverage}"]
    if report.drifts:
        rows = [(escaped(each.subject), each.kind, escaped(each.sentence)) for each in report.drifts]
        parts.append(table(("What", "Kind", "How it differs"), rows))
    if report.not_compared:
        parts += ["Not compared:", "\n".join(f"- {' '.join(reason.split())}" for reason in report.not_compared)]
    if report.unchecked:
        summary = f"Not compared by CloudFormation: {len(report.unchecked)}"
        parts.append(folded(summary, "\n".join(f"- `{each}`" for each in report.unchecked)))
    return "\n\n".join(parts) + "\n"
