"""What a program tells its job, and asks it, whatever it trains. PyTorch is needed for ``stop_requested`` alone."""

from __future__ import annotations

import atexit
import os
import re
import sys
import time
import zipfile
from collections import Counter
from functools import cache, cached_property
from math import isfinite
from pathlib import Path
from typing import Any

from .errors import DIVERGED
from .files import numbered
from .heartbeat import Heartbeat, Stage
from .ranks import Exchange, Worker, node_names, this_worker
from .recorder import Recorder, RunFacts, leave_divergence

RUN = "ULTRACLUSTER_RUN"
"""The variable that names the directory of the run; without it, nothing is recorded, and no run resumed."""
CHECKPOINTS = "ULTRACLUSTER_CHECKPOINTS"
"""The variable with the pattern of checkpoints in it, as program.toml has it."""
STOP_FILE = "ULTRACLUSTER_STOP_FILE"
STALL_SECONDS = "ULTRACLUSTER_STALL_SECONDS"
PROGRAM = "ULTRACLUSTER_PROGRAM"
"""The variable that names the program's folder."""
_STALL_SECONDS = 900
_SECONDS_FOR_OTHERS = 2
_IMPORTED = time.perf_counter()
_NUMBER = re.compile(r"\d+")
_ZIP = b"PK\x03\x04"


class _Job:
    """The job as this process sees it, from its first call on."""

    def __init__(self) -> None:
        self.worker = this_worker()
        self.directory = Path(os.environ[RUN]) if os.environ.get(RUN) else None
        self.recorder: Recorder | None = None
        self.exchange: Exchange | None = None
        self.asked: Counter[str] = Counter()
        self.resumed: int | None = None
        self.settled = _IMPORTED

    @cached_property
    def heartbeat(self) -> Heartbeat:
        """The heartbeat, from the first beat or step on: who asks, and tells nothing, is not watched."""
        heartbeat = Heartbeat(int(os.environ.get(STALL_SECONDS, _STALL_SECONDS)), self.worker.local_rank)
        atexit.register(heartbeat.stop)  # a rank that has ended keeps nobody waiting
        return heartbeat


_job = cache(_Job)


def beat() -> None:
    """Tell that this rank is alive, and has got further.

    Call it before each collective, say, so that a rank that the others wait for is the one with the fewest beats, and
    now and then where nothing is logged for long, as in an evaluation. A rank that has logged five steps, and then is
    silent for ten of its median steps and 15 minutes (ULTRACLUSTER_STALL_SECONDS; 0: for ever), ends the job with exit
    code 76, and its node is named. Before that, from the first beat on, it may be silent for two hours, or 20 minutes
    with all graphs compiled (ULTRACLUSTER_START_SECONDS). After the last of ``steps``, and without any beat or log, it
    may be silent for ever.
    """
    _job().heartbeat.beat(Stage.COMPUTE)


def log(step: int, loss: float, **numbers: float) -> None:
    """Record that optimizer steps are done, up to this one; its seconds are those since the last call.

    It is a line of metrics.jsonl in the run's directory, and of TensorBoard's files. Further numbers are free; with
    these, the job tells more: ``steps`` of the whole run; ``sequences``, ``tokens`` and ``flops`` since the last call,
    over all ranks; ``gradient_norm``. Numbers may be NumPy's or tensors of one. The first call decides where this start
    resumed: at the checkpoint that ``resume_directory`` returned, or else at the step before.

    Raises:
        SystemExit: The loss is not finite: with ``errors.DIVERGED``, after two seconds, for other ranks to see it.
        ValueError: The step is below 0, a number is none, or has the name of what the job records itself.
    """
    job = _job()
    step, loss, numbers = _numbers(step, loss, numbers)
    now = time.perf_counter()
    seconds, job.settled = now - job.settled, now
    if not isfinite(loss):
        print(f"Step {step}: the loss is {loss}.", file=sys.stderr, flush=True)
        if job.directory:
            leave_divergence(job.directory, step, node_names(job.worker.nodes)[_node(job.worker)])
            time.sleep(_SECONDS_FOR_OTHERS)
        sys.exit(DIVERGED)
    if job.worker.rank == 0 and job.directory and job.recorder is None:
        resumed = job.resumed if job.resumed is not None else max(0, step - 1)
        job.recorder = Recorder(job.directory, _facts(), resumed_step=min(resumed, step))
        job.settled = time.perf_counter()  # what was imported for it is no part of a step
    last = step == numbers.get("steps")
    if job.recorder:
        job.recorder.step(step=step, loss=loss, seconds=seconds, further=numbers)
        job.recorder.tell_now_and_then(last=last)
    job.heartbeat.step(step)
    job.heartbeat.beat(Stage.COMPUTE)
    if last:
        job.heartbeat.stop()


def _numbers(step: Any, loss: Any, numbers: dict[str, Any]) -> tuple[int, float, dict[str, float]]:
    """Return what was logged as plain numbers; those that are not finite are left out, but for the loss.

    Raises:
        ValueError: It is something else.
    """
    own = {"time", "seconds"} & numbers.keys()
    if own:
        raise ValueError(f"log: got {', '.join(sorted(own))}; allowed: other names, for these the job records itself")
    plain = {}
    for name, value in {"step": step, "loss": loss, **numbers}.items():
        try:
            if isinstance(value, str):
                raise TypeError(value)
            plain[name] = float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            kind = type(value).__name__
            raise ValueError(f"log: got {name} of type {kind}; allowed: a number, or an array of one") from None
    whole = plain.pop("step")
    if not (isfinite(whole) and whole == int(whole) >= 0):
        raise ValueError(f"log: got step {step}; allowed: a whole number from 0 on")
    logged = plain.pop("loss")
    return int(whole), logged, {name: value for name, value in plain.items() if isfinite(value)}


def _node(worker: Worker) -> int:
    return worker.rank * worker.nodes // worker.ranks


def stop_requested() -> bool:
    """Return whether to save a checkpoint and exit with 75 now: the time limit is near, or somebody wants the nodes.

    All ranks get the same answer at the same call, through torchrun's store: one message a call and rank, so ask once a
    step, of seconds. Once it was yes, a rank that exits waits for the others: one of them may still be saving.
    """
    job = _job()
    if job.directory is None:
        return False
    asked = job.worker.rank == 0 and (job.directory / os.environ.get(STOP_FILE, "stop")).exists()
    if not _told("stop", asked):
        return False
    if job.exchange is not None:
        atexit.register(cache(job.exchange.share), "end", None)
    return True


def resume_directory() -> Path | None:
    """Return the newest checkpoint of this run, a directory or file, or None for a start from the beginning.

    It is the one with the greatest last number in its name that matches the pattern of program.toml, checkpoints/step-*
    unless it says another; names with ".tmp" do not count. One without content, or with a file of PyTorch that is cut
    off or has wrong checksums, is passed over, which is told. What else is whole, the program must know: write under
    another name, then rename. Rank 0 looks, and all ranks get the same.

    Raises:
        OSError: The run's directory cannot be read. To start again then would lose what is in it.
    """
    job = _job()
    if job.directory is None:
        return None
    found = _newest(job.directory) if job.worker.rank == 0 else None
    newest: Path | None = _told("resume", found)
    job.resumed = int(_NUMBER.findall(newest.name)[-1]) if newest else 0
    return newest


def _told(name: str, value: Any) -> Any:
    """Return rank 0's value of a call on all ranks, which must all make it."""
    job = _job()
    if job.worker.ranks == 1:
        return value
    if job.exchange is None:
        job.exchange = Exchange(job.worker)
    job.asked[name] += 1
    return job.exchange.tell(f"{name}/{job.asked[name]}", value)


def _newest(directory: Path) -> Path | None:
    next(directory.iterdir(), None)  # glob would take what it cannot read for empty
    for _, path in numbered(directory, os.environ.get(CHECKPOINTS, "checkpoints/step-*")):
        problem = _problem(path)
        if problem is None:
            return path
        print(f"Checkpoint {path} is passed over: {problem}", file=sys.stderr, flush=True)
    return None


def _problem(checkpoint: Path) -> str | None:
    """Return what is seen to be wrong with a checkpoint without knowing what it is, or None."""
    files = [checkpoint] if checkpoint.is_file() else sorted(each for each in checkpoint.rglob("*") if each.is_file())
    if not any(path.stat().st_size for path in files):
        return "it is empty"
    for path in files:
        with path.open("rb") as file:
            if file.read(len(_ZIP)) != _ZIP:  # not of torch.save
                continue
        try:
            with zipfile.ZipFile(path) as archive:
                record = archive.testzip()
        except Exception as error:  # whatever damage leads to
            return f"{path.name}: {error}"
        if record is not None:
            return f"{path.name}: the checksum of {record} is wrong"
    return None


def _facts() -> RunFacts:
    worker = this_worker()
    folder = Path(os.environ.get(PROGRAM, ""))  # in a folder that its digest names, where submit.py keeps it
    return RunFacts(
        program=folder.name,
        nodes=worker.nodes,
        workers=worker.ranks,
        hosts=node_names(worker.nodes),
        peak_flops=None,
        options={"arguments": sys.argv[1:]},
        versions={"program": folder.parent.name},
    )
