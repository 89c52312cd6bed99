"""Time and cost to train a model on a deployment."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from math import ceil
from typing import TYPE_CHECKING

from scripts.check.estimate import products
from scripts.check.estimate.costs import costs, image_gib, per_hour
from scripts.check.estimate.sizes import fleet
from scripts.check.estimate.workloads import INSTANCE_TYPE, Basis, Row, Workload, WorkloadError
from scripts.core.document import Document
from scripts.core.figures import Dollars, Number

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.check.estimate.prices import Prices


class TrainingEstimate(Document):
    """What a run takes on a number of nodes.

    Attributes:
        sequences_per_second: Throughput of all nodes.
        batch: Global batch in sequences.
        hours: Time of training alone.
        dollars_of_nodes: Cost of the nodes for that time; None: their price is not known.
        dollars_of_everything: Cost of the whole deployment for that time; None: likewise.
        fits: Whether one queue of the deployment has that many nodes.
    """

    nodes: int
    basis: Basis
    sequences_per_second: Number
    batch: int
    steps: int
    hours: Number
    dollars_of_nodes: Dollars | None
    dollars_of_everything: Dollars | None
    fits: bool


class Efficiency(Document):
    """Weak-scaling efficiency that AWS published from 1 to 16 nodes, and of what."""

    ratio: Number
    of: str


class TrainingRun(Document):
    """A training run on several numbers of nodes.

    Attributes:
        sequences: Its length.
        tokens: The same in tokens.
        measurements: What AWS published.
        weak_scaling_efficiency: What estimates beyond the measurements assume.
        largest_job_nodes: Nodes of the largest queue of the deployment.
    """

    workload: str
    instance_type: str = INSTANCE_TYPE
    sequences: int
    tokens: int
    measurements: tuple[Row, ...]
    weak_scaling_efficiency: Efficiency
    remark: str
    largest_job_nodes: int
    estimates: tuple[TrainingEstimate, ...]


def estimate_run(
    settings: Settings, prices: Prices, workload: Workload, *, counts: Sequence[int] = (), tokens: int | None = None
) -> TrainingRun:
    """Estimate a training run on a deployment.

    Without counts of nodes it is on those worth comparing, without tokens of the published length.

    Raises:
        WorkloadError: The deployment has no nodes of the type that was measured, or the workload cannot run as asked:
            a run of fixed length with a number of tokens, a model that cannot be spread over a number of nodes.
    """
    nodes = fleet(settings.cluster_spec)
    measured_on = [kind for kind in nodes.kinds if kind.instance_type == INSTANCE_TYPE]
    if not measured_on:
        raise WorkloadError(f"{workload.name} was measured on {INSTANCE_TYPE}, which this deployment does not have")
    largest = nodes.largest_job(INSTANCE_TYPE)
    sequences = workload.length(tokens)
    instance, volume = prices.of(products.instance(INSTANCE_TYPE)), prices.of(products.GP3)
    node_hourly = None
    if instance is not None and volume is not None:
        node_hourly = per_hour(instance) + (measured_on[0].root_volume_gib or image_gib(settings)) * per_hour(volume)
    other_hourly = costs(settings, prices).hourly_without_nodes

    def estimate(count: int) -> TrainingEstimate:
        if count % workload.nodes_per_replica:
            raise WorkloadError(
                f"--nodes: got {count}; allowed: a multiple of {workload.nodes_per_replica} nodes, which one copy of "
                f"{workload.name} fills as it was measured"
            )
        throughput, basis = workload.throughput(count)
        hours, batch = sequences / throughput / 3600, workload.batch(count)
        paid = None if node_hourly is None else Decimal(hours) * count * node_hourly
        return TrainingEstimate(
            nodes=count,
            basis=basis,
            sequences_per_second=throughput,
            batch=batch,
            steps=ceil(sequences / batch),
            hours=hours,
            dollars_of_nodes=paid,
            dollars_of_everything=None if paid is None else paid + Decimal(hours) * other_hourly,
            fits=count <= largest,
        )

    return TrainingRun(
        workload=workload.name,
        sequences=sequences,
        tokens=sequences * workload.sequence_length,
        measurements=tuple(workload.rows),
        weak_scaling_efficiency=Efficiency(ratio=workload.efficiency, of=workload.efficiency_of),
        remark=workload.remark,
        largest_job_nodes=largest,
        estimates=tuple(map(estimate, sorted(set(counts)) or node_counts(workload, largest))),
    )


def node_counts(workload: Workload, largest: int) -> list[int]:
    """Return numbers of nodes worth comparing: doubling from one replica to the largest job, and those measured."""
    replica = workload.nodes_per_replica
    doubling = [replica * 2**power for power in range(largest.bit_length()) if replica * 2**power <= largest]
    most = largest - largest % replica
    return sorted({*doubling, *([most] if most else []), *(row.nodes for row in workload.rows)})
