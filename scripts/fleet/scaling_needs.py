"""What other numbers of nodes need of the fleet and of the account, and what stands against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scripts.command import OperationError, Say
from scripts.deployment import Deployment

if TYPE_CHECKING:
    from scripts.fleet.scaling import Scaling
    from scripts.plan.model import Plan

CHECKS: Final = (
    "instance-types",
    "quota-trn-on-demand",
    "quota-trn-spot",
    "quota-trn1-capacity-blocks",
    "quota-trn2-capacity-blocks",
    "quota-capacity-block-instances",
    "quota-interfaces",
    "quota-gp3",
    "capacity-",
    "free-addresses",
)
"""The checks of preflight that more nodes may fail."""


def needs_stopped_fleet(found: Plan) -> bool:
    """Tell whether a plan needs the fleet stopped."""
    from scripts.plan.model import Kind

    return any(change.kind is Kind.FLEET_STOPPED for change in found.cluster.changes)


def ends_jobs(found: Plan) -> bool:
    """Tell whether a plan terminates nodes while the fleet runs (queue_update_strategy TERMINATE)."""
    from scripts.plan.model import Kind

    return any(change.kind is Kind.TERMINATES for change in found.cluster.changes)


def obstacles(found: Plan) -> list[str]:
    """Return what stands against a plan, but for a fleet that runs: `apply` stops it."""
    from scripts.plan.model import Kind
    from scripts.preflight.check import Status

    passed_over = tuple(f"{change.path} from " for change in found.cluster.changes if change.kind is Kind.FLEET_STOPPED)
    return [
        f"{each.subject}: {each.sentence}"
        for each in found.findings
        if each.status is Status.FAIL and not each.sentence.startswith(passed_over)
    ]


def check(scaling: Scaling, say: Say) -> None:
    """Let preflight look whether the account has room for more nodes. Needs what these checks need.

    Raises:
        OperationError: It has not.
    """
    from scripts.preflight.catalog import CATALOG, select
    from scripts.preflight.check import Status
    from scripts.preflight.runner import run

    deployment = Deployment(scaling.deployment.environment, scaling.settings)
    results = [each for found in run(select(CATALOG, CHECKS, []), deployment, first=CATALOG[0]) for each in found]
    for result in results:
        if result.status in (Status.WARN, Status.UNKNOWN):
            say(f"{result.status} {result.id}: {result.sentence}")
    faults = [result for result in results if result.status is Status.FAIL]
    if faults:
        lines = [f"{each.id}: {each.sentence}. {each.hint}" for each in faults]
        raise OperationError("\n".join(["The account has no room for this:", *lines, "--no-preflight goes on anyway."]))
