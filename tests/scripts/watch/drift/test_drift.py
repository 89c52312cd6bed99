"""Drift of a deployment: what CloudFormation compares, and what it does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from config.settings import load
from scripts.account import compute_fleet
from scripts.account.deployment import Deployment
from scripts.check.plan.model import ClusterPlan, Effect, PlanError, ResourceChange, Source, StackPlan
from scripts.check.plan.report import Plan
from scripts.core.clock import Clock
from scripts.watch.drift.detection import detect
from scripts.watch.drift.model import Drift, DriftKind, DriftReport
from tests.command_line import ultracluster
from tests.configurations import CONFIG
from tests.scripts.operated import Operated
from tests.scripts.refusals import refusal
from tests.scripts.reports import as_markdown, shown
from tests.stacks.deployments import PARTS

STARTED = datetime(2026, 1, 1, tzinfo=UTC)
VERSION = [{"Key": "parallelcluster:version", "Value": "3.16.1"}]
CREATED = {"StackStatus": "CREATE_COMPLETE", "CreationTime": STARTED, "Tags": VERSION}
DEPLOYED = dict.fromkeys(("dev", *(f"dev-{part}" for part in PARTS)), CREATED)
SUBNET = {
    "LogicalResourceId": "Subnet",
    "ResourceType": "AWS::EC2::Subnet",
    "ResourceStatus": "CREATE_COMPLETE",
    "LastUpdatedTimestamp": STARTED,
}
CLUSTER = {**SUBNET, "LogicalResourceId": "Cluster", "ResourceType": "Custom::PclusterCluster"}


class FakeDeployment(Deployment):
    """A deployment of config/dev.yaml with these stacks, and what CloudFormation finds when it compares them."""

    def __init__(self, stacks: Mapping[str, Any], *pages: Any, failed: str = "") -> None:
        super().__init__("dev", load(CONFIG / "dev.yaml"))
        self._stacks = stacks
        self._pages = pages or ([self.subnet()],)
        answer = {"DetectionStatus": "DETECTION_FAILED" if failed else "DETECTION_COMPLETE"}
        cloudformation = SimpleNamespace(
            detect_stack_drift=lambda **_: {"StackDriftDetectionId": "1"},
            describe_stack_drift_detection_status=lambda **_: {**answer, "DetectionStatusReason": failed},
            describe_stack_resource_drifts=self._page,
            describe_stack_events=lambda **_: {"StackEvents": [{"Timestamp": STARTED + timedelta(minutes=1)}]},
        )
        self.account: Any = SimpleNamespace(client=lambda _: cloudformation, list=lambda *_, **__: [SUBNET, CLUSTER])

    def stack(self, name: str) -> dict[str, Any] | None:
        return self._stacks.get(name)

    def _page(self, StackName: str, MaxResults: int, NextToken: str = "0") -> dict[str, Any]:
        number = int(NextToken)
        following = {"NextToken": str(number + 1)} if number + 1 < len(self._pages) else {}
        drifts = self._pages[number] if StackName == "dev-network" else [self.subnet()]
        return {"StackResourceDrifts": drifts, **following}

    @staticmethod
    def subnet(status: str = "IN_SYNC", **facts: Any) -> dict[str, Any]:
        return {**SUBNET, "PhysicalResourceId": "subnet-1", "StackResourceDriftStatus": status, **facts}


def a_plan(name: str, *stacks: StackPlan) -> Plan:
    cluster = ClusterPlan(name, exists=True, source="")
    return Plan(deployment=name, region="us-west-2", against="", stacks=stacks, cluster=cluster, findings=())


def planned(*stacks: StackPlan) -> Callable[[], Plan]:
    return lambda: a_plan("dev", *stacks)


@pytest.fixture(autouse=True)
def running_fleet(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "operated" not in request.fixturenames:
        monkeypatch.setattr(compute_fleet, "status", lambda _: "RUNNING")


def detected(deployment: Deployment, plan: Callable[[], Plan] | None = None) -> DriftReport:
    return detect(deployment, plan or planned(), Clock())


def only(report: DriftReport) -> tuple[DriftKind, str, str]:
    assert not report.ok
    [drift] = report.drifts
    return drift.kind, drift.subject, drift.sentence


def test_as_deployed() -> None:
    report = detected(FakeDeployment(DEPLOYED))
    assert (report.drifts, report.not_compared, report.ok, report.checked) == ((), (), True, len(PARTS))
    assert report.unchecked == tuple(f"dev-{part}/Cluster (Custom::PclusterCluster)" for part in PARTS)


def test_what_cloudformation_finds_on_any_page() -> None:
    difference = {"PropertyPath": "/Tags", "ExpectedValue": "x" * 200, "ActualValue": "null"}
    deleted = FakeDeployment.subnet("DELETED", LogicalResourceId="Gone")
    modified = FakeDeployment.subnet("MODIFIED", PropertyDifferences=[difference])
    report = detected(FakeDeployment(DEPLOYED, [deleted], [modified]))
    assert [(each.kind, each.subject, each.sentence) for each in report.drifts] == [
        (DriftKind.DELETED, "dev-network/Gone", "AWS::EC2::Subnet subnet-1 no longer exists"),
        (DriftKind.MODIFIED, "dev-network/Subnet", f"/Tags is null; in the template: {'x' * 120} ..."),
    ]


def test_a_comparison_that_fails_in_part_is_not_ok() -> None:
    report = detected(FakeDeployment(DEPLOYED, failed="throttled"))
    assert report.not_compared[0] == "drift of dev-network: not all resources could be compared: throttled"
    assert (report.ok, report.checked) == (False, len(PARTS))


def test_a_fleet_that_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_fleet, "status", lambda _: "STOPPED")
    report = detected(FakeDeployment(DEPLOYED))
    assert only(report) == (DriftKind.FLEET, "dev", "the fleet is STOPPED; allowed: RUNNING")


def test_a_fleet_of_unknown_status_is_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """And without a cluster there is none."""
    monkeypatch.setattr(compute_fleet, "status", lambda _: compute_fleet.UNKNOWN)
    report = detected(FakeDeployment(DEPLOYED))
    [reason] = report.not_compared
    assert reason.startswith("the fleet: the table parallelcluster-dev has no status of it")
    assert report.drifts == ()
    report = detected(FakeDeployment({name: stack for name, stack in DEPLOYED.items() if name == "dev-network"}))
    assert (report.drifts, report.not_compared) == ((), ())


def test_a_change_set_that_nobody_executed_has_deployed_nothing() -> None:
    waiting = {**CREATED, "StackStatus": "REVIEW_IN_PROGRESS"}
    report = detected(FakeDeployment({"dev-network": waiting}))
    assert (report.deployed, report.not_compared, report.busy) == (False, (), ())
    report = detected(FakeDeployment({"dev-network": CREATED, "dev-storage": waiting}))
    assert (report.deployed, report.not_compared, report.busy) == (True, (), ())


def test_settings_that_differ_but_in_metadata_alone() -> None:
    changes = tuple(
        ResourceChange(name, "AWS::EC2::VPC", Effect.CHANGED, causes=(cause,))
        for name, cause in (("Silent", "Metadata"), ("Told", "Tags"))
    )
    network = StackPlan("dev-network", Source.STORED_TEMPLATE, changes=changes, other=("termination protection on",))
    report = detected(FakeDeployment(DEPLOYED), planned(network, StackPlan("dev-storage", Source.NEW)))
    assert [(each.subject, each.sentence) for each in report.drifts] == [
        ("dev-network/Told", f"AWS::EC2::VPC would be {Effect.CHANGED}"),
        ("dev-network", "would be changed: termination protection on"),
        ("dev-storage", "the stack does not exist"),
    ]
    assert {each.kind for each in report.drifts} == {DriftKind.SETTINGS}


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({"LastUpdatedTime": STARTED + timedelta(hours=1)}, "updated outside of its stack at 2026-01-01 01:00 UTC"),
        ({"Tags": [{**VERSION[0], "Value": "3.1.0"}]}, "of ParallelCluster 3.1.0; in the settings: 3.16.1"),
        (None, "the cluster's own stack does not exist"),
    ],
    ids=["updated", "upgraded", "missing"],
)
def test_a_cluster_that_was_changed_outside_of_its_stack(own: dict[str, Any] | None, sentence: str) -> None:
    kind, subject, text = only(detected(FakeDeployment({**DEPLOYED, "dev": own and {**CREATED, **own}})))
    assert (kind, subject, text.endswith(sentence)) == (DriftKind.CLUSTER, "dev", True)


def test_a_stack_in_a_state_that_cannot_be_compared() -> None:
    stacks = {**DEPLOYED, "dev-storage": {**CREATED, "StackStatus": "UPDATE_FAILED"}}
    [reason] = detected(FakeDeployment(stacks)).not_compared
    assert reason.startswith("drift of dev-storage: the stack is UPDATE_FAILED; allowed: CREATE_COMPLETE")


def test_while_an_operation_is_in_progress_nothing_is_compared() -> None:
    stacks = {**DEPLOYED, "dev-cluster": {**CREATED, "StackStatus": "UPDATE_IN_PROGRESS"}}
    report = detected(FakeDeployment(stacks))
    assert (report.ok, report.checked) == (True, 0)
    assert "**Skipped: an operation is in progress (dev-cluster: UPDATE\\_IN\\_PROGRESS).**" in as_markdown(
        report.page()
    )


def test_nothing_is_deployed() -> None:
    report = detected(FakeDeployment({}))
    assert (report.deployed, report.ok) == (False, True)
    assert "**Nothing is deployed.**" in as_markdown(report.page())


def test_a_plan_that_cannot_be_made_hides_nothing_else() -> None:
    def fail() -> Plan:
        raise PlanError("no template")

    report = detected(FakeDeployment(DEPLOYED), fail)
    assert (report.not_compared, report.checked) == (("what a deployment would change: no template",), len(PARTS))


def test_credentials_that_expire_meanwhile_end_it() -> None:
    def expired() -> Plan:
        raise refusal("ExpiredToken", "AssumeRole", "expired")

    with pytest.raises(ClientError, match="ExpiredToken"):
        detected(FakeDeployment(DEPLOYED), expired)


def test_what_is_shown_fits_80_columns_and_stands_as_it_is() -> None:
    modified = Drift(
        kind=DriftKind.MODIFIED,
        subject="a-network/" + "N" * 90,
        sentence='/Tags is {"a|b": "*"}; in the template: null',
    )
    report = DriftReport(
        deployment="a",
        region="us-west-2",
        deployed=True,
        drifts=(modified,),
        checked=3,
        unchecked=("a-cluster/Cluster (Custom::PclusterCluster)",),
        not_compared=("the fleet: denied",),
    )
    text = shown(report.blocks())
    assert max(map(len, text.splitlines())) <= 80
    assert "Not compared: the fleet: denied" in text
    assert text.rstrip().endswith("3 resources compared; CloudFormation does not compare 1.")
    markdown = as_markdown(report.page())
    assert r'{"a\|b": "\*"}' in markdown
    assert "<details><summary>Not compared by CloudFormation: 1</summary>" in markdown


# In an emulated account


@pytest.mark.slow
def test_the_command(operated: Operated, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    same = a_plan("trn1-16")
    monkeypatch.setattr("scripts.check.plan.plan.make_plan", lambda _: same)

    def run(*arguments: str) -> tuple[int, str]:
        return ultracluster("drift", "trn1-16", *arguments), capsys.readouterr().out

    code, out = run()
    assert (code, "No drift." in out) == (0, True)
    operated.set_fleet("PROTECTED")
    code, out = run("--output", "json")
    assert (code, [each["kind"] for each in json.loads(out)["drifts"]]) == (1, ["fleet"])
    code, out = run("--output", "markdown")
    assert code == 1
    assert "- the fleet is PROTECTED; allowed: RUNNING" in out.splitlines()


@pytest.mark.slow
def test_changes_in_the_console(operated: Operated) -> None:
    network = operated.deployment().physical_ids("trn1-16-network")
    subnet = next(value for key, value in network.items() if key.startswith("NetworkVpcPublicSubnet"))
    [(name, log_group)] = [item for item in network.items() if item[0].startswith("NetworkFlowLogGroup")]
    group = operated.deployment().physical_ids("trn1-16-storage")["LustreSecurityGroupA46A9855"]
    world = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    ec2, logs = operated.client("ec2"), operated.client("logs")
    tags = [{"Key": "team", "Value": "mine"}]
    ec2.create_tags(Resources=[subnet], Tags=tags)
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[world])
    logs.delete_log_group(logGroupName=log_group)
    try:
        drifts = detected(operated.deployment()).drifts
    finally:
        ec2.delete_tags(Resources=[subnet], Tags=tags)
        ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[world])
        logs.create_log_group(logGroupName=log_group)
        logs.put_retention_policy(logGroupName=log_group, retentionInDays=90)
    gone = f"AWS::Logs::LogGroup {log_group} no longer exists"
    assert Drift(kind=DriftKind.DELETED, subject=f"trn1-16-network/{name}", sentence=gone) in drifts
    modified = [each for each in drifts if each.kind is DriftKind.MODIFIED]
    assert {each.subject.split("/")[1][:20] for each in modified} == {"NetworkVpcPublicSubn", "LustreSecurityGroupA"}
    assert any('"FromPort": 22' in each.sentence for each in modified)
    assert any('"mine"' in each.sentence for each in modified)
