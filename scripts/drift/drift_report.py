"""What drift detection found, for a terminal, as Markdown and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from scripts.drift.drift import Report
from scripts.markdown import escaped, table

if TYPE_CHECKING:
    from rich.console import Console


def document(report: Report) -> dict[str, Any]:
    """Return everything, as docs/schemas/drift.json describes it."""
    return {
        "environment": report.environment,
        "region": report.region,
        "deployed": report.deployed,
        "ok": report.ok,
        "drifts": [{"kind": each.kind, "subject": each.subject, "sentence": each.sentence} for each in report.drifts],
        "checked": report.checked,
        "unchecked": report.unchecked,
        "unseen": report.unseen,
        "busy": report.busy,
    }


def show(report: Report, console: Console) -> None:
    """Print what was found, for a terminal of 80 columns or more."""
    for each in report.drifts:
        _print(console, f"{each.subject} ({each.kind})", "bold")
        _print(console, f"  {each.sentence}")
    for line in report.unseen:
        _print(console, f"Not seen: {line}", "yellow")
    _print(console, verdict(report), "green" if report.ok else "bold red")
    _print(console, _compared(report), "dim")


def as_markdown(report: Report) -> str:
    """Return what was found as GitHub's Markdown, the verdict first."""
    lines = [f"### Drift of `{report.environment}`", "", f"**{verdict(report)}** {_compared(report)}"]
    if report.drifts:
        rows = [(escaped(each.subject), each.kind, escaped(each.sentence)) for each in report.drifts]
        lines += ["", *table(("What", "Kind", "How it differs"), rows)]
    if report.unseen:
        lines += ["", "Not seen:", "", *(f"- {' '.join(line.split())}" for line in report.unseen)]
    if report.unchecked:
        summary = f"Not compared by CloudFormation: {len(report.unchecked)}"
        lines += ["", f"<details><summary>{summary}</summary>", "", *(f"- `{each}`" for each in report.unchecked)]
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def verdict(report: Report) -> str:
    """Return what comes out of it, in a sentence."""
    if not report.deployed:
        return "Nothing is deployed."
    if report.busy:
        return f"Skipped: it is being deployed ({', '.join(report.busy)})."
    if report.drifts:
        counts = Counter(each.kind for each in report.drifts)
        return f"Drift: {', '.join(f'{count} {kind}' for kind, count in counts.items())}."
    return "No drift, but not everything could be seen." if report.unseen else "No drift."


def _compared(report: Report) -> str:
    return f"{report.checked} resources compared, {len(report.unchecked)} cannot be."


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, overflow="fold")
