"""Plans of a deployed cluster: what they contain, from which source, and that they leave nothing behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from scripts.check.plan import change_sets
from scripts.check.plan import cluster as plan_of_cluster
from scripts.check.plan.model import ClusterPlan, Effect, Kind, PlanError, Source
from scripts.check.plan.report import Plan
from scripts.core.findings import CheckStatus
from tests.parallelcluster_versions import FACTS, OTHER, another_version
from tests.scripts.check.plan.account import PARTS, DeployedCluster, faster_file_system, unchanged
from ultracluster.domain.parallelcluster_versions import PINNED, needs_of_move

pytestmark = [pytest.mark.validation, pytest.mark.slow]

STACKS = tuple(f"trn1-16-{part}" for part in PARTS)
NETWORK, STORAGE, CLUSTER, MONITORING = STACKS


def fewer_nodes(settings: dict[str, Any]) -> None:
    settings["cluster"]["queues"][0]["compute_resources"][0]["max_count"] = 8


def drop_protection(settings: dict[str, Any]) -> None:
    settings["storage"]["retain"] = False
    settings["termination_protection"] = []


def everything(settings: dict[str, Any]) -> None:
    """Change something of every kind: in place, replaced, added, and a stack's protection."""
    [queue] = settings["cluster"]["queues"]
    queue["placement_group"] = "other"
    settings["cluster"]["queues"].append({**queue, "name": "second"})
    faster_file_system(settings)
    settings["network"]["flow_log_retention_days"] = 30
    settings["termination_protection"] = ["storage"]


def effects(plan: Plan) -> dict[str, Mapping[str, str]]:
    """Return effects by stack and type, of one of several resources of a type."""
    return {stack.name: {each.type: each.effect for each in stack.changes} for stack in plan.stacks if stack.changes}


def answers(plan: Plan) -> dict[str, str]:
    """Return ParallelCluster's answers by the last part of the key."""
    return {change.path.rpartition(".")[2]: change.kind for change in plan.cluster.changes}


def of_status(plan: Plan, status: CheckStatus) -> list[str]:
    return [f"{each.subject}: {each.sentence}" for each in plan.findings if each.status is status]


@pytest.mark.usefixtures("without_change_sets")
def test_an_account_that_is_not_bootstrapped_blocks_a_deployment(cluster: DeployedCluster) -> None:
    ssm = cluster.client("ssm")
    version = ssm.get_parameter(Name="/cdk-bootstrap/hnb659fds/version")["Parameter"]
    ssm.delete_parameter(Name=version["Name"])
    try:
        plan = cluster.plan("unchanged", unchanged)
    finally:
        ssm.put_parameter(Name=version["Name"], Value=version["Value"], Type=version["Type"])
    [finding] = [each for each in plan.findings if each.status is CheckStatus.FAIL]
    assert finding.sentence == "us-west-2 is not bootstrapped: no /cdk-bootstrap/hnb659fds/version"
    assert finding.hint == "`./ultracluster bootstrap trn1-16`"


@pytest.mark.usefixtures("without_change_sets")
def test_a_faster_file_system_is_a_new_one_which_can_be_accepted(cluster: DeployedCluster) -> None:
    plan = cluster.plan("faster_file_system", faster_file_system)
    assert effects(plan)[STORAGE] == {"AWS::FSx::FileSystem": Effect.REPLACED}
    [finding] = of_status(plan, CheckStatus.FAIL)
    [system] = cluster.client("fsx").describe_file_systems()["FileSystems"]
    assert f"AWS::FSx::FileSystem {system['FileSystemId']}) is replaced" in finding
    assert "LustreConfiguration.PerUnitStorageThroughput from 250 to 500" in finding
    # The cluster takes the new one under a new name, while it runs.
    assert answers(plan) == {"SharedStorage": Kind.LIVE}
    assert "(known after deployment of trn1-16-storage)" in json.dumps([each.after for each in plan.cluster.changes])
    accepted = cluster.plan("faster_file_system", faster_file_system, accepted=True)
    assert accepted.ok
    assert any("is replaced" in sentence for sentence in of_status(accepted, CheckStatus.WARN))


@pytest.mark.usefixtures("without_change_sets")
def test_lost_protection_and_retention_are_warnings(cluster: DeployedCluster) -> None:
    plan = cluster.plan("drop_protection", drop_protection)
    warnings = of_status(plan, CheckStatus.WARN)
    assert plan.ok
    assert f"{NETWORK}: the stack is no longer protected against deletion" in warnings
    assert any("AWS::FSx::FileSystem" in each and "is no longer retained" in each for each in warnings)
    assert {stack.name: stack.other for stack in plan.stacks}[NETWORK] == ("termination protection off",)


def of_version(version: str) -> Callable[[dict[str, Any]], None]:
    return lambda settings: settings["cluster"].update(parallelcluster_version=version)


@pytest.mark.usefixtures("without_change_sets")
def test_another_name_or_version_does_not_reach_parallelcluster(cluster: DeployedCluster) -> None:
    """Of another version the plan says what the move needs: each fact in which the two differ."""
    renamed = cluster.plan("renamed", lambda settings: settings["cluster"].update(name="other"))
    assert (answers(renamed), renamed.ok) == ({"ClusterName": Kind.REFUSED}, False)
    with another_version() as other:
        plan = cluster.plan("newer", of_version(other.version))
        [change] = plan.cluster.changes
        assert change.needs == tuple(needs_of_move(PINNED, other.version))
        assert len(change.needs) > len(FACTS)
    assert (change.path, change.before, change.after) == ("cluster.parallelcluster_version", PINNED, other.version)
    assert {f"cluster trn1-16: {need}" for need in change.needs} <= {*of_status(plan, CheckStatus.WARN)}
    [finding] = [each for each in plan.findings if each.status is CheckStatus.FAIL]
    assert "each ParallelCluster version has its own" in finding.sentence
    assert f"cluster.parallelcluster_version: {PINNED} in config/trn1-16.yaml keeps the cluster" in finding.hint
    assert "./ultracluster upgrade" in finding.hint


@pytest.mark.usefixtures("without_change_sets")
def test_when_the_default_has_moved_a_cluster_of_the_version_before_changes_as_ever(
    cluster: DeployedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that names its version keeps it. The plan says which ParallelCluster was asked."""
    monkeypatch.setattr(plan_of_cluster, "PINNED", OTHER)
    kept = cluster.plan("kept", fewer_nodes)
    assert answers(kept) == {"MaxCount": Kind.FLEET_STOPPED}
    asked = f"{OTHER} was asked, as {PINNED} is not in this environment"
    assert kept.cluster.source == f"what ParallelCluster keeps; {asked}"


def test_a_stack_that_failed_is_left_alone(cluster: DeployedCluster) -> None:
    # For a change set the CDK would delete it first.
    cloudformation = cluster.client("cloudformation")
    template = {
        "Resources": {"A": {"Type": "AWS::EC2::Subnet", "Properties": {"VpcId": "vpc-0", "CidrBlock": "10.0.0.0/24"}}}
    }
    cloudformation.create_stack(StackName="failed-network", TemplateBody=json.dumps(template))
    with pytest.raises(Exception, match="Waiter StackCreateComplete failed"):
        cloudformation.get_waiter("stack_create_complete").wait(StackName="failed-network", WaiterConfig={"Delay": 1})
    before = cluster.traces()
    plan = cluster.plan("failed", lambda settings: settings.update(name="failed"))
    assert cluster.traces() == before
    assert before["failed-network"][0] == "ROLLBACK_COMPLETE"
    assert {stack.source for stack in plan.stacks} == {Source.NEW}
    assert {each.effect for stack in plan.stacks for each in stack.changes} == {Effect.ADDED}
    assert plan.cluster == ClusterPlan("failed", exists=False, source="it does not exist yet")
    assert of_status(plan, CheckStatus.WARN) == [
        "failed-network: the stack is ROLLBACK_COMPLETE: it is deleted and created again"
    ]
    cloudformation.update_termination_protection(StackName="failed-network", EnableTerminationProtection=True)
    assert not cluster.plan("failed", lambda settings: settings.update(name="failed")).ok
    cloudformation.update_termination_protection(StackName="failed-network", EnableTerminationProtection=False)
    cloudformation.delete_stack(StackName="failed-network")


def test_other_credentials_than_those_of_the_settings(cluster: DeployedCluster) -> None:
    with pytest.raises(PlanError, match="are for account 123456789012; allowed: 999999999999"):
        cluster.plan("other_account", lambda settings: settings.update(account="999999999999"))


def test_change_sets_agree_with_the_templates_and_are_deleted(
    cluster: DeployedCluster, request: pytest.FixtureRequest
) -> None:
    before = cluster.traces()
    by_change_set = cluster.plan("everything", everything)
    assert cluster.traces() == before
    assert {stack.source for stack in by_change_set.stacks} == {Source.CHANGE_SET}
    request.getfixturevalue("without_change_sets")
    by_template = cluster.plan("everything", everything)
    assert {stack.source for stack in by_template.stacks} == {Source.STORED_TEMPLATE}
    assert {each.effect for stack in by_template.stacks for each in stack.changes} >= {
        Effect.ADDED,
        Effect.CHANGED,
        Effect.REPLACED,
        Effect.REMOVED,
    }
    assert [stack.changes for stack in by_change_set.stacks] == [stack.changes for stack in by_template.stacks]
    assert [stack.other for stack in by_change_set.stacks] == [stack.other for stack in by_template.stacks]
    assert by_change_set.cluster == by_template.cluster


def policy(*denied: str) -> dict[str, Any]:
    statements = [
        {"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": list(denied), "Resource": "*"},
    ]
    return {"Version": "2012-10-17", "Statement": statements}


def test_without_permission_to_create_change_sets_the_stored_templates_are_compared(
    cluster: DeployedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cluster.traces()
    with cluster.aws.restricted(policy("cloudformation:CreateChangeSet", "sts:AssumeRole")) as environment:
        cluster.act_as(environment, monkeypatch)
        plan = cluster.plan("faster_file_system", faster_file_system)
    assert cluster.traces() == before
    sources = {stack.name: (stack.source, stack.reason) for stack in plan.stacks}
    assert sources[NETWORK] == (Source.SAME, "")
    assert sources[STORAGE][0] is sources[CLUSTER][0] is Source.STORED_TEMPLATE
    assert "cloudformation:CreateChangeSet" in sources[STORAGE][1]
    assert effects(plan)[STORAGE] == {"AWS::FSx::FileSystem": Effect.REPLACED}
    assert plan.cluster.fleet_status == "RUNNING"


@pytest.mark.usefixtures("without_change_sets")
def test_without_permission_to_read_the_cluster_its_template_is_compared(
    cluster: DeployedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with cluster.aws.restricted(policy("s3:GetObject*", "dynamodb:GetItem", "sts:AssumeRole")) as environment:
        cluster.act_as(environment, monkeypatch)
        plan = cluster.plan("fewer_nodes", fewer_nodes)
    assert plan.cluster.source.startswith("the template of trn1-16-cluster, because the cluster could not be read")
    assert answers(plan) == {"MaxCount": Kind.FLEET_STOPPED}
    # Whether the fleet runs is not known: that does not block, but somebody should look.
    assert plan.ok
    [warning] = plan.findings
    assert "its status could not be read" in warning.sentence
    assert warning.command == "./ultracluster fleet status trn1-16"


def test_an_interrupted_plan_leaves_no_change_set(cluster: DeployedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cluster.traces()

    def interrupt(*_: object) -> None:
        assert cluster.traces() != before
        raise KeyboardInterrupt

    monkeypatch.setattr(change_sets, "_description", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cluster.plan("everything", everything)
    assert cluster.traces() == before
