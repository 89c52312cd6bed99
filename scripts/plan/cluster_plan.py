"""What happens to the cluster: what it has, what it shall get, and what ParallelCluster makes of the difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.plan import findings
from scripts.plan.cluster import UNKNOWN, Target, classify
from scripts.plan.comparison import Comparison
from scripts.plan.model import ClusterChange, ClusterPlan, Kind, StackPlan
from scripts.preflight.check import Finding, Status
from toolchain.assembly import Stack
from toolchain.cluster import CLUSTER_TYPE, ClusterRequest
from toolchain.parallelcluster import ParallelCluster, RunnerError, RunningCluster, UnreadableClusterError


class InputError(ValueError):
    """What is to be compared cannot be; the message says why."""


@dataclass(frozen=True)
class _Cluster:
    """The cluster of a set of stacks."""

    stack: Stack
    logical_id: str
    properties: Mapping[str, Any]

    @property
    def name(self) -> str:
        """ParallelCluster's name of it."""
        return str(self.properties["ClusterName"])

    def request(self, properties: dict[str, Any]) -> ClusterRequest:
        """Return what the provider gets, by the computed properties."""
        return ClusterRequest(self.stack.region, properties, self.stack.tags)

    @property
    def own_properties(self) -> dict[str, Any]:
        """The properties that are for the provider itself."""
        return {key: value for key, value in self.properties.items() if key != "ServiceToken"}


def plan_cluster(
    parallelcluster: ParallelCluster,
    environment: str,
    comparison: Comparison,
    stacks: Iterable[StackPlan],
    *,
    live: bool,
) -> tuple[ClusterPlan, list[Finding]]:
    """Return what happens to the cluster, and what is to be said of it.

    Args:
        parallelcluster: Whose update check is asked.
        environment: The configuration in config/.
        comparison: The stacks before and after.
        stacks: What happens to them.
        live: Whether the cluster can be asked, or only its template.

    Raises:
        InputError: The stacks to be have no cluster.
    """
    before, after = _find(comparison.old), _find(comparison.new)
    if after is None:
        raise InputError(f"got {', '.join(comparison.new)}; allowed: stacks with one resource of type {CLUSTER_TYPE}")
    if before is None:
        return ClusterPlan(after.name, exists=False, source="there is none yet"), []
    if not _changes(stacks, before):
        return ClusterPlan(before.name, exists=True, source="its resource does not change"), []
    target = Target(environment)
    refused = tuple(_refused_by_the_provider(before, after, target))
    if refused:
        plan = ClusterPlan(before.name, exists=True, source="its resource", changes=refused)
        return plan, list(findings.of_cluster(plan, target))
    running, source = _running(parallelcluster, before, comparison, live=live)
    wanted = after.request(comparison.after(after.stack.name, after.own_properties))
    try:
        changes = classify(
            parallelcluster,
            running.configuration,
            parallelcluster.requested_configuration(wanted),
            target,
            fleet_status=running.fleet_status,
            login_nodes_running=running.login_nodes_running,
        )
    except RunnerError as error:
        last = str(error).strip().splitlines()[-1]
        fault = Finding(Status.FAIL, f"ParallelCluster's own update check breaks down: {last}", "please report this")
        return ClusterPlan(before.name, exists=True, source=source, fleet_status=running.fleet_status), [fault]
    plan = ClusterPlan(before.name, True, source, running.fleet_status, tuple(changes))
    return plan, list(findings.of_cluster(plan, target))


def _running(
    parallelcluster: ParallelCluster, cluster: _Cluster, comparison: Comparison, *, live: bool
) -> tuple[RunningCluster, str]:
    """Return the cluster as it runs, and how that is known."""
    reason = ""
    if live:
        try:
            found = parallelcluster.describe_cluster(cluster.stack.region, cluster.name)
        except UnreadableClusterError as error:
            reason = f", because the cluster could not be read: {error}"
        else:
            return found, "what ParallelCluster keeps of it"
    properties = comparison.before(cluster.stack.name, cluster.own_properties)
    configuration = parallelcluster.requested_configuration(cluster.request(properties))
    pools = configuration.get("LoginNodes", {}).get("Pools", [])
    logins = any(int(pool["Count"]) > 0 for pool in pools)
    return RunningCluster(configuration, UNKNOWN, logins), f"the template of {cluster.stack.name}{reason}"


def _refused_by_the_provider(before: _Cluster, after: _Cluster, target: Target) -> Iterator[ClusterChange]:
    """Yield changes that do not reach ParallelCluster.

    The provider takes no other name. CloudFormation takes no other provider, and each ParallelCluster version has its
    own.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html
    """
    no_provider = "CloudFormation takes no other provider, and each ParallelCluster version has its own"
    no_name = "Cannot update the ClusterName in the properties"
    anew = f"make destroy ENV={target.environment}, then make deploy; network and file system stay"
    for key, reason, way in (("ServiceToken", no_provider, target.replacement), ("ClusterName", no_name, anew)):
        old, new = before.properties[key], after.properties[key]
        if old != new:
            ways = (f"take this change back, or {way}",)
            yield ClusterChange(key, old, new, Kind.REFUSED, passes_now=False, reason=reason, ways=ways)


def _changes(stacks: Iterable[StackPlan], cluster: _Cluster) -> bool:
    resource = (cluster.stack.name, cluster.logical_id)
    return any(
        (stack.name, change.logical_id) == resource and not change.metadata_only
        for stack in stacks
        for change in stack.changes
    )


def _find(stacks: Mapping[str, Stack]) -> _Cluster | None:
    found = [
        _Cluster(stack, logical_id, resource["Properties"])
        for stack in stacks.values()
        for logical_id, resource in stack.resources.items()
        if resource["Type"] == CLUSTER_TYPE
    ]
    return next(iter(found), None)
