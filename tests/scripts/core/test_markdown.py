"""Results as Markdown: what people see of them on a terminal, made of the same tables and lines."""

from __future__ import annotations

import click
import pytest

from scripts.check.preflight.model import CheckResult, PreflightReport
from scripts.core.findings import CheckStatus, Finding
from scripts.core.report import (
    Block,
    Changes,
    Command,
    Conclusion,
    Facts,
    Folded,
    Gap,
    Line,
    Link,
    Table,
    Title,
    Toned,
    columns,
)
from scripts.core.view import Page
from tests.command_line import leaves
from tests.scripts.reports import as_markdown, shown

STREAMS = {"exec", "jobs logs", "logs", "ssh"}
"""Commands whose result is what another program printed, or an address for programs."""
BLOCKS: list[Block] = [
    Line(["of ", Toned("_p_", "bad"), " and $ q"]),
    Gap(),
    Gap(),
    Table("Nodes", columns("Node", ">Ready\nnodes"), [(Toned("a|b", "warn"), "<down>\nat night")], notes=["a note"]),
    Table("Nothing", columns("Node"), []),
    Facts([("Fleet", "RUNNING"), ("", Toned("more", "dim"))]),
    Title("What to do"),
    Line("* [x] of", item=True),
    Command("aws ls | cat"),
    Link("nodes", "https://example.org/#a_b"),
    Folded("2 roles", [Changes("one", ["a"], ["b"]), Changes("two", [], ["c"])]),
    Conclusion([Gap(), Finding(CheckStatus.WARN, "b", "a hint", "x | y", "a"), Finding(CheckStatus.SKIP, "c")]),
    Conclusion([Line(Toned("Unhealthy:", "bad"))]),
]


def test_what_a_terminal_shows_is_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    page = Page("`status trn1`")
    page.show(BLOCKS)
    page.show([Line("more", level=1), Line("and more", level=1)])
    assert (
        capsys.readouterr().out
        == """\
### `status trn1`

**Unhealthy:**

|  | What | What helps |
| --- | --- | --- |
| WARN | a: b | a hint `x \\| y` |
| SKIP | c |  |

of **\\_p\\_** and $ q

**Nodes**

| Node | Ready nodes |
| --- | --- |
| a\\|b | \\<down> at night |

a note

|  |  |
| --- | --- |
| **Fleet** | RUNNING |
|  | more |

**What to do**

- \\* \\[x\\] of
- `aws ls | cat`
- [nodes](https://example.org/#a_b)

<details><summary>2 roles</summary>

```diff
# one
- a
+ b
# two
+ c
```

</details>

- more
- and more
"""
    )


def test_a_terminal_shows_the_same_with_the_conclusion_at_the_end() -> None:
    assert [line.rstrip() for line in shown(BLOCKS).splitlines()] == [
        "of _p_ and $ q",
        "",
        "Nodes",
        "          Ready",
        "Node      nodes",
        "───────────────",
        "a|b      <down>",
        "       at night",
        "a note",
        "Fleet RUNNING",
        "      more",
        "",
        "What to do",
        "- * [x] of",
        "  aws ls | cat",
        "  nodes     https://example.org/#a_b",
        "",
        "2 roles",
        "  one",
        "    - a",
        "    + b",
        "  two",
        "    + c",
        "",
        "WARN     a: b",
        "         a hint",
        "         $ x | y",
        "SKIP     c",
        "Unhealthy:",
    ]


def test_what_is_a_document_of_json_is_one_of_markdown() -> None:
    formats = {
        name: set(each.type.choices)
        for name, command in leaves()
        for each in command.params
        if each.name == "output" and isinstance(each.type, click.Choice)
    }
    assert {name for name, choices in formats.items() if "json" in choices and "markdown" not in choices} == STREAMS


def test_a_ticket_about_preflight_begins_with_what_failed() -> None:
    statuses = [CheckStatus.PASS, CheckStatus.SKIP, CheckStatus.WARN, CheckStatus.FAIL, CheckStatus.SKIP]
    results = tuple(
        CheckResult(check=f"c{number}", subject="", status=status, sentence="why", hint="", command="", seconds=1)
        for number, status in enumerate(statuses)
    )
    report = PreflightReport(deployment="dev", account=None, results=results, elapsed=0)
    verdict, _, _, *rows = filter(None, as_markdown(report.page()).splitlines())
    assert "Not ready" in verdict
    assert rows == ["| FAIL | c3: why |  |", "| WARN | c2: why |  |", "| SKIP | why: c1, c4 |  |", "| PASS | c0 |  |"]
