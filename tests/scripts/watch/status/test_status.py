"""`status` on a deployment in an emulated account."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from scripts.account.deployment import Account, Deployment
from scripts.core.clock import Clock
from scripts.core.errors import ExitCode
from scripts.watch.status import collect
from tests.command_line import ultracluster
from tests.scripts.operated import Operated
from tests.scripts.refusals import refusal
from tests.scripts.slurm_samples import IDLE, RECORDED, shell
from ultracluster.domain import metrics
from ultracluster.domain.budget import BudgetSpec

pytestmark = pytest.mark.usefixtures("answered")

HIDDEN_WITHOUT = {
    "cloudformation:DescribeStacks": {"stacks", "other_clusters", "file_system", "usage"},
    "ec2:DescribeInstances": {"instances", "slurm"},
    "dynamodb:GetItem": {"fleet"},
    "fsx:DescribeFileSystems": {"file_system"},
    "cloudwatch:GetMetricData": {"usage"},
    "cloudwatch:DescribeAlarms": {"alarms"},
    "ssm:SendCommand": {"slurm"},
    "ssm:GetCommandInvocation": {"slurm"},
}
"""What is unavailable without a permission; these are all that `status` needs."""


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the head node without pauses until it has answered, however slow this machine is."""
    monkeypatch.setattr(collect, "WAIT_SECONDS", 600)
    monkeypatch.setattr(Clock, "sleep", lambda *_: None)


def as_json(deployment: Deployment) -> tuple[int, dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdout", printed := io.StringIO())
        patch.setattr("scripts.account.deployment.Deployment", lambda *_: deployment)
        code = ultracluster("status", "trn1-16", "--output", "json")
    return code, json.loads(printed.getvalue())


def as_text(deployment: Deployment) -> str:
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("scripts.account.deployment.Deployment", lambda *_: deployment)
        patch.setattr("scripts.core.terminal.console", lambda *_: Console(markup=False, width=80, file=output))
        ultracluster("status", "trn1-16")
    return output.getvalue()


def test_the_screen(operated: Operated) -> None:
    operated.launch(2)
    operated.shell(shell(f"Use% Mounted on\n100% /home\n{RECORDED}"))
    text = as_text(operated.deployment())
    assert text.startswith("Stack ")
    of_tables = [line for line in text.splitlines() if not line.startswith(("- ", "Note: ")) and "https://" not in line]
    assert max(map(len, of_tables)) <= 80
    for expected in (
        "trn1-16-monitoring   CREATE_COMPLETE",
        f"Head node {operated.head_node}, c6i.4xlarge, running",
        "Session Manager reaches it",
        "Nodes     2 running (EC2)",
        "Fleet     RUNNING",
        "trn1     1       1   -        -        1       1     1    1      30",
        "- the disk of /home on the head node is 100 % full",
        "Queue cpu takes no jobs: it is inactive.",
        "drained while off",
        "off and not responding",
        "4,800 GiB, 1,200 MB/s",
        "$43.05 for compute nodes",
        "./ultracluster ssh trn1-16",
        "Unhealthy:",
    ):
        assert expected in text


def test_the_json_output(operated: Operated) -> None:
    operated.shell(shell(f"Use% Mounted on\n  7% /\n{IDLE}"))
    code, document = as_json(operated.deployment())
    assert (code, document["healthy"], document["unavailable"]) == (ExitCode.DONE, True, {})
    assert (document["head_node"]["session_manager"], document["disks"], document["login_nodes"]) == (
        True,
        {"/": 7},
        None,
    )
    operated.shell(shell(RECORDED))
    code, document = as_json(operated.deployment())
    assert (code, document["healthy"], document["disks"]) == (ExitCode.FAILED, False, None)
    of_cpu = document["slurm"]["queues"]["cpu"]
    assert of_cpu["nodes"] == {"drained": 1, "power saving": 4, "powering up": 2, "stuck off": 1}
    assert (of_cpu["out"], of_cpu["largest_waiting"]) == (2, 1)
    assert [each["name"] for each in document["slurm"]["jobs"]] == ["train", "two # end", "sweep"]


def test_the_use_of_the_file_system_is_that_of_the_newest_minute(operated: Operated) -> None:
    file_system_id = operated.deployment().outputs("trn1-16-storage")["FileSystemId"]
    now = datetime.now(UTC)
    values = {"FreeDataStorageCapacity": 2400 * 1024**3, "DataReadBytes": 18e9, "DataWriteBytes": 0}
    for minutes, factor in ((5, 2), (2, 1)):
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
    _, document = as_json(operated.deployment())
    assert document["usage"] == {"free_bytes": 2400 * 1024**3, "used_mbps": 300}


def test_spending_is_what_the_head_node_reported_last(operated: Operated) -> None:
    deployment, now = operated.deployment(), datetime.now(UTC)
    budget = BudgetSpec(monthly_usd=20_000)
    deployment.settings = deployment.settings.model_copy(update={"budget": budget})
    operated.shell(shell(IDLE))
    _, document = as_json(deployment)
    assert document["spending"] == {"limit_usd": 20_000, "nodes_usd": None}

    name = {"MetricName": metrics.USD_THIS_MONTH, "Dimensions": [{"Name": "Cluster", "Value": "trn1-16"}]}
    data = [{**name, "Timestamp": now - timedelta(minutes=each), "Value": 100 - each} for each in (2, 4, 30)]
    operated.client("cloudwatch").put_metric_data(Namespace=metrics.NAMESPACE, MetricData=data)
    _, document = as_json(deployment)
    assert document["spending"] == {"limit_usd": 20_000, "nodes_usd": 98}

    monitoring = deployment.settings.monitoring.model_copy(update={"node_metrics": False})
    deployment.settings = deployment.settings.model_copy(update={"monitoring": monitoring})
    _, document = as_json(deployment)
    assert document["unavailable"]["spending"] == "monitoring.node_metrics is false: nothing tells what nodes cost"


def test_other_clusters_need_a_permission_on_all_stacks(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Account.list

    def deny(account: Account, service: str, operation: str, **parameters: Any) -> list[Any]:
        if operation == "describe_stacks":
            raise refusal("AccessDenied", "DescribeStacks")
        return listed(account, service, operation, **parameters)

    operated.shell(shell(IDLE))
    monkeypatch.setattr(Account, "list", deny)
    code, document = as_json(operated.deployment())
    missing = "these credentials lack cloudformation:DescribeStacks on all stacks"
    assert (code, document["unavailable"]) == (ExitCode.DONE, {"other_clusters": missing})
    assert [each["status"] for each in document["stacks"]] == ["CREATE_COMPLETE"] * 4


def test_without_any_stack(operated: Operated) -> None:
    other = operated.settings.model_copy(update={"name": "other"})
    code, document = as_json(Deployment("trn1-16", other))
    assert code == ExitCode.FAILED
    assert document["problems"] == ["there is nothing of other in us-west-2: ./ultracluster deploy trn1-16"]
    assert "other-monitoring   none" in as_text(Deployment("trn1-16", other))


def test_slurm_does_not_answer(operated: Operated) -> None:
    operated.shell("cat >/dev/null; echo 'Unable to contact slurm controller' >&2; exit 1")
    code, document = as_json(operated.deployment())
    assert code == ExitCode.FAILED
    assert document["unavailable"] == {
        "slurm": "Slurm on the head node does not answer: Unable to contact slurm controller"
    }
    assert document["head_node"]["session_manager"]


def test_session_manager_does_not_reach_the_head_node(operated: Operated) -> None:
    code, document = as_json(operated.deployment())
    assert code == ExitCode.FAILED
    assert document["head_node"]["session_manager"] is False
    assert "does not answer (Undeliverable): it may be booting or stopped" in document["unavailable"]["slurm"]
    assert "./ultracluster status" not in document["unavailable"]["slurm"], "which this is"


def test_what_failed_is_diagnosed(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    stack = Deployment.stack

    def failed(deployment: Deployment, name: str) -> dict[str, Any] | None:
        described = stack(deployment, name)
        if described and name in ("trn1-16", "trn1-16-cluster"):
            return {**described, "StackStatus": "UPDATE_ROLLBACK_FAILED"}
        return described

    operated.shell(shell(IDLE))
    monkeypatch.setattr(Deployment, "stack", failed)
    code, document = as_json(operated.deployment())
    assert code == ExitCode.FAILED
    assert [each["name"] for each in document["stacks"]][2:4] == ["trn1-16-cluster", "trn1-16"]
    [problem, of_own] = document["problems"]
    assert problem.startswith("stack trn1-16-cluster is UPDATE_ROLLBACK_FAILED: ")
    assert of_own.startswith("ParallelCluster's stack trn1-16 is UPDATE_ROLLBACK_FAILED (./ultracluster diagnose")
    assert [each["stack"] for each in document["ways_out"]] == ["trn1-16-cluster"]
    assert document["diagnosis"] is not None


def test_a_missing_permission_hides_nothing_else(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    operated.shell(shell(IDLE))
    for missing, hidden in HIDDEN_WITHOUT.items():
        allowed = [each for each in HIDDEN_WITHOUT if each != missing]
        permissions = {"Effect": "Allow", "Action": allowed, "Resource": "*"}
        with operated.aws.restricted({"Version": "2012-10-17", "Statement": [permissions]}) as environment:
            operated.act_as(environment, monkeypatch)
            code, document = as_json(operated.deployment())
        assert code == ExitCode.FAILED
        reasons = {name: reason.removesuffix(" on all stacks") for name, reason in document["unavailable"].items()}
        assert reasons == dict.fromkeys(hidden, f"these credentials lack {missing}")
