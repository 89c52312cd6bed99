"""Losses on held-out data: each sequence once, on any number of ranks, and nothing of the training changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from bert.corpus import Corpus, ShardedCorpus, inspect
from bert.evaluation import Evaluation
from bert.feed import IGNORED, tensors
from bert.learner import build_model
from tests.training.programs.bert.runs import in_ranks, losses, steps, train
from tests.training.programs.bert.shard_files import LENGTH, PREDICTIONS, VOCABULARY, arrays, write_shards
from tests.training.programs.bert.test_model import TINY
from ultracluster_job.backend import Backend
from ultracluster_job.ranks import this_worker

ROWS = (6, 1, 14)
"""In micro-batches of 4, one is filled up; they cross shards."""


@pytest.fixture(scope="module")
def held_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("held-out")
    write_shards(directory, ROWS)
    return directory


def corpus(directory: Path) -> Corpus:
    shards, _ = inspect(directory, sequence_length=LENGTH, max_predictions=PREDICTIONS, vocabulary=VOCABULARY)
    return ShardedCorpus(directory, shards, VOCABULARY)


def evaluate(directory: Path, report: Path) -> int:
    """Write what a rank yields, and whether its model is in training."""
    worker = this_worker()
    model = build_model(TINY, dropout=0.5, seed=1)
    yielded = list(Evaluation(corpus(directory), Backend(worker), 4)(model))
    (report / f"{worker.rank}.json").write_text(json.dumps([*map(dict, yielded), model.training]))
    return 0


@pytest.mark.parametrize("ranks", [1, 4, 7])
def test_each_sequence_counts_once_on_any_number_of_ranks(held_out: Path, tmp_path: Path, ranks: int) -> None:
    assert in_ranks(ranks, evaluate, held_out, tmp_path) == [0] * ranks
    reports = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(ranks)]
    assert all(report == reports[0] for report in reports), "as often on each, and the same"
    *before, numbers, training = reports[0]
    assert (any(before), training) == (False, True)

    (alone := tmp_path / "alone").mkdir()
    assert in_ranks(1, evaluate, held_out, alone) == [0]
    assert numbers == json.loads((alone / "0.json").read_text())[-2], "to the last bit"

    batch = tensors(arrays(0, sum(ROWS)))
    model = build_model(TINY, dropout=0.5, seed=1).eval()
    with torch.no_grad():
        output = model(**batch)  # whose loss is the mean over all masked words, and over all sentences
    right = output.prediction_logits.argmax(-1) == batch["labels"]
    follows = output.seq_relationship_logits.argmax(-1) == batch["next_sentence_label"]
    assert numbers["evaluation_loss"] == pytest.approx(output.loss.item(), rel=1e-5)
    assert numbers["evaluation_loss"] == numbers["evaluation_mlm_loss"] + numbers["evaluation_nsp_loss"]
    masked = batch["labels"] != IGNORED
    assert numbers["evaluation_mlm_accuracy"] == pytest.approx(right.sum().item() / masked.sum().item())
    assert numbers["evaluation_nsp_accuracy"] == pytest.approx(follows.float().mean().item())
    assert numbers["evaluation_sequences"] == sum(ROWS)


def test_training_is_the_same_with_evaluations_which_are_recorded(held_out: Path, tmp_path: Path) -> None:
    plain, evaluated = tmp_path / "plain", tmp_path / "evaluated"
    assert train(plain) == [0]
    options = ("--evaluate-data", str(held_out), "--evaluate-every", "4")
    assert train(evaluated, *options, "--stop-after", "6") == [0]
    assert train(evaluated, *options) == [0]
    assert losses(evaluated) == losses(plain)
    found = {step["step"]: step["evaluation_loss"] for step in steps(evaluated) if "evaluation_loss" in step}
    assert list(found) == [4, 6, 8, 12]
    assert found[12] < found[4]
    summary = json.loads((evaluated / "summary.json").read_text())
    assert (summary["evaluation_loss"], summary["evaluation_step"]) == (found[12], 12)
