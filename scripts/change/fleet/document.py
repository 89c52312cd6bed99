"""The state of a fleet, and the result of scaling it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import Field, NonNegativeInt, PositiveInt

from scripts.account import compute_fleet
from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.account.slurm import slurm_state
from scripts.change.fleet.queues import nodes
from scripts.change.fleet.scaling import Scaled
from scripts.core.document import DeploymentName, Document, Result
from scripts.core.errors import HeadNodeError
from scripts.core.report import Block, Line, Table, columns


class FleetNodes(Document):
    """Nodes of a queue."""

    compute_resource: str = Field(description="Name of the compute resource.")
    static: bool = Field(description="Whether they are static (min_count).")
    count: PositiveInt = Field(description="How many Slurm knows, running or not.")
    ready: NonNegativeInt = Field(description="How many take jobs or run them.")


class Queue(Document):
    """A queue of Slurm."""

    name: str = Field(description="Its name.")
    state: str = Field(
        description="up: takes jobs; drain: takes no new jobs; down: jobs wait; inactive: the fleet is stopped, or the "
        "queue is protected."
    )
    nodes: tuple[FleetNodes, ...] = Field(description="Its nodes, by compute resource and kind.")


class FleetState(Result):
    """The state of a fleet after an action."""

    deployment: DeploymentName
    cluster: str = Field(description="ParallelCluster's name of the cluster.")
    status: str = Field(
        description=f"Status of the fleet: {', '.join(compute_fleet.STOP_STATUSES)}, "
        f"{', '.join(compute_fleet.START_STATUSES)}, or "
        f"{compute_fleet.PROTECTED}: queues are closed whose nodes kept failing."
    )
    instances: dict[str, PositiveInt] = Field(description="EC2 instances of compute nodes that exist, by state.")
    queues: tuple[Queue, ...] | None = Field(description="Slurm's queues; null: Slurm could not be asked.")
    queues_unknown_because: str | None = Field(description="Why Slurm could not be asked; null: it was.")
    scaled: Scaled | None = Field(description="The result of scale; null after another action.")

    def blocks(self) -> Iterator[Block]:
        """Yield it for people, with what scaling did or would do."""
        if scaled := self.scaled:
            counts = ", ".join(f"{name} {count} (was {dict(scaled.before)[name]})" for name, count in scaled.after)
            verb = "Scaled" if scaled.done else "It would be scaled"
            yield Line(f"{verb}: {scaled.queue}/{scaled.compute_resource}, {counts}")
        total = sum(self.instances.values())
        parts = ", ".join(f"{count:,} {state}" for state, count in self.instances.items())
        yield Line(f"Fleet of {self.cluster}: {self.status}, {nodes(total)}{': ' if parts else ''}{parts}")
        if self.queues is None:
            yield Line(f"Queues are not known: {self.queues_unknown_because}")
            return
        rows = [
            (
                queue.name,
                queue.state,
                each.compute_resource,
                "static" if each.static else "dynamic",
                f"{each.count:,}",
                f"{each.ready:,}",
            )
            for queue in self.queues
            for each in queue.nodes
        ]
        yield Table("", columns("Queue", "State", "Compute resource", "Kind", ">Nodes", ">Ready"), rows)


def collect(deployment: Deployment, scaled: Scaled | None = None) -> FleetState:
    """Return the state of a fleet; where Slurm cannot be asked, the queues are not known."""
    from botocore.exceptions import ClientError

    deployment.account.forget()
    status = compute_fleet.known_status(deployment)
    states = Counter(each["State"]["Name"] for each in compute_fleet.instances(deployment))
    queues, reason = None, None
    try:
        slurm = slurm_state(HeadNode(deployment))
    except (ClientError, HeadNodeError) as error:
        reason = str(error)
    else:
        kinds = [(each.queue, FleetNodes.model_validate(each, from_attributes=True)) for each in slurm.kinds]
        queues = tuple(
            Queue(name=name, state=state, nodes=tuple(each for queue, each in kinds if queue == name))
            for name, state in slurm.availability.items()
        )
    return FleetState(
        deployment=deployment.name,
        cluster=deployment.settings.cluster_spec.name,
        status=status,
        instances=dict(sorted(states.items())),
        queues=queues,
        queues_unknown_because=reason,
        scaled=scaled,
    )
