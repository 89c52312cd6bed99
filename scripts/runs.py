"""The training runs on a cluster's file system, listed on the head node."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import Field

from scripts import screen
from scripts.deployment import Deployment
from scripts.document import Document
from scripts.errors import OperationError
from scripts.remote.head_node import HeadNode

if TYPE_CHECKING:
    from rich.table import Table

LISTED = 50
"""Runs of one answer, the newest: more would not fit into what Systems Manager returns of a command's output."""
SCRIPT = """
import glob, json, os, sys
paths = []
for depth in range(4):
    paths += glob.glob(os.path.join(sys.argv[1], *["*"] * depth, "run.json"))
rows = []
for path in paths:
    directory = os.path.dirname(path)
    try:
        with open(path) as file:
            facts = json.load(file)
        with open(os.path.join(directory, "metrics.jsonl"), "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - 8192))
            lines = [line for line in file.read().splitlines(keepends=True) if line.endswith(b"\\n")]
        last = json.loads(lines[-1]) if lines else {}
        attempt = facts["attempts"][-1]
        rows.append({
            "directory": directory, "nodes": attempt["nodes"], "attempts": len(facts["attempts"]),
            "job": attempt["job"], "step": last.get("step", 0), "steps": facts["options"].get("steps"),
            "loss": last.get("loss"), "updated": last.get("time", attempt["started"]),
        })
    except (OSError, ValueError, LookupError) as error:
        rows.append({"directory": directory, "problem": f"{type(error).__name__}: {error}"[:200]})
rows.sort(key=lambda row: row.get("updated", 0), reverse=True)
print(json.dumps({"total": len(rows), "runs": rows[:int(sys.argv[2])]}))
"""
"""For Python on the head node. Runs are the directories with a run.json, up to three levels deep."""


class ListedRun(Document):
    """A run, by its records."""

    directory: str = Field(description="Where its records are.")
    problem: str = Field(default="", description="Why the records cannot be read; empty: they can.")
    nodes: int | None = Field(default=None, description="Nodes of the newest attempt.")
    attempts: int | None = Field(default=None, description="How often it was started.")
    job: str | None = Field(default=None, description="Slurm's job of the newest attempt.")
    step: int | None = Field(default=None, description="The newest step.")
    steps: int | None = Field(default=None, description="Steps of the whole run.")
    loss: float | None = Field(default=None, description="Loss of the newest step.")
    updated: datetime | None = Field(default=None, description="When the newest step ended, UTC.")


class RunList(Document):
    """What ``runs list --output json`` prints."""

    total: int = Field(description="How many runs there are.")
    runs: tuple[ListedRun, ...] = Field(description=f"The {LISTED} newest.")


def list_runs(deployment: Deployment, directory: str) -> RunList:
    """Return the runs below a directory of the head node.

    Raises:
        OperationError: The head node cannot be asked, or its answer cannot be read.
    """
    command = shlex.join(["python3", "-c", SCRIPT, directory, str(LISTED)])
    answer = HeadNode(deployment).run(command)
    if answer.code:
        raise OperationError(f"The runs cannot be listed: {answer.errors.strip() or f'exit code {answer.code}'}")
    try:
        document = json.loads(answer.output)
    except ValueError:
        raise OperationError(f"The runs cannot be listed: {answer.output.strip() or 'no answer'}") from None
    for run in document["runs"]:
        if "updated" in run:
            run["updated"] = datetime.fromtimestamp(run["updated"], UTC)
    return RunList.model_validate(document)


def table(listed: RunList) -> Table:
    """Return the runs for people."""
    rows = screen.table("run", ">step", ">loss", ">nodes", ">attempts", "job", "updated, UTC")
    for run in listed.runs:
        if run.problem:
            rows.add_row(run.directory, "", "", "", "", "", run.problem)
            continue
        loss = "" if run.loss is None else f"{run.loss:.4f}"
        updated = "" if run.updated is None else f"{run.updated:%Y-%m-%d %H:%M}"
        step = f"{run.step} of {run.steps}" if run.steps else str(run.step)
        rows.add_row(run.directory, step, loss, str(run.nodes), str(run.attempts), run.job or "", updated)
    return rows
