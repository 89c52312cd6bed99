"""Results as Markdown: the values of the models, where a program prints JSON."""

from __future__ import annotations

import click

from scripts.document import Document
from tests.command_line import leaves

STREAMS = {"exec", "jobs logs", "logs", "ssh"}
"""Commands whose result is what another program printed, or an address for programs."""


class Node(Document):
    name: str
    ready: bool = True
    reason: str | None = None
    counts: dict[str, int] | None = None


class QueueReport(Document):
    cost_usd: float
    counts: dict[str, int]
    nodes: tuple[Node, ...]
    by_queue: dict[str, Node]
    problems: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()


def test_values_are_tables_and_lists_without_what_is_empty() -> None:
    nodes = (Node(name="a|b", ready=False, reason="<down>\nat night"), Node(name="c", counts={"idle_jobs": 2}))
    queues = {"trn1": Node(name="d", counts={"idle": 1})}
    report = QueueReport(cost_usd=0.123456, counts={"up": 1}, nodes=nodes, by_queue=queues, problems=("_p_",))
    assert (
        report.rendered("markdown")
        == """\
### Queue report

|  |  |
| --- | --- |
| cost usd | 0.1235 |
| counts | up: 1 |

**Nodes**

| name | ready | reason | counts |
| --- | --- | --- | --- |
| a\\|b | no | \\<down> at night |  |
| c | yes |  | idle jobs: 2 |

**By queue**

| name | ready | counts |
| --- | --- | --- |
| d | yes | idle: 1 |

**Problems**

- \\_p\\_"""
    )


def test_what_is_a_document_of_json_is_one_of_markdown() -> None:
    formats = {
        name: set(each.type.choices)
        for name, command in leaves()
        for each in command.params
        if each.name == "output" and isinstance(each.type, click.Choice)
    }
    assert {name for name, choices in formats.items() if "json" in choices and "markdown" not in choices} == STREAMS
