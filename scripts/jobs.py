"""The jobs of a cluster: listed and cancelled on the head node."""

from __future__ import annotations

import shlex

from pydantic import Field

from scripts.deployment import Deployment
from scripts.document import Document
from scripts.errors import OperationError
from scripts.fleet.jobs import slurm_state
from scripts.remote.head_node import HeadNode
from scripts.slurm import Job


class JobList(Document):
    """What ``jobs list --output json`` prints."""

    running: int = Field(description="Number of jobs that have nodes.")
    waiting: int = Field(description="Number of jobs that wait for nodes.")
    jobs: tuple[Job, ...] = Field(description="The jobs, those that have nodes first; of many the first 40.")


def list_jobs(deployment: Deployment) -> JobList:
    """Return the jobs that wait or run.

    Raises:
        HeadNodeError: The head node cannot be asked, or Slurm does not answer.
    """
    state = slurm_state(HeadNode(deployment))
    return JobList(running=state.active_jobs, waiting=state.waiting_jobs, jobs=state.jobs)


def cancel(deployment: Deployment, jobs: tuple[str, ...]) -> None:
    """Cancel jobs, given by number or as 12_3 of an array.

    Raises:
        OperationError: The head node cannot be asked, or Slurm refuses; the message has its reason.
    """
    command = shlex.join(["scancel", *jobs])
    answer = HeadNode(deployment).run(f"export PATH=/opt/slurm/bin:$PATH LC_ALL=C\n{command}")
    if answer.code or answer.errors.strip():
        raise OperationError(f"{command}: {answer.errors.strip() or f'exit code {answer.code}'}")
