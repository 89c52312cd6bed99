"""Runs of the program: the same result on any number of ranks, and after any interruption."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch

from tests.training.programs.bert.runs import checkpoints, losses, steps, train
from tests.training.programs.bert.shard_files import write_shards
from ultracluster_job.checkpoint import Checkpoint

STEPS = 12


def state(output: Path, step: int = STEPS) -> dict[str, Any]:
    return Checkpoint(step, output / "checkpoints" / f"step-{step:08}").load()


def assert_same_weights(one: dict[str, Any], other: dict[str, Any], **tolerance: float) -> None:
    assert one["weights"].keys() == other["weights"].keys()
    for name, weight in one["weights"].items():
        torch.testing.assert_close(weight, other["weights"][name], rtol=0, **({"atol": 0.0} | tolerance), msg=name)


def assert_same_state(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert_same_weights(one, other)
    assert one["optimizer"]["steps"] == other["optimizer"]["steps"]
    for moments in ("means", "squares"):
        for name, value in one["optimizer"][moments].items():
            assert torch.equal(value, other["optimizer"][moments][name])


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few sequences, so that twelve steps of 16 pass over them more than once, in shards of different sizes."""
    directory = tmp_path_factory.mktemp("data")
    write_shards(directory, (50, 7, 30))
    return directory


@pytest.fixture(scope="module", params=["adamw", "lamb"])
def undisturbed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """The directory of a run on one rank, which is named after its optimizer."""
    output: Path = tmp_path_factory.mktemp("undisturbed") / request.param
    assert train(output, "--data", str(data), "--optimizer", request.param) == [0]
    return output


def again(
    output: Path, undisturbed: Path, data: Path, *options: str, ranks: int = 1, nodes: int = 1
) -> list[int | None]:
    """Start a run like the undisturbed one, or once more."""
    return train(output, "--data", str(data), "--optimizer", undisturbed.name, *options, ranks=ranks, nodes=nodes)


def test_loss_curve_is_the_same_on_any_number_of_ranks_and_with_the_head_at_masked_words(
    tmp_path: Path, undisturbed: Path, data: Path
) -> None:
    output = tmp_path / "run"
    assert again(output, undisturbed, data, "--head", "masked", ranks=4, nodes=2) == [0] * 4
    assert losses(output) == pytest.approx(losses(undisturbed), abs=2e-5)
    assert_same_weights(state(output), state(undisturbed), atol=2e-4)
    assert len({step["loss"] for step in steps(output)}) == STEPS


def test_an_interrupted_run_repeats_nothing_and_ends_as_if_undisturbed(
    tmp_path: Path, undisturbed: Path, data: Path
) -> None:
    output = tmp_path / "run"
    assert again(output, undisturbed, data, "--stop-after", "7") == [0]
    assert checkpoints(output) == ["step-00000005", "step-00000007"]
    assert again(output, undisturbed, data) == [0]
    assert [step["step"] for step in steps(output)] == list(range(1, STEPS + 1))
    assert losses(output) == losses(undisturbed)
    assert_same_state(state(output), state(undisturbed))


def test_a_stop_request_ends_all_ranks_at_the_same_step_and_one_rank_continues(
    tmp_path: Path, undisturbed: Path, data: Path
) -> None:
    output = tmp_path / "run"
    output.mkdir()
    (output / "stop").touch()
    assert again(output, undisturbed, data, ranks=2) == [75, 75]
    assert checkpoints(output) == ["step-00000001"]
    (output / "stop").unlink()
    assert again(output, undisturbed, data) == [0]
    assert losses(output) == pytest.approx(losses(undisturbed), abs=2e-5)


def test_loss_falls(tmp_path: Path) -> None:
    """With AdamW, too: tests on Slurm show it."""
    options = ("--optimizer", "lamb", "--precision", "bf16", "--steps", "50", "--learning-rate", "3e-2")
    assert train(tmp_path, *options, "--global-batch", "32", "--micro-batch", "16") == [0]
    assert fmean(losses(tmp_path)[:10]) - fmean(losses(tmp_path)[40:]) > 0.6


def test_bf16_keeps_weights_in_float32_and_follows_the_exact_curve(tmp_path: Path) -> None:
    assert train(tmp_path / "exact") == [0]
    assert train(tmp_path / "bf16", "--precision", "bf16") == [0]
    assert losses(tmp_path / "bf16") != losses(tmp_path / "exact")
    assert losses(tmp_path / "bf16") == pytest.approx(losses(tmp_path / "exact"), abs=0.03)
    assert {weight.dtype for weight in state(tmp_path / "bf16")["weights"].values()} == {torch.float32}


def test_phase_two_starts_with_the_weights_of_phase_one_and_nothing_else(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert train(first) == [0]
    # The learning rate of the first step is 0: the weights stay what they were.
    options = ("--phase", "2", "--warmup-steps", "1", "--sequence-length", "48", "--start-from", str(first))
    assert train(second, *options, "--stop-after", "1") == [0]
    assert_same_weights(state(second, 1), state(first))
    assert state(second, 1)["optimizer"]["steps"] == 1
    first.rename(tmp_path / "elsewhere")  # a run that has started does not need phase one
    assert train(second, *options) == [0]
    assert [step["step"] for step in steps(second)] == list(range(1, STEPS + 1))


def test_a_run_is_recorded_and_weak_scaling_grows_its_batch(tmp_path: Path) -> None:
    reference, output = tmp_path / "reference", tmp_path / "run"
    assert train(reference) == [0]
    assert train(output, "--reference", str(reference), "--scaling", "weak", ranks=2, nodes=2) == [0, 0]
    for number, step in enumerate(steps(output), start=1):
        assert step["step"] == number
        assert step["loss"] == pytest.approx(step["mlm_loss"] + step["nsp_loss"])
        assert 0 < step["compute_seconds_min"] <= step["compute_seconds_max"]
        assert step["seconds"] > 0  # rank 0's own: that of another may start earlier
        assert 0 <= step["data_seconds"] <= step["compute_seconds_max"]
        assert step["slowest_rank"] in (0, 1)
        assert step["sequences"] == 32
    run = json.loads((output / "run.json").read_text())
    summary = json.loads((output / "summary.json").read_text())
    assert run["attempts"][0]["hosts"] == ["node 0", "node 1"]
    assert run["options"]["global_batch"] == 16
    assert summary["scaling_efficiency"] > 0
