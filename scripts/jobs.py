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


class ListedJob(Document):
    """A job that waits or runs."""

    number: int = Field(description="Its number; an array that waits is one job.")
    user: str = Field(description="Whose it is.")
    queue: str = Field(description="Where it waits or runs; several with commas.")
    state: str = Field(description="As Slurm has it, such as RUNNING.")
    nodes: int = Field(description="How many it has or wants.")
    elapsed: str = Field(description="How long it has run, as Slurm writes it.")
    reason: str = Field(description="Why it waits; `None`: it does not.")
    name: str = Field(description="Its name, cut off after 40 bytes.")


class JobList(Document):
    """What ``jobs list --output json`` prints."""

    running: int = Field(description="Number of jobs that have nodes.")
    waiting: int = Field(description="Number of jobs that wait for nodes.")
    jobs: tuple[ListedJob, ...] = Field(description="The jobs, those that have nodes first; of many the first 40.")


def list_jobs(deployment: Deployment) -> JobList:
    """Return the jobs that wait or run.

    Raises:
        HeadNodeError: The head node cannot be asked, or Slurm does not answer.
    """
    state = slurm_state(HeadNode(deployment))
    return JobList(
        running=state.active_jobs, waiting=state.waiting_jobs, jobs=tuple(_listed(job) for job in state.jobs)
    )


def cancel(deployment: Deployment, jobs: tuple[str, ...]) -> None:
    """Cancel jobs, given by number or as 12_3 of an array.

    Raises:
        OperationError: The head node cannot be asked, or Slurm refuses; the message has its reason.
    """
    command = shlex.join(["scancel", *jobs])
    answer = HeadNode(deployment).run(f"export PATH=/opt/slurm/bin:$PATH LC_ALL=C\n{command}")
    if answer.code or answer.errors.strip():
        raise OperationError(f"{command}: {answer.errors.strip() or f'exit code {answer.code}'}")


def _listed(job: Job) -> ListedJob:
    return ListedJob(**{name: getattr(job, name) for name in ListedJob.model_fields})
