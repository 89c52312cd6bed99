"""All that a program may import of the job that runs it: four functions, and the parts of the loop that BERT stands on.

A script needs none of it. With the functions, the job sees that it is alive, how far it is and where it resumes::

    from ultracluster_job import beat, log, resume_directory, stop_requested

Call them on every rank. What a rank is stands in torchrun's variables (RANK, WORLD_SIZE, LOCAL_RANK).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .calls import beat, log, resume_directory, stop_requested

if TYPE_CHECKING:
    from .backend import Backend
    from .batch import Batch, divide
    from .checkpoint import Checkpoint, Checkpoints
    from .errors import BadInputError, DivergedError, TrainingError
    from .files import CHECKPOINTS, IDENTITY, STATE, HeldError, lock, synchronize
    from .heartbeat import Heartbeat
    from .interval import seconds_between_checkpoints, seconds_between_failures
    from .loop import Plan, TrainingLoop, agree, connect
    from .ranks import Exchange, Worker, node_names, this_worker
    from .recorder import Recorder, RunFacts
    from .records import RunError, blockers, differences, read_run

_HOMES = {
    "backend": "Backend",
    "batch": "Batch divide",
    "checkpoint": "Checkpoint Checkpoints",
    "errors": "BadInputError DivergedError TrainingError",
    "files": "CHECKPOINTS IDENTITY STATE HeldError lock synchronize",
    "heartbeat": "Heartbeat",
    "interval": "seconds_between_checkpoints seconds_between_failures",
    "loop": "Plan TrainingLoop agree connect",
    "ranks": "Exchange Worker node_names this_worker",
    "recorder": "Recorder RunFacts",
    "records": "RunError blockers differences read_run",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "CHECKPOINTS", "IDENTITY", "STATE", "Backend", "BadInputError", "Batch", "Checkpoint", "Checkpoints",
    "DivergedError", "Exchange", "Heartbeat", "HeldError", "Plan", "Recorder", "RunError", "RunFacts", "TrainingError",
    "TrainingLoop", "Worker", "agree", "beat", "blockers", "connect", "differences", "divide", "lock", "log",
    "node_names", "read_run", "resume_directory", "seconds_between_checkpoints", "seconds_between_failures",
    "stop_requested", "synchronize", "this_worker",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the rest, of which much needs PyTorch, when it is asked for."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)
