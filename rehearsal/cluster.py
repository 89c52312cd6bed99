"""The cluster that an assembly asks AWS's provider for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.templates import Assembly, Resolver

CLUSTER_TYPE = "Custom::PclusterCluster"


@dataclass(frozen=True)
class ClusterRequest:
    """What the custom resource of a cluster hands to its provider.

    Attributes:
        region: Region of the stack.
        properties: Properties of the resource without its ServiceToken, all references resolved, real types.
        stack_tags: Tags of the stack, which the provider adds to the cluster's.
    """

    region: str
    properties: dict[str, Any]
    stack_tags: dict[str, str]

    @property
    def name(self) -> str:
        """Return the cluster's name."""
        return str(self.properties["ClusterName"])

    @property
    def configuration(self) -> dict[str, Any]:
        """Return the ParallelCluster configuration."""
        configuration: dict[str, Any] = self.properties["ClusterConfiguration"]
        return configuration


def cluster_request(assembly: Assembly, resolver: Resolver) -> ClusterRequest:
    """Find the one cluster of an assembly, and make what its configuration refers to.

    Raises:
        LookupError: The assembly has no cluster, or several.
        UnsupportedError: It refers to something that is unknown here.
    """
    found = [
        (stack, resource)
        for stack in assembly.stacks.values()
        for resource in stack.resources.values()
        if resource["Type"] == CLUSTER_TYPE
    ]
    if len(found) != 1:
        raise LookupError(f"{len(found)} resources of type {CLUSTER_TYPE}; expected one")
    [(stack, resource)] = found
    properties = {key: value for key, value in resource["Properties"].items() if key != "ServiceToken"}
    return ClusterRequest(stack.region, resolver.resolve(stack, properties), stack.tags)
