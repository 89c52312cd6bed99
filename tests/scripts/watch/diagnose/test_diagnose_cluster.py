"""The diagnosis of a running cluster, and of one in which nothing failed."""

import json
from datetime import timedelta

import pytest

from scripts.watch.diagnose.diagnose import diagnose
from tests.command_line import ultracluster
from tests.scripts.operated import Operated
from tests.scripts.slurm_samples import IDLE, answer, shell
from tests.scripts.watch.diagnose.causes.recorded import (
    CLUSTER_GROUP,
    HEAD_NODE,
    NOW,
    QUOTA,
    Now,
    deployment,
    failed,
    ids,
    shown,
    stream,
)

CAPACITY = "ERROR - An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation"
PROTECTED = "WARNING - Setting cluster into protected mode due to failures detected in node provisioning."


def test_before_a_symptom_that_holds_comes_what_can_be_behind_it_and_does_not_end_by_itself() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.line(stream("daemon"), 40, "ERROR - (VcpuLimitExceeded)")
    account.line(stream("daemon"), 50, CAPACITY)
    account.line(stream("daemon"), 55, PROTECTED)
    diagnosis = diagnose(made, Now())
    assert (diagnosis.operation, ids(diagnosis)) == (None, ["vcpu-quota", "protected-mode", "insufficient-capacity"])


def test_what_is_older_counts_only_if_the_last_half_hour_shows_nothing() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.line(stream("daemon"), -120, "ERROR - (VcpuLimitExceeded)")
    assert ids(diagnose(made, Now())) == ["vcpu-quota"]
    account.line(stream("daemon"), 50, CAPACITY)
    assert ids(diagnose(made, Now())) == ["insufficient-capacity"]


def test_nothing_failed() -> None:
    made, account = deployment(network="CREATE_COMPLETE", cluster="UPDATE_COMPLETE")
    account.line(stream("daemon"), 50, "INFO - all is well, no error")
    diagnosis = diagnose(made, Now())
    assert (diagnosis.failed, diagnosis.outcome) == (False, "nothing failed")
    text = shown(diagnosis)
    assert "That is no proof that all is well." in " ".join(text.split())
    assert f"{CLUSTER_GROUP}, 2026-05-01 06:00 to 2026-05-01 12:00 UTC" in " ".join(text.split())
    made, account = deployment()
    assert "there are no stacks" in shown(diagnose(made))
    assert set(account.calls) == {"describe_stacks"}
    made, account, stack = failed()
    account.stacks[stack] = "CREATE_IN_PROGRESS"
    assert not diagnose(made, Now()).failed


@pytest.mark.parametrize(
    ("part", "minute"), [("network", 50), ("cluster", -6 * 60)], ids=["of another part", "of long ago"]
)
def test_an_operation_that_failed_does_not_hide_the_cluster_that_runs(part: str, minute: float) -> None:
    made, account = deployment(network="CREATE_COMPLETE", cluster="UPDATE_COMPLETE")
    stack = made.stack_name(part)
    account.stacks[stack] = "UPDATE_ROLLBACK_COMPLETE"
    account.event(stack, minute, f"UPDATE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: ")
    account.event(stack, minute + 1, QUOTA)
    account.line(stream("daemon"), 50, CAPACITY)
    diagnosis = diagnose(made, Now())
    assert ids(diagnosis) == ["insufficient-capacity", "address-quota"]
    text = shown(diagnosis)
    assert text.index("EC2 has no capacity") < text.index(stack) < text.index("no Elastic IP address left")


def test_an_old_failure_of_unknown_cause_comes_after_what_the_cluster_shows() -> None:
    made, account = deployment(network="UPDATE_ROLLBACK_COMPLETE", cluster="UPDATE_COMPLETE")
    stack = made.stack_name("network")
    account.event(stack, 1, f"UPDATE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: ")
    account.event(stack, 2, "UPDATE_FAILED AWS::X::Y Odd: Strange")
    account.line(stream("daemon"), 50, CAPACITY)
    diagnosis = diagnose(made, Now())
    assert (diagnosis.outcome, diagnosis.unknown[0].names["resource"]) == ("cause", "Odd")
    text = shown(diagnosis)
    assert text.index("EC2 has no capacity") < text.index("Odd: Strange")


def test_a_recent_failure_of_the_cluster_is_not_mixed_with_what_it_logs_since_unless_something_is_wrong_now() -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    stack = made.stack_name("cluster")
    account.stacks[stack] = "UPDATE_ROLLBACK_COMPLETE"
    account.event(stack, 0, f"UPDATE_IN_PROGRESS AWS::CloudFormation::Stack {stack}: ")
    account.event(stack, 1, QUOTA)
    account.line(stream("daemon"), 50, CAPACITY)
    assert ids(diagnose(made, Now())) == ["address-quota"]
    account.answer = "", "slurm_load_partitions: Unable to contact slurm controller (connect failure)"
    account.line(stream("slurm", "slurmctld"), 55, "fatal: of now")
    found = ids(diagnose(made, Now()))
    assert found[0] == "slurm-silent"
    assert {"slurm-ended", "address-quota"} <= {*found}, "what is wrong now may have its cause in the logs of now"


@pytest.mark.parametrize(
    ("state", "cause", "words"),
    [
        ("stopping", "head-node-stopped", "./ultracluster recover trn1-16"),
        ("", "head-node-gone", "./ultracluster recover trn1-16"),
    ],
)
def test_a_head_node_that_does_not_run_comes_first(state: str, cause: str, words: str) -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.instances = {HEAD_NODE: state} if state else {}
    account.line(stream("daemon"), 50, CAPACITY)
    diagnosis = diagnose(made, Now())
    assert ids(diagnosis) == [cause, "insufficient-capacity"]
    assert words in " ".join(diagnosis.causes[0].to_do)


@pytest.mark.parametrize(
    ("minutes", "denied", "logged", "causes"),
    [
        (60, set(), True, ["head-node-silent"]),
        (60, set(), False, []),
        (60, {"filter_log_events"}, True, []),
        (10, set(), True, []),
    ],
    ids=["for an hour", "no logs exist", "logs may not be read", "it starts"],
)
def test_a_head_node_that_logs_nothing(minutes: int, denied: set[str], logged: bool, causes: list[str]) -> None:
    made, account = deployment(cluster="CREATE_COMPLETE")
    account.lines.clear()
    if logged:
        account.line(stream("daemon"), 30, "INFO - Managing cluster...")
        account.line("ip-10-0-1-9.i-0c.slurmd", 59, "INFO - of a compute node")
    account.launched = NOW - timedelta(minutes=minutes)
    account.denied = denied
    assert ids(diagnose(made, Now())) == causes


def test_what_a_head_node_logs_at_each_start_explains_only_that_its_start_took_too_long() -> None:
    normal = (
        ("chef-client", "[2026-05-01T10:00:00+00:00] INFO: Waiting for static fleet capacity provisioning"),
        ("cloud-init-output", "+ cfn-signal --exit-code=0 '--reason=HeadNode setup complete' 'https://x'"),
    )
    running, account = deployment(cluster="CREATE_COMPLETE")
    broken, other, stack = failed()
    other.event(
        stack, 5, "CREATE_FAILED AWS::CloudFormation::WaitCondition W: WaitCondition received failed message: 'x'"
    )
    for end, text in normal:
        account.line(stream("boot", end), 50, text)
        other.line(stream("boot", end), 4, text)
    assert not diagnose(running, Now()).failed
    assert ids(diagnose(broken, Now())) == ["head-node-failed"]


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    return ultracluster("diagnose", "trn1-16", *arguments)


@pytest.mark.slow
def test_the_command(operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    operated.log(operated.head_node_stream("slurmctld"), "its account may be older than the silence that counts")
    assert run(monkeypatch) == 0
    assert "No known cause still holds" in capsys.readouterr().out
    refused = "ERROR - (InsufficientInstanceCapacity) trn1:free:[b]"
    operated.log(operated.head_node_stream("slurm_resume"), "INFO - hello", refused)
    assert run(monkeypatch) == 1
    assert "trn1:free:[b]" in capsys.readouterr().out
    stuck = (1, "drained", "2026-05-01T10:00:00", "trn1-dy-trn1-32xl-1", "Kill task failed")
    operated.shell(shell(f"  7% /\n{answer({'trn1': 'up'}, problems=[stuck])}"))
    assert run(monkeypatch, "--output", "json") == 1
    causes = json.loads(capsys.readouterr().out)["causes"]
    states = {each["id"]: each["state"] for each in causes}
    assert list(states.items()) == [("kill-task-failed", "now"), ("insufficient-capacity", "seen")]
    operated.shell(shell(f"  7% /\n{IDLE}"))
    assert run(monkeypatch) == 1
    assert "Kill task failed" not in capsys.readouterr().out
    allowed = {"Effect": "Allow", "Action": "cloudformation:DescribeStacks", "Resource": "*"}
    with operated.aws.restricted({"Version": "2012-10-17", "Statement": [allowed]}) as environment:
        operated.act_as(environment, monkeypatch)
        assert run(monkeypatch) == 1
    assert "ec2:DescribeInstances is not allowed" in capsys.readouterr().out
