"""The jobs of a cluster: submitted, listed, shown and cancelled."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from pydantic import Field

from scripts.account import jobs as one_job
from scripts.account import troubles
from scripts.account.deployment import Deployment
from scripts.account.job_reasons import Explanation, explain_reason
from scripts.account.jobs import KnownJob
from scripts.account.remote import program
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.streamed_command import login_command, print_output, start
from scripts.account.remote.values import Line as Text
from scripts.account.remote.values import State
from scripts.account.slurm import FAILED, WAITING, Job, Wait
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.errors import HeadNodeError, OperationError, UnusableError
from scripts.core.figures import duration
from scripts.core.report import Block, Command, Facts, Line, Table, Toned, columns

SECONDS_TO_SUBMIT: Final = 3600
"""How long submit.py may take, which reads the data before anything is submitted."""
SECONDS_TO_LIST: Final = 30
"""How long Slurm may take to list its jobs: less than its own programs would wait."""
ENDED_LISTED: Final = 50
"""Ended jobs of one answer, the newest."""


class EndedJob(Document):
    """A job that has ended."""

    id: Text = Field(description="12, or 17_1 of an array.")
    number: int = Field(description="Its own number.")
    user: Text = Field(description="Whose it was.")
    queue: Text = Field(description="Its queue.")
    state: State = Field(description="How it ended, such as FAILED.")
    reason: Text = Field(description="Who cancelled it, as accounting has it; empty: nobody.")
    exit_code: Text = Field(description="Exit code and signal, such as 1:0.")
    nodes: int = Field(description="How many it had.")
    node_list: Text = Field(description="Which these were, truncated after 60 characters.")
    elapsed: Text = Field(description="How long it ran.")
    time_limit: Text = Field(description="How long it could have run.")
    started: datetime | None = Field(description="When it got its nodes; null: never.")
    ended: datetime | None = Field(description="When it ended.")
    name: Text = Field(description="Its name, truncated after 40 bytes.")


class JobList(Result):
    """What ``jobs list --output json`` prints."""

    deployment: DeploymentName
    running: int = Field(description="Number of jobs that have nodes.")
    waiting: int = Field(description="Number of jobs that wait for nodes.")
    jobs: tuple[Job, ...] = Field(description="The jobs, those that have nodes first; of many the first 40.")
    waits: tuple[Wait, ...] = Field(default=(), description="Why jobs wait: the reasons that most jobs have.")
    problems: tuple[str, ...] = Field(
        default=(), description="What keeps jobs from running, as `status` has it, with the next command."
    )
    ended: tuple[EndedJob, ...] | None = Field(
        default=None, description=f"The newest {ENDED_LISTED} that have ended, the newest first; null: not asked for."
    )
    ended_total: int | None = Field(default=None, description="How many have ended in that time; null: not asked for.")
    accounting: bool | None = Field(
        default=None,
        description="Whether accounting knows those; else Slurm remembers some minutes; null: not asked for.",
    )
    since_seconds: int | None = Field(default=None, description="How far back they are asked for; null: not asked for.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield from (Line(Toned(each, "bad")) for each in self.problems)
        yield Line(f"{self.running} running, {self.waiting} waiting")
        titles = columns(">job", "user", "queue", "state", ">nodes", ">elapsed", ">limit", "reason", "name", "on")
        yield Table("", titles, list(map(_row, self.jobs)), narrow=True)
        if self.ended is None or self.since_seconds is None:
            return
        since = duration(timedelta(seconds=self.since_seconds))
        newest = f", the {len(self.ended)} newest:" if len(self.ended) < (self.ended_total or 0) else ""
        yield Line(f"{self.ended_total} ended in the last {since}{newest}")
        titles = columns(
            ">job", "user", "queue", "state", ">exit", ">nodes", ">elapsed", ">limit", "ended, UTC", "name", "on"
        )
        yield Table("", titles, list(map(_ended_row, self.ended)), narrow=True)
        if failed := next((each for each in self.ended if each.state in FAILED), None):
            yield Line(f"The newest that failed is {failed.id}; how it ended:")
            yield Command(f"./ultracluster jobs show {self.deployment} {failed.id}")
        if not self.accounting:
            yield Line("There is no accounting, or it does not answer: Slurm forgets ended jobs after some minutes.")


class ChosenJobs(NamedTuple):
    """Jobs that somebody means by one word.

    Attributes:
        asked: The word.
        problem: Why it cannot be cancelled; empty: it can.
        words: What scancel is told; none: nothing of it is left.
        live: How many are to be cancelled.
        left: How many were not, by state.
        said: What scancel said.
        before: How many there are of them, by state.
        tasks: Their numbers in an array, by state.
        user: Whose they are.
        name: Their name.
    """

    asked: str
    problem: Literal["", "unknown", "array"]
    words: tuple[Text, ...]
    live: int
    left: dict[State, int]
    said: Text
    before: dict[State, int]
    tasks: dict[State, Text]
    user: Text
    name: Text

    def __str__(self) -> str:
        """Return what these are, for people."""
        return f"  {self.words[0] if self.words else self.asked}  {self.user}  {counted(self.before)}  {self.name}"


class NotCancelled(Document):
    """What was asked for and not cancelled."""

    id: str = Field(description="As it was asked for.")
    why: str = Field(description="Why not.")


class CancelledJobs(Result):
    """What ``jobs cancel --output json`` prints."""

    jobs: tuple[str, ...] = Field(
        description="What Slurm has cancelled, asked afterwards: 12, 12_3 or 12_[4-9] of an array; 12 is all of it."
    )
    not_cancelled: tuple[NotCancelled, ...] = Field(default=(), description="The others.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        if self.jobs:
            yield Line(f"Cancelled: {', '.join(self.jobs)}")
        for each in self.not_cancelled:
            yield Line(f"Not cancelled: {each.id}: {each.why}")


class ShownJob(Result):
    """What ``jobs show --output json`` prints."""

    job: KnownJob = Field(description="What is known of it.")
    explanations: tuple[Explanation, ...] = Field(description="What its state or its reason means.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people."""
        yield Facts([(title, text) for title, text in self._facts() if text])
        for each in self.explanations:
            yield from each.blocks()
        if self.job.source == "accounting":
            yield Line("Slurm's controller has forgotten it; this is what accounting knows.")

    def _facts(self) -> Iterator[tuple[str, str]]:
        job = self.job
        if job.of_array:
            yield "Array", job.number
            for state, tasks in job.of_array.items():
                yield state, one_job.of_array(job.number, tasks)
        else:
            yield "Job", job.id or job.number
            yield "State", job.said
        yield "Name", job.name
        yield "User", job.user
        yield "Account", " ".join(filter(None, (job.account, f"(QoS {job.qos})" if job.qos and job.account else "")))
        yield "Queue", job.queue
        yield "Nodes", f"{job.node_count} {job.node_list}".strip()
        yield "Constraint", job.features
        yield "Dependency", job.dependency
        yield "Time", " of ".join(filter(None, (job.elapsed, job.time_limit)))
        for title, moment in (
            ("Submitted", job.submitted), ("Expected", job.expected), ("Started", job.started), ("Ended", job.ended),
        ):  # fmt: skip
            yield title, f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else ""
        yield "Requeued", str(job.restarts or "")
        yield "Output", job.output
        yield "Directory", job.directory
        yield "Command", job.command
        yield "Comment", job.comment


def counted(states: Mapping[str, int]) -> str:
    """Return numbers of jobs by state for people; one job is its state."""
    if list(states.values()) == [1]:
        return next(iter(states))
    return ", ".join(f"{count} {state}" for state, count in states.items())


def _row(job: Job) -> list[str]:
    reason = "" if job.reason == "None" else job.reason
    return [
        job.id, job.user, job.queue, job.state, str(job.nodes), job.elapsed, job.time_limit, reason, job.name,
        job.node_list,
    ]  # fmt: skip


def _ended_row(job: EndedJob) -> list[str]:
    state = f"{job.state} {job.reason}".strip()
    ended = f"{job.ended:%m-%d %H:%M}" if job.ended else ""
    return [
        job.id, job.user, job.queue, state, job.exit_code, str(job.nodes), job.elapsed, job.time_limit, ended, job.name,
        job.node_list,
    ]  # fmt: skip


def explained(jobs: JobList, names: Mapping[str, str]) -> list[Explanation]:
    """Return what the reasons why jobs wait mean, each once, of a listed job if there is one; `names` fill the rest."""
    rows = {each.reason: each.id for each in reversed(jobs.jobs) if each.state in WAITING}
    found: dict[str, Explanation] = {}
    for each in jobs.waits:
        row = rows.get(each.reason, each.job)
        job = row.partition("%")[0] + ("]" if "%" in row else "")
        meaning = explain_reason(each.reason, job, names) if each.reason != "None" else None
        if meaning is not None:
            found.setdefault(meaning.why, meaning)
    return list(found.values())


def submit(deployment: Deployment, words: Sequence[str]) -> int:
    """Call the cluster's submit.py with these words, here if Slurm is, else on the head node; return its exit code.

    Ctrl-C cancels it there, too.

    Raises:
        HeadNodeError: The head node cannot be reached.
        UnusableError: The cluster has no Neuron SDK, and with that no submit.py.
    """
    if deployment.settings.cluster.neuron_sdk is None:
        raise UnusableError(
            f"{deployment.name} has no programs of training jobs: `cluster.neuron_sdk` is null in {deployment.file}",
            f"any job starts by sbatch: ./ultracluster exec {deployment.name} -- sbatch --help",
        )
    jobs = f"{deployment.settings.storage.file_system.mount_dir}/ultracluster/jobs/current"
    command = ["python3", f"{jobs}/submit.py", *words]
    if shutil.which("sbatch"):
        return subprocess.run(command, check=False).returncode
    login = login_command(deployment.system_user, command)
    sent = start(deployment, HeadNode(deployment), login, seconds=SECONDS_TO_SUBMIT)
    return sent.follow_or_cancel(print_output)


class _Ended(NamedTuple):
    number: int
    user: Text
    queue: Text
    state: Text
    nodes: int
    elapsed: Text
    name: Text
    id: Text
    time_limit: Text
    node_list: Text
    exit_code: Text
    started: Text
    ended: Text

    def read(self) -> EndedJob:
        state, _, reason = self.state.partition(" ")  # CANCELLED by 1000
        times = {
            key: f"{value}Z" if value[:1].isdigit() else None
            for key, value in (("started", self.started), ("ended", self.ended))
        }
        return EndedJob.model_validate({**self._asdict(), "state": state, "reason": reason, **times})


class _EndedAnswer(Document):
    accounting: bool
    total: int
    jobs: tuple[_Ended, ...]


@contextmanager
def _slurm_of(deployment: Deployment) -> Iterator[None]:
    """Name what says why Slurm or the head node does not answer, where nothing better is known.

    Raises:
        HeadNodeError: It does not.
    """
    try:
        yield
    except HeadNodeError as error:
        raise HeadNodeError(str(error), error.hint or f"./ultracluster diagnose {deployment.name}") from error


def list_jobs(deployment: Deployment, since: timedelta | None = None) -> JobList:
    """Return the jobs that wait or run, and those that ended since then.

    Raises:
        HeadNodeError: The head node cannot be asked, or Slurm does not answer.
    """
    head_node = HeadNode(deployment)
    told = troubles.read(head_node.run(troubles.script(SECONDS_TO_LIST)))
    state = told.slurm
    if isinstance(state, str):
        hint = f"./ultracluster diagnose {deployment.name}"
        raise HeadNodeError(f"Slurm on the head node does not answer: {state}", hint)
    problems = troubles.troubles(deployment.name, None, state, told.disks)
    listed = JobList(
        deployment=deployment.name,
        running=state.active_jobs,
        waiting=state.waiting_jobs,
        jobs=state.jobs,
        waits=state.waits,
        problems=tuple(f"{each.sentence} ({each.command})" for each in problems),
    )
    if since is None:
        return listed
    seconds = int(since.total_seconds())
    with _slurm_of(deployment):
        how = ["controller"] if state.accounting else []
        command = program.words("jobs", "ended", str(seconds), str(ENDED_LISTED), *how)
        answer = program.ask(head_node, command, "ended", _EndedAnswer)
    return listed.model_copy(
        update={
            "ended": tuple(each.read() for each in answer.jobs),
            "ended_total": answer.total,
            "accounting": answer.accounting,
            "since_seconds": seconds,
        }
    )


def show(deployment: Deployment, job: str) -> ShownJob:
    """Return what Slurm or its accounting knows of a job, which is a number, 12_3 of an array, or a name.

    Raises:
        HeadNodeError: The head node cannot be asked, or Slurm does not answer.
        OperationError: Nobody knows the job.
    """
    with _slurm_of(deployment):
        known = one_job.find(HeadNode(deployment), job, most_nodes=0)
    if known is None:
        raise OperationError(
            f"Neither Slurm nor its accounting knows a job {job}", f"./ultracluster jobs list {deployment.name} --all"
        )
    names = {"deployment": deployment.name, "file": deployment.file}
    return ShownJob(job=known, explanations=tuple(known.explanations(names)))


def choose(deployment: Deployment, jobs: Sequence[str], *, arrays: bool) -> list[ChosenJobs]:
    """Return the jobs that are meant, of which some can be cancelled.

    Raises:
        HeadNodeError: The head node cannot be asked.
        OperationError: Slurm knows none of a number.
        UnusableError: A number is that of an array, and `arrays` does not allow that.
    """
    return _ask(deployment, "chosen", jobs, arrays=arrays)


def cancel(deployment: Deployment, jobs: Sequence[str], *, arrays: bool) -> CancelledJobs:
    """Cancel jobs, all or none, and return what Slurm has of them afterwards.

    Args:
        deployment: Whose jobs.
        jobs: Given by number, as 12_3 or 12_[4-9] of an array.
        arrays: Whether the number of an array means all of it; else it is refused.

    Raises:
        HeadNodeError: The head node cannot be asked.
        OperationError: Slurm knows none of a number.
        UnusableError: A number is that of an array, and `arrays` does not allow that.
    """
    cancelled: list[str] = []
    others: list[NotCancelled] = []
    for each in _ask(deployment, "cancel", jobs, arrays=arrays):
        if not each.words:
            others.append(NotCancelled(id=each.asked, why=f"it has ended: {counted(each.before)}"))
        elif each.left:
            said = f"; scancel: {each.said}" if each.said else ""
            others.append(NotCancelled(id=each.words[0], why=f"Slurm still has {counted(each.left)}{said}"))
        else:
            cancelled += each.words
    return CancelledJobs(jobs=tuple(cancelled), not_cancelled=tuple(others))


def _ask(deployment: Deployment, what: str, jobs: Sequence[str], *, arrays: bool) -> list[ChosenJobs]:
    command = program.words("jobs", what, "arrays" if arrays else "tasks", *jobs)
    with _slurm_of(deployment):
        found = program.ask(HeadNode(deployment), command, what, list[ChosenJobs])
    if unknown := [each.asked for each in found if each.problem == "unknown"]:
        raise OperationError(f"Slurm knows no job {', '.join(unknown)}, or no longer knows it: nothing was cancelled")
    arrays_asked = [
        f"{each.asked} is an array of jobs: "
        + ", ".join(f"{state} {one_job.of_array(each.asked, tasks)}" for state, tasks in each.tasks.items())
        for each in found
        if each.problem == "array"
    ]
    if arrays_asked:
        allowed = "allowed: some of these, or --array for all that is left of it; nothing was cancelled"
        raise UnusableError("\n".join([*arrays_asked, allowed]))
    return found
