"""The model, its losses, and the optimizers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertForPreTraining

from tests.training.pretraining.shard_files import LENGTH, VOCABULARY, arrays
from training.pretraining import learner as learners
from training.pretraining import optimizer as optimizers
from training.pretraining.backend import Backend
from training.pretraining.feed import tensors
from training.pretraining.learner import Learner
from training.pretraining.ranks import Worker
from training.pretraining.sizes import Sizes

TINY = Sizes(layers=2, hidden=64, heads=2, intermediate=128, vocabulary=VOCABULARY, positions=LENGTH)
LARGE = Sizes(layers=24, hidden=1024, heads=16, intermediate=4096, vocabulary=30_522, positions=512)
ALONE = Worker(rank=0, ranks=1, local_rank=0, nodes=1)


def tiny(seed: int = 1, dropout: float = 0.0) -> Any:
    return learners.build_model(TINY, dropout=dropout, seed=seed)


@pytest.fixture
def learner() -> Callable[..., Learner]:
    def build(optimizer: str = "adamw", precision: str = "fp32", accumulation: int = 1) -> Learner:
        return Learner(tiny(), Backend(ALONE), optimizer=optimizer, precision=precision, accumulation=accumulation)

    return build


def test_default_is_bert_large() -> None:
    with torch.device("meta"):
        model = BertForPreTraining(learners.model_configuration(LARGE, dropout=0.1))
    assert LARGE.parameters == sum(weight.numel() for weight in model.parameters()) == 336_226_108


def test_losses_are_those_of_transformers() -> None:
    model, batch = tiny(), tensors(arrays(0, 8))
    mlm, nsp = learners.losses(model, batch)
    torch.testing.assert_close(mlm + nsp, model(**batch).loss)


def test_decoder_shares_the_weights_of_the_embeddings_after_a_move() -> None:
    model = tiny()
    model.cls.predictions.decoder.weight = torch.nn.Parameter(model.cls.predictions.decoder.weight.detach().clone())
    moved = learners.move_model(model, torch.device("cpu"), torch.float32)
    assert moved.cls.predictions.decoder.weight is moved.bert.embeddings.word_embeddings.weight
    assert moved.cls.predictions.decoder.bias is moved.cls.predictions.bias


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_biases_and_layer_norms_do_not_decay(name: str) -> None:
    weights = dict(tiny().named_parameters())
    decayed, exempt = optimizers.create(name, weights, capturable=False).param_groups
    names = {id(weight): key for key, weight in weights.items()}
    assert (decayed["weight_decay"], exempt["weight_decay"]) == (0.01, 0.0)
    assert all(names[id(weight)].endswith("bias") or "LayerNorm" in names[id(weight)] for weight in exempt["params"])
    assert all(weight.dim() == 2 for weight in decayed["params"])
    assert len(decayed["params"]) + len(exempt["params"]) == len(weights)


def stepped(name: str, rates: list[float], *, capturable: bool = False) -> list[torch.Tensor]:
    """Return two weights, one of them exempt from decay, after steps with gradients that have zeros."""
    torch.manual_seed(1)
    weights = {"weight": torch.nn.Parameter(torch.randn(4, 3)), "bias": torch.nn.Parameter(torch.randn(3))}
    optimizer = optimizers.create(name, weights, capturable=capturable)
    for rate in rates:
        for weight in weights.values():
            weight.grad = torch.randn_like(weight)
            weight.grad.view(-1)[0] = 0.0
        optimizers.set_learning_rate(optimizer, torch.tensor(rate))
        optimizer.step()
    return [weight.detach().clone() for weight in weights.values()]


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_a_learning_rate_of_zero_changes_no_weight(name: str) -> None:
    for before, after in zip(stepped(name, []), stepped(name, [0.0]), strict=True):
        assert torch.equal(before, after)


def test_adamw_with_its_count_on_the_device_is_the_same_from_a_rate_of_zero_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # torch allows it on accelerators only; the arithmetic is the same here.
    monkeypatch.setattr(sys.modules["torch.optim.adam"], "_get_capturable_supported_devices", lambda: ["cpu"])
    rates = [0.0, 1e-3, 2e-3, 1e-3]
    for one, other in zip(stepped("adamw", rates), stepped("adamw", rates, capturable=True), strict=True):
        torch.testing.assert_close(one, other)


def published_lamb(rates: list[float]) -> tuple[list[Any], list[float]]:
    """Return the two weights after steps as in lamb.py of the sample, and how far the first went in each step.

    https://github.com/aws-neuron/aws-neuron-samples/tree/master/torch-neuronx/training/dp_bert_hf_pretrain
    """
    torch.manual_seed(1)
    weights = [torch.randn(4, 3).numpy(), torch.randn(3).numpy()]
    first, second = [np.zeros_like(weight) for weight in weights], [np.zeros_like(weight) for weight in weights]
    ways = []
    for step, rate in enumerate(rates, start=1):
        for index, weight in enumerate(weights):
            gradient = torch.randn(weight.shape).numpy()
            gradient.reshape(-1)[0] = 0.0
            first[index] = 0.9 * first[index] + 0.1 * gradient
            second[index] = 0.999 * second[index] + 0.001 * gradient**2
            change = first[index] / (1 - 0.9**step) / (np.sqrt(second[index] / (1 - 0.999**step)) + 1e-6)
            if index == 0:
                change = change + 0.01 * weight
                change = change * np.linalg.norm(weight) / np.linalg.norm(change)
                ways.append(rate * float(np.linalg.norm(change)))
            weights[index] = weight - rate * change
    return weights, ways


def test_lamb_is_the_published_one() -> None:
    """What has a trust ratio differs by the weight of the decay alone."""
    rates = [1e-2, 3e-2, 2e-2, *[1e-2] * 20]
    (weight, bias), ways = published_lamb(rates)
    found_weight, found_bias = (found.numpy() for found in stepped("lamb", rates))
    np.testing.assert_allclose(found_bias, bias, rtol=1e-4, atol=1e-5)
    assert np.linalg.norm(found_weight - weight) / sum(ways) < 0.02


def test_lamb_does_not_limit_the_norm_of_large_weights() -> None:
    weight = torch.nn.Parameter(torch.full((40, 40), 10.0))  # a norm of 400
    optimizer = optimizers.create("lamb", {"weight": weight}, capturable=False)
    weight.grad = torch.ones_like(weight)
    optimizers.set_learning_rate(optimizer, torch.tensor(0.01))
    optimizer.step()
    assert (weight.detach() - 10.0).norm() == pytest.approx(0.01 * 400, rel=1e-3)


def test_micro_batches_add_up_to_their_mean_in_each_step(learner: Callable[..., Learner]) -> None:
    halves = learner(accumulation=2)
    results = []
    for _ in range(2):  # nothing of a step reaches the next one
        for first in (0, 4):
            halves.accumulate(tensors(arrays(first, 4)), seed=0)
        results.append(halves.update(0.0, [7.0]).tolist())
    assert results[0] == results[1]
    norm, mlm, nsp, *numbers = results[0]

    model = tiny()
    parts = [learners.losses(model, tensors(arrays(first, 4))) for first in (0, 4)]
    mean: Any = sum(sum(part) for part in parts) / 2
    mean.backward()
    expected = torch.cat([weight.grad.reshape(-1) for weight in model.parameters()]).norm()
    assert norm == pytest.approx(expected.item(), rel=1e-4)
    assert mlm + nsp == pytest.approx(mean.item(), rel=1e-5)
    assert numbers == [7.0]


def test_a_large_gradient_is_clipped(learner: Callable[..., Learner], monkeypatch: pytest.MonkeyPatch) -> None:
    tried, given = learner(), list[Any]()
    right = learners.losses
    monkeypatch.setattr(learners, "losses", lambda *given: [1000 * loss for loss in right(*given)])

    def step() -> None:
        given.append(torch.cat([weight.grad.flatten() for weight in tried._weights.values()]))

    monkeypatch.setattr(tried._optimizer, "step", step)
    tried.accumulate(tensors(arrays(0, 4)), seed=0)
    assert tried.update(1e-3, [])[0] > 100
    assert given[0].norm() == pytest.approx(1.0, rel=1e-4)
