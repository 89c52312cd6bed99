"""Drift of a deployment in an emulated account: what CloudFormation sees, and what it does not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from rich.console import Console

from config.settings import load
from scripts.clock import Clock
from scripts.command import CONFIG
from scripts.commands import drift as program
from scripts.deployment import Deployment
from scripts.drift.drift import Drift, Kind, Report, look
from scripts.drift.drift_report import as_markdown, document, show
from scripts.plan.command import PlanError, make_plan
from scripts.plan.model import ClusterPlan, Effect, Plan, ResourceChange, Source, StackPlan
from tests.scripts.account import Operated
from tests.stacks import deployments

pytestmark = pytest.mark.validation

SCHEMA = json.loads((CONFIG.parent / "docs/schemas/drift.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What config/trn1-16.yaml is synthesized to."""
    return deployments.deploy(load(CONFIG / "trn1-16.yaml"), tmp_path_factory.mktemp("assembly")).directory


@pytest.fixture(scope="module")
def plan_as_deployed(operated_account: Operated, assembly: Path) -> Plan:
    """The change plan while all is as deployed; the longest of what is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        operated_account.act_as(operated_account.environment, patch)
        return make_plan("trn1-16", assembly)


@pytest.fixture
def network(operated: Operated) -> dict[str, str]:
    """Physical ids of the network's resources by the beginnings of their logical ids."""
    return operated.deployment().physical_ids("trn1-16-network")


def of_template(report: Report) -> list[Drift]:
    return [each for each in report.drifts if each.kind in (Kind.DELETED, Kind.MODIFIED)]


def nothing_to_plan() -> Plan:
    raise PlanError("left out")


def test_as_deployed(operated: Operated, plan_as_deployed: Plan) -> None:
    report = look(operated.deployment(), lambda: plan_as_deployed, Clock())
    assert (report.drifts, report.unseen, report.ok) == ([], [], True)
    assert report.checked > 5
    unchecked = [each for each in report.unchecked if each.endswith("(Custom::PclusterCluster)")]
    assert [each.split("/")[0] for each in unchecked] == ["trn1-16-cluster"]


@pytest.fixture
def changed_by_hand(operated: Operated, network: dict[str, str]) -> Iterator[None]:
    """Changes in the console, which are undone afterwards."""
    ec2, logs = operated.client("ec2"), operated.client("logs")
    subnet = next(value for key, value in network.items() if key.startswith("NetworkVpcPublicSubnet"))
    group = operated.deployment().physical_ids("trn1-16-storage")["LustreSecurityGroupA46A9855"]
    world = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}
    flow_logs = next(value for key, value in network.items() if key.startswith("NetworkFlowLogGroup"))
    [name] = [
        each["Value"]
        for each in ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["Tags"]
        if each["Key"] == "Name"
    ]
    ec2.create_tags(Resources=[subnet], Tags=[{"Key": "Name", "Value": "mine"}])
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[world])
    logs.put_retention_policy(logGroupName=flow_logs, retentionInDays=1)
    yield
    ec2.create_tags(Resources=[subnet], Tags=[{"Key": "Name", "Value": name}])
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[world])
    logs.put_retention_policy(logGroupName=flow_logs, retentionInDays=90)


@pytest.mark.usefixtures("changed_by_hand")
def test_changed_tags_rules_and_values(operated: Operated) -> None:
    found = of_template(look(operated.deployment(), nothing_to_plan, Clock()))
    assert {each.kind for each in found} == {Kind.MODIFIED}
    by_resource = {each.subject.split("/")[1][:20] for each in found}
    assert by_resource == {"NetworkVpcPublicSubn", "NetworkFlowLogGroup4", "LustreSecurityGroupA"}
    sentences = [each.sentence for each in found]
    assert "/RetentionInDays is 1, by the template 90" in sentences
    assert any('"FromPort": 22' in each and each.endswith("by the template null") for each in sentences)
    assert sum('"mine"' in each for each in sentences) == 1


def test_a_deleted_resource(operated: Operated, network: dict[str, str]) -> None:
    logs = operated.client("logs")
    [(name, group)] = [item for item in network.items() if item[0].startswith("NetworkFlowLogGroup")]
    logs.delete_log_group(logGroupName=group)
    try:
        found = of_template(look(operated.deployment(), nothing_to_plan, Clock()))
    finally:
        logs.create_log_group(logGroupName=group)
        logs.put_retention_policy(logGroupName=group, retentionInDays=90)
    assert found == [Drift(Kind.DELETED, f"trn1-16-network/{name}", f"AWS::Logs::LogGroup {group} is gone")]


def test_a_fleet_that_was_stopped(operated: Operated) -> None:
    operated.set_fleet("STOPPED")
    report = look(operated.deployment(), nothing_to_plan, Clock())
    assert report.drifts == [Drift(Kind.FLEET, "trn1-16", "the fleet is STOPPED; allowed: RUNNING")]
    assert report.unseen == ["what a deployment would change: left out"]
    assert not report.ok


def test_settings_that_say_something_else_and_protection(operated: Operated, assembly: Path) -> None:
    cloudformation = operated.client("cloudformation")
    before = cloudformation.describe_stacks(StackName="trn1-16-network")["Stacks"][0]["EnableTerminationProtection"]
    cloudformation.update_termination_protection(StackName="trn1-16-network", EnableTerminationProtection=not before)
    try:
        report = look(operated.deployment(), lambda: make_plan("trn1-16", assembly), Clock())
    finally:
        cloudformation.update_termination_protection(StackName="trn1-16-network", EnableTerminationProtection=before)
    wanted = f"would be changed: termination protection {'on' if before else 'off'}"
    assert report.drifts == [Drift(Kind.SETTINGS, "trn1-16-network", wanted)]


def test_metadata_alone_is_no_drift(operated: Operated) -> None:
    changes = tuple(
        ResourceChange(name, "AWS::EC2::VPC", Effect.CHANGED, causes=(cause,))
        for name, cause in (("Silent", "Metadata"), ("Told", "Tags"))
    )
    stack = StackPlan("trn1-16-network", Source.STORED_TEMPLATE, changes=changes)
    cluster = ClusterPlan("trn1-16", exists=True, source="")
    plan = Plan(environment="trn1-16", region="us-west-2", against="", stacks=(stack,), cluster=cluster, findings=())
    found = [each for each in look(operated.deployment(), lambda: plan, Clock()).drifts if each.kind is Kind.SETTINGS]
    assert [each.subject for each in found] == ["trn1-16-network/Told"]


class Described(Deployment):
    """A deployment whose cluster's own stack is told otherwise."""

    def __init__(self, operated: Operated, **told: Any) -> None:
        super().__init__("trn1-16", operated.settings)
        self._told = told

    def stack(self, name: str) -> dict[str, Any] | None:
        found = super().stack(name)
        return found and {**found, **self._told} if name == "trn1-16" else found


def test_a_cluster_that_was_updated_or_upgraded_by_itself(operated: Operated) -> None:
    later = datetime.now(UTC) + timedelta(minutes=1)
    report = look(Described(operated, LastUpdatedTime=later), nothing_to_plan, Clock())
    assert report.drifts == [
        Drift(Kind.CLUSTER, "trn1-16", f"the cluster was updated by itself at {later:%Y-%m-%d %H:%M} UTC")
    ]
    tags = [{"Key": "parallelcluster:version", "Value": "3.1.0"}]
    [found] = look(Described(operated, Tags=tags), nothing_to_plan, Clock()).drifts
    version = operated.settings.cluster.parallelcluster_version
    assert found.sentence == f"the cluster is of ParallelCluster 3.1.0, by the settings {version}"


def test_a_stack_in_a_state_that_cannot_be_compared(operated: Operated) -> None:
    class Failed(Deployment):
        def stack(self, name: str) -> dict[str, Any] | None:
            found = super().stack(name)
            return found and {**found, "StackStatus": "UPDATE_FAILED"} if name.endswith("storage") else found

    report = look(Failed("trn1-16", operated.settings), nothing_to_plan, Clock())
    assert report.unseen[0].startswith("drift of trn1-16-storage: the stack is UPDATE_FAILED; allowed: CREATE_COMPLETE")


def test_beside_a_deployment_nothing_is_compared(operated: Operated) -> None:
    class Busy(Deployment):
        def stack(self, name: str) -> dict[str, Any] | None:
            found = super().stack(name)
            return found and {**found, "StackStatus": "UPDATE_IN_PROGRESS"} if name.endswith("cluster") else found

    operated.set_fleet("STOPPED")
    report = look(Busy("trn1-16", operated.settings), nothing_to_plan, Clock())
    assert (report.ok, report.drifts, report.unseen, report.checked) == (True, [], [], 0)
    assert "**Skipped: it is being deployed (trn1-16-cluster: UPDATE_IN_PROGRESS).**" in as_markdown(report)
    Draft202012Validator(SCHEMA).validate(document(report))


def test_rights_that_are_missing_hide_only_what_needs_them(operated: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    actions = ["cloudformation:Describe*", "cloudformation:List*", "sts:*"]
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}]}
    with operated.aws.restricted(policy) as environment:
        operated.act_as(environment, monkeypatch)
        report = look(operated.deployment(), nothing_to_plan, Clock())
    assert [each.split(":")[0] for each in report.unseen] == [
        *(f"drift of trn1-16-{part}" for part in ("network", "storage", "cluster", "monitoring")),
        "the fleet",
        "what a deployment would change",
    ]
    assert report.unseen[0].endswith("these credentials lack cloudformation:DetectStackDrift")


def test_credentials_that_end_meanwhile(operated: Operated) -> None:
    def expired() -> Plan:
        raise ClientError({"Error": {"Code": "ExpiredToken", "Message": "expired"}}, "AssumeRole")

    with pytest.raises(ClientError, match="ExpiredToken"):
        look(operated.deployment(), expired, Clock())


def test_what_the_emulated_cloudformation_refuses(operated: Operated) -> None:
    cloudformation = operated.client("cloudformation")
    with pytest.raises(ClientError, match="was not found"):
        cloudformation.describe_stack_drift_detection_status(StackDriftDetectionId="nowhere")
    with pytest.raises(ClientError, match="does not exist"):
        cloudformation.detect_stack_drift(StackName="nowhere")
    deleted = {"StackName": "trn1-16-network", "StackResourceDriftStatusFilters": ["DELETED"]}
    cloudformation.detect_stack_drift(StackName="trn1-16-network")
    assert cloudformation.describe_stack_resource_drifts(**deleted)["StackResourceDrifts"] == []


def test_nothing_is_deployed(operated: Operated) -> None:
    other = Deployment("dev", load(CONFIG / "dev.yaml"))
    del operated
    report = look(other, nothing_to_plan, Clock())
    assert (report.deployed, report.ok) == (False, True)
    assert "**Nothing is deployed.**" in as_markdown(report)
    Draft202012Validator(SCHEMA).validate(document(report))


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(
    operated: Operated, plan_as_deployed: Plan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """Return a function that runs the program, and returns exit code, output and errors."""
    del operated
    monkeypatch.setattr(program, "_plan", {"trn1-16": plan_as_deployed}.__getitem__)

    def called(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["drift", "trn1-16", *arguments])
        code = program.main()
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return called


def test_the_program(run: Run, operated: Operated) -> None:
    code, out, _ = run()
    assert code == 0
    assert "No drift." in out
    operated.set_fleet("PROTECTED")
    code, out, _ = run("--json")
    found = json.loads(out)
    Draft202012Validator(SCHEMA).validate(found)
    assert (code, found["ok"]) == (1, False)
    assert [each["kind"] for each in found["drifts"]] == ["fleet"]
    code, out, _ = run("--markdown")
    assert code == 1
    assert out.splitlines()[2].startswith("**Drift: 1 fleet.** ")
    assert "| trn1-16 | fleet | the fleet is PROTECTED; allowed: RUNNING |" in out.splitlines()


def test_what_is_shown_fits_80_columns_and_stands_as_it_is() -> None:
    drifts = [Drift(Kind.MODIFIED, "a-network/" + "N" * 90, '/Tags is {"a|b": "*"}, by the template null')]
    report = Report(
        "a", "us-west-2", drifts, 3, ["a-cluster/Cluster (Custom::PclusterCluster)"], ["the fleet: refused"]
    )
    console = Console(width=80, record=True)
    show(report, console)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "Not seen: the fleet: refused" in text
    assert text.rstrip().endswith("3 resources compared, 1 cannot be.")
    markdown = as_markdown(report)
    assert r'{"a\|b": "\*"}' in markdown
    assert "<details><summary>Not compared by CloudFormation: 1</summary>" in markdown
