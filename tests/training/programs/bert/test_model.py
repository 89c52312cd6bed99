"""The model, its losses, and the optimizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import BertForPreTraining

from bert import learner as learners
from bert import optimizer as optimizers
from bert.feed import tensors
from bert.learner import Learner
from bert.sizes import Sizes
from tests.training.programs.bert.shard_files import LENGTH, PREDICTIONS, VOCABULARY, arrays
from ultracluster_job.backend import Backend
from ultracluster_job.ranks import Worker

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


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_the_head_at_masked_words_has_the_same_losses_and_gradients(precision: Any) -> None:
    """The last sequence has fewer masked words than it may have."""
    rows = {name: array.copy() for name, array in arrays(0, 8).items()}
    rows["masked_lm_positions"][-1, 2:] = rows["masked_lm_ids"][-1, 2:] = 0
    model = tiny().to(precision)
    heads = {head: learners.losses(model, tensors(rows, head=head)) for head in ("all", "masked")}
    gradients = {head: torch.autograd.grad(sum(each), list(model.parameters())) for head, each in heads.items()}
    assert tensors(rows, head="masked")["labels"].shape == (8, PREDICTIONS)
    close = {} if precision == torch.float32 else {"rtol": 2e-2, "atol": 2e-3}
    torch.testing.assert_close(heads["masked"], heads["all"], **close)
    torch.testing.assert_close(gradients["masked"], gradients["all"], **close)


def test_decoder_shares_the_weights_of_the_embeddings_after_a_move() -> None:
    model = tiny()
    model.cls.predictions.decoder.weight = torch.nn.Parameter(model.cls.predictions.decoder.weight.detach().clone())
    moved = learners.move_model(model, torch.device("cpu"), torch.float32)
    assert moved.cls.predictions.decoder.weight is moved.bert.embeddings.word_embeddings.weight
    assert moved.cls.predictions.decoder.bias is moved.cls.predictions.bias


def test_biases_and_layer_norms_are_one_vector() -> None:
    weights = {name: weight.detach() for name, weight in tiny().named_parameters()}
    packed = optimizers.pack(weights)
    matrices = [name for name, weight in weights.items() if weight.dim() == 2]
    assert list(packed) == [*matrices, optimizers.NOT_DECAYED]
    assert not any(name.endswith("bias") or "LayerNorm" in name for name in matrices)
    unpacked = optimizers.unpack(packed, {name: weight.numel() for name, weight in weights.items()})
    assert list(unpacked) == list(weights)
    assert all(torch.equal(unpacked[name], weight) for name, weight in weights.items())


def stepped(rates: list[float], make: Callable[[dict[str, Any]], Callable[[float], object]]) -> list[torch.Tensor]:
    """Return two weights, one of them exempt from decay, after steps with gradients that have zeros."""
    torch.manual_seed(1)
    weights = {"weight": torch.randn(4, 3), optimizers.NOT_DECAYED: torch.randn(3)}
    step = make(weights)
    for rate in rates:
        for weight in weights.values():
            weight.grad = torch.randn_like(weight)
            weight.grad.view(-1)[0] = 0.0
        step(rate)
    return list(weights.values())


def ours(name: str) -> Callable[[dict[str, Any]], Callable[[float], object]]:
    def make(weights: dict[str, Any]) -> Callable[[float], object]:
        optimizer = optimizers.Optimizer(name, weights)
        return lambda rate: optimizer.step(torch.tensor(rate))

    return make


def torchs(weights: dict[str, Any]) -> Callable[[float], object]:
    """PyTorch's AdamW; neither it nor the other needs weights that require gradients."""
    decayed, exempt = weights.values()
    groups = [{"params": [decayed], "weight_decay": 0.01}, {"params": [exempt], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-6)

    def step(rate: float) -> None:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()

    return step


@pytest.mark.parametrize("name", ["adamw", "lamb"])
def test_a_learning_rate_of_zero_changes_no_weight(name: str) -> None:
    for before, after in zip(stepped([], ours(name)), stepped([0.0], ours(name)), strict=True):
        assert torch.equal(before, after)


def test_adamw_is_pytorchs() -> None:
    rates = [0.0, 1e-3, 2e-3, 1e-3, 0.1]
    for one, other in zip(stepped(rates, ours("adamw")), stepped(rates, torchs), strict=True):
        torch.testing.assert_close(one, other)


SHAPES = {
    "embeddings": (30_522, 1024),
    "positions": (512, 1024),
    "attention": (1024, 1024),
    "intermediate": (4096, 1024),
    "output": (1024, 4096),
    "decoder.bias": (30_522,),
    "intermediate.bias": (4096,),
    "LayerNorm.weight": (1024,),
}
"""Those of BERT-Large, one of each."""


def published_lamb(weight: Any, first: Any, second: Any, gradient: Any, *, step: int, rate: float) -> None:
    """Make a step of a weight as in lamb.py of the sample, in place; of one that decays, or a bias or norm.

    https://github.com/aws-neuron/aws-neuron-samples/tree/master/torch-neuronx/training/dp_bert_hf_pretrain
    """
    first.mul_(0.9).add_(gradient, alpha=0.1)
    second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    change = (second / (1 - 0.999**step)).sqrt_().add_(1e-6).reciprocal_().mul_(first).div_(1 - 0.9**step)
    trust = 1.0
    if weight.ndim == 2:
        change.add_(weight, alpha=0.01)
        trust = min(1.0, float(weight.norm() / change.norm()))
    weight.sub_(change, alpha=rate * trust)


def test_lamb_is_the_published_one_at_bert_larges_size() -> None:
    """Of weights that are small beside their update, and of some that are large, whose ratio would be above 1."""
    torch.manual_seed(1)
    scales = dict(zip(SHAPES, [0.02, 0.5, 4.0, 0.04, 0.04, 1.0, 1.0, 1.0], strict=True))
    began = {name: scales[name] * torch.randn(shape) for name, shape in SHAPES.items()}
    weights = {name: each.clone() for name, each in began.items()}
    expected = {name: each.double() for name, each in began.items()}
    moments = {name: (torch.zeros_like(each), torch.zeros_like(each)) for name, each in expected.items()}
    drawn = {name: (torch.randn(shape), torch.randn(shape)) for name, shape in SHAPES.items()}
    optimizer = optimizers.Optimizer("lamb", weights)
    for step in range(1, 21):
        rate = 6e-3 * step / 20
        for name, weight in weights.items():
            weight.grad = drawn[name][step % 2] * (step % 3 - 0.5) * 10.0 ** (-step % 4)
            published_lamb(expected[name], *moments[name], weight.grad.double(), step=step, rate=rate)
        optimizer.step(torch.tensor(rate))
    for name, wanted in expected.items():
        distance, way = (float((each.double() - wanted).norm()) for each in (weights[name], began[name]))
        assert distance < 1e-5 * float(wanted.norm()), name
        assert way > 1e-3 * float(wanted.norm()), "as near is what has not moved"


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
    assert numbers == [7.0, 0.0]


def test_bf16_stochastic_keeps_no_float32_but_moments_and_follows_the_curve(
    learner: Callable[..., Learner], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding to the nearest number loses small updates; what NeuronCores do instead keeps them on average."""

    def stochastic(weight: Any, update: Any) -> Any:
        exact = (weight.float() - update).view(torch.int32)
        rounded = (exact + torch.randint(0, 1 << 16, exact.shape, dtype=torch.int32)) & -(1 << 16)
        return weight.copy_(rounded.view(torch.float32))

    curves = dict[str, list[float]]()
    for precision in ("bf16-stochastic", "bf16"):
        tried = learner(precision=precision)
        kinds = {tensor.dtype for weight in tried._weights.values() for tensor in (weight, weight.grad)}
        assert kinds == {torch.bfloat16 if precision == "bf16-stochastic" else torch.float32}
        with monkeypatch.context() as patch:
            if precision == "bf16-stochastic":
                patch.setattr(torch.Tensor, "sub_", stochastic)
            curves[precision] = []
            for step in range(30):
                tried.accumulate(tensors(arrays(8 * (step % 4), 8)), seed=0)
                curves[precision].append(sum(tried.update(1e-3, [])[1:3].tolist()))
        state = tried.state()
        assert {weight.dtype for weight in state["weights"].values()} == {torch.float32}
        assert {moment.dtype for moment in state["optimizer"]["means"].values()} == {torch.float32}
    assert curves["bf16"][0] - curves["bf16"][-1] > 0.3
    assert curves["bf16-stochastic"] == pytest.approx(curves["bf16"], abs=0.1)


def test_a_large_gradient_is_clipped(learner: Callable[..., Learner], monkeypatch: pytest.MonkeyPatch) -> None:
    tried, given = learner(), list[Any]()
    right = learners.losses
    monkeypatch.setattr(learners, "losses", lambda *given: [1000 * loss for loss in right(*given)])

    def step(_: Any) -> None:
        given.append(torch.cat([weight.grad.flatten() for weight in tried._weights.values()]))

    monkeypatch.setattr(tried._optimizer, "step", step)
    tried.accumulate(tensors(arrays(0, 4)), seed=0)
    assert tried.update(1e-3, [])[0] > 100
    assert given[0].norm() == pytest.approx(1.0, rel=1e-4)
