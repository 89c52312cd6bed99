"""What jobs cost: the report, its table and its CSV."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Literal

from pydantic import Field

from scripts.core import spreadsheet
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.figures import Dollars, Number, number, usd
from scripts.core.report import Block, Column, Table

By = Literal["user", "account", "queue", "job"]
SHOWN = 40
"""Rows of a table for people; JSON and CSV have all."""
UNATTRIBUTED = "unattributed"
_OF_JOB = ("user", "account", "queue")


class Cost(Document):
    """The nodes that somebody's jobs had, and what those cost."""

    name: str = Field(description="User, account or queue, or number of a job; empty: Slurm knows none.")
    user: str = Field(default="", description="Whose job it is; only with --by job.")
    account: str = Field(default="", description="What the job is charged to; only with --by job.")
    queue: str = Field(default="", description="Queue of the job; only with --by job.")
    jobs: int = Field(description="Jobs that had nodes.")
    runs: int = Field(description="How often they had nodes: a job that is preempted or requeued runs several times.")
    node_hours: Number = Field(description="Nodes times hours; of nodes that jobs share by CPUs.")
    usd: Dollars | None = Field(description="What those cost whose price is known; null: no price is.")


class CostReport(Result):
    """What ``costs --output json`` prints."""

    deployment: DeploymentName
    since: datetime
    until: datetime
    by: By
    costs: tuple[Cost, ...] = Field(description="The most expensive first.")
    jobs: Cost = Field(description="All jobs together: the sum of costs.")
    ran_node_hours: Number | None = Field(
        description="Hours that nodes ran, by the metric NodesRunning; null: not known."
    )
    ran_usd: Dollars | None = Field(description="What those cost; null: not known.")
    unattributed_node_hours: Number | None = Field(
        description="Hours that nodes ran without a job: boot, idle, drained; null: not known."
    )
    unattributed_usd: Dollars | None = Field(description="What those cost; null: not known.")
    unpriced_node_hours: dict[str, Number] = Field(
        description="Node hours whose price is not known, by kind of node, and by queue of those without a job; they "
        "are in no amount."
    )
    notes: tuple[str, ...] = Field(description="What a reader must know.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield table(self)


def table(report: CostReport) -> Table:
    """Return the costs for people: the most expensive, the rest together, and sums."""
    of_job = _OF_JOB if report.by == "job" else ()
    titles = [report.by, *of_job]
    rows = [
        [
            each.name or "-",
            *(getattr(each, name) or "-" for name in of_job),
            *_figures(each.jobs, each.runs),
            *_amount(each.node_hours, each.usd),
        ]
        for each in report.costs[:SHOWN]
    ]
    blank = [""] * len(of_job)
    notes = [
        f"{UNATTRIBUTED}: boot, idle until scale-down, drained nodes, and CPUs of shared nodes that no job had.",
        *report.notes,
    ]
    if (more := len(report.costs) - SHOWN) > 0:
        notes.append(f"{more:,} more are in the sums; --output csv and json have all.")
    sums = [
        [
            "all jobs",
            *blank,
            *_figures(report.jobs.jobs, report.jobs.runs),
            *_amount(report.jobs.node_hours, report.jobs.usd),
        ],
        [UNATTRIBUTED, *blank, "", "", *_amount(report.unattributed_node_hours, report.unattributed_usd)],
        ["nodes that ran", *blank, "", "", *_amount(report.ran_node_hours, report.ran_usd)],
    ]
    columns = [*(Column(title, False) for title in titles), *map(Column, ("jobs", "runs", "node hours", "US dollars"))]
    return Table(_title(report), columns, [*rows, *sums], sums=len(sums), notes=notes)


def as_csv(report: CostReport) -> str:
    """Return all costs, and what is unattributed, for a spreadsheet. What is not known is empty."""
    of_job = _OF_JOB if report.by == "job" else ()
    rows = [
        [each.name, *(getattr(each, name) for name in of_job), each.jobs, each.runs, *_exact(each.node_hours, each.usd)]
        for each in report.costs
    ]
    unattributed = _exact(report.unattributed_node_hours, report.unattributed_usd)
    return spreadsheet.as_csv(
        [
            [report.by, *of_job, "jobs", "runs", "node_hours", "usd"],
            *rows,
            [UNATTRIBUTED, *(None for _ in of_job), None, None, *unattributed],
        ]
    )


def _title(report: CostReport) -> str:
    return f"Nodes of jobs by {report.by}, {report.since:%Y-%m-%d %H:%M} to {report.until:%Y-%m-%d %H:%M} UTC"


def _figures(*values: int) -> tuple[str, ...]:
    return tuple(map(number, values))


def _amount(hours: float | None, cost: Decimal | None) -> tuple[str, str]:
    return "not known" if hours is None else f"{hours:,.2f}", usd(cost)


def _exact(*values: float | Decimal | None) -> list[Decimal | None]:
    return [None if each is None else Decimal(f"{each:.4f}") for each in values]
