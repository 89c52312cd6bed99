"""Results as Markdown: what people see of them on a terminal, made of the same tables and lines."""

from __future__ import annotations

import click
import pytest
from rich.console import Group
from rich.control import Control
from rich.text import Text

from scripts.check.preflight.model import CheckResult, PreflightReport
from scripts.check.preflight.screen import show_in_short
from scripts.core.findings import CheckStatus
from scripts.core.screen import MarkdownConsole, table
from tests.command_line import leaves

STREAMS = {"exec", "jobs logs", "logs", "ssh"}
"""Commands whose result is what another program printed, or an address for programs."""


def test_what_a_terminal_shows_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    nodes, empty = table("Node", ">Ready\nnodes"), table("Nothing")
    nodes.title = "Nodes"
    nodes.add_row(Text("a|b", "red"), "<down>\nat night")
    console = MarkdownConsole("`status trn1`")
    console.print(Group(Text("Unhealthy:", "bold red"), Text("- _p_"), Text("- $ q")))
    console.print("", Text(), Control.home(), empty, nodes)
    console.print("* [x] of\n  aws ls --all")
    console.print("[/dim] less", style="bold")
    assert (
        capsys.readouterr().out
        == """\
### `status trn1`

**Unhealthy:**

- \\_p\\_
- $ q

**Nodes**

| Node | Ready nodes |
| --- | --- |
| a\\|b | \\<down> at night |

\\* \\[x\\] of

- aws ls --all

**\\[/dim\\] less**
"""
    )


def test_what_is_a_document_of_json_is_one_of_markdown() -> None:
    formats = {
        name: set(each.type.choices)
        for name, command in leaves()
        for each in command.params
        if each.name == "output" and isinstance(each.type, click.Choice)
    }
    assert {name for name, choices in formats.items() if "json" in choices and "markdown" not in choices} == STREAMS


def test_a_ticket_about_preflight_begins_with_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    statuses = [CheckStatus.PASS, CheckStatus.SKIP, CheckStatus.WARN, CheckStatus.FAIL, CheckStatus.SKIP]
    results = tuple(
        CheckResult(check=f"c{number}", subject="", status=status, sentence="why", hint="", command="", seconds=1)
        for number, status in enumerate(statuses)
    )
    show_in_short(
        PreflightReport(deployment="dev", account=None, results=results, elapsed=0), MarkdownConsole("`preflight dev`")
    )
    title, verdict, *lines = filter(None, capsys.readouterr().out.splitlines())
    assert title == "### `preflight dev`"
    assert "Not ready" in verdict
    assert lines == ["FAIL c3: why", "WARN c2: why", "SKIP why: c1, c4", "PASS c0"]
