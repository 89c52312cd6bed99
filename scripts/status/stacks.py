"""The stacks of a deployment, and those of its other clusters, of which there is one while an upgrade is under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from scripts import generations
from scripts.deployment import PARTS
from scripts.status.model import READY, Stack, Unseen, seen

if TYPE_CHECKING:
    from scripts.deployment import Deployment

_RIGHT = "cloudformation:DescribeStacks"
_NOT_ALL = Unseen("not known: there are more stacks than one call tells of", is_fault=False)


class StackLook:
    """One look at the stacks of an account.

    One call tells of them all, as far as a page of 1 MB goes. Each stack of the deployment that it cannot tell of, and
    that with the file system in any case, is asked for by its name.

    Attributes:
        stacks: Those of the deployment in the order in which they are made, and the cluster's own where that before it
            is not as it should be.
        others: Those of the deployment's other clusters.
        calls: How many calls it takes, that for the file system's stack among them.
    """

    def __init__(self, deployment: Deployment) -> None:
        """Look. Needs cloudformation:DescribeStacks, on all stacks for the one call."""
        self._deployment = deployment
        self._by_name = {deployment.stack_name("storage")}
        self._listed = seen(
            lambda: deployment.account.ask("cloudformation", "describe_stacks"), f"{_RIGHT} on all stacks"
        )
        self.stacks = [self._stack(deployment.stack_name(part)) for part in PARTS]
        cluster = self.stacks[PARTS.index("cluster")]
        if isinstance(cluster, Unseen) or cluster.status not in READY:
            self.stacks.insert(-1, self._stack(deployment.settings.cluster_spec.name))
        self.others = self._others()
        self.calls = 1 + len(self._by_name)

    def _stack(self, name: str) -> Stack | Unseen:
        if not isinstance(self._listed, Unseen):
            found = next((each for each in self._listed["Stacks"] if each["StackName"] == name), None)
            if found or "NextToken" not in self._listed:
                return _stack(name, found)
        self._by_name.add(name)
        return seen(lambda: _stack(name, self._deployment.stack(name)), _RIGHT)

    def _others(self) -> tuple[Stack, ...] | Unseen:
        if isinstance(self._listed, Unseen):
            return Unseen(self._listed.reason, is_fault=False)
        settings, stacks = self._deployment.settings, self._listed["Stacks"]
        found = generations.among(settings, stacks)
        if "NextToken" in self._listed and not found.keys() - {settings.cluster.generation}:
            return _NOT_ALL
        return tuple(
            Stack(settings.of_generation(each).stack_name("cluster"), status)
            for each, status in found.items()
            if each != settings.cluster.generation
        )


def _stack(name: str, found: Mapping[str, Any] | None) -> Stack:
    if found is None:
        return Stack(name)
    times = [found[key] for key in ("CreationTime", "LastUpdatedTime", "DeletionTime") if key in found]
    return Stack(name, found["StackStatus"], max(times), found.get("StackStatusReason", ""))
