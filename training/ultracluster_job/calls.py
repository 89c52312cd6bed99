"""What a program tells its job, and asks it, whatever it trains. PyTorch is needed for ``stop_requested`` alone."""

from __future__ import annotations

import os
import re
import sys
import time
import zipfile
from functools import cache, cached_property
from math import isfinite
from pathlib import Path
from typing import Any

from .errors import DIVERGED
from .heartbeat import Heartbeat, Stage
from .ranks import Exchange, node_names, this_worker
from .recorder import Recorder, RunFacts

RUN = "ULTRACLUSTER_RUN"
"""The variable that names the directory of the run; without it, nothing is recorded, and no run resumed."""
CHECKPOINTS = "ULTRACLUSTER_CHECKPOINTS"
"""The variable with the pattern of checkpoints in it, as program.toml has it."""
STOP_FILE = "ULTRACLUSTER_STOP_FILE"
STALL_SECONDS = "ULTRACLUSTER_STALL_SECONDS"
PROGRAM = "ULTRACLUSTER_PROGRAM"
"""The variable that names the program's folder."""
_STALL_SECONDS = 900
_NUMBER = re.compile(r"\d+")
_ZIP = b"PK\x03\x04"


class _Job:
    """The job as this process sees it, from its first call on."""

    def __init__(self) -> None:
        self.worker = this_worker()
        self.directory = Path(os.environ[RUN]) if os.environ.get(RUN) else None
        self.recorder: Recorder | None = None
        self.exchange: Exchange | None = None
        self.asked = 0
        self.settled = time.perf_counter()

    @cached_property
    def heartbeat(self) -> Heartbeat:
        """The heartbeat, from the first beat or step on: who asks, and tells nothing, is not watched."""
        return Heartbeat(int(os.environ.get(STALL_SECONDS, _STALL_SECONDS)), self.worker.local_rank)


_job = cache(_Job)


def beat() -> None:
    """Tell that this rank is alive, and has got further.

    Call it before each collective, say, so that a rank that the others wait for is the one with the fewest beats. A
    rank that has logged ten steps, and then is silent for ten of its median steps and 15 minutes
    (ULTRACLUSTER_STALL_SECONDS; 0: for ever), ends the job with exit code 76, and its node is named. Before that, from
    the first beat on, it may be silent for two hours, or 20 minutes with all graphs compiled
    (ULTRACLUSTER_START_SECONDS). A rank that only asks, by the other functions, may be silent for ever.
    """
    _job().heartbeat.beat(Stage.COMPUTE)


def log(step: int, loss: float, **numbers: float) -> None:
    """Record an optimizer step that is done; its seconds are those since the last call.

    It is a line of metrics.jsonl in the run's directory, and of TensorBoard's files. Further numbers are free; with
    these, the job tells more: ``steps`` of the whole run, ``sequences``, ``tokens`` and ``flops`` of this step over all
    ranks, ``gradient_norm``. The first call decides where this start resumed: at the step before.

    Raises:
        SystemExit: The loss is not finite: with ``errors.DIVERGED``.
        ValueError: The step is below 1, or a number is none.
    """
    job = _job()
    if step < 1 or not all(isinstance(number, int | float) for number in (step, loss, *numbers.values())):
        raise ValueError(f"log: got step {step}, loss {loss}, {numbers}; allowed: a step from 1 on, and numbers")
    now = time.perf_counter()
    seconds, job.settled = now - job.settled, now
    if job.worker.rank == 0 and job.directory:
        if job.recorder is None:
            job.recorder = Recorder(job.directory, _facts(), resumed_step=step - 1)
        if not isfinite(loss):
            job.recorder.diverged(step, None)
    if not isfinite(loss):
        print(f"Step {step}: the loss is {loss}.", file=sys.stderr, flush=True)
        sys.exit(DIVERGED)
    if job.recorder:
        job.recorder.step(step=step, loss=float(loss), seconds=seconds, further=numbers)
        job.recorder.tell_now_and_then(last=step == numbers.get("steps"))
    job.heartbeat.step(step)
    job.heartbeat.beat(Stage.COMPUTE)


def stop_requested() -> bool:
    """Return whether to save a checkpoint and exit with 75 now: the time limit is near, or somebody wants the nodes.

    All ranks get the same answer at the same call, through torchrun's store: one message a call and rank, so ask once a
    step, of seconds.
    """
    job = _job()
    if job.directory is None:
        return False
    asked = job.worker.rank == 0 and (job.directory / os.environ.get(STOP_FILE, "stop")).exists()
    return bool(_told(asked))


def resume_directory() -> Path | None:
    """Return the newest checkpoint of this run, a directory or file, or None for a start from the beginning.

    It is the one with the greatest last number in its name that matches the pattern of program.toml, checkpoints/step-*
    unless it says another. One with an empty file, or a file of PyTorch that is cut off or has wrong checksums, is
    passed over, which is told. What else is whole, the program must know: write under another name, then rename. Rank
    0 looks, and all ranks get the same.

    Raises:
        OSError: The run's directory cannot be read. To start again then would lose what is in it.
    """
    job = _job()
    if job.directory is None:
        return None
    found = _newest(job.directory) if job.worker.rank == 0 else None
    newest: Path | None = _told(found)
    return newest


def _told(value: Any) -> Any:
    """Return rank 0's value on all ranks, which must all call it."""
    job = _job()
    if job.worker.ranks == 1:
        return value
    if job.exchange is None:
        job.exchange = Exchange(job.worker)
    job.asked += 1
    return job.exchange.tell(f"call/{job.asked}", value)


def _newest(directory: Path) -> Path | None:
    next(directory.iterdir(), None)  # glob would take what it cannot read for empty
    matching = directory.glob(os.environ.get(CHECKPOINTS, "checkpoints/step-*"))
    numbered = [(int(numbers[-1]), path) for path in matching if (numbers := _NUMBER.findall(path.name))]
    for _, path in sorted(numbered, reverse=True):
        problem = _problem(path)
        if problem is None:
            return path
        print(f"Checkpoint {path} is passed over: {problem}", file=sys.stderr, flush=True)
    return None


def _problem(checkpoint: Path) -> str | None:
    """Return what is seen to be wrong with a checkpoint without knowing what it is, or None."""
    files = [checkpoint] if checkpoint.is_file() else sorted(each for each in checkpoint.rglob("*") if each.is_file())
    for path in files:
        with path.open("rb") as file:
            start = file.read(len(_ZIP))
        if not start:
            return f"{path.name} is empty"
        if start == _ZIP:  # of torch.save
            try:
                with zipfile.ZipFile(path) as archive:
                    record = archive.testzip()
            except zipfile.BadZipFile as error:
                return f"{path.name}: {error}"
            if record is not None:
                return f"{path.name}: the checksum of {record} is wrong"
    return None if files else "it is empty"


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
