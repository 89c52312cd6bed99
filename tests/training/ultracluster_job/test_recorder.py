"""What a run records, also when it is killed, resumed, or out of disk space; and what that comes to."""

from __future__ import annotations

import json
import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from bert.sizes import Sizes
from tests.training.programs.bert.runs import in_a_process_of_its_own
from ultracluster_job.recorder import BOARD, Recorder, RunFacts
from ultracluster_job.records import (
    METRICS,
    RUN,
    WARM_UP_STEPS,
    Attempt,
    Run,
    RunError,
    Slowdown,
    Straggler,
    blockers,
    differences,
    read_run,
)

FACTS = RunFacts(
    program="bert",
    nodes=2,
    workers=4,
    hosts=("compute-1", "compute-2"),
    peak_flops=1e11,
    options={"phase": 1, "output": "run"},
    versions={"torch": "2.9.0"},
)
ONE_NODE = replace(FACTS, nodes=1, workers=2, hosts=("compute-1",))


def record_step(
    recorder: Recorder,
    step: int,
    *,
    seconds: float = 0.5,
    compute_seconds: Sequence[float] = (0.4, 0.4, 0.4, 0.4),
    waited_for_devices: bool = True,
) -> None:
    recorder.step(
        step=step,
        loss=12 - step / 10,
        seconds=seconds,
        further={
            "mlm_loss": 11 - step / 10,
            "sequences": 64,
            "tokens": 8192,
            "flops": 64e9,
            "learning_rate": 1e-3,
            "gradient_norm": 2.0,
            "waited_for_devices": waited_for_devices,
            "data_seconds": 0.01,
            "checkpoint_seconds": 0.02,
        },
        compute_seconds=compute_seconds,
    )


def record(directory: Path, steps: Sequence[int], facts: RunFacts = FACTS, resumed_step: int = 0) -> Recorder:
    recorder = Recorder(directory, facts, resumed_step)
    for step in steps:
        record_step(recorder, step)
    return recorder


def recorded_steps(directory: Path) -> list[int]:
    return [step.step for step in read_run(directory).steps]


def test_a_line_tells_what_was_measured_and_what_follows_from_it(tmp_path: Path) -> None:
    record_step(Recorder(tmp_path, FACTS, 0), 3, compute_seconds=(0.3, 0.4, 0.44, 0.46))
    line = json.loads((tmp_path / METRICS).read_text())
    assert line.pop("time") > 0
    assert line.pop("compute_seconds_mean") == pytest.approx(0.4)
    assert line == {
        "step": 3,
        "loss": 11.7,
        "mlm_loss": 10.7,
        "seconds": 0.5,
        "learning_rate": 1e-3,
        "gradient_norm": 2.0,
        "compute_seconds_min": 0.3,
        "compute_seconds_max": 0.46,
        "slowest_rank": 3,
        "slowest_host": "compute-2",
        "waited_for_devices": True,
        "data_seconds": 0.01,
        "checkpoint_seconds": 0.02,
        "sequences": 64,
        "tokens": 8192,
        "flops": 64e9,
        "sequences_per_second": 128.0,
        "sequences_per_second_per_node": 64.0,
        "tokens_per_second": 16384.0,
        "flops_per_second": 128e9,
        "mfu": 0.32,
    }


def test_a_line_is_told_with_what_is_left_and_what_it_costs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two nodes of 10 dollars an hour and 0.4 TFLOPS, which go before what the program knows of its hardware."""
    monkeypatch.setenv("ULTRACLUSTER_NODE_DOLLARS", "10")
    monkeypatch.setenv("ULTRACLUSTER_NODE_TFLOPS", "0.4")
    now = 1000.0
    monkeypatch.setattr("time.time", lambda: now)
    recorder = Recorder(tmp_path, FACTS, 0)
    for step in (1, 2, 3):
        now += 1800
        further = {"steps": 5, "tokens": 7200, "flops": 360e12, "gradient_norm": 1.5}
        recorder.step(step=step, loss=2.0, seconds=1800, further=further)
    recorder.tell_now_and_then(last=True)
    assert capsys.readouterr().out == (
        "step 3 of 5: loss 2.0000, gradient norm 1.50, tokens/s 4, MFU 25.0%, 1.0 h left, $30.00 so far, $20.00 to go\n"
    )


def test_each_attempt_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    record(tmp_path, [1, 2])
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    record(tmp_path, [2], replace(ONE_NODE, options={"phase": 2}), resumed_step=1)
    run = read_run(tmp_path)
    first, second = run.attempts
    assert (first.resumed_step, first.nodes, first.workers, first.job, first.restarts) == (0, 2, 4, None, 0)
    assert (second.resumed_step, second.nodes, second.workers, second.job, second.restarts) == (1, 1, 2, "17", 1)
    assert list(first.hosts) == ["compute-1", "compute-2"]
    assert 0 < first.started <= second.started
    assert run.options == {"phase": 2}
    assert json.loads((tmp_path / RUN).read_text())["versions"] == {"torch": "2.9.0"}


def test_a_resumed_run_has_each_step_once(tmp_path: Path) -> None:
    record(tmp_path, range(1, 8))
    with (tmp_path / METRICS).open("ab") as file:
        file.write(b'{"step": 8, "ti')  # the run was killed
    record(tmp_path, [6, 7, 8], resumed_step=5)
    assert recorded_steps(tmp_path) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert (tmp_path / METRICS).read_bytes().count(b"\n") == 8


def test_a_damaged_list_of_attempts_is_written_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tmp_path.joinpath(RUN).write_text('{"attempts": ')
    record(tmp_path, [1])
    assert len(read_run(tmp_path).attempts) == 1
    assert f"{tmp_path / RUN} is damaged" in capsys.readouterr().err


def test_a_full_disk_costs_records_but_not_the_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def run() -> None:
        recorder = Recorder(tmp_path, FACTS, 0)
        _, allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, allowed))
        for step in range(1, 121):
            record_step(recorder, step)
        resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, allowed))
        record_step(recorder, 121)
        assert recorder.finish() is not None

    assert in_a_process_of_its_own(run) == 0
    *first, last = recorded_steps(tmp_path)
    assert first == list(range(1, len(first) + 1))
    assert (10 < len(first) < 120, last) == (True, 121)
    errors = capfd.readouterr().err
    assert f"{METRICS}: the file system took a part of the line only" in errors
    assert errors.count(f"{BOARD}: [Errno 27] File too large") == 1, "at the first step that fails"


def test_tensorboard_shows_each_step_once(tmp_path: Path) -> None:
    record(tmp_path, range(1, 8)).finish()
    record(tmp_path, [6, 7, 8], resumed_step=5).finish()
    board = EventAccumulator(str(tmp_path / BOARD)).Reload()
    line = json.loads((tmp_path / METRICS).read_text().splitlines()[0])
    assert set(board.Tags()["scalars"]) == line.keys() - {"step", "time", "slowest_host", "waited_for_devices"}
    losses = board.Scalars("loss")
    assert [event.step for event in losses] == list(range(1, 9))
    assert losses[7].value == pytest.approx(11.2)


def test_speeds_leave_out_the_first_steps_of_each_attempt(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, FACTS, 0)
    for step in range(1, 11):
        record_step(recorder, step, seconds=60 if step <= WARM_UP_STEPS else 0.5)
    recorder = Recorder(tmp_path, FACTS, 10)
    for step in range(11, 18):
        record_step(recorder, step, seconds=60 if step <= 10 + WARM_UP_STEPS else 2.0)
    summary = recorder.finish()
    assert summary is not None
    assert summary.sequences_per_second is not None
    assert summary.sequences_per_second == pytest.approx(7 * 64 / (5 * 0.5 + 2 * 2.0))
    assert summary.sequences_per_second_median == pytest.approx(64 / 0.5)
    assert summary.sequences_per_second_per_node == pytest.approx(summary.sequences_per_second / 2)
    assert summary.mfu == pytest.approx(summary.sequences_per_second * 1e9 / 4e11)
    assert summary.step_seconds == pytest.approx(10 * 60 + 5 * 0.5 + 2 * 2.0)


def test_stragglers_are_those_slower_than_the_mean_by_a_tenth(tmp_path: Path) -> None:
    recorder = record(tmp_path, range(1, 6))
    for step in range(6, 16):
        slow = {True: (0.4, 0.4, 0.4, 0.8), False: (0.4, 0.41, 0.4, 0.4)}[step <= 12]
        record_step(recorder, step, compute_seconds=slow)
    record_step(recorder, 16, compute_seconds=(0.8, 0.4, 0.4, 0.4))
    summary = recorder.finish()
    assert summary is not None
    often, once = summary.stragglers
    assert often == Straggler(3, "compute-2", 7, often.seconds)
    assert once == Straggler(0, "compute-1", 1, once.seconds)
    assert [often.seconds, once.seconds] == pytest.approx([7 * 0.3, 0.3])
    assert summary.compute_spread == pytest.approx((8 * 0.6 + 3 * (0.41 / 0.4025 - 1)) / 11)


def paced(path: Path, seconds: Sequence[float], capsys: pytest.CaptureFixture[str]) -> tuple[list[Slowdown], int]:
    """Return the slowdowns of a run whose steps take these seconds, and how often one was told."""
    recorder = Recorder(path, FACTS, 0)
    for step, each in enumerate(seconds, start=1):
        record_step(recorder, step, seconds=each)
    summary = recorder.finish()
    assert summary is not None
    return list(summary.slowdowns), capsys.readouterr().err.count(" are slower: ")


# Seconds of steps beyond the first five, and from which step on the run is slower.
PACES = {
    "slower for good": ([0.5] * 30 + [1.0] * 30, 36),
    "a little slower": ([0.5] * 30 + [0.6] * 30, None),
    "faster": ([0.5] * 30 + [0.25] * 30, None),
    "slow at times, as with checkpoints": ([0.5, 0.5, 5.0] * 30, None),
    "too short to tell": ([0.5] * 15 + [5.0] * 15, None),
    "slower bit by bit": ([0.5 + step / 100 for step in range(80)], 31),
}


@pytest.mark.parametrize("case", PACES)
def test_a_run_that_becomes_slower_is_told_once(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds, step = PACES[case]
    slowdowns, told = paced(tmp_path, [60.0] * WARM_UP_STEPS + seconds, capsys)
    assert ([each.step for each in slowdowns], told) == (([step], 1) if step else ([], 0))
    assert all(0 < each.speed < 0.8 for each in slowdowns)


def test_each_attempt_is_as_fast_as_it_is(tmp_path: Path) -> None:
    for resumed, seconds in ((0, 0.5), (40, 5.0)):
        recorder = Recorder(tmp_path, FACTS, resumed)
        for step in range(resumed + 1, resumed + 61):
            record_step(recorder, step, seconds=seconds)
    summary = recorder.finish()
    assert summary is not None
    assert summary.slowdowns == ()


def test_the_spread_is_that_of_steps_that_waited_for_devices_if_there_are_any(tmp_path: Path) -> None:
    recorder = record(tmp_path, range(1, 6))
    for step in range(6, 16):
        record_step(recorder, step, waited_for_devices=False)
    record_step(recorder, 16, compute_seconds=(0.4, 0.4, 0.4, 0.8))
    summary = recorder.finish()
    assert summary is not None
    assert summary.compute_spread == pytest.approx(0.6)
    assert [each.host for each in summary.stragglers] == ["compute-2"]


def test_the_scaling_efficiency_compares_sequences_per_node(tmp_path: Path) -> None:
    reference = Recorder(tmp_path / "one", ONE_NODE, 0)
    for step in range(1, 11):
        record_step(reference, step, seconds=0.8, compute_seconds=(0.4, 0.4))
    summary = record(tmp_path / "two", range(1, 11)).finish(tmp_path / "one")
    assert summary is not None
    assert summary.scaling_efficiency == pytest.approx((128 / 2) / (64 / 0.8))


def test_a_run_is_compared_with_one_on_one_node_of_the_same_work() -> None:
    options = dict.fromkeys(("phase", "sequence_length", "layers", "optimizer", "micro_batch"), 1)
    attempts = [Attempt(0, 0, nodes, nodes, ("trn1",) * nodes, None, 0) for nodes in (2, 1)]
    same = Run("bert", {**options, "micro_batch": 2, "seed": 7}, attempts[1:], ())
    assert blockers(options, same) == []
    assert differences(options, same) == ["note: --micro-batch is 1, and 2 in --reference"]
    assert blockers(options, Run("bert", {**options, "layers": 3}, attempts, ())) == [
        ("on 2 nodes", "a run on one node"),
        ("with --layers 3", "one with --layers 1"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        (RUN, None, "is not the directory of a run: "),
        (RUN, "{", "run.json is damaged: "),
        (RUN, '{"program": "bert", "options": {}, "attempts": []}', "run.json is damaged: it tells of no attempt"),
        (METRICS, "", "has no step yet"),
        (METRICS, "{}\n", "metrics.jsonl is damaged: line 1 is no step"),
    ],
)
def test_damaged_records_are_refused(name: str, content: str | None, told: str, tmp_path: Path) -> None:
    record(tmp_path, [1])
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content)
    with pytest.raises(RunError) as caught:
        read_run(tmp_path)
    assert told in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("sequences_per_second", "nodes", "mfu"), [(3530, 1, 0.275), (3733, 1, 0.291), (53069, 16, 0.258)]
)
def test_utilization_is_counted_as_aws_publishes_it(sequences_per_second: float, nodes: int, mfu: float) -> None:
    # BERT-Large phase 1, AdamW, LAMB, and LAMB on 16 nodes: benchmarks of Neuron 2.15, training_data_encoder.csv.
    flops = Sizes(24, 1024, 16, 4096, 30_522, 512).flops_per_sequence(128)
    peak = nodes * 32 * 95e12  # neuron_backend.NEURON_CORE_V2_PEAK
    assert round(sequences_per_second * flops / peak, 3) == mfu
