"""The cluster that an assembly asks AWS's provider for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolchain.assembly import Assembly, Stack

CLUSTER_TYPE = "Custom::PclusterCluster"


@dataclass(frozen=True)
class ClusterRequest:
    """What the custom resource of a cluster sends to its provider.

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


def cluster_request(assembly: Assembly, resolve: Callable[[Stack, Any], Any]) -> ClusterRequest:
    """Find the one cluster of an assembly.

    Args:
        assembly: Its stacks.
        resolve: Returns a value of a stack's template without intrinsic functions.

    Raises:
        LookupError: The assembly has no cluster, or several.
        UnsupportedError: It refers to something that is unknown here.
    """
    clusters = [
        (stack, resource)
        for stack in assembly.stacks.values()
        for resource in stack.resources.values()
        if resource["Type"] == CLUSTER_TYPE
    ]
    if len(clusters) != 1:
        raise LookupError(f"{len(clusters)} resources of type {CLUSTER_TYPE}; expected one")
    [(stack, resource)] = clusters
    properties = {key: value for key, value in resource["Properties"].items() if key != "ServiceToken"}
    return ClusterRequest(stack.region, resolve(stack, properties), stack.tags)


def as_strings(value: Any) -> Any:
    """Return a value as CloudFormation sends it to a custom resource: scalars as strings, nulls dropped."""
    if isinstance(value, dict):
        return {key: as_strings(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [as_strings(each) for each in value if each is not None]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
