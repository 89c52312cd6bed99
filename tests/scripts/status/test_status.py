"""`make status` on a deployment in the emulated account."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from scripts import command as frame
from scripts.commands import status as command
from scripts.deployment import Account, Deployment
from scripts.progress.stacks import Tracker
from scripts.remote.head_node import HeadNode
from tests.emulator.stacks import Stacks, parameter
from tests.scripts.account import Operated
from tests.scripts.logs.log_lines import head_prefix
from tests.scripts.slurm_samples import IDLE, RECORDED, shell
from tests.scripts.status.status_looks import (
    answered,  # noqa: F401
    look,
    screen,
    stack_status,
)
from tests.scripts.status.test_status_parts import settings


def test_the_screen(operated: Operated) -> None:
    operated.launch(2)
    operated.shell(shell(RECORDED))
    text = screen(operated.deployment())
    assert text.startswith("trn1-16 in us-west-2\n")
    assert max(len(line) for line in text.splitlines()) <= 80
    for expected in (
        "trn1-16-monitoring   CREATE_COMPLETE",
        f"Head node {operated.head_node}, c6i.4xlarge, running",
        "Session Manager reaches it",
        "Nodes     2 running (EC2)",
        "Fleet     RUNNING",
        "trn1     1       1   -        -        1       1     1    1      30",
        "Queue cpu takes no jobs: it is inactive.",
        "drained while off",
        "4,800 GiB, 1,200 MB/s",
        "$43.05 for compute nodes",
        "make connect ENV=trn1-16",
        "Healthy.",
    ):
        assert expected in text


def test_the_document(operated: Operated) -> None:
    operated.shell(shell(RECORDED))
    code, document = look(operated.deployment())
    assert code == frame.DONE
    assert document["healthy"]
    assert document["unseen"] == {}
    assert document["head_node"]["session_manager"]
    assert document["slurm"]["queues"]["cpu"]["nodes"] == {"drained": 1, "power saving": 5, "powering up": 2}
    assert [each["name"] for each in document["slurm"]["jobs"]] == ["train", "two # end", "sweep"]


def test_the_use_of_the_file_system(operated: Operated) -> None:
    file_system_id = operated.deployment().outputs("trn1-16-storage")["FileSystemId"]
    now = datetime.now(UTC)
    values = {"FreeDataStorageCapacity": 2400 * 1024**3, "DataReadBytes": 18e9, "DataWriteBytes": 0}
    for minutes, factor in ((5, 2), (2, 1)):  # the newest counts
        operated.client("cloudwatch").put_metric_data(
            Namespace="AWS/FSx",
            MetricData=[
                {
                    "MetricName": name,
                    "Dimensions": [{"Name": "FileSystemId", "Value": file_system_id}],
                    "Timestamp": now - timedelta(minutes=minutes),
                    "Value": value * factor,
                }
                for name, value in values.items()
            ],
        )
    operated.shell(shell(IDLE))
    _, document = look(operated.deployment())
    assert document["usage"] == {"free_bytes": 2400 * 1024**3, "used_mbps": 300}


@pytest.fixture
def answered_at_once(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the head node have answered when the command is sent; who waits for that makes no calls that are counted."""
    start, ssm = HeadNode.start, operated.client("ssm")

    def is_awaited(head_node: HeadNode, command_id: str) -> bool:
        try:
            found = ssm.get_command_invocation(CommandId=command_id, InstanceId=head_node.instance_id)
        except ssm.exceptions.InvocationDoesNotExist:
            return True
        return found["Status"] in ("Pending", "InProgress")

    def start_and_wait(head_node: HeadNode, script: str, **options: Any) -> str:
        command_id = start(head_node, script, **options)
        while is_awaited(head_node, command_id):
            pass
        return command_id

    monkeypatch.setattr(HeadNode, "start", start_and_wait)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for answers: to describe a thousand nodes takes the emulated EC2 some seconds."""
    monkeypatch.setattr("botocore.config.Config", lambda **options: Config(**{**options, "read_timeout": 300}))


@pytest.mark.slow
@pytest.mark.usefixtures("answered_at_once", "patient")
def test_1875_nodes_take_at_most_twelve_calls(operated: Operated) -> None:
    ec2 = operated.client("ec2")
    made = ec2.create_capacity_reservation(
        InstanceType="trn1.32xlarge", InstancePlatform="Linux/UNIX", InstanceCount=1875, AvailabilityZoneId="usw2-az4"
    )["CapacityReservation"]["CapacityReservationId"]
    operated.launch(1875)
    operated.shell(shell(IDLE))
    deployment = Deployment("trn1-16", settings(nodes=1875, reservation=made))
    operated.calls()
    _, document = look(deployment)
    calls = operated.calls()
    ec2.cancel_capacity_reservation(CapacityReservationId=made)
    assert document["compute_nodes"] == {"running": 1875}
    assert document["reservations"][0]["total"] == 1875
    assert document["unseen"] == {}
    assert calls.count("ec2:DescribeInstances") == 2
    assert len(calls) <= 12


@pytest.mark.usefixtures("answered_at_once")
def test_a_look_takes_no_more_calls_while_the_cluster_changes(
    operated: Operated, monkeypatch: pytest.MonkeyPatch
) -> None:
    operated.shell(shell(IDLE))
    stack_status("UPDATE_IN_PROGRESS")(monkeypatch)
    operated.calls()
    _, document = look(operated.deployment())
    calls = operated.calls()
    assert document["unseen"] == {}
    assert calls.count("cloudformation:DescribeStacks") == 2
    assert len(calls) <= 12


def unlisted(kind: str) -> Callable[[Account, str, str], Any]:
    """Return what answers as an account that does not tell of all stacks at once."""
    ask = Account.ask

    def answer(account: Account, service: str, operation: str, **parameters: Any) -> Any:
        if operation != "describe_stacks" or parameters:
            return ask(account, service, operation, **parameters)
        ask(account, service, operation)  # a call that counts
        if kind == "refused":
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeStacks")
        return {"Stacks": [], "NextToken": "more"}

    return answer


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("refused", "these credentials lack cloudformation:DescribeStacks on all stacks"),
        ("cut off", "not known: there are more stacks than one call tells of"),
    ],
)
@pytest.mark.usefixtures("answered_at_once")
def test_stacks_that_are_not_listed_are_asked_for_by_name(
    operated: Operated, kind: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    operated.shell(shell(IDLE))
    monkeypatch.setattr(Account, "ask", unlisted(kind))
    operated.calls()
    code, document = look(operated.deployment())
    calls = operated.calls()
    assert (code, document["unseen"]) == (frame.DONE, {"other_clusters": reason})
    assert [each["status"] for each in document["stacks"]] == ["CREATE_COMPLETE"] * 4
    assert calls.count("cloudformation:DescribeStacks") == 5
    assert len(calls) <= 12


def test_the_other_cluster_of_an_upgrade_is_named(operated: Operated) -> None:
    operated.shell(shell(IDLE))
    stacks = Stacks(operated.aws, operated.settings.region)
    described = {"Description": "Trn1 UltraCluster trn1-16: cluster"}
    stacks.create("trn1-16-cluster-2", {"A": parameter()}, template=described)
    tracker = Tracker(operated.deployment())
    try:
        _, document = look(operated.deployment())
        tracker.refresh()
    finally:
        stacks.delete("trn1-16-cluster-2")
    [other] = document["other_clusters"]
    assert (other["name"], other["status"][:7]) == ("trn1-16-cluster-2", "CREATE_")
    assert tracker.others == {"trn1-16-cluster-2": other["status"]}


def test_without_any_stack(operated: Operated) -> None:
    other = operated.settings.model_copy(update={"name": "other"})
    code, document = look(Deployment("trn1-16", other))
    assert code == frame.FAILED
    assert document["faults"] == ["there is nothing of other in us-west-2: make deploy ENV=trn1-16"]
    assert "other-monitoring   none" in screen(Deployment("trn1-16", other))


def test_a_reservation_that_is_not_there(operated: Operated) -> None:
    operated.shell(shell(IDLE))
    code, document = look(Deployment("trn1-16", settings(reservation="cr-0123456789abcdef0")))
    assert (code, document["faults"]) == (1, ["the reservation cr-0123456789abcdef0 is missing"])


# --- the head node ---


def test_slurm_does_not_answer(operated: Operated) -> None:
    operated.shell("cat >/dev/null; echo 'Unable to contact slurm controller' >&2; exit 1")
    code, document = look(operated.deployment())
    assert code == frame.FAILED
    assert document["unseen"] == {"slurm": "Slurm on the head node does not answer: Unable to contact slurm controller"}
    assert document["head_node"]["session_manager"]


def test_session_manager_does_not_reach_the_head_node(operated: Operated) -> None:
    code, document = look(operated.deployment())
    assert code == frame.FAILED
    assert document["head_node"]["session_manager"] is False
    assert "Undeliverable" in document["unseen"]["slurm"]
    assert "Session Manager does not reach it" in screen(operated.deployment())


@pytest.fixture
def stopped(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let EC2 say that the head node is stopped."""
    nodes = Deployment.nodes

    def with_state(deployment: Deployment) -> list[dict[str, Any]]:
        return [{**each, "State": {"Name": "stopped"}} for each in nodes(deployment)]

    monkeypatch.setattr(Deployment, "nodes", with_state)


@pytest.mark.usefixtures("stopped")
def test_a_head_node_that_is_stopped(operated: Operated) -> None:
    code, document = look(operated.deployment())
    assert (code, document["faults"]) == (1, [f"the head node {operated.head_node} is stopped"])
    assert [each["id"] for each in document["diagnosis"]["causes"]] == ["head-node-stopped"]


def test_a_head_node_that_is_gone(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deployment, "nodes", lambda _: [])
    code, document = look(operated.deployment())
    assert (code, document["faults"]) == (1, ["the cluster trn1-16 has no head node"])
    assert [each["id"] for each in document["diagnosis"]["causes"]] == ["head-node-gone"]


# --- what failed ---


def test_a_fleet_that_is_protected_is_diagnosed(operated: Operated) -> None:
    operated.shell(shell(IDLE))
    operated.set_fleet("PROTECTED")
    line = "[slurm_plugin.clustermgtd:_enter_protected_mode] - WARNING - Setting cluster into protected mode"
    operated.log(f"{head_prefix(operated)}clustermgtd", f"{line} due to failures detected in node provisioning.")
    code, document = look(operated.deployment())
    assert code == frame.FAILED
    assert [each["id"] for each in document["diagnosis"]["causes"]] == ["protected-mode"]


def test_what_failed_is_diagnosed(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    operated.shell(shell(IDLE))
    stack_status("UPDATE_ROLLBACK_FAILED")(monkeypatch)
    code, document = look(operated.deployment())
    assert code == frame.FAILED
    assert [each["name"] for each in document["stacks"]][2:4] == ["trn1-16-cluster", "trn1-16"]
    assert document["faults"] == [
        "stack trn1-16-cluster is UPDATE_ROLLBACK_FAILED",
        "ParallelCluster's stack trn1-16 is UPDATE_ROLLBACK_FAILED",
    ]
    assert document["diagnosis"] is not None
    assert "UPDATE_ROLLBACK_FAILED" in screen(operated.deployment())


def test_a_time_limit_is_for_watching(capsys: pytest.CaptureFixture[str]) -> None:
    given = command.arguments().parse_args(["trn1-16", "--timeout", "7"])
    assert frame.run(given, command.program) == frame.UNUSABLE
    assert "got 7 without --watch" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["0", "-1", "inf", "nan", "soon"])
def test_times_that_cannot_be_used(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        command.arguments().parse_args(["trn1-16", "--watch", "--every", seconds])
    assert raised.value.code == frame.UNUSABLE
    assert seconds in capsys.readouterr().err
