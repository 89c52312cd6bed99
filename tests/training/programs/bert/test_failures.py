"""What ends a run, and what must not; and a host that is ahead of its device, as on XLA."""

from __future__ import annotations

import os
import runpy
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from bert import check, learner
from bert import train as training
from bert.__main__ import main
from bert.check import Findings
from tests.training.programs.bert.runs import arguments, checkpoints, error_lines, in_ranks, losses, steps, train
from ultracluster_job import checkpoint, loop
from ultracluster_job.backend import Backend
from ultracluster_job.checkpoint import Checkpoint, Checkpoints

# Each of the following runs in a process of its own, where it may change what it likes.


def ahead(command: Sequence[str]) -> int:
    Backend.ahead = 1
    return main(command)


def ahead_of_a_slow_device(command: Sequence[str]) -> int:
    """By the clock, computing takes as good as no time, and a device as many seconds as its rank's number."""
    now = 0.0

    def pass_time(seconds: float) -> float:
        nonlocal now
        now += seconds
        return now

    loop._STEPS_BETWEEN_WAITS = 5
    loop.perf_counter = lambda: pass_time(0.001)  # type: ignore[attr-defined]
    Backend.wait = lambda self: pass_time(self.worker.rank)  # type: ignore[method-assign, assignment]
    return ahead(command)


def ahead_with_bad_loss_from_step(number: int, value: float, command: Sequence[str]) -> int:
    right, calls = learner.losses, 0

    def losses(model: Any, batch: Mapping[str, Any]) -> tuple[Any, Any]:
        nonlocal calls
        calls += 1
        mlm, nsp = right(model, batch)
        return (mlm * value if calls > (number - 1) * 4 else mlm), nsp  # four micro-batches are a step

    learner.losses = losses
    return ahead(command)


def without_space_for_checkpoints(steps_without: Sequence[int], command: Sequence[str]) -> int:
    right = Checkpoints._write

    def write(self: Checkpoints, step: int, state: Mapping[str, Any]) -> None:
        if step in steps_without:
            raise OSError(28, "No space left on device")
        right(self, step, state)

    checkpoint.Checkpoints._write = write  # type: ignore[method-assign]
    return main(command)


def with_losses_that_cannot_be_called(command: Sequence[str]) -> int:
    learner.losses = None  # type: ignore[assignment]
    sys.argv[1:] = command
    runpy.run_module("bert", run_name="__main__", alter_sys=True)
    return 0


def with_a_reduction_that_does_nothing(command: Sequence[str]) -> int:
    Backend.reduce = lambda self, tensors: None  # type: ignore[method-assign]
    return main(command)


def while_graphs_are_extracted(command: Sequence[str]) -> int:
    Backend.extracting = True
    Backend.ahead = 1
    Backend.fetch = lambda self, vector: [0.0] * len(vector)  # type: ignore[method-assign]
    Backend.reduce = lambda self, tensors: [tensor.zero_() for tensor in tensors]  # type: ignore
    examine = check.examine

    def slow(*arguments: Any) -> Findings:
        time.sleep(1)
        return examine(*arguments)

    training.examine = slow  # type: ignore[assignment, attr-defined]
    return main(command)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_ends_the_run_and_is_in_no_checkpoint(tmp_path: Path, value: float) -> None:
    # Step 10 has a checkpoint, and a host that is ahead must not save it before it knows the loss.
    assert in_ranks(1, ahead_with_bad_loss_from_step, 10, value, arguments(tmp_path), errors=tmp_path / "errors") == [3]
    (line,) = error_lines(tmp_path / "errors")
    assert line.startswith(f"Step 10: the loss is {value}, ")
    assert (tmp_path / ".diverged").read_text() == f"10 {os.uname().nodename}\n"
    assert checkpoints(tmp_path) == ["step-00000005"]
    assert [step["step"] for step in steps(tmp_path)] == list(range(1, 10))


def test_a_host_that_is_ahead_of_its_device_gets_the_same_result(tmp_path: Path) -> None:
    assert train(tmp_path / "even") == [0]
    assert in_ranks(1, ahead, arguments(tmp_path / "ahead")) == [0]
    assert losses(tmp_path / "ahead") == losses(tmp_path / "even")
    assert checkpoints(tmp_path / "ahead") == checkpoints(tmp_path / "even")
    of_runs = [
        Checkpoint(12, tmp_path / run / "checkpoints" / "step-00000012").load()["weights"] for run in ("even", "ahead")
    ]
    assert all(torch.equal(weight, of_runs[1][name]) for name, weight in of_runs[0].items())


def test_a_slow_device_is_seen_where_the_host_waits_for_it(tmp_path: Path) -> None:
    assert in_ranks(2, ahead_of_a_slow_device, arguments(tmp_path)) == [0, 0]
    slow = [step for step in steps(tmp_path) if step["compute_seconds_max"] >= 1]
    assert [(step["step"], step["slowest_rank"]) for step in slow] == [(1, 1), (6, 1), (11, 1)]
    assert slow == [step for step in steps(tmp_path) if step["waited_for_devices"]]


def test_a_checkpoint_that_cannot_be_saved_is_reported_and_training_continues(tmp_path: Path) -> None:
    assert in_ranks(1, without_space_for_checkpoints, [5], arguments(tmp_path), errors=tmp_path / "errors") == [0]
    assert error_lines(tmp_path / "errors") == [
        "The checkpoint of step 5 was not saved: [Errno 28] No space left on device",
        "Checkpoints are saved again.",
    ]
    assert checkpoints(tmp_path) == ["step-00000010", "step-00000012"]


def test_a_run_whose_last_checkpoint_cannot_be_saved_is_not_finished(tmp_path: Path) -> None:
    command = arguments(tmp_path)
    assert in_ranks(2, without_space_for_checkpoints, [12], command, errors=tmp_path / "errors") == [1, 1]
    assert error_lines(tmp_path / "errors") == [
        "The checkpoint of step 12 was not saved: [Errno 28] No space left on device"
    ]
    assert train(tmp_path) == [0]
    assert checkpoints(tmp_path)[-1] == "step-00000012"
    assert [step["step"] for step in steps(tmp_path)] == list(range(1, 13))


def test_a_reduction_that_does_nothing_is_found_out(tmp_path: Path) -> None:
    assert in_ranks(2, with_a_reduction_that_does_nothing, arguments(tmp_path), errors=tmp_path / "errors") == [1, 1]
    assert error_lines(tmp_path / "errors") == ["1 ranks took part in a reduction, of 2"]


def test_extraction_of_graphs_leaves_no_records_and_no_checkpoints(tmp_path: Path) -> None:
    """No rank continues before rank 0 has examined the directories, though no device waits for another."""
    assert in_ranks(2, while_graphs_are_extracted, arguments(tmp_path, "--stop-after", "5")) == [0, 0]
    assert not list(tmp_path.iterdir())


def test_an_error_that_nobody_foresaw_ends_the_process_with_its_traceback(tmp_path: Path) -> None:
    errors = tmp_path / "errors"
    assert in_ranks(1, with_losses_that_cannot_be_called, arguments(tmp_path), errors=errors) == [1]
    assert "Traceback" in errors.read_text()
    assert "TypeError" in errors.read_text()
