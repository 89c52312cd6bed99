"""The Neuron back end on a CPU, in one process: what PyTorch/XLA makes of the program (``make test-xla``).

Nothing here tells of reductions between processes: on a CPU torch_xla makes each process a world of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import process_time, sleep
from typing import Any

import pytest

from bert.feed import tensors
from tests.ports import free_port
from tests.training.programs.bert.runs import TINY, in_ranks, losses, steps, train
from tests.training.programs.bert.shard_files import LENGTH, VOCABULARY, arrays, write_shards
from tests.training.ultracluster_job import fake_neuron
from tests.training.ultracluster_job.test_launch import JOBS, LAUNCH
from ultracluster_job.ranks import Worker

pytestmark = pytest.mark.xla

PROJECT = Path(__file__).parents[4]


def on_a_cpu_as_neuron() -> None:
    """Set what torch_neuronx sets: without functionalization, which costs BERT 15 %, tensors change in place.

    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/api-reference-guide/training/
    torch-neuron-envvars.html
    """
    os.environ.update(PJRT_DEVICE="CPU", XLA_DISABLE_FUNCTIONALIZATION="1")


def traced(report: Path) -> int:
    """Write the CPU seconds of the host in micro-batches of 24 layers: forward and backward, adding up gradients.

    A layer is narrow: the operations count, not their sizes. Nothing is compiled, for each graph is dropped.
    """
    on_a_cpu_as_neuron()
    import torch

    from bert.learner import Learner, build_model
    from bert.sizes import Sizes
    from ultracluster_job.neuron_backend import NeuronBackend

    backend = NeuronBackend(Worker(rank=0, ranks=1, local_rank=0, nodes=1))
    model = build_model(Sizes(24, 32, 2, 64, VOCABULARY, LENGTH), dropout=0.1, seed=1)
    learner = Learner(model, backend, optimizer="adamw", precision="bf16", accumulation=1)
    backend.wait()
    differentiate, marks = torch.autograd.grad, list[float]()

    def marked(*given: Any) -> Any:
        gradients = differentiate(*given)
        marks.append(process_time())
        return gradients

    torch.autograd.grad, backend.execute = marked, lambda: None  # type: ignore[method-assign]
    batch, seconds = tensors(arrays(0, 2)), []
    for _ in range(12):
        for weight in learner._weights.values():
            weight.grad = torch.zeros(weight.shape).to(backend.device)
        learner._losses = torch.zeros(2).to(backend.device)
        sleep(0.05)  # the transfer has threads of its own
        began = process_time()
        learner.accumulate(batch, seed=1)
        seconds.append([marks[-1] - began, process_time() - marks[-1]])
    report.write_text(json.dumps(seconds))
    return 0


def counted(report: Path, command: Sequence[str], neuron: bool = False) -> int:
    """Train on XLA, and write how many graphs were compiled and how many tensors fetched by the end of each step."""
    on_a_cpu_as_neuron()
    from torch_xla.debug import metrics

    if neuron:
        fake_neuron.replace_functions()

    from bert import options
    from bert.__main__ import main
    from ultracluster_job import loop

    options.NEURON_DEVICE = Path("/")
    counts, make_step = [], loop.TrainingLoop._make_step

    def count(self: loop.TrainingLoop) -> loop._StepUnderWay:
        step = make_step(self)
        measured = [metrics.metric_data(name) for name in ("CompileTime", "TransferFromDeviceTime")]
        counts.append([each[0] if each else 0 for each in measured])
        return step

    loop.TrainingLoop._make_step = count  # type: ignore[method-assign]
    code = main(command)
    report.write_text(json.dumps(counts))
    return code


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-3), ("bf16", 0.03), ("bf16-stochastic", 0.05)])
def test_graphs_are_the_same_for_each_step_and_numbers_are_fetched_once(
    tmp_path: Path, optimizer: str, precision: str, tolerance: float
) -> None:
    xla, cpu, report = tmp_path / "xla", tmp_path / "cpu", tmp_path / "report.json"
    same = ("--optimizer", optimizer, "--dropout", "0", "--checkpoint-interval", "8")
    head = ("--head", "masked" if optimizer == "lamb" else "all")
    command = ["train", *TINY, *same, *head, "--precision", precision, "--backend", "neuron", "--output", str(xla)]

    assert in_ranks(1, counted, report, [*command, "--stop-after", "8"]) == [0]
    compiled, fetched = zip(*json.loads(report.read_text()), strict=True)
    assert set(compiled) == {compiled[0]}
    assert {later - earlier for earlier, later in pairwise(fetched[1:])} == {1}

    assert in_ranks(1, counted, report, command) == [0]
    compiled, fetched = zip(*json.loads(report.read_text()), strict=True)
    assert len(compiled) == 4
    assert set(compiled) == {compiled[0]}

    assert train(cpu, *same, "--precision", precision.partition("-")[0]) == [0]
    assert losses(xla) == pytest.approx(losses(cpu), abs=tolerance)


def test_an_evaluation_has_graphs_of_its_own_which_five_steps_show(tmp_path: Path) -> None:
    xla, cpu, report = tmp_path / "xla", tmp_path / "cpu", tmp_path / "report.json"
    write_shards(tmp_path / "held-out", (9, 5))
    evaluating = ("--evaluate-data", str(tmp_path / "held-out"), "--evaluate-every", "2")
    same = ("--dropout", "0", "--precision", "fp32", *evaluating)
    assert in_ranks(1, counted, report, ["train", *TINY, *same, "--backend", "neuron", "--output", str(xla)]) == [0]
    compiled, _ = zip(*json.loads(report.read_text()), strict=True)
    assert [after > before for before, after in pairwise(compiled)] == [False, True, *[False] * 9]

    assert train(cpu, *same) == [0]
    on_xla, on_cpu = ([step for step in steps(run) if "evaluation_loss" in step] for run in (xla, cpu))
    assert [step["step"] for step in on_xla] == [2, 4, 6, 8, 10, 12]
    for one, other in zip(on_xla, on_cpu, strict=True):
        assert one["evaluation_loss"] == pytest.approx(other["evaluation_loss"], abs=1e-3)
        assert one["evaluation_sequences"] == 14


def test_adding_up_gradients_is_little_of_the_hosts_work(tmp_path: Path) -> None:
    """A ratio within one micro-batch: it says nothing of the machine."""
    report = tmp_path / "report.json"
    assert in_ranks(1, traced, report) == [0]
    seconds = json.loads(report.read_text())
    assert median(adding_up / forward_and_backward for forward_and_backward, adding_up in seconds) < 0.1


def test_it_trains_with_what_torch_neuronx_puts_in_the_place_of_torch(tmp_path: Path) -> None:
    xla, cpu, report = tmp_path / "xla", tmp_path / "cpu", tmp_path / "report.json"
    same = ("--dropout", "0", "--precision", "fp32")
    command = ["train", *TINY, *same, "--backend", "neuron", "--output", str(xla)]
    assert in_ranks(1, counted, report, command, True) == [0]
    compiled, _ = zip(*json.loads(report.read_text()), strict=True)
    assert set(compiled) == {compiled[0]}

    assert train(cpu, *same) == [0]
    norms = [[step["gradient_norm"] for step in steps(run)] for run in (xla, cpu)]
    assert norms[0] == pytest.approx(norms[1], rel=1e-3)
    assert losses(xla) == pytest.approx(losses(cpu), abs=1e-3)


def test_torch_xla_counts_the_ranks_that_torchrun_started() -> None:
    place = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", str(free_port())]
    command = [*LAUNCH, *place, "--module", "tests.training.ultracluster_job.fake_neuron"]
    variables = {**os.environ, "PJRT_DEVICE": "CPU", "PYTHONPATH": f"{JOBS}:{JOBS}/programs:{PROJECT}"}
    done = subprocess.run(command, cwd=PROJECT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
