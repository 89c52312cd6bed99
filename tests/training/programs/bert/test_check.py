"""Bad input is refused before a job is submitted, each problem with its line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from bert import options as options_module
from bert.__main__ import main
from bert.check import identity
from bert.corpus import Shard
from bert.options import Options, parse
from tests.training.programs.bert.runs import TINY
from tests.training.programs.bert.shard_files import write_shards
from ultracluster_job import CHECKPOINTS, IDENTITY
from ultracluster_job.batch import Batch
from ultracluster_job.checkpoint import Checkpoints
from ultracluster_job.files import STATE

ROOT = Path(__file__).parents[4]


def set_free_space(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    usage = shutil.disk_usage("/")._replace(free=free)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)


@pytest.fixture(autouse=True)
def roomy_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for the published run, whatever this machine has."""
    set_free_space(monkeypatch, 100_000_000_000)


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """What a check tells when it refuses."""

    def run(*given: str, command: str = "check", tiny: bool = False) -> list[str]:
        sizes = (*TINY, "--workers-per-node", "2") if tiny else ()
        assert main([command, *sizes, "--output", str(tmp_path / "run"), *given]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        return captured.err.splitlines()

    return run


def plan(capsys: pytest.CaptureFixture[str], *given: str) -> list[str]:
    assert main(["check", *given]) == 0
    return capsys.readouterr().out.splitlines()


def test_what_is_held_out_is_other_data_and_in_the_plan(
    tmp_path: Path, refused: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    write_shards(data, (20,))
    write_shards(other, (5, 2))
    allowed = "allowed: shards that the run does not train on, as --data does"
    assert refused("--data", str(data), "--evaluate-data", str(data), tiny=True) == [
        f"--evaluate-data: got {data}; {allowed}"
    ]
    assert refused("--evaluate-every", "3", tiny=True) == [
        "--evaluate-every: got 3; allowed: together with --evaluate-data"
    ]
    lines = plan(capsys, *tiny(tmp_path / "run"), "--data", str(data), "--evaluate-data", str(other))
    assert "evaluation: 7 sequences in 2 shards, every 5 steps and at the end" in lines


def tiny(run: Path) -> tuple[str, ...]:
    return (*TINY, "--workers-per-node", "2", "--output", str(run))


def parsed(*given: str) -> Options:
    return parse(["check", "--output", "run", *given])


def save_checkpoint(
    run: Path, options: Options, batch: Batch, shards: Sequence[Shard] | None = None, **changes: object
) -> None:
    checkpoints = Checkpoints(run / CHECKPOINTS, keep=1)
    same = identity(options, batch, shards)
    checkpoints.save(3, {IDENTITY: {**same, **changes}, "weights": {"a": torch.zeros(1000)}})
    assert checkpoints.wait() is None


TINY_BATCH = Batch(sequences=16, micro=4, ranks=2)


def test_plan_of_the_published_run_on_sixteen_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(capsys, "--nodes", "16", "--output", str(tmp_path)) == [
        "nodes: 16, workers: 512",
        "global batch: 16384 = 512 workers x 2 micro-batches x 16",
        "steps: 28125, sequences: 460800000",
        "model: 336.2 million parameters",
        "checkpoint: 4.03 GB, every 6152 steps, 3 kept",
        "a failure loses: at most 6152 steps, 100794368 sequences, 30 minutes at 3500 sequences/s per node, "
        "AWS's with bf16-stochastic",
        "failures expected: one in 16.5 days, as Meta published of Llama 3; best between checkpoints: 57 minutes, of "
        "which the default takes 30 at most",
        "data: a generated corpus",
        "start: with new weights",
    ]


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("phase", "3", "1 or 2"),
        ("micro-batch", "0", "a whole number from 1 on"),
        ("learning-rate", "nan", "a number between 0 and 1"),
        ("dropout", "x", "a number from 0 to below 1"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(
    refused: Callable[..., list[str]], option: str, value: str, allowed: str
) -> None:
    assert refused(f"--{option}", value) == [f"argument --{option}: got '{value}'; allowed: {allowed}"]


def test_all_contradictions_and_problems_of_directories_are_reported_at_once(refused: Callable[..., list[str]]) -> None:
    bad = "--heads 3 --steps 100 --max-predictions 128 --nodes 3"
    nowhere = "--data /nowhere --evaluate-data /nowhere --reference /nowhere --start-from /nowhere"
    assert refused(*bad.split(), *nowhere.split()) == [
        "--heads: got 3; allowed: a divisor of --hidden 1024",
        "--warmup-steps: got 2000; allowed: at most --steps 100",
        "--max-predictions: got 128; allowed: less than --sequence-length 128",
        "--nodes: got 3; allowed: 1, 2, 4, 8, 16 or 32 (--global-batch 16384 = --micro-batch 16 x 32 workers per node "
        "x 32), or any number with --scaling weak",
        "--data: got /nowhere, which cannot be read (No such file or directory); allowed: a directory of shards",
        "--evaluate-data: got /nowhere, which cannot be read (No such file or directory); allowed: a directory of "
        "shards",
        "--reference: got /nowhere; allowed: the directory of a run (/nowhere is not the directory of a run: "
        "[Errno 2] No such file or directory: '/nowhere/run.json')",
        "--start-from: got /nowhere; allowed: the directory of a run with a complete checkpoint",
    ]
    assert refused("--output", "/proc/version/run") == [
        "--output: got /proc/version/run; allowed: a directory that can be written to, which /proc/version is not"
    ]


def test_the_default_interval_follows_from_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parsed("--nodes", "16", "--scaling", "weak").checkpoint_interval == 384
    assert parsed("--checkpoint-interval", "7").checkpoint_interval == 7
    monkeypatch.setenv("GROUP_WORLD_SIZE", "4")  # of torchrun
    assert parse(["train", "--backend", "cpu", "--output", "run"]).checkpoint_interval == 1_538


def test_training_takes_neither_the_cpu_by_surprise_nor_nodes_which_it_has_from_torchrun(
    refused: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(options_module, "NEURON_DEVICE", tmp_path / "neuron0")
    assert refused("--nodes", "2", command="train") == [
        "--nodes: got it with train; allowed: with check (train has it from torchrun)",
        f"--backend: got neuron, but there is no {tmp_path}/neuron0; allowed: native or cpu, on purpose",
    ]
    (tmp_path / "neuron0").touch()
    assert parse(["train", "--output", "run"]).backend == "neuron"


def test_no_space_for_the_checkpoints_is_reported_with_what_is_needed(
    refused: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_free_space(monkeypatch, 16_000_000_000)
    assert refused() == [f"--output: got {tmp_path}/run with 16.0 GB free; allowed: 16.1 GB or more"]
    for step in (1, 2, 3):  # those that are there need no more space; one more does before the oldest goes
        (tmp_path / "run" / CHECKPOINTS / f"step-{step:08}").mkdir(parents=True)
    assert main(["check", "--output", str(tmp_path / "run")]) == 0


def test_too_few_sequences_are_refused_and_fewer_shards_than_workers_noted(
    refused: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_shards(tmp_path / "few", (10, 5))
    assert refused("--data", str(tmp_path / "few"), tiny=True) == [
        f"--data: got {tmp_path}/few with 15 sequences; allowed: one global batch, 16, or more"
    ]
    write_shards(tmp_path / "data", (16,))
    given = (*tiny(tmp_path), "--data", str(tmp_path / "data"))
    assert plan(capsys, *given)[-3:] == [
        "data: 16 sequences in 1 shards",
        "note: fewer shards than the 2 workers, which share all sequences evenly",
        "start: with new weights",
    ]


def test_a_run_does_not_continue_from_a_checkpoint_of_another(
    refused: Callable[..., list[str]], tmp_path: Path
) -> None:
    changes: dict[str, Any] = {
        "global-batch": 32,
        "phase": 2,
        "optimizer": "lamb",
        "seed": 6,
        "sequence-length": 48,
        "max-predictions": 6,
        "hidden": 128,
    }
    save_checkpoint(tmp_path / "run", parsed(*TINY), TINY_BATCH, **changes)
    told = [re.fullmatch(rf"--(.*): got .*; allowed: (.*), as in the checkpoint of --output {tmp_path}/run", line)
            for line in refused(tiny=True)]  # fmt: skip
    assert {match[1]: match[2] for match in told if match} == {name: str(value) for name, value in changes.items()}


def test_a_run_does_not_continue_with_other_data(
    refused: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_shards(tmp_path / "data", (10, 6))
    shards = [Shard("wikicorpus_training_0.hdf5", 10), Shard("wikicorpus_training_1.hdf5", 6)]
    save_checkpoint(tmp_path / "run", parsed(*TINY), TINY_BATCH, shards)
    same = (*tiny(tmp_path / "run"), "--data", str(tmp_path / "data"))
    assert plan(capsys, *same)[-1] == f"start: from step 3 of {tmp_path}/run"
    (problem,) = refused(tiny=True)
    assert problem.startswith("--data: got a generated corpus; allowed: 16 sequences in 2 shards, ")
    (tmp_path / "data/wikicorpus_training_1.hdf5").rename(tmp_path / "data/wikicorpus_training_2.hdf5")
    (problem,) = refused("--data", str(tmp_path / "data"), tiny=True)
    assert problem.startswith("--data: got 16 sequences in 2 shards, ")
    assert problem.endswith(f", as in the checkpoint of --output {tmp_path}/run")
    (problem,) = refused("--data", "/nowhere", tiny=True)
    assert problem.startswith("--data: got /nowhere, which cannot be read")


def test_weights_to_start_with_must_be_of_the_same_sizes_only(
    refused: Callable[..., list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_checkpoint(tmp_path / "first", parsed(*TINY), TINY_BATCH, phase=2, seed=99)
    given = ("--start-from", str(tmp_path / "first"))
    assert plan(capsys, *tiny(tmp_path / "run"), *given)[-1] == f"start: with the weights of step 3 of {tmp_path}/first"
    save_checkpoint(tmp_path / "other", parsed(*TINY), TINY_BATCH, layers=3)
    assert refused("--start-from", str(tmp_path / "other"), tiny=True) == [
        f"--layers: got 2; allowed: 3, as in the checkpoint of --start-from {tmp_path}/other"
    ]
    state = tmp_path / "first" / CHECKPOINTS / "step-00000003" / STATE
    state.write_bytes(state.read_bytes()[:-1])
    *_, problem = refused(*given, tiny=True)
    assert problem == f"--start-from: got {tmp_path}/first; allowed: the directory of a run with a complete checkpoint"


def test_bad_options_and_plain_checks_need_neither_torch_nor_data(tmp_path: Path) -> None:
    check = ["check", "--output", str(tmp_path), *TINY, "--workers-per-node", "2"]
    program = (
        "import sys\n"
        "from bert.__main__ import main\n"
        f"codes = main({check!r}), main(['train', '--phase', '3'])\n"
        "assert codes == (0, 2), codes\n"
        "loaded = {'torch', 'transformers', 'numpy', 'h5py'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    path = {**os.environ, "PYTHONPATH": f"{ROOT}/training:{ROOT}/training/programs"}
    subprocess.run([sys.executable, "-c", program], env=path, check=True, capture_output=True)
