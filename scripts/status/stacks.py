"""The stacks of a deployment, and those of its other clusters: there is one during an upgrade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scripts import generations
from scripts.deployment import PARTS
from scripts.status.model import READY, StackStatus, Unavailable, try_fetch

if TYPE_CHECKING:
    from scripts.deployment import Deployment

_PERMISSION = "cloudformation:DescribeStacks"


@dataclass(frozen=True)
class Stacks:
    """What CloudFormation has of a deployment.

    Attributes:
        stacks: Its stacks in the order of creation, and the cluster's own where that before it is not ready.
        unavailable: Why some are missing; None: none is.
        others: The stacks of its other clusters.
    """

    stacks: tuple[StackStatus, ...]
    unavailable: Unavailable | None
    others: tuple[StackStatus, ...] | Unavailable


def collect_stacks(deployment: Deployment) -> Stacks:
    """Return the stacks of a deployment. One call, and one for each stack that is not in its answer.

    An answer holds 1 MB. Needs cloudformation:DescribeStacks, on all stacks for the one call.
    """
    listed = try_fetch(
        lambda: deployment.account.ask("cloudformation", "describe_stacks"), f"{_PERMISSION} on all stacks"
    )

    def find(name: str) -> StackStatus | Unavailable:
        if not isinstance(listed, Unavailable):
            described = next((each for each in listed["Stacks"] if each["StackName"] == name), None)
            if described or "NextToken" not in listed:
                return _stack(name, described)
        return try_fetch(lambda: _stack(name, deployment.stack(name)), _PERMISSION)

    found = [find(deployment.stack_name(part)) for part in PARTS]
    cluster = found[PARTS.index("cluster")]
    if isinstance(cluster, Unavailable) or cluster.status not in READY:
        found.insert(-1, find(deployment.settings.cluster_spec.name))
    return Stacks(
        tuple(each for each in found if isinstance(each, StackStatus)),
        next((each for each in found if isinstance(each, Unavailable)), None),
        _others(deployment, listed),
    )


def _others(deployment: Deployment, listed: Mapping[str, Any] | Unavailable) -> tuple[StackStatus, ...] | Unavailable:
    if isinstance(listed, Unavailable):
        return Unavailable(reason=listed.reason, is_problem=False)
    settings = deployment.settings
    clusters = generations.among(settings, listed["Stacks"])
    others = {generation: clusters[generation] for generation in clusters if generation != settings.cluster.generation}
    if "NextToken" in listed and not others:
        return Unavailable(reason="not known: there are more stacks than one call returns", is_problem=False)
    return tuple(
        StackStatus(settings.of_generation(each).stack_name("cluster"), status) for each, status in others.items()
    )


def _stack(name: str, described: Mapping[str, Any] | None) -> StackStatus:
    if described is None:
        return StackStatus(name)
    times = [described[key] for key in ("CreationTime", "LastUpdatedTime", "DeletionTime") if key in described]
    return StackStatus(name, described["StackStatus"], max(times), described.get("StackStatusReason", ""))
