"""What each change of a cluster needs: the real package's answers to the strings that CloudFormation sends."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from scripts.plan.cluster import CHECK_BREAKS_DOWN, classify
from scripts.plan.model import ClusterChange, Kind
from toolchain.cluster import as_strings
from toolchain.parallelcluster import Configuration, ParallelCluster

pytestmark = pytest.mark.validation

Edit = Callable[[Configuration], object]
Classified = Callable[..., list[ClusterChange]]

STRATEGIES = ("COMPUTE_FLEET_STOP", "DRAIN", "TERMINATE")

LIVE = (Kind.LIVE, Kind.LIVE, Kind.LIVE)
"""What a change needs by strategy, in the order above."""
REPLACES_NODES = (Kind.FLEET_STOPPED, Kind.DRAINS, Kind.TERMINATES)
REMOVES_NODES = (Kind.FLEET_STOPPED, Kind.FLEET_STOPPED, Kind.TERMINATES)
STOPPED_FLEET = (Kind.FLEET_STOPPED, Kind.FLEET_STOPPED, Kind.FLEET_STOPPED)
REFUSED = (Kind.REFUSED, Kind.REFUSED, Kind.REFUSED)

MANAGED_FSX = {
    "Name": "scratch",
    "MountDir": "/scratch2",
    "StorageType": "FsxLustre",
    "FsxLustreSettings": {"StorageCapacity": 1200, "DeploymentType": "SCRATCH_2"},
}


def nothing(configuration: Configuration) -> None:
    """Leave it as it is."""


def queue(configuration: Configuration) -> Any:
    return configuration["Scheduling"]["SlurmQueues"][0]


def resource(configuration: Configuration) -> Any:
    return queue(configuration)["ComputeResources"][0]


def slurm(configuration: Configuration) -> Any:
    return configuration["Scheduling"]["SlurmSettings"]


def networking(configuration: Configuration) -> Any:
    return queue(configuration)["Networking"]


def head(configuration: Configuration) -> Any:
    return configuration["HeadNode"]


def storages(configuration: Configuration) -> Any:
    return configuration["SharedStorage"]


def add_queue(configuration: Configuration) -> None:
    configuration["Scheduling"]["SlurmQueues"].append({**copy.deepcopy(queue(configuration)), "Name": "second"})


def add_managed_fsx(configuration: Configuration) -> None:
    storages(configuration).append(copy.deepcopy(MANAGED_FSX))


def manage_placement(configuration: Configuration) -> None:
    networking(configuration)["PlacementGroup"] = {"Enabled": True}


def swap_file_system(configuration: Configuration) -> None:
    storages(configuration)[0].update(Name="other", FsxLustreSettings={"FileSystemId": "fs-0123456789abcdef0"})


def wait_for_head_node(seconds: int) -> Edit:
    return lambda c: c["DevSettings"].update(Timeouts={"HeadNodeBootstrapTimeout": seconds})


@dataclass(frozen=True)
class Row:
    """A change, and what it needs.

    Attributes:
        edit: The change.
        needs: What it needs, by strategy.
        before: What the cluster is given first.
    """

    edit: Edit
    needs: tuple[Kind, ...]
    before: Edit = nothing


ROWS: dict[str, Row] = {
    "MaxCount up": Row(lambda c: resource(c).update(MaxCount=20), LIVE),
    "MaxCount down": Row(lambda c: resource(c).update(MaxCount=8), REMOVES_NODES),
    "MinCount up with MaxCount": Row(lambda c: resource(c).update(MinCount=4, MaxCount=20), LIVE),
    "remove queue": Row(lambda c: c["Scheduling"]["SlurmQueues"].pop(), REMOVES_NODES, before=add_queue),
    "InstanceType": Row(lambda c: resource(c).update(InstanceType="trn1n.32xlarge"), STOPPED_FLEET),
    "ScaledownIdletime": Row(lambda c: slurm(c).update(ScaledownIdletime=30), STOPPED_FLEET),
    "EFA": Row(lambda c: resource(c).update(Efa={"Enabled": False}), REPLACES_NODES),
    "managed placement group off": Row(  # "false" counts as true
        lambda c: networking(c).update(PlacementGroup={"Enabled": False}),
        REPLACES_NODES,
        before=manage_placement,
    ),
    "existing FSx swapped with its name": Row(swap_file_system, LIVE),
    "other FileSystemId, same Name": Row(
        lambda c: storages(c)[0].update(FsxLustreSettings={"FileSystemId": "fs-0123456789abcdef0"}), REFUSED
    ),
    "managed FSx removed": Row(lambda c: storages(c).pop(), REPLACES_NODES, before=add_managed_fsx),
    "head node type": Row(lambda c: head(c).update(InstanceType="c6i.8xlarge"), REFUSED),
    "AllowedIps": Row(lambda c: head(c)["Ssh"].update(AllowedIps="203.0.113.0/24"), LIVE),
    "HeadNodeBootstrapTimeout": Row(wait_for_head_node(3000), REFUSED, before=wait_for_head_node(2000)),
    "MountDir, same Name": Row(lambda c: storages(c)[0].update(MountDir="/lustre"), STOPPED_FLEET),
}


@pytest.fixture
def classified(parallelcluster: ParallelCluster, configuration: Configuration) -> Classified:
    """Return a function that classifies an edit of the trn1-16 cluster."""

    def classify_edit(edit: Edit, before: Edit = nothing, strategy: str = "DRAIN", **state: Any) -> list[ClusterChange]:
        old = copy.deepcopy(configuration)
        slurm(old)["QueueUpdateStrategy"] = strategy
        before(old)
        new = copy.deepcopy(old)
        edit(new)
        assert new != old
        return classify(parallelcluster, as_strings(old), as_strings(new), "trn1-16", **state)

    return classify_edit


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_what_a_change_needs_and_what_helps(row: Row, classified: Classified) -> None:
    for strategy, kind in zip(STRATEGIES, row.needs, strict=True):
        changes = classified(row.edit, row.before, strategy)
        assert {change.kind for change in changes} == {kind}, strategy
        for change in changes if strategy == STRATEGIES[0] else ():
            assert bool(change.reason) == bool(change.ways) == (kind is not Kind.LIVE)
            assert bool(change.command) == (kind is Kind.FLEET_STOPPED)


def test_whether_it_passes_now_depends_on_the_fleet(classified: Classified) -> None:
    edit = ROWS["InstanceType"].edit
    assert not classified(edit, fleet_status="STOPPING")[0].passes_now
    assert classified(edit, fleet_status="STOPPED")[0].passes_now
    assert classified(edit)[0].passes_now is None
    assert classified(ROWS["MaxCount up"].edit)[0].passes_now
    assert classified(ROWS["head node type"].edit, fleet_status="STOPPED")[0].passes_now is False


def test_ways_name_only_what_would_help(classified: Classified) -> None:
    [size] = classified(ROWS["MaxCount down"].edit)
    assert size.command == "./ultracluster fleet stop trn1-16"
    assert size.ways[0] == "stop the fleet, deploy, start it again (./ultracluster fleet start trn1-16)"
    assert any("queue_update_strategy: TERMINATE in the same change" in way for way in size.ways)
    assert any("add a new queue instead" in way for way in size.ways)
    [instance_type] = classified(ROWS["InstanceType"].edit)
    assert not any("in the same change" in way for way in instance_type.ways)
    [efa] = classified(ROWS["EFA"].edit, strategy="COMPUTE_FLEET_STOP")
    assert any("queue_update_strategy: DRAIN in the same change" in way for way in efa.ways)
    [idle] = classified(ROWS["ScaledownIdletime"].edit)
    assert not any("queue" in way for way in idle.ways)
    [file_system] = classified(ROWS["other FileSystemId, same Name"].edit)
    assert file_system.ways == (
        "another Name for the storage: ParallelCluster mounts another file system under another name",
    )
    [head_node] = classified(ROWS["head node type"].edit)
    assert "./ultracluster upgrade trn1-16: another cluster replaces this one" in head_node.ways[0]


def test_a_check_that_breaks_down_hides_no_other_change(classified: Classified) -> None:
    def edit(configuration: Configuration) -> None:
        storages(configuration)[0]["MountDir"] = "/lustre"
        head(configuration)["InstanceType"] = "c6i.8xlarge"

    by_path = {change.path: change for change in classified(edit)}
    assert by_path["HeadNode.InstanceType"].kind is Kind.REFUSED
    [moved] = [change for path, change in by_path.items() if path.endswith("MountDir")]
    assert (moved.before, moved.after, moved.reason) == ("/fsx", "/lustre", CHECK_BREAKS_DOWN)


def test_the_check_breaks_down_as_it_is_said_to(parallelcluster: ParallelCluster, configuration: Configuration) -> None:
    changed = copy.deepcopy(configuration)
    storages(changed)[0]["MountDir"] = "/lustre"
    for state in ({"fleet_running": True}, {"fleet_running": False, "login_nodes_running": True}):
        with pytest.raises(RuntimeError, match="AttributeError"):
            parallelcluster.check_update(configuration, changed, **state)
    assert parallelcluster.check_update(configuration, changed, fleet_running=False).allowed


def pools(configuration: Configuration) -> Any:
    return configuration["LoginNodes"]["Pools"]


def with_login_nodes(configuration: Configuration) -> None:
    networking = {"SubnetIds": ["subnet-0123456789abcdef0"]}
    pool = {"Name": "login", "InstanceType": "c6i.xlarge", "Count": 2, "Networking": networking}
    configuration["LoginNodes"] = {"Pools": [pool]}


LOGIN_ROWS: dict[str, tuple[Edit, Kind]] = {
    "Count": (lambda c: pools(c)[0].update(Count=4), Kind.LIVE),
    "GracetimePeriod": (lambda c: pools(c)[0].update(GracetimePeriod=30), Kind.LIVE),
    "another pool": (lambda c: pools(c).append({**pools(c)[0], "Name": "more"}), Kind.LIVE),
    "pool removed": (lambda c: pools(c)[0].update(Name="renamed"), Kind.LOGIN_NODES_STOPPED),
    "InstanceType": (lambda c: pools(c)[0].update(InstanceType="c6i.2xlarge"), Kind.LOGIN_NODES_STOPPED),
    "managed FSx": (add_managed_fsx, Kind.LOGIN_NODES_STOPPED),
    "MountDir": (lambda c: storages(c)[0].update(MountDir="/lustre"), Kind.ALL_STOPPED),
}


@pytest.mark.parametrize(("edit", "kind"), LOGIN_ROWS.values(), ids=LOGIN_ROWS)
def test_what_a_change_needs_of_login_nodes(edit: Edit, kind: Kind, classified: Classified) -> None:
    changes = classified(edit, with_login_nodes, login_nodes_running=True)
    worst = [change for change in changes if change.kind is not Kind.LIVE] or changes
    assert {change.kind for change in worst} == {kind}
    if kind is not Kind.LIVE:
        assert {change.passes_now for change in worst} <= {False, None}
        assert all("count: 0 in cluster.login_nodes" in change.ways[0] for change in worst)
