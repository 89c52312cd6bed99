"""Which generations of a deployment's cluster exist in the account, whatever the settings file says.

A settings file names one generation. During an upgrade there are two, and a checkout from before an upgrade names one
that is deleted; a command that asks for the named one alone misses a cluster that bills.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from config.stack_identity import StackIdentity
from scripts.account.stack_state import StackState

if TYPE_CHECKING:
    from config.settings import Settings
    from scripts.account.deployment import Deployment


def existing(deployment: Deployment) -> dict[int, StackState]:
    """Return the statuses of the stacks of a deployment's clusters, by generation, the oldest first.

    One call for all stacks of the Region, and one more for each page of 1 MB.
    """
    return among(deployment.settings, deployment.stacks())


def among(settings: Settings, listed: Iterable[dict[str, Any]]) -> dict[int, StackState]:
    """Return the statuses of the stacks of a deployment's clusters, by generation, the oldest first.

    Where the deployment's own stack of a cluster (NAME-cluster-N) is deleted and ParallelCluster's exists, the status
    is that of the latter. This is known of generations up to that of the settings: later ones were never theirs, and a
    cluster called NAME-2 can be that of a deployment called NAME-2. A stack in REVIEW_IN_PROGRESS counts.
    """
    stacks = {each["StackName"]: each for each in listed}
    first = settings.of_generation(1).stack_name("cluster")
    pattern = re.compile(rf"{re.escape(first)}(?:-([2-9]|[1-9]\d+))?")
    statuses = {
        int(match[1] or 1): StackState.of(stack)
        for name, stack in stacks.items()
        if (match := pattern.fullmatch(name)) and _is_of(settings.name, stack)
    }
    for generation in range(1, settings.cluster.generation + 1):
        own = stacks.get(settings.of_generation(generation).cluster_spec.name)
        if generation not in statuses and own is not None and _is_left(own, stacks, settings.name):
            statuses[generation] = StackState.of(own)
    return dict(sorted(statuses.items()))


def _is_of(deployment_name: str, stack: dict[str, Any]) -> bool:
    """Tell whether a stack is that of a deployment's cluster, by what every deployment writes into it."""
    return StackState.of(stack).is_in_review or StackIdentity.of(stack) == (deployment_name, "cluster")


def _is_left(own: dict[str, Any], stacks: dict[str, dict[str, Any]], deployment_name: str) -> bool:
    """Tell whether a stack is a cluster's, made by ParallelCluster, and not that of a deployment of the same name."""
    name = own["StackName"]
    is_cluster = {"Key": "parallelcluster:cluster-name", "Value": name} in own.get("Tags", [])
    others = [stack for stack in stacks.values() if name != deployment_name and _is_of(name, stack)]
    return is_cluster and not others
