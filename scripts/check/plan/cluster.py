"""What happens to the cluster: ParallelCluster's own update check, asked about each key of its configuration.

https://docs.aws.amazon.com/parallelcluster/latest/ug/using-pcluster-update-cluster-v3.html has the policies. The check
is asked for several states that a cluster may be in; the first in which it allows a change says what the change needs.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from scripts.check.plan.comparison import Comparison, is_not_known_yet
from scripts.check.plan.model import ClusterChange, ClusterPlan, Kind, PlanError, StackPlan
from scripts.core.figures import counted
from toolchain.assembly import Stack
from toolchain.cluster import CLUSTER_TYPE, ClusterRequest
from toolchain.parallelcluster import Change, Configuration, ParallelCluster, RunningCluster, UnreadableClusterError
from ultracluster.domain.parallelcluster_versions import PINNED, VERSIONS, needs_of_move, version_of_provider

STOPS, DRAINS, TERMINATES = "COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE"
"""Values of QueueUpdateStrategy. The first is the default."""
STOPPED: Final = "STOPPED"
UNKNOWN: Final = "UNKNOWN"
NEED_A_STOPPED_FLEET: Final = (Kind.FLEET_STOPPED, Kind.ALL_STOPPED)
CHECK_BREAKS_DOWN: Final = (
    "ParallelCluster's own check breaks down on another MountDir under the same Name while nodes may run"
)
"""AttributeError in pcluster/config/update_policy_utils.py of 3.16.1: it takes the directory for a storage."""

_DATABASE = "Scheduling.SlurmSettings.Database"
_OTHER_HISTORY = "Slurm's name of its cluster, and its database or none, are for the life of a cluster"
"""slurmctld ends with "CLUSTER NAME MISMATCH" if the name is not that of its saved state; of the jobs that run, another
database knows nothing (https://slurm.schedmd.com/slurm.conf.html#OPT_ClusterName)."""
_DEFAULT_NOTICE = 10
"""Minutes of a pool of login nodes without GracetimePeriod (aws-parallelcluster 3.16.1, config/cluster_config.py)."""
_SETTING = "cluster.slurm.queue_update_strategy"


@dataclass(frozen=True)
class _Cluster:
    stack: Stack
    logical_id: str
    properties: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.properties["ClusterName"])

    @property
    def version(self) -> str | None:
        """The version of ParallelCluster whose provider its stack has; None: none of AWS's."""
        return version_of_provider(json.dumps(self.stack.resources))

    @property
    def own_properties(self) -> dict[str, Any]:
        """The properties that are for the provider itself."""
        return {key: value for key, value in self.properties.items() if key != "ServiceToken"}

    def request(self, properties: dict[str, Any]) -> ClusterRequest:
        """Return what the provider gets, by the computed properties."""
        return ClusterRequest(self.stack.region, properties, self.stack.tags)


def plan_cluster(
    parallelcluster: ParallelCluster,
    deployment_name: str,
    comparison: Comparison,
    stacks: Iterable[StackPlan],
    *,
    live: bool,
) -> ClusterPlan:
    """Return what happens to the cluster: `live`, it can be read itself, otherwise only its template.

    Raises:
        PlanError: The new stacks have no cluster.
        toolchain.parallelcluster.RunnerError: ParallelCluster's code broke down.
    """
    before, after = _find(comparison.old), _find(comparison.new)
    if after is None:
        raise PlanError(f"got {', '.join(comparison.new)}; allowed: stacks with one resource of type {CLUSTER_TYPE}")
    if before is None:
        return ClusterPlan(after.name, exists=False, source="it does not exist yet")
    if not _changes(stacks, before):
        return ClusterPlan(before.name, exists=True, source="its resource does not change")
    if refused := tuple(_refused_by_the_provider(before, after, deployment_name)):
        return ClusterPlan(before.name, exists=True, source="its resource", changes=refused, is_asked=True)
    running, source = _running(parallelcluster, before, comparison, live=live)
    wanted = after.request(comparison.after(after.stack.name, after.own_properties))
    changes = classify(
        parallelcluster,
        running.configuration,
        parallelcluster.requested_configuration(wanted),
        deployment_name,
        fleet_status=running.fleet_status,
        login_nodes_running=running.login_nodes_running,
    )
    if after.version not in (None, PINNED):
        source += f"; {PINNED} was asked, as {after.version} is not in this environment"
    return ClusterPlan(before.name, True, source, running.fleet_status, tuple(changes), is_asked=True)


def fleet_command(deployment_name: str, action: Literal["start", "status", "stop"]) -> str:
    """Return the command that starts or stops the fleet, or shows its status."""
    return f"./ultracluster fleet {action} {deployment_name}"


def _find(stacks: Mapping[str, Stack]) -> _Cluster | None:
    clusters = (
        _Cluster(stack, logical_id, resource["Properties"])
        for stack in stacks.values()
        for logical_id, resource in stack.resources.items()
        if resource["Type"] == CLUSTER_TYPE
    )
    return next(clusters, None)


def _changes(stacks: Iterable[StackPlan], cluster: _Cluster) -> bool:
    resource = (cluster.stack.name, cluster.logical_id)
    return any(
        (stack.name, change.logical_id) == resource and not change.metadata_only
        for stack in stacks
        for change in stack.changes
    )


def _refused_by_the_provider(before: _Cluster, after: _Cluster, deployment_name: str) -> Iterator[ClusterChange]:
    """Yield changes that do not reach ParallelCluster.

    The provider takes no other name. CloudFormation takes no other provider, and each ParallelCluster version has its
    own.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html
    """
    no_provider = "CloudFormation takes no other provider, and each ParallelCluster version has its own"
    (old, new), setting = (before.version, after.version), "cluster.parallelcluster_version"
    moved = (old, new) if old and new and old != new else None
    if moved:
        keep = f"{setting}: {old} in config/{deployment_name}.yaml keeps the cluster, and other changes go through"
        if old not in VERSIONS:
            keep = "a checkout of the release that made the cluster keeps it"
        both, needs = (keep, _upgrade(deployment_name)), tuple(needs_of_move(*moved))
        yield ClusterChange(setting, old, new, Kind.REFUSED, False, reason=no_provider, ways=both, needs=needs)
    no_name = "Cannot update the ClusterName in the properties"
    again = f"./ultracluster destroy {deployment_name}, then ./ultracluster deploy; network and file system stay"
    refused = [("ClusterName", no_name, again)]
    if not moved:
        refused.append(("ServiceToken", no_provider, _upgrade(deployment_name)))
    for key, reason, way in refused:
        old, new = before.properties[key], after.properties[key]
        if old != new:
            ways = (f"take this change back, or {way}",)
            yield ClusterChange(key, old, new, Kind.REFUSED, passes_now=False, reason=reason, ways=ways)


def _running(
    parallelcluster: ParallelCluster, cluster: _Cluster, comparison: Comparison, *, live: bool
) -> tuple[RunningCluster, str]:
    """Return the cluster as it runs, and where that was read."""
    reason = ""
    if live:
        try:
            return parallelcluster.describe_cluster(cluster.stack.region, cluster.name), "what ParallelCluster keeps"
        except UnreadableClusterError as error:
            reason = f", because the cluster could not be read: {error}"
    properties = comparison.before(cluster.stack.name, cluster.own_properties)
    configuration = parallelcluster.requested_configuration(cluster.request(properties))
    pools = configuration.get("LoginNodes", {}).get("Pools", [])
    logins = any(int(pool["Count"]) > 0 for pool in pools)
    return RunningCluster(configuration, UNKNOWN, logins), f"the template of {cluster.stack.name}{reason}"


# --- what each change of a configuration needs ---


class State(NamedTuple):
    """A state that the cluster may be in when it is updated.

    Attributes:
        strategy: QueueUpdateStrategy of the new configuration; None: the one that it has.
        fleet_running: Whether the compute fleet is on, even without an instance.
        login_nodes_running: Whether there are login nodes.
    """

    strategy: str | None = None
    fleet_running: bool = True
    login_nodes_running: bool = False


def classify(
    parallelcluster: ParallelCluster,
    old: Configuration,
    new: Configuration,
    deployment_name: str,
    *,
    fleet_status: str = UNKNOWN,
    login_nodes_running: bool = False,
) -> list[ClusterChange]:
    """Return what each change of a configuration needs; both have CloudFormation's strings, as ParallelCluster does."""
    strategy = _strategy(new)
    unmoved, moves = _without_moves(old, new)

    @cache
    def answers(state: State) -> Mapping[str, Change]:
        """Return the update check's answers in a state, by what changes."""
        update = parallelcluster.check_update(
            old,
            _with_strategy(unmoved, state.strategy),
            fleet_running=state.fleet_running,
            login_nodes_running=state.login_nodes_running,
        )
        moved = [_moved(*each, state) for each in moves]
        return {_identity(change): change for change in (*update.changes, *moved)}

    running = State(login_nodes_running=login_nodes_running)
    stopped = running._replace(fleet_running=False)
    now = stopped if fleet_status == STOPPED else running
    states = [
        (running._replace(strategy=STOPS), Kind.LIVE),
        (running, Kind.TERMINATES if strategy == TERMINATES else Kind.DRAINS),
        (stopped, Kind.FLEET_STOPPED),
        (running._replace(login_nodes_running=False), Kind.LOGIN_NODES_STOPPED),
        (stopped._replace(login_nodes_running=False), Kind.ALL_STOPPED),
    ]
    changes = []
    for identity, change in answers(running).items():
        kind = next((kind for state, kind in states if answers(state)[identity].allowed), Kind.REFUSED)
        breaks_history = _breaks_history(change)
        if breaks_history:
            kind = Kind.REFUSED
        passing = [each for each in (DRAINS, TERMINATES) if answers(running._replace(strategy=each))[identity].allowed]
        unknown = fleet_status == UNKNOWN and kind in NEED_A_STOPPED_FLEET
        changes.append(
            ClusterChange(
                path=change.path,
                before=change.old,
                after=change.new,
                kind=kind,
                passes_now=None if unknown else answers(now)[identity].allowed and not breaks_history,
                reason=_OTHER_HISTORY
                if breaks_history
                else ""
                if change.allowed
                else f"{change.reason}. {change.action_needed}".strip(". "),
                ways=tuple(_ways(change, kind, passing, deployment_name, _notice(old))),
                command=fleet_command(deployment_name, "stop") if kind in NEED_A_STOPPED_FLEET else "",
            )
        )
    return _without_detours(changes)


def _without_detours(changes: list[ClusterChange]) -> list[ClusterChange]:
    """Return changes of which none asks for a stopped fleet where another is refused: it would stop for nothing."""
    if all(each.kind is not Kind.REFUSED for each in changes):
        return changes
    way = "first what is refused: on another cluster, by `upgrade`, this needs nothing"
    states = (*NEED_A_STOPPED_FLEET, Kind.LOGIN_NODES_STOPPED)
    return [replace(each, ways=(way,), command="") if each.kind in states else each for each in changes]


def _notice(running: Configuration) -> int | None:
    """Return for how many minutes login nodes may run on, of a cluster that is to have none; None: it is to have some.

    A pool whose count goes to 0 ends with its connections, or after its notice.
    https://docs.aws.amazon.com/parallelcluster/latest/ug/LoginNodes-v3.html
    """
    pools = running.get("LoginNodes", {}).get("Pools", [])
    if not pools or any(int(pool["Count"]) > 0 for pool in pools):
        return None
    return max(int(pool.get("GracetimePeriod", _DEFAULT_NOTICE)) for pool in pools)


def _breaks_history(change: Change) -> bool:
    """Return whether a change leads a Slurm that runs to another history, which ParallelCluster's check passes."""
    if change.path.endswith("SlurmSettings.CustomSlurmSettings"):
        return _cluster_name(change.old) != _cluster_name(change.new)
    return change.path in (f"{_DATABASE}.DatabaseName", _DATABASE)  # the latter: there is none before, or after


def _cluster_name(custom_settings: Any) -> str | None:
    listed = custom_settings if isinstance(custom_settings, list) else []
    names = [value for each in listed for name, value in each.items() if name.lower() == "clustername"]
    return names[-1] if names else None


def _ways(change: Change, kind: Kind, passing: list[str], deployment_name: str, notice: int | None) -> list[str]:
    match kind:
        case Kind.FLEET_STOPPED:
            return _ways_past_the_fleet(change, passing, deployment_name)
        case Kind.LOGIN_NODES_STOPPED | Kind.ALL_STOPPED if notice is not None:
            time = counted(notice, "minutes")
            return [f"wait: login nodes end with the last connection, or {time} after count: 0 was deployed"]
        case Kind.LOGIN_NODES_STOPPED | Kind.ALL_STOPPED:
            then = "with" if kind is Kind.LOGIN_NODES_STOPPED else "on a stopped fleet,"
            return [f"two deployments: first with count: 0 in cluster.login_nodes, then {then} this change"]
        case Kind.REFUSED:
            return [_way_past_a_refusal(change, deployment_name)]
    return []


def _ways_past_the_fleet(change: Change, passing: list[str], deployment_name: str) -> list[str]:
    ways = [f"stop the fleet, deploy, start it again ({fleet_command(deployment_name, 'start')})"]
    if DRAINS in passing:
        ways.append(f"{_SETTING}: {DRAINS} in the same change, which replaces nodes as their jobs end")
    elif TERMINATES in passing:
        ways.append(f"{_SETTING}: {TERMINATES} in the same change, which ends the jobs on the nodes concerned")
    if "SlurmQueues[" in change.path:
        ways.append(f"add a new queue instead, then remove the old one with {_SETTING}: {TERMINATES}")
    return ways


def _way_past_a_refusal(change: Change, deployment_name: str) -> str:
    if change.path.endswith("FsxLustreSettings.FileSystemId"):
        return "another Name for the storage: ParallelCluster mounts another file system under another name"
    if "Networking.SubnetId" in change.path and is_not_known_yet(change.new):
        kept = "the next cluster of an upgrade is on the same network"
        return f"take this change back: {kept}; another one is a deployment of another name"
    return f"take this change back, or {_upgrade(deployment_name)}"


def _upgrade(deployment_name: str) -> str:
    return (
        f"./ultracluster upgrade {deployment_name}: another cluster replaces this one "
        "(network and file system stay; what is on the head node goes)"
    )


def _identity(change: Change) -> str:
    return json.dumps([change.path, change.old, change.new], sort_keys=True)


def _strategy(configuration: Configuration) -> str:
    settings = configuration.get("Scheduling", {}).get("SlurmSettings") or {}
    return str(settings.get("QueueUpdateStrategy", STOPS))


def _with_strategy(configuration: Configuration, strategy: str | None) -> Configuration:
    if strategy is None:
        return configuration
    changed = copy.deepcopy(configuration)
    scheduling = changed.setdefault("Scheduling", {})
    scheduling["SlurmSettings"] = {**(scheduling.get("SlurmSettings") or {}), "QueueUpdateStrategy": strategy}
    return changed


def _without_moves(old: Configuration, new: Configuration) -> tuple[Configuration, list[tuple[str, Any, Any]]]:
    """Return the new configuration with the old mount directories, and the storages that move: name, from, to."""
    before = {storage.get("Name"): storage for storage in old.get("SharedStorage") or []}
    unmoved, moves = copy.deepcopy(new), []
    for storage in unmoved.get("SharedStorage") or []:
        name, directory = storage.get("Name"), storage.get("MountDir")
        if name in before and before[name].get("MountDir") != directory:
            moves.append((name, before[name].get("MountDir"), directory))
            storage["MountDir"] = before[name].get("MountDir")
    return unmoved, moves


def _moved(name: str, before: Any, after: Any, state: State) -> Change:
    """Return what the check would answer about a storage that moves, if it could."""
    allowed = not (state.fleet_running or state.login_nodes_running)
    return Change(f"SharedStorage[{name}].MountDir", before, after, allowed, "" if allowed else CHECK_BREAKS_DOWN, "")
