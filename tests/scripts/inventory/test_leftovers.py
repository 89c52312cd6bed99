"""What is left of a deployment, beside what is left of others with similar names."""

import json
import os
from collections.abc import Callable
from decimal import Decimal

import pytest
from botocore.exceptions import ClientError

from config.settings import load
from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from scripts.clock import Clock
from scripts.command import CONFIG, Say
from scripts.deployment import Deployment
from scripts.destroy import destroy as destruction
from scripts.inventory import leftovers
from scripts.inventory.leftovers_by_name import parallelcluster_bucket
from scripts.inventory.leftovers_model import PREFIX, Found
from scripts.inventory.leftovers_removal import remove
from tests.emulator.account import trust
from tests.scripts.destroy.destroying import FastClock, unanswered
from tests.scripts.destroy.remains import REGION, VERSIONS, Remains

OURS, OTHERS = "trn1-16", ("trn1-16-2", "trn1-160", "trn1")
OTHER_REGION, OTHER_ZONE = "us-east-1", "use1-az4"


@pytest.fixture
def deployment(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    return Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))


@pytest.fixture
def remains(rehearsed_aws: EmulatedAws, deployment: Deployment) -> Remains:
    return Remains(rehearsed_aws, parallelcluster_bucket(deployment))


@pytest.fixture
def leave(remains: Remains) -> Callable[[str], set[str]]:
    return remains.of


def untold(_: str) -> None:
    """Take no notice of progress."""


def test_finds_what_is_ours_and_nothing_of_others(deployment: Deployment, leave: Callable[[str], set[str]]) -> None:
    for other in OTHERS:
        leave(other)
    assert leftovers.find(deployment) == []
    ours = leave(OURS)
    assert {each.id for each in leftovers.find(deployment)} == ours


def test_what_has_our_name_in_another_region_is_not_ours(
    rehearsed_aws: EmulatedAws, deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    Remains(rehearsed_aws, "elsewhere", OTHER_REGION, OTHER_ZONE).of(OURS)
    assert leftovers.find(deployment) == []
    ours = leave(OURS)
    assert {each.id for each in leftovers.find(deployment)} == ours


def test_a_zone_that_another_region_has_a_part_in_is_not_ours(
    rehearsed_aws: EmulatedAws, deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave(OURS)
    [zone] = [each.id for each in leftovers.find(deployment) if each.type == "AWS::Route53::HostedZone"]
    other = rehearsed_aws.client("ec2", OTHER_REGION).create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    rehearsed_aws.client("route53", REGION).associate_vpc_with_hosted_zone(
        HostedZoneId=zone, VPC={"VPCRegion": OTHER_REGION, "VPCId": other}
    )
    assert zone not in {each.id for each in leftovers.find(deployment)}


def test_roles_that_no_stack_of_ours_names_are_not_ours(rehearsed_aws: EmulatedAws, deployment: Deployment) -> None:
    rehearsed_aws.client("iam", REGION).create_role(
        RoleName="trn1-16-RoleHeadNode-x",
        Path="/parallelcluster/trn1-16/",
        AssumeRolePolicyDocument=json.dumps(trust("ec2")),
    )
    assert leftovers.find(deployment) == []


def of_its_cluster(ids: set[str]) -> set[str]:
    """Return what is named after a cluster, and not after its deployment, which could be another's."""
    return {each for each in ids if "-cluster-ClusterPlacementGroups" not in each and "/aws/lambda/" not in each}


def test_finds_those_of_the_clusters_before(deployment: Deployment, leave: Callable[[str], set[str]]) -> None:
    first, second, _third = leave(OURS), leave("trn1-16-2"), leave("trn1-16-3")
    assert {each.id for each in leftovers.find(deployment.of_generation(2))} == first | of_its_cluster(second)


@pytest.mark.parametrize(("description", "is_ours"), [("Trn1 UltraCluster trn1-16: cluster", True), ("another", False)])
def test_finds_those_of_a_later_cluster_whose_stack_was_ours(
    deployment: Deployment, remains: Remains, description: str, *, is_ours: bool
) -> None:
    second = remains.of("trn1-16-2")
    wait = {"Type": "AWS::CloudFormation::WaitConditionHandle"}
    remains.deleted_stack("trn1-16-cluster-2", {"Description": description, "Resources": {"Handle": wait}})
    assert {each.id for each in leftovers.find(deployment)} == (of_its_cluster(second) if is_ours else set())


def test_commands_of_a_cluster_that_lives_are_no_leftover(
    rehearsed_aws: EmulatedAws, deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave(OURS)
    template = json.dumps({"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
    rehearsed_aws.client("cloudformation", REGION).create_stack(StackName="trn1-16", TemplateBody=template)
    assert "/ultracluster/trn1-16/commands" not in {each.id for each in leftovers.find(deployment)}


def test_asks_deleted_stacks_for_their_resources_once(
    rehearsed_aws: EmulatedAws, deployment: Deployment, remains: Remains, monkeypatch: pytest.MonkeyPatch
) -> None:
    remains.kept_by_stack(OURS)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "operator")
    asking = Deployment("trn1-16", deployment.settings)
    for _ in range(3):
        leftovers.find(asking)
    assert rehearsed_aws.calls().count("cloudformation:ListStackResources") == 1


def test_a_table_with_our_name_but_without_our_tag_is_not_ours(
    deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave("slurm-trn1-16")  # its first table is named like our second one
    assert leftovers.find(deployment) == []


def test_tells_logs_that_the_settings_keep(deployment: Deployment, leave: Callable[[str], set[str]]) -> None:
    leave(OURS)
    kept = [each.id for each in leftovers.find(deployment) if each.kept]
    assert kept == ["/aws/parallelcluster/trn1-16-202611210730"]


def test_removes_all_of_it(
    rehearsed_aws: EmulatedAws, deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave("trn1-16-2")
    before = inventory(rehearsed_aws, REGION)
    leave(OURS)
    for each in leftovers.find(deployment):
        remove(deployment, each, FastClock(), untold)
    assert leftovers.find(deployment) == []
    assert inventory(rehearsed_aws, REGION) == before


def test_goes_on_without_a_right_and_says_which(
    rehearsed_aws: EmulatedAws,
    deployment: Deployment,
    leave: Callable[[str], set[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = leave(OURS)
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": "dynamodb:ListTables", "Resource": "*"},
        ],
    }
    missing: list[str] = []
    with rehearsed_aws.restricted(policy) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        found = {each.id for each in leftovers.find(Deployment("trn1-16", deployment.settings), missing=missing)}
    assert ours - found == {"parallelcluster-trn1-16", "parallelcluster-slurm-trn1-16"}
    assert any("ListTables" in each for each in missing)


def test_a_sweep_goes_on_where_one_thing_cannot_be_removed(
    deployment: Deployment, leave: Callable[[str], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(OURS)
    refusals = {PREFIX: ("AccessDenied", "DeleteObjects"), "AWS::IAM::Role": ("DeleteConflict", "DeleteRole")}

    def refusing(deployment: Deployment, found: Found, clock: Clock, say: Say) -> None:
        if found.type in refusals:
            code, operation = refusals[found.type]
            raise ClientError({"Error": {"Code": code, "Message": "no"}}, operation)
        remove(deployment, found, clock, say)

    monkeypatch.setattr("scripts.destroy.steps.remove", refusing)
    outcome = destruction.destroy(deployment, clock=FastClock(), say=untold, sweep=True)
    assert [each for each in outcome.failures if "DeleteObjects" in each or "DeleteRole" in each] == outcome.failures
    assert len(outcome.failures) == len(VERSIONS) + 1
    left = outcome.left or []
    assert {each.type for each in left} == {*refusals, "AWS::EC2::Volume", "AWS::Logs::LogGroup"}
    assert all(each.kept or each.data or each.type in refusals for each in left)
    [volume] = [(each.type, each.id) for each in left if each.type == "AWS::EC2::Volume"]
    assert outcome.costs[volume] == 100 * Decimal("0.08")


def test_a_sweep_waits_for_what_is_in_use_and_takes_what_is_gone_for_done(
    rehearsed_aws: EmulatedAws, deployment: Deployment, remains: Remains, monkeypatch: pytest.MonkeyPatch
) -> None:
    remains.of(OURS)
    user, ec2 = remains.user_of_group(OURS), rehearsed_aws.client("ec2", REGION)
    said: list[str] = []

    def quicker(sentence: str) -> None:
        said.append(sentence)
        if sentence.startswith("eni-"):
            ec2.delete_network_interface(NetworkInterfaceId=sentence.split(maxsplit=1)[0])

    with unanswered(monkeypatch, "TerminateInstances", "DescribeInstances"):
        outcome = destruction.destroy(deployment, clock=FastClock(moment=0), say=quicker, sweep=True)
    [failure] = outcome.failures
    assert "could not be removed within 15 minutes" in failure
    assert "(DependencyViolation) when calling the DeleteSecurityGroup" in failure
    assert {each.type for each in outcome.left or [] if each.is_swept} == {"AWS::EC2::SecurityGroup"}

    class Releasing(FastClock):
        def sleep(self, seconds: float) -> None:
            ec2.terminate_instances(InstanceIds=[user])
            super().sleep(seconds)

    assert destruction.destroy(deployment, clock=Releasing(), say=quicker, sweep=True).failures == []
    assert len([each for each in said if each.startswith("eni-")]) == 2
