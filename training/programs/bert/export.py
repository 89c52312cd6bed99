"""A checkpoint as a directory that transformers loads: ``BertForPreTraining.from_pretrained(DIRECTORY)``.

config.json and model.safetensors, on the CPU. It is there when it has been loaded again and computes the same.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers.models.bert.modeling_bert import BertForPreTraining

from ultracluster_job import IDENTITY, BadInputError, Checkpoint, RunError, TrainingError, read_run

from .learner import model_configuration
from .sizes import Sizes

_TRIED = 8  # sequences


def export(arguments: Sequence[str]) -> int:
    """Export what the arguments ask for, and return the exit code.

    Raises:
        BadInputError: The checkpoint cannot be used.
        TrainingError: What was written is not what was trained.
    """
    parser = argparse.ArgumentParser(prog="python -m bert export", description=__doc__, allow_abbrev=False)
    parser.add_argument("--output", type=Path, required=True, help="directory of the run")
    parser.add_argument("--checkpoint", type=Path, required=True, help="directory of the checkpoint")
    parser.add_argument("--to", type=Path, required=True, help="where to; it must not exist")
    given = parser.parse_args(arguments)
    [number] = re.findall(r"\d+$", given.checkpoint.name)[-1:] or ["0"]
    checkpoint = Checkpoint(int(number), given.checkpoint)
    if problem := checkpoint.problem():
        raise BadInputError([f"--checkpoint: got {checkpoint.path}, which is damaged ({problem}); allowed: another"])
    state = checkpoint.load()
    model = _model(state, _dropout(given.output))
    model.save_pretrained(given.to)
    _compare(model, given.to)
    print(
        f"{sum(weight.numel() for weight in model.parameters()) / 1e6:.1f} million weights, loaded again and compared"
    )
    return 0


def _dropout(run: Path) -> float:
    """Return the dropout that the run was trained with, which is a part of a configuration."""
    try:
        return float(read_run(run).options["dropout"])
    except (RunError, KeyError, TypeError, ValueError) as error:
        raise BadInputError([f"--output: got {run}; allowed: the directory of a run of bert ({error})"]) from None


def _model(state: Any, dropout: float) -> Any:
    """Return the model of a checkpoint."""
    identity, weights = state[IDENTITY], state["weights"]
    positions = len(weights["bert.embeddings.position_embeddings.weight"])
    names = ("layers", "hidden", "heads", "intermediate", "vocabulary")
    sizes = Sizes(**{name: identity[name] for name in names}, positions=positions)
    model = BertForPreTraining(model_configuration(sizes, dropout=dropout)).eval()
    own = dict(model.named_parameters())
    if own.keys() != weights.keys():
        raise TrainingError(f"{len(own.keys() ^ weights.keys())} weights of the checkpoint are not those of a model")
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(weights[name])
    return model


def _compare(model: Any, directory: Path) -> None:
    """See that a directory is what was exported: all weights, and what they compute."""
    loaded, told = BertForPreTraining.from_pretrained(directory, output_loading_info=True, attn_implementation="eager")
    if told["missing_keys"] or told["unexpected_keys"] or told["mismatched_keys"]:
        raise TrainingError(f"transformers does not load {directory}: {told}")
    if [name for name, weight in loaded.named_parameters() if not torch.equal(weight, model.get_parameter(name))]:
        raise TrainingError(f"the weights in {directory} are not those of the checkpoint")
    words = torch.arange(_TRIED * 16).reshape(_TRIED, 16) % model.config.vocab_size
    with torch.no_grad():
        outputs = [each.eval()(input_ids=words) for each in (model, loaded)]
    for name in ("prediction_logits", "seq_relationship_logits"):
        one, other = (output[name] for output in outputs)
        if not (one.isfinite().all() and torch.equal(one, other)):
            raise TrainingError(f"{directory}: {name} are not finite, or not those of the checkpoint")
