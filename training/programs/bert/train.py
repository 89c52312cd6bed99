"""One start of BERT pre-training on one rank: the parts that the job's loop is made of."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from importlib import metadata
from typing import Any

from ultracluster_job import (
    Backend,
    Batch,
    Exchange,
    Heartbeat,
    Plan,
    Recorder,
    RunFacts,
    TrainingLoop,
    agree,
    connect,
    node_names,
    this_worker,
)

from .check import Findings, describe, divided, examine, identity
from .corpus import Corpus, GeneratedCorpus, ShardedCorpus
from .evaluation import Evaluation
from .feed import Feed
from .learner import Learner, build_model
from .options import Options
from .phases import learning_rate

_VERSIONS = ("torch", "torch-xla", "torch-neuronx", "neuronx-cc", "libneuronxla", "transformers")


def train(options: Options, heartbeat: Heartbeat) -> int:
    """Train, and return the exit code.

    Raises:
        BadInputError: Something is wrong with the options or the directories.
        TrainingError: The run cannot continue.
        DivergedError: A number of a step is not finite.
    """
    worker = this_worker()
    batch = divided(options, worker.nodes, worker.workers_per_node)
    backend = connect(options.backend, worker, stochastic_rounding=options.precision == "bf16-stochastic")
    exchange = Exchange(worker)
    recorders: list[Recorder] = []

    def find() -> Findings:
        findings = examine(options, batch)
        # The plan compares the options with those in the records before they are written again.
        print("\n".join(describe(options, batch, worker.nodes, findings)), flush=True)
        if not backend.extracting:
            resumed = findings.resumed.step if findings.resumed else 0
            facts = _facts(options, backend, identity(options, batch, findings.shards))
            recorders.append(Recorder(options.output, facts, resumed))
        return findings

    findings = agree(options.output, backend, exchange, find)
    learner = Learner(
        build_model(options.sizes, dropout=options.dropout, seed=options.seed),
        backend,
        optimizer=options.optimizer,
        precision=options.precision,
        accumulation=batch.accumulation,
    )
    done = _restore(learner, findings)
    plan = _plan(options, batch, findings, done)
    feed = Feed(
        _corpus(options, findings),
        batch,
        rank=worker.rank,
        seed=options.seed,
        steps=range(done, plan.end),
        head=options.head,
    )
    recorder = recorders[0] if recorders else None
    loop = TrainingLoop(
        plan,
        batch=batch,
        backend=backend,
        exchange=exchange,
        learner=learner,
        feed=feed,
        heartbeat=heartbeat,
        recorder=recorder,
        evaluate=_evaluate(options, findings, backend, learner),
    )
    return loop.go()


def _evaluate(
    options: Options, findings: Findings, backend: Backend, learner: Learner
) -> Callable[[], Iterator[Mapping[str, float]]] | None:
    """Return what computes the losses on held-out data, if there is some."""
    if options.evaluate_data is None or findings.held_out is None:
        return None
    corpus = ShardedCorpus(options.evaluate_data, findings.held_out, options.vocabulary)
    evaluation = Evaluation(corpus, backend, options.micro_batch)
    return lambda: evaluation(learner.model)


def _restore(learner: Learner, findings: Findings) -> int:
    """Take over the checkpoint, if there is one, and return how many steps are done."""
    if findings.resumed:
        learner.restore(findings.resumed.load())
        return findings.resumed.step
    if findings.first:
        learner.restore_weights(findings.first.load()["weights"])
    return 0


def _plan(options: Options, batch: Batch, findings: Findings, done: int) -> Plan:
    def rate(step: int) -> float:
        return learning_rate(step, peak=options.learning_rate, warmup_steps=options.warmup_steps, steps=options.steps)

    return Plan(
        output=options.output,
        steps=options.steps,
        done=done,
        stop_after=options.stop_after,
        checkpoint_interval=options.checkpoint_interval,
        evaluate_every=options.evaluate_every or options.checkpoint_interval,
        keep=options.keep,
        seed=options.seed,
        learning_rate=rate,
        losses=("mlm_loss", "nsp_loss"),
        identity=identity(options, batch, findings.shards),
        tokens_per_sequence=options.sequence_length,
        flops_per_sequence=options.sizes.flops_per_sequence(options.sequence_length),
        reference=options.reference,
    )


def _corpus(options: Options, findings: Findings) -> Corpus:
    if options.data is not None and findings.shards is not None:
        return ShardedCorpus(options.data, findings.shards, options.vocabulary)
    return GeneratedCorpus(options.seed, options.vocabulary, options.sequence_length, options.max_predictions)


def _facts(options: Options, backend: Backend, same: Mapping[str, Any]) -> RunFacts:
    return RunFacts(
        program="bert",
        nodes=backend.worker.nodes,
        workers=backend.worker.ranks,
        hosts=node_names(backend.worker.nodes),
        peak_flops=backend.peak_flops,
        options=asdict(options),
        versions=_versions(),
        identity=same,
    )


def _versions() -> Mapping[str, str]:
    versions = {"python": platform.python_version()}
    for name in _VERSIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
