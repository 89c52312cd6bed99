"""The report as a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from scripts.pages import document, table_lines
from scripts.report.chart import STYLE, Quantity, chart, legend
from scripts.report.runs import Axis, ShownRun
from scripts.report.tables import tables

_THROUGHPUT = Quantity("Throughput", "sequences/s", lambda step: step.sequences_per_second, from_zero=True)
_PER_NODE = Quantity(
    "Throughput per node", "sequences/s per node", lambda step: step.sequences_per_second_per_node, from_zero=True
)
_LOSS = Quantity("Loss", "loss (nats)", lambda step: step.loss, from_zero=False)
_STYLE = "body { max-width: 76rem; }"


def page(runs: Sequence[ShownRun]) -> str:
    """Return the page of some runs."""
    names = ", ".join(run.name for run in runs)
    several_sizes = len({run.summary.nodes for run in runs}) > 1
    quantities = [_THROUGHPUT, *([_PER_NODE] if several_sizes else []), _LOSS]
    body = [f"<h1>Training runs</h1><p>{escape(names)}</p>"]
    for table in tables(runs)[:2]:
        body += [f"<h2>{escape(table.title)}</h2>", *table_lines(table)]
    body.append("<h2>Curves</h2>")
    for quantity in quantities:
        body += legend(runs)
        body.append('<div class="charts">')
        for axis in Axis:
            body += chart(quantity, axis, runs)
        body.append("</div>")
    body.append("<p>Line: mean of neighbouring steps. Band: their extremes. Triangle: went on from a checkpoint.</p>")
    for table in tables(runs)[2:]:
        body += [f"<h2>{escape(table.title)}</h2>", *table_lines(table)]
    return document(f"Training runs: {names}", STYLE + _STYLE, body)
