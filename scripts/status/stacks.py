"""The stacks of a deployment, and those of its other clusters: there is one during an upgrade."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scripts.deployment import PARTS
from scripts.stacks import other_clusters
from scripts.status.model import READY, StackStatus, Unavailable, try_fetch

if TYPE_CHECKING:
    from scripts.deployment import Deployment

_PERMISSION = "cloudformation:DescribeStacks"


Stacks = tuple[list[StackStatus | Unavailable], tuple[StackStatus, ...] | Unavailable]
"""The stacks of a deployment in the order of creation, and the stacks of its other clusters."""


def collect_stacks(deployment: Deployment) -> Stacks:
    """Return the stacks of a deployment, and those of its other clusters.

    One call, and one for each stack that is not in its answer of at most 1 MB. Needs cloudformation:DescribeStacks, on
    all stacks for the one call.
    """
    listed = try_fetch(
        lambda: deployment.account.ask("cloudformation", "describe_stacks"), f"{_PERMISSION} on all stacks"
    )

    def collect(name: str) -> StackStatus | Unavailable:
        if not isinstance(listed, Unavailable):
            described = next((each for each in listed["Stacks"] if each["StackName"] == name), None)
            if described or "NextToken" not in listed:
                return _stack(name, described)
        return try_fetch(lambda: _stack(name, deployment.stack(name)), _PERMISSION)

    stacks = [collect(deployment.stack_name(part)) for part in PARTS]
    cluster = stacks[PARTS.index("cluster")]
    if isinstance(cluster, Unavailable) or cluster.status not in READY:
        stacks.insert(-1, collect(deployment.settings.cluster_spec.name))
    return stacks, _others(deployment, listed)


def _others(deployment: Deployment, listed: Mapping[str, Any] | Unavailable) -> tuple[StackStatus, ...] | Unavailable:
    if isinstance(listed, Unavailable):
        return Unavailable(reason=listed.reason, is_problem=False)
    others = other_clusters(deployment.settings, listed["Stacks"])
    if "NextToken" in listed and not others:
        return Unavailable(reason="not known: there are more stacks than one call returns", is_problem=False)
    return tuple(StackStatus(name, status) for name, status in others.items())


def _stack(name: str, described: Mapping[str, Any] | None) -> StackStatus:
    if described is None:
        return StackStatus(name)
    times = [described[key] for key in ("CreationTime", "LastUpdatedTime", "DeletionTime") if key in described]
    return StackStatus(name, described["StackStatus"], max(times), described.get("StackStatusReason", ""))
