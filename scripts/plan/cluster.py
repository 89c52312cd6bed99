"""What ParallelCluster makes of a change of a cluster's configuration, key by key, by asking its own update check.

https://docs.aws.amazon.com/parallelcluster/latest/ug/using-pcluster-update-cluster-v3.html has the policies. The check
is asked for several states that a cluster may be in; the first in which it lets a change pass says what that needs.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from scripts.plan.model import ClusterChange, Kind
from toolchain.parallelcluster import Change, Configuration, ParallelCluster

STOPS, DRAINS, TERMINATES = "COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE"
"""Values of QueueUpdateStrategy. The first is the default."""
STOPPED: Final = "STOPPED"
UNKNOWN: Final = "UNKNOWN"
NEED_A_STOPPED_FLEET: Final = (Kind.FLEET_STOPPED, Kind.ALL_STOPPED)
CHECK_BREAKS_DOWN: Final = (
    "ParallelCluster's own check breaks down on another MountDir under the same Name while nodes may run"
)
"""AttributeError in pcluster/config/update_policy_utils.py of 3.16.1: it takes the directory for a storage."""

_SETTING = "cluster.slurm.queue_update_strategy"


class State(NamedTuple):
    """A state that the cluster may be in when it is updated.

    Attributes:
        strategy: QueueUpdateStrategy of the new configuration; None: as it stands there.
        fleet_running: Whether the compute fleet is on, even without an instance.
        login_nodes_running: Whether there are login nodes.
    """

    strategy: str | None = None
    fleet_running: bool = True
    login_nodes_running: bool = False


@dataclass(frozen=True)
class Target:
    """The cluster that is to be changed, for commands.

    Attributes:
        environment: The configuration in config/.
    """

    environment: str

    def fleet_command(self, action: Literal["start", "status", "stop"]) -> str:
        """Return the command that starts or stops the fleet, or tells how it is."""
        return f"make fleet ENV={self.environment} ARGS={action}"

    @property
    def replacement(self) -> str:
        """The way to what a cluster can never change in, after "take this change back, or"."""
        return (
            f"make upgrade ENV={self.environment}: another cluster takes the place of this one "
            "(network and file system stay; what is on the head node goes)"
        )


class _Answers:
    """What the update check says of a change in each state."""

    def __init__(self, parallelcluster: ParallelCluster, old: Configuration, new: Configuration) -> None:
        self._parallelcluster = parallelcluster
        self._old = old
        self._new, self._moved = _without_moves(old, new)
        self._known: dict[State, Mapping[str, Change]] = {}

    def of(self, state: State) -> Mapping[str, Change]:
        """Return the changes in a state, by what changes."""
        if state not in self._known:
            update = self._parallelcluster.check_update(
                self._old,
                _with_strategy(self._new, state.strategy),
                fleet_running=state.fleet_running,
                login_nodes_running=state.login_nodes_running,
            )
            moved = [_moved(*each, state) for each in self._moved]
            self._known[state] = {_identity(change): change for change in (*update.changes, *moved)}
        return self._known[state]


def classify(
    parallelcluster: ParallelCluster,
    old: Configuration,
    new: Configuration,
    target: Target,
    *,
    fleet_status: str = UNKNOWN,
    login_nodes_running: bool = False,
) -> list[ClusterChange]:
    """Tell what each change of a configuration needs.

    Args:
        parallelcluster: Whose check is asked.
        old: The configuration that the cluster has, as ParallelCluster compares it: with CloudFormation's strings.
        new: The one that it shall get, likewise.
        target: The cluster.
        fleet_status: Status of its compute fleet; UNKNOWN: not known.
        login_nodes_running: Whether there are login nodes.
    """
    answers = _Answers(parallelcluster, old, new)
    strategy = _strategy(new)
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
    found = []
    for identity, change in answers.of(running).items():
        kind = next((kind for state, kind in states if answers.of(state)[identity].allowed), Kind.REFUSED)
        passing = [
            each for each in (DRAINS, TERMINATES) if answers.of(running._replace(strategy=each))[identity].allowed
        ]
        passes_now: bool | None = answers.of(now)[identity].allowed
        if fleet_status == UNKNOWN and kind in NEED_A_STOPPED_FLEET:
            passes_now = None
        found.append(
            ClusterChange(
                path=change.path,
                before=change.old,
                after=change.new,
                kind=kind,
                passes_now=passes_now,
                reason="" if change.allowed else f"{change.reason}. {change.action_needed}".strip(". "),
                ways=tuple(_ways(change, kind, passing, target)),
                command=target.fleet_command("stop") if kind in NEED_A_STOPPED_FLEET else "",
            )
        )
    return found


def _ways(change: Change, kind: Kind, passing: list[str], target: Target) -> list[str]:
    match kind:
        case Kind.FLEET_STOPPED:
            return _ways_past_the_fleet(change, passing, target)
        case Kind.LOGIN_NODES_STOPPED:
            return ["two deployments: first with count: 0 in cluster.login_nodes, then with this change"]
        case Kind.ALL_STOPPED:
            return [
                "two deployments: first with count: 0 in cluster.login_nodes, then, on a stopped fleet, this change"
            ]
        case Kind.REFUSED:
            return _ways_past_a_refusal(change, target)
    return []


def _ways_past_the_fleet(change: Change, passing: list[str], target: Target) -> list[str]:
    ways = [f"stop the fleet, deploy, start it again ({target.fleet_command('start')})"]
    if DRAINS in passing:
        ways.append(f"{_SETTING}: {DRAINS} in the same change, which replaces nodes as their jobs end")
    elif TERMINATES in passing:
        ways.append(f"{_SETTING}: {TERMINATES} in the same change, which ends the jobs on the nodes concerned")
    if "SlurmQueues[" in change.path:
        ways.append(f"add a new queue instead, then remove the old one with {_SETTING}: {TERMINATES}")
    return ways


def _ways_past_a_refusal(change: Change, target: Target) -> list[str]:
    if change.path.endswith("FsxLustreSettings.FileSystemId"):
        return ["another Name for the storage: ParallelCluster mounts another file system under another name"]
    if change.path.startswith("SharedStorage"):
        return ["take this change back"]
    return [f"take this change back, or {target.replacement}"]


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
    """Return the new configuration with the mount directories of before, and the storages that move: name, from, to."""
    before = {storage.get("Name"): storage for storage in old.get("SharedStorage") or []}
    stays, moves = copy.deepcopy(new), []
    for storage in stays.get("SharedStorage") or []:
        name, directory = storage.get("Name"), storage.get("MountDir")
        if name in before and before[name].get("MountDir") != directory:
            moves.append((name, before[name].get("MountDir"), directory))
            storage["MountDir"] = before[name].get("MountDir")
    return stays, moves


def _moved(name: str, before: Any, after: Any, state: State) -> Change:
    """Return what the check would say of a storage that moves, if it could."""
    allowed = not (state.fleet_running or state.login_nodes_running)
    return Change(f"SharedStorage[{name}].MountDir", before, after, allowed, "" if allowed else CHECK_BREAKS_DOWN, "")
