"""Tiny runs of the training program, in as many processes as there are ranks."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from bert.__main__ import leave
from tests.ports import free_port

_TINY = {
    "backend": "cpu",
    "layers": 2,
    "hidden": 64,
    "heads": 2,
    "intermediate": 128,
    "vocabulary": 512,
    "sequence-length": 32,
    "max-predictions": 5,
    "global-batch": 16,
    "micro-batch": 4,
    "steps": 12,
    "warmup-steps": 2,
    "learning-rate": 2e-3,
    "checkpoint-interval": 5,
    "seed": 5,
}
TINY = tuple(word for name, value in _TINY.items() for word in (f"--{name}", str(value)))
_IMPORTED = ["bert.train", "torch.utils.tensorboard"]
_SECONDS = 600  # a rank that takes longer hangs


def in_ranks(
    ranks: int, function: Callable[..., int], *given: object, nodes: int = 1, errors: Path | None = None
) -> list[int | None]:
    """Call a function in processes of their own, which see what torchrun would tell them.

    Args:
        ranks: Processes.
        function: What each calls; it returns the exit code.
        given: What it is called with.
        nodes: On how many nodes they seem to be.
        errors: A file that gets their standard error.

    Returns:
        Their exit codes.
    """
    context = _context()
    port = free_port()
    processes = []
    for rank in range(ranks):
        on_node = ranks // nodes
        variables = {
            "RANK": rank,
            "WORLD_SIZE": ranks,
            "LOCAL_RANK": rank % on_node,
            "GROUP_WORLD_SIZE": nodes,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            "OMP_NUM_THREADS": 1,
        }
        environment = {name: str(value) for name, value in variables.items()}
        processes.append(context.Process(target=_call, args=(environment, errors, function, given)))
    for process in processes:
        process.start()
    for process in processes:
        process.join(_SECONDS)
        process.kill()
        process.join()
    return [process.exitcode for process in processes]


def train(output: Path, *options: str, ranks: int = 1, nodes: int = 1) -> list[int | None]:
    """Run the program with tiny sizes, and return the exit code of each rank."""
    return in_ranks(ranks, _main, arguments(output, *options), nodes=nodes)


def arguments(output: Path, *options: str) -> list[str]:
    """Return the command line of a run with tiny sizes."""
    return ["train", *TINY, "--output", str(output), *options]


def error_lines(errors: Path) -> list[str]:
    """Return the lines on standard error, without those of libraries."""
    return [line for line in errors.read_text().splitlines() if line[:2] not in ("[W", "[G")]


def steps(output: Path) -> list[dict[str, Any]]:
    """Return the lines of metrics.jsonl."""
    return [json.loads(line) for line in (output / "metrics.jsonl").read_text().splitlines()]


def losses(output: Path) -> list[float]:
    """Return the loss of each step."""
    return [step["loss"] for step in steps(output)]


def checkpoints(output: Path) -> list[str]:
    """Return the names of the checkpoints."""
    return sorted(path.name for path in (output / "checkpoints").iterdir())


@cache
def _context() -> Any:
    """Return a server that has imported everything before it forks, which takes longer than a tiny run."""
    root = Path(__file__).parents[4]
    folders = (root, root / "training", root / "training/programs")
    os.environ["PYTHONPATH"] = ":".join(map(str, folders))  # before Python 3.12.8 the server gets no sys.path
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context


def _main(arguments: Sequence[str]) -> int:
    from bert.__main__ import main

    return main(arguments)


def _call(
    variables: dict[str, str], errors: Path | None, function: Callable[..., int], arguments: Sequence[object]
) -> None:
    import torch

    if errors:
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    os.environ.update(variables)
    torch.set_num_threads(1)
    leave(function(*arguments))


def in_a_process_of_its_own(function: Callable[[], None]) -> int:
    """Return the exit code, negative for a signal. In there torch must not compute: its threads are not forked."""
    process = multiprocessing.get_context("fork").Process(target=function)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode
