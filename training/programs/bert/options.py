"""The command line of the program. Standard library alone."""

# ruff: noqa: RUF009 - what _option and the functions that call it return is a field

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

from ultracluster_job import BadInputError, this_worker

from .phases import RECIPES, checkpoint_interval
from .sizes import Sizes

NEURON_DEVICE = Path("/dev/neuron0")
_OF_MODEL = ("layers", "hidden", "heads", "intermediate", "vocabulary")


def _value(read: Callable[[str], Any], accepts: Callable[[Any], bool], allowed: str) -> Callable[[str], Any]:
    """Return argparse's type of an option; ``allowed`` is what ``accepts`` accepts, in words."""

    def value_of(text: str) -> Any:
        with suppress(ValueError):
            if accepts(value := read(text)):
                return value
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: {allowed}")

    return value_of


def _option(symbol: str, value: Callable[[str], Any], meaning: str, default: Any = None) -> Any:
    """Return the field of an option. Without a default it follows from the others, or is None."""
    said = meaning if default is None else f"{meaning} (default: {default})"
    return field(default=default, metadata={"metavar": symbol, "type": value, "help": said})


def whole_number(least: int) -> Callable[[str], int]:
    """Return argparse's type of a whole number."""
    return _value(int, lambda value: value >= least, f"a whole number from {least} on")


def _number(least: int, meaning: str, default: int | None = None) -> Any:
    return _option("N", whole_number(least), meaning, default)


def _one_of(values: Sequence[Any], meaning: str, default: Any = None) -> Any:
    kind = type(values[0])
    words = [str(value) for value in values]
    return _option("|".join(words), _value(kind, lambda value: value in values, " or ".join(words)), meaning, default)


def _directory(meaning: str) -> Any:
    return _option("DIR", Path, meaning)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the program is asked to do. The sizes are those of BERT-Large, uncased, unless others are given.

    https://huggingface.co/google-bert/bert-large-uncased
    """

    command: str
    backend: str = _one_of(
        ("neuron", "native", "cpu"),
        "neuron: NeuronCores by PyTorch/XLA; native: PyTorch's own accelerator, such as a GPU, or without one the CPU",
        "neuron",
    )
    precision: str = _one_of(
        ("bf16", "bf16-stochastic", "fp32"),
        "of the model's arithmetic; bf16 and fp32 keep weights and gradients in float32, bf16-stochastic in bf16, with "
        "stochastic rounding, as in AWS's measurements (default: fp32 on cpu, else bf16)",
    )
    phase: int = _one_of((1, 2), "1 with sequences of 128 tokens, 2 with 512", 1)
    optimizer: str = _one_of(("adamw", "lamb"), "of the weights", "adamw")
    head: str = _one_of(
        ("all", "masked"),
        "of the masked words: at all tokens, as AWS's, or at masked ones, with the same losses",
        "all",
    )
    scaling: str = _one_of(
        ("strong", "weak"),
        "strong keeps the global batch on any number of nodes, weak multiplies it by them",
        "strong",
    )
    nodes: int | None = _number(1, "for check: how many nodes the job will have (default: 1)")
    workers_per_node: int | None = _number(1, "for check: workers on each node (default: 32)")
    global_batch: int = _number(
        1, "sequences of an optimizer step; with --scaling weak, of a node (default: published)"
    )
    micro_batch: int = _number(1, "sequences that a worker takes at once (default: published)")
    steps: int = _number(1, "optimizer steps of the whole run (default: published)")
    stop_after: int | None = _number(
        1, "optimizer steps of this start, then end (default: continue to the end of the run)"
    )
    learning_rate: float = _option(
        "X",
        _value(float, lambda value: 0 < value < 1, "a number between 0 and 1"),
        "its peak (default: published)",
    )
    warmup_steps: int = _number(0, "optimizer steps until the peak of the learning rate (default: published)")
    seed: int = _number(0, "of weights, dropout, order of the data and generated data", 1234)
    data: Path | None = _directory("directory of HDF5 shards (default: a generated corpus)")
    output: Path = _directory("directory of the run, on storage that all nodes share")
    checkpoint_interval: int = _number(
        1, "optimizer steps between checkpoints (default: by the nodes, half an hour's at most)"
    )
    evaluate_data: Path | None = _directory("directory of held-out HDF5 shards (default: no evaluation)")
    evaluate_every: int | None = _number(
        1, "optimizer steps between evaluations, of which one is at the end (default: as between checkpoints)"
    )
    keep: int = _number(1, "checkpoints to keep", 3)
    start_from: Path | None = _directory("directory of a run whose newest weights this run starts with")
    reference: Path | None = _directory("directory of a run on one node, for the scaling efficiency")
    layers: int = _number(1, "Transformer layers", 24)
    hidden: int = _number(1, "width of a layer", 1024)
    heads: int = _number(1, "attention heads of a layer", 16)
    intermediate: int = _number(1, "width of a feed-forward layer", 4096)
    vocabulary: int = _number(32, "tokens of the vocabulary", 30_522)
    dropout: float = _option(
        "X", _value(float, lambda value: 0 <= value < 1, "a number from 0 to below 1"), "probability of dropout", 0.1
    )
    sequence_length: int = _number(16, "tokens of a sequence (default: published)")
    max_predictions: int = _number(1, "masked tokens of a sequence, at most (default: published)")
    stall_seconds: int = _number(
        0,
        "seconds without progress, or ten steps if these take longer, after which the run ends and tells who stood "
        "still; 0: never",
        900,
    )

    @property
    def sizes(self) -> Sizes:
        """The sizes of the model."""
        return _sizes({name: getattr(self, name) for name in (*_OF_MODEL, "sequence_length")})

    @property
    def sizes_by_option(self) -> dict[str, int]:
        """The sizes by the names of the options that set them."""
        return {name: getattr(self, name) for name in _OF_MODEL}


_OPTIONS = [each for each in fields(Options) if each.name != "command"]


class _Parser(argparse.ArgumentParser):
    """Leaves it to the program to report what is wrong, once for all ranks."""

    def error(self, message: str) -> NoReturn:
        raise BadInputError([message])


def parse(arguments: Sequence[str]) -> Options:
    """Return the options of a command line.

    What contradicts in them is left to ``check``, which tells of it with all else that it finds.

    Raises:
        BadInputError: A value cannot be used, or options contradict each other in ``train``.
    """
    parser = _Parser(prog="python -m bert", description="BERT pre-training on many nodes.", allow_abbrev=False)
    parser.add_argument("command", choices=("train", "check"), help="train, or only check options and input")
    for each in _OPTIONS:
        parser.add_argument(_flag(each.name), **each.metadata)
    values = vars(parser.parse_args(arguments))
    if values["output"] is None:
        raise BadInputError(["--output: got nothing; allowed: a directory on storage that all nodes share"])
    options = _completed(values.pop("command"), values)
    if options.command == "train" and (problems := contradictions(options)):
        raise BadInputError(problems)
    return options


def _sizes(values: Mapping[str, Any]) -> Sizes:
    """Return the sizes of a model. A sequence longer than the published 512 tokens makes the model larger."""
    return Sizes(**{name: values[name] for name in _OF_MODEL}, positions=max(512, values["sequence_length"]))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _completed(command: str, given: Mapping[str, Any]) -> Options:
    """Return the options with the published values where nothing else was given."""
    known = {name: value for name, value in given.items() if value is not None}
    chosen = {**{each.name: each.default for each in _OPTIONS if each.default is not None}, **known}
    values = {**given, **asdict(RECIPES[chosen["phase"], chosen["optimizer"]]), **chosen}
    nodes = values["nodes"] or this_worker().nodes
    interval = checkpoint_interval(
        phase=values["phase"],
        sequences=values["global_batch"] * (nodes if values["scaling"] == "weak" else 1),
        nodes=nodes,
        steps=values["steps"],
        checkpoint_bytes=_sizes(values).checkpoint_bytes,
    )
    derived: dict[str, Any] = {
        "precision": "fp32" if values["backend"] == "cpu" else "bf16",
        "checkpoint_interval": interval,
    }
    return Options(command=command, **{**values, **derived, **known})


def contradictions(options: Options) -> list[str]:
    """Return what is wrong with the options taken together."""
    problems = []
    if options.hidden % options.heads:
        problems.append(f"--heads: got {options.heads}; allowed: a divisor of --hidden {options.hidden}")
    if options.warmup_steps > options.steps:
        problems.append(f"--warmup-steps: got {options.warmup_steps}; allowed: at most --steps {options.steps}")
    if options.max_predictions >= options.sequence_length:
        allowed = f"less than --sequence-length {options.sequence_length}"
        problems.append(f"--max-predictions: got {options.max_predictions}; allowed: {allowed}")
    if options.evaluate_every and not options.evaluate_data:
        problems.append(f"--evaluate-every: got {options.evaluate_every}; allowed: together with --evaluate-data")
    if options.precision == "bf16-stochastic" and options.backend != "neuron":
        allowed = f"bf16 or fp32 with --backend {options.backend}, which rounds to the nearest number"
        problems.append(f"--precision: got bf16-stochastic; allowed: {allowed}")
    if options.command == "train":
        problems += [
            f"--{name}: got it with train; allowed: with check (train has it from torchrun)"
            for name, value in (("nodes", options.nodes), ("workers-per-node", options.workers_per_node))
            if value is not None
        ]
    if options.command == "train" and options.backend == "neuron" and not NEURON_DEVICE.exists():
        problems.append(f"--backend: got neuron, but there is no {NEURON_DEVICE}; allowed: native or cpu, on purpose")
    return problems
