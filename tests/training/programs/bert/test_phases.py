"""The published recipes and their learning rate."""

from __future__ import annotations

import pytest
import torch
from transformers.optimization import get_linear_schedule_with_warmup

from bert.phases import RECIPES, Recipe, checkpoint_interval, learning_rate


@pytest.mark.parametrize("recipe", [*RECIPES.values(), Recipe(128, 20, 16, 16_384, 4e-4, 0, 100)])
def test_learning_rate_is_that_of_the_published_schedule(recipe: Recipe) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=recipe.learning_rate)
    published = get_linear_schedule_with_warmup(optimizer, recipe.warmup_steps, recipe.steps).lr_lambdas[0]
    ends = (0, 1, max(0, recipe.warmup_steps - 1), recipe.warmup_steps, recipe.warmup_steps + 1, recipe.steps - 1)
    for step in (*ends, *range(0, recipe.steps, 97)):
        rate = learning_rate(step, peak=recipe.learning_rate, warmup_steps=recipe.warmup_steps, steps=recipe.steps)
        assert rate == pytest.approx(recipe.learning_rate * published(step))


@pytest.mark.parametrize(
    ("phase", "sequences", "nodes", "steps", "expected"),
    [
        (1, 16_384, 1, 28_125, 384),  # 1800 s x 3500 sequences/s / 16,384 sequences
        (1, 16 * 16_384, 16, 440, 384),  # weak scaling
        (1, 65_536, 16, 7_032, 1_538),
        (1, 1_875 * 16_384, 1_875, 28_125, 66),  # 313 s
        (2, 32_768, 1, 1_563, 29),
        (1, 16_384, 1, 100, 100),
        (2, 10_000_000, 1, 100, 1),
    ],
)
def test_checkpoints_follow_from_the_fleet_and_are_half_an_hour_apart_at_most(
    phase: int, sequences: int, nodes: int, steps: int, expected: int
) -> None:
    interval = checkpoint_interval(
        phase=phase, sequences=sequences, nodes=nodes, steps=steps, checkpoint_bytes=4_034_713_296
    )
    assert interval == expected
