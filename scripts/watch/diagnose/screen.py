"""A diagnosis for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from scripts.account.causes import COMMAND, Evidence, FoundCause
from scripts.watch.diagnose.diagnose import Diagnosis

if TYPE_CHECKING:
    from rich.console import Console

_SHOWN = 500
"""Characters of evidence that are shown."""


def show(diagnosis: Diagnosis, console: Console) -> None:
    """Print what was found, for a terminal of 80 columns or more."""
    operation, others = diagnosis.operation, list(diagnosis.causes)
    if diagnosis.current:
        _show_cause(others.pop(0), console)
        if operation:
            _title(console, "Failed as well")
    if operation:
        _print(console, f"{operation.stack}: {operation.status}, started {operation.started:%Y-%m-%d %H:%M} UTC")
    if diagnosis.unknown:
        _show_unknown(diagnosis, console)
    elif diagnosis.causes and not diagnosis.current:
        _show_cause(others.pop(0), console)
    elif diagnosis.outcome == "unknown":
        _print(console, "Whether something failed is not known: a permission to read is missing.", "bold red")
    elif not diagnosis.causes:
        seen = ", ".join(diagnosis.read) or "there are no stacks"
        _print(console, f"Nothing failed, as far as was read: {seen}.")
    if others:
        _title(console, "Also seen")
        for each in others:
            _print(console, f"- {each.title}: {each.why}")
    if diagnosis.unread:
        _title(console, "Not read")
        for line in diagnosis.unread:
            _print(console, f"- {line}")


def _show_unknown(diagnosis: Diagnosis, console: Console) -> None:
    _print(console, "No known cause. This failed first:", "bold red")
    _show_evidence(diagnosis.unknown, console)
    _title(console, "Read on")
    for command in diagnosis.read_on:
        _show_command(command, console)


def _show_cause(finding: FoundCause, console: Console) -> None:
    _print(console, finding.title, "bold red")
    _print(console, finding.why)
    _title(console, "Why this is believed")
    _show_evidence(finding.evidence, console)
    _title(console, "What to do")
    for line in finding.to_do:
        if line.startswith(COMMAND):
            _show_command(line.removeprefix(COMMAND), console)
        else:
            _print(console, f"- {line}")
    _print(console, f"See {finding.source}", "dim")


def _show_evidence(evidence: Iterable[Evidence], console: Console) -> None:
    for each in evidence:
        _print(console, f"{each.time:%Y-%m-%d %H:%M:%S} UTC, {each.source}", "cyan")
        text = each.text if len(each.text) <= _SHOWN else f"{each.text[:_SHOWN]} ..."
        for line in text.splitlines() or [""]:  # GitHub's runners obey lines that start like `::add-mask::`
            _print(console, f"| {line}")


def _title(console: Console, text: str) -> None:
    _print(console, f"\n{text}", "bold")


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, overflow="fold")


def _show_command(command: str, console: Console) -> None:
    console.print(f"  {command}", style="green", soft_wrap=True)
