"""PyTorch's own accelerator: BERT-Large against a loop written apart (``make test-gpu``); without one, tiny on a CPU.

The other loop has transformers' model and losses, autocast in place of a model in bf16, PyTorch's AdamW or LAMB by the
formula of AWS's sample. On one NVIDIA H200 it compares what a CPU cannot: the real size.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
import torch
from transformers.optimization import get_linear_schedule_with_warmup

from bert.corpus import GeneratedCorpus, Rows
from bert.feed import tensors
from bert.learner import Learner, build_model
from bert.phases import learning_rate
from bert.sizes import Sizes
from tests.training.programs.bert.runs import losses, steps, train
from tests.training.programs.bert.test_model import ALONE, LARGE, TINY, published_lamb
from ultracluster_job.backend import Backend

ACCELERATOR = torch.accelerator.current_accelerator(check_available=True)
REAL = ACCELERATOR is not None
SIZES: Sizes = LARGE if REAL else TINY
LENGTH, PREDICTIONS, MICRO_BATCH = (128, 20, 16) if REAL else (32, 5, 4)
ACCUMULATION, STEPS, WARMUP = (4, 20, 4) if REAL else (2, 6, 2)
RATES = {"adamw": 4e-4, "lamb": 6e-3}
PRECISION = "bf16" if REAL else "fp32"
NEURON_CORE_BYTES = 16 * 2**30
UNTIMED = 4


def batches(head: str = "all") -> Iterator[dict[str, Any]]:
    corpus = GeneratedCorpus(7, SIZES.vocabulary, LENGTH, PREDICTIONS)
    for number in range(STEPS * ACCUMULATION):
        yield tensors(corpus.read(Rows(0, number * MICRO_BATCH, MICRO_BATCH)), head=head)


def learner(optimizer: str) -> Learner:
    return Learner(
        build_model(SIZES, dropout=0.0, seed=1),
        Backend(ALONE, accelerated=True),
        optimizer=optimizer,
        precision=PRECISION,
        accumulation=ACCUMULATION,
    )


def timed(step: Callable[[int], float]) -> tuple[list[float], float]:
    """Return the loss of each step, and the sequences a second of the later ones."""
    curve, began = [], 0.0
    for number in range(STEPS):
        if number == UNTIMED:
            began = perf_counter()
        curve.append(step(number))
    return curve, (STEPS - UNTIMED) * ACCUMULATION * MICRO_BATCH / (perf_counter() - began)


def of_the_program(optimizer: str, head: str) -> tuple[list[float], float]:
    given, mine = batches(head), learner(optimizer)

    def step(number: int) -> float:
        for _ in range(ACCUMULATION):
            mine.accumulate(next(given), seed=0)
        rate = learning_rate(number, peak=RATES[optimizer], warmup_steps=WARMUP, steps=STEPS)
        return float(mine.update(rate, [])[1:3].sum())

    return timed(step)


def of_another_loop(optimizer: str) -> tuple[list[float], float]:
    """Whatever is the program's is left out, but for the model's configuration and the batches."""
    given, device = batches(), ACCELERATOR or torch.device("cpu")
    model = build_model(SIZES, dropout=0.0, seed=1).to(device)
    model.tie_weights()
    weights = dict(model.named_parameters())
    exempt = {name for name in weights if "bias" in name or "LayerNorm" in name}
    decayed = [weight for name, weight in weights.items() if name not in exempt]
    groups = [{"params": decayed}, {"params": [weights[name] for name in exempt], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr=RATES[optimizer], betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01)
    schedule = get_linear_schedule_with_warmup(adamw, WARMUP, STEPS)
    moments = {name: (torch.zeros_like(each), torch.zeros_like(each)) for name, each in weights.items()}

    def step(number: int) -> float:
        loss = torch.zeros((), device=device)
        for _ in range(ACCUMULATION):
            batch = {name: tensor.to(device) for name, tensor in next(given).items()}
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=REAL):
                part = model(**batch).loss / ACCUMULATION
            part.backward()
            loss += part.detach()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        if optimizer == "adamw":
            adamw.step()
        else:
            with torch.no_grad():
                for name, weight in weights.items():
                    rate = adamw.param_groups[0]["lr"]
                    published_lamb(weight, *moments[name], weight.grad, step=number + 1, rate=rate)
        schedule.step()
        adamw.zero_grad()
        return float(loss)

    return timed(step)


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_losses_and_speed_are_those_of_a_loop_written_apart(optimizer: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The speed is compared where there is an accelerator: on a CPU it says nothing."""
    if REAL:
        torch.accelerator.reset_peak_memory_stats()
    mine, speed = of_the_program(optimizer, "all")
    memory = torch.accelerator.max_memory_allocated() if REAL else 0
    masked, speed_masked = of_the_program(optimizer, "masked")
    others, speed_of_others = of_another_loop(optimizer)
    assert mine == pytest.approx(others, abs=0.05 if REAL else 1e-5)
    assert masked == pytest.approx(mine, abs=0.02 if REAL else 1e-5)
    assert mine[0] - mine[-1] > 0.02, "as near is what has learned nothing"
    if REAL:
        figures = {
            "device": torch.cuda.get_device_name() if torch.cuda.is_available() else str(ACCELERATOR),
            "optimizer": optimizer,
            "losses": [mine[0], mine[-1]],
            "losses of the other loop": [others[0], others[-1]],
            "sequences/s": speed,
            "with the head at masked words": speed_masked,
            "of the other loop": speed_of_others,
            "bytes": memory,
        }
        with capsys.disabled():
            print(json.dumps(figures))
        assert memory < NEURON_CORE_BYTES
        if optimizer == "adamw":  # the other loop's LAMB is written to be read
            assert speed >= speed_of_others


@pytest.mark.parametrize("optimizer", ["adamw", "lamb"])
def test_what_is_restored_continues_bit_by_bit(optimizer: str) -> None:
    given, one, other = list(batches())[: 2 * ACCUMULATION], learner(optimizer), learner(optimizer)

    def step(learner: Learner, first: int) -> list[float]:
        for batch in given[first : first + ACCUMULATION]:
            learner.accumulate(batch, seed=first)
        numbers: list[float] = learner.update(1e-3, []).tolist()
        return numbers

    step(one, 0)
    other.restore(one.state())
    assert step(one, ACCUMULATION) == step(other, ACCUMULATION)
    for name, weight in one.state()["weights"].items():
        assert torch.equal(weight, other.state()["weights"][name]), name


def test_the_program_trains_on_it(tmp_path: Path) -> None:
    """On two ranks where there are two devices, or none and so gloo."""
    ranks = min(2, torch.accelerator.device_count()) if REAL else 2
    assert train(tmp_path / "native", "--backend", "native", "--precision", "fp32", ranks=ranks) == [0] * ranks
    assert train(tmp_path / "cpu") == [0]
    assert losses(tmp_path / "native") == pytest.approx(losses(tmp_path / "cpu"), abs=1e-3)
    assert len(steps(tmp_path / "native")) == 12
