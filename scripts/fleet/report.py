"""How a fleet is, and what scaling it does, for people and as JSON (docs/schemas/fleet.json)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scripts.deployment import Deployment
from scripts.fleet import control as fleet
from scripts.fleet import queues, scaling, scaling_needs
from scripts.fleet.jobs import nodes
from scripts.remote.head_node import HeadNode, HeadNodeError

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.plan.model import Plan


@dataclass(frozen=True)
class Scaled:
    """What was scaled, or would be.

    Attributes:
        change: The change.
        plan: What it does.
        done: Whether it was done, or only shown.
    """

    change: scaling.Scaling
    plan: Plan
    done: bool

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "queue": self.change.queue,
            "compute_resource": self.change.compute_resource,
            "before": self.change.before._asdict(),
            "after": self.change.after._asdict(),
            "stops_fleet": scaling_needs.needs_stopped_fleet(self.plan),
            "ends_jobs": scaling_needs.ends_jobs(self.plan),
            "done": self.done,
        }


@dataclass(frozen=True)
class Report:
    """How a fleet is.

    Attributes:
        environment: File name in config/ without .yaml.
        cluster: ParallelCluster's name of the cluster.
        status: As `fleet.known_status` has it.
        instances: Numbers of EC2 instances that are not terminated, by state.
        queues: The queues; None: Slurm could not be asked.
        reason: Why it could not be asked; empty: it was.
    """

    environment: str
    cluster: str
    status: str
    instances: dict[str, int]
    queues: queues.Queues | None
    reason: str

    def document(self, scaled: Scaled | None) -> dict[str, Any]:
        """Return it as JSON values."""
        known = self.queues
        return {
            "environment": self.environment,
            "cluster": self.cluster,
            "status": self.status,
            "instances": self.instances,
            "queues": known
            and [
                {
                    "name": name,
                    "state": state,
                    "nodes": [
                        {
                            "compute_resource": kind.compute_resource,
                            "static": kind.static,
                            "count": kind.count,
                            "ready": kind.ready,
                        }
                        for kind in known.kinds
                        if kind.queue == name
                    ],
                }
                for name, state in known.states.items()
            ],
            "queues_unknown_because": self.reason or None,
            "scaled": scaled and scaled.document(),
        }


def look(deployment: Deployment) -> Report:
    """Look how a fleet is, with about six calls, and one more for each 1,000 nodes.

    Needs what `fleet.status`, `fleet.instances` and `HeadNode` need; without the last, the queues are not known.

    Raises:
        OperationError: There is no cluster.
    """
    from botocore.exceptions import ClientError

    deployment.account.forget()
    status = fleet.known_status(deployment)
    states = Counter(each["State"]["Name"] for each in fleet.instances(deployment))
    known, reason = None, ""
    try:
        known = queues.ask(HeadNode(deployment))
    except (ClientError, HeadNodeError) as error:
        reason = str(error)
    name = deployment.settings.cluster_spec.name
    return Report(deployment.environment, name, status, dict(sorted(states.items())), known, reason)


def show(report: Report, console: Console) -> None:
    """Print how a fleet is."""
    from scripts.screen import table

    total = sum(report.instances.values())
    parts = ", ".join(f"{count:,} {state}" for state, count in report.instances.items())
    console.print(f"Fleet of {report.cluster}: {report.status}, {nodes(total)}{': ' if parts else ''}{parts}")
    if report.queues is None:
        console.print(f"Queues are not known: {report.reason}", markup=False)
        return
    rows = table("Queue", "State", "Compute resource", "Kind", ">Nodes", ">Ready")
    for kind in report.queues.kinds:
        rows.add_row(
            kind.queue,
            report.queues.states[kind.queue],
            kind.compute_resource,
            "static" if kind.static else "dynamic",
            f"{kind.count:,}",
            f"{kind.ready:,}",
        )
    console.print(rows)


def steps(scaled: Scaled, *, drain: bool, force: bool) -> str:
    """Return what is going to be done, a line each."""
    change, plan = scaled.change, scaled.plan
    jobs = "after all jobs have ended" if drain else "although jobs have nodes" if force else "unless jobs have nodes"
    edits = ", ".join(f"{key} from {before} to {after}" for key, (before, after) in change.edits.items())
    found = [f"config/{change.deployment.environment}.yaml, {change.name}: {edits or 'as it is'}"]
    if scaling_needs.needs_stopped_fleet(plan):
        stopped = plan.cluster.fleet_status == fleet.STOPPED
        found.insert(0, "the fleet is STOPPED already" if stopped else f"stop the fleet, {jobs}")
    elif scaling_needs.ends_jobs(plan):
        found.insert(0, f"nodes are terminated while the fleet runs: go on {jobs}")
    found.append("nothing to deploy" if plan.empty else "deploy")
    if scaling_needs.needs_stopped_fleet(plan) or plan.cluster.fleet_status == fleet.STOPPED:
        found.append("start the fleet")
    found.append("ask Slurm for the nodes")
    return "\n".join(["Steps:", *(f"  {number}. {step}" for number, step in enumerate(found, start=1))])
