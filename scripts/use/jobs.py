"""The jobs of a cluster: submitted, listed and cancelled."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pydantic import Field

from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.streamed_command import login_command, print_output, start
from scripts.account.slurm import Job, slurm_state
from scripts.core.document import Result
from scripts.core.errors import OperationError
from scripts.core.report import Block, Line, Table, columns

if TYPE_CHECKING:
    from scripts.account.causes import FoundCause

SECONDS_TO_SUBMIT: Final = 3600
"""How long submit.py may take, which reads the data before anything is submitted."""


class JobList(Result):
    """What ``jobs list --output json`` prints."""

    running: int = Field(description="Number of jobs that have nodes.")
    waiting: int = Field(description="Number of jobs that wait for nodes.")
    jobs: tuple[Job, ...] = Field(description="The jobs, those that have nodes first; of many the first 40.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Line(f"{self.running} running, {self.waiting} waiting")
        titles = columns(">job", "user", "queue", "state", ">nodes", "elapsed", "reason", "name")
        yield Table("", titles, list(map(_row, self.jobs)))


class CancelledJobs(Result):
    """What ``jobs cancel --output json`` prints."""

    jobs: tuple[str, ...] = Field(description="The cancelled jobs: numbers, or 12_3 of an array.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Line(f"Cancelled: {', '.join(self.jobs)}")


def _row(job: Job) -> list[str]:
    reason = "" if job.reason == "None" else job.reason
    return [str(job.number), job.user, job.queue, job.state, str(job.nodes), job.elapsed, reason, job.name]


def waiting_causes(jobs: Sequence[Job], names: Mapping[str, str]) -> list[FoundCause]:
    """Return what is known of why jobs wait, each once; `names` fill placeholders."""
    from scripts.account.causes import Evidence, find

    found: dict[str, FoundCause] = {}
    for job in jobs:
        evidence = Evidence(kind="job", source=f"job {job.number}", time=datetime.now(UTC), text=job.reason)
        if (cause := find(evidence, names)) is not None:
            found.setdefault(cause.id, cause)
    return list(found.values())


def submit(deployment: Deployment, words: Sequence[str]) -> int:
    """Call the cluster's submit.py with these words, here if Slurm is, else on the head node; return its exit code.

    Ctrl-C cancels it there, too.

    Raises:
        HeadNodeError: The head node cannot be reached.
    """
    jobs = f"{deployment.settings.storage.file_system.mount_dir}/ultracluster/jobs/current"
    command = ["python3", f"{jobs}/submit.py", *words]
    if shutil.which("sbatch"):
        return subprocess.run(command, check=False).returncode
    login = login_command(deployment.system_user, command)
    sent = start(deployment, HeadNode(deployment), login, seconds=SECONDS_TO_SUBMIT)
    return sent.follow_or_cancel(print_output)


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
    command = shlex.join(["scancel", "--", *jobs])
    answer = HeadNode(deployment).run(f"export PATH=/opt/slurm/bin:$PATH LC_ALL=C\n{command}")
    if answer.code or answer.errors.strip():
        raise OperationError(f"{command}: {answer.errors.strip() or f'exit code {answer.code}'}")
