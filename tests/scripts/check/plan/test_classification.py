"""What each change of a cluster needs: the real package's answers to the strings that CloudFormation sends."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from scripts.check.plan.cluster import CHECK_BREAKS_DOWN, classify
from scripts.check.plan.comparison import NOT_YET_IN
from scripts.check.plan.model import ClusterChange, Kind
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


def resource(configuration: Configuration) -> Any:
    return configuration["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]


def head(configuration: Configuration) -> Any:
    return configuration["HeadNode"]


def storage(configuration: Configuration) -> Any:
    return configuration["SharedStorage"][0]


def other_file_system(configuration: Configuration) -> None:
    storage(configuration)["FsxLustreSettings"] = {"FileSystemId": "fs-0123456789abcdef0"}


def other_file_system_and_name(configuration: Configuration) -> None:
    other_file_system(configuration)
    storage(configuration)["Name"] = "other"


def placement_group_off(configuration: Configuration) -> None:
    # The string "false" would count as true.
    configuration["Scheduling"]["SlurmQueues"][0]["Networking"]["PlacementGroup"] = {"Enabled": False}


def move(configuration: Configuration) -> None:
    storage(configuration)["MountDir"] = "/lustre"


ROWS: dict[str, tuple[Edit, tuple[Kind, ...]]] = {
    "MaxCount up": (lambda c: resource(c).update(MaxCount=20), LIVE),
    "MaxCount down": (lambda c: resource(c).update(MaxCount=8), REMOVES_NODES),
    "InstanceType": (lambda c: resource(c).update(InstanceType="trn1n.32xlarge"), STOPPED_FLEET),
    "EFA": (lambda c: resource(c).update(Efa={"Enabled": False}), REPLACES_NODES),
    "placement group off": (placement_group_off, REPLACES_NODES),
    "existing FSx swapped with its name": (other_file_system_and_name, LIVE),
    "other FileSystemId, same Name": (other_file_system, REFUSED),
    "head node type": (lambda c: head(c).update(InstanceType="c6i.8xlarge"), REFUSED),
    "another subnet": (lambda c: head(c)["Networking"].update(SubnetId="subnet-0123456789abcdef0"), REFUSED),
    "another network": (lambda c: head(c)["Networking"].update(SubnetId=NOT_YET_IN.format("x-network")), REFUSED),
    "AllowedIps": (lambda c: head(c)["Ssh"].update(AllowedIps="203.0.113.0/24"), LIVE),
    "MountDir, same Name": (move, STOPPED_FLEET),
}
"""Changes, and what they need by strategy."""


@pytest.fixture
def classified(parallelcluster: ParallelCluster, configuration: Configuration) -> Classified:
    def classify_edit(edit: Edit, before: Edit = bool, strategy: str = "DRAIN", **state: Any) -> list[ClusterChange]:
        old = copy.deepcopy(configuration)
        old["Scheduling"]["SlurmSettings"]["QueueUpdateStrategy"] = strategy
        before(old)
        new = copy.deepcopy(old)
        edit(new)
        assert new != old
        return classify(parallelcluster, as_strings(old), as_strings(new), "trn1-16", **state)

    return classify_edit


@pytest.mark.parametrize(("edit", "needs"), ROWS.values(), ids=ROWS)
def test_what_a_change_needs_and_what_helps(edit: Edit, needs: tuple[Kind, ...], classified: Classified) -> None:
    for strategy, kind in zip(STRATEGIES, needs, strict=True):
        changes = classified(edit, strategy=strategy)
        assert {change.kind for change in changes} == {kind}, strategy
        for change in changes if strategy == STRATEGIES[0] else ():
            assert bool(change.reason) == bool(change.ways) == (kind is not Kind.LIVE)
            assert bool(change.command) == (kind is Kind.FLEET_STOPPED)


def test_whether_it_passes_now_depends_on_the_fleet(classified: Classified) -> None:
    edit, _ = ROWS["InstanceType"]
    assert not classified(edit, fleet_status="STOPPING")[0].passes_now
    assert classified(edit, fleet_status="STOPPED")[0].passes_now
    assert classified(edit)[0].passes_now is None
    assert classified(ROWS["MaxCount up"][0])[0].passes_now
    assert classified(ROWS["head node type"][0], fleet_status="STOPPED")[0].passes_now is False


@pytest.mark.parametrize(
    ("row", "strategy", "says", "not_said"),
    [
        ("MaxCount down", "DRAIN", "add a new queue instead", "DRAIN in the same change"),
        ("MaxCount down", "DRAIN", "queue_update_strategy: TERMINATE in the same change", ""),
        ("MaxCount down", "DRAIN", "start it again (./ultracluster fleet start trn1-16)", ""),
        ("InstanceType", "DRAIN", "stop the fleet, deploy", "in the same change"),
        ("EFA", "COMPUTE_FLEET_STOP", "queue_update_strategy: DRAIN in the same change", ""),
        ("MountDir, same Name", "DRAIN", "stop the fleet, deploy", "queue"),
        ("other FileSystemId, same Name", "DRAIN", "another Name for the storage", "upgrade"),
        ("another subnet", "DRAIN", "./ultracluster upgrade trn1-16: another cluster replaces this one", ""),
        ("another network", "DRAIN", "on the same network; another one is a deployment of", "./ultracluster upgrade"),
        ("head node type", "DRAIN", "./ultracluster upgrade trn1-16: another cluster replaces this one", ""),
    ],
)
def test_ways_name_only_what_would_help(
    row: str, strategy: str, says: str, not_said: str, classified: Classified
) -> None:
    [change] = classified(ROWS[row][0], strategy=strategy)
    ways = "; ".join(change.ways)
    assert says in ways
    assert not not_said or not_said not in ways


def test_a_check_that_breaks_down_hides_no_other_change(classified: Classified) -> None:
    def edit(configuration: Configuration) -> None:
        move(configuration)
        head(configuration)["InstanceType"] = "c6i.8xlarge"

    by_path = {change.path.rpartition(".")[2]: change for change in classified(edit)}
    assert by_path["InstanceType"].kind is Kind.REFUSED
    assert (by_path["MountDir"].after, by_path["MountDir"].reason) == ("/lustre", CHECK_BREAKS_DOWN)


def test_the_check_breaks_down_as_it_is_said_to(parallelcluster: ParallelCluster, configuration: Configuration) -> None:
    changed = copy.deepcopy(configuration)
    move(changed)
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
    "InstanceType": (lambda c: pools(c)[0].update(InstanceType="c6i.2xlarge"), Kind.LOGIN_NODES_STOPPED),
    "MountDir": (move, Kind.ALL_STOPPED),
}


@pytest.mark.parametrize(("edit", "kind"), LOGIN_ROWS.values(), ids=LOGIN_ROWS)
def test_what_a_change_needs_of_login_nodes(edit: Edit, kind: Kind, classified: Classified) -> None:
    changes = classified(edit, with_login_nodes, login_nodes_running=True)
    worst = [change for change in changes if change.kind is not Kind.LIVE] or changes
    assert {change.kind for change in worst} == {kind}
    if kind is not Kind.LIVE:
        assert {change.passes_now for change in worst} <= {False, None}
        assert all("count: 0 in cluster.login_nodes" in change.ways[0] for change in worst)


def with_login_nodes_that_end(configuration: Configuration) -> None:
    with_login_nodes(configuration)
    pools(configuration)[0].update(Count=0, GracetimePeriod=45)


def test_login_nodes_that_end_are_waited_for(classified: Classified) -> None:
    changes = classified(lambda c: c.pop("LoginNodes"), with_login_nodes_that_end, login_nodes_running=True)
    [way] = {way for change in changes for way in change.ways}
    assert way == "wait: login nodes end with the last connection, or 45 minutes after count: 0 was deployed"


def with_accounting(configuration: Configuration) -> None:
    """Add it as the provider sends it: ParallelCluster's check has "-" where there was nothing."""
    database = {
        "Uri": "db.example.com",
        "UserName": "admin",
        "PasswordSecretArn": "arn:aws:secretsmanager:x:1:secret:y",
    }
    configuration["Scheduling"]["SlurmSettings"]["Database"] = database


def with_homes(configuration: Configuration) -> None:
    homes = {
        "Name": "homes",
        "StorageType": "Efs",
        "MountDir": "/home",
        "EfsSettings": {"FileSystemId": "fs-0123456789"},
    }
    configuration["SharedStorage"].append(homes)


def test_beside_what_is_refused_nobody_stops_the_fleet_for_nothing(classified: Classified) -> None:
    stopping, refused = (ROWS[row][0] for row in ("InstanceType", "head node type"))
    by_kind = {change.kind: change for change in classified(lambda c: (stopping(c), refused(c)))}
    assert "upgrade" in by_kind[Kind.REFUSED].ways[0]
    assert by_kind[Kind.FLEET_STOPPED].command == ""
    assert by_kind[Kind.FLEET_STOPPED].ways == (
        "first what is refused: on another cluster, by `upgrade`, this needs nothing",
    )


@pytest.mark.parametrize("edit", [with_accounting, with_homes])
def test_what_is_refused_names_the_upgrade_and_nobody_is_told_to_stop_the_fleet(
    edit: Edit, classified: Classified
) -> None:
    changes = classified(edit)
    assert Kind.REFUSED in {change.kind for change in changes}
    assert [change.path for change in changes if not change.passes_now and "upgrade" not in "".join(change.ways)] == []
    assert {change.command for change in changes} == {""}
