"""What is left of a deployment, beside what is left of others with similar names."""

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pytest

from emulator.aws import EmulatedAws
from emulator.inventory import inventory
from scripts.account.deployment import Deployment
from scripts.account.resource_kinds import PREFIX
from scripts.change.destroy.destroy import destroy
from scripts.change.destroy.model import DestroyOptions
from scripts.watch.inventory import leftovers
from scripts.watch.inventory.leftovers import parallelcluster_bucket
from scripts.watch.inventory.model import Leftover
from scripts.watch.inventory.removal import InUseError, remove
from tests.emulator.account import trust
from tests.scripts.change.destroy.accounts import Account, FastClock
from tests.scripts.change.destroy.remains import REGION, VERSIONS, Remains
from tests.scripts.refusals import refusal

pytestmark = pytest.mark.slow

OURS, OTHERS = "trn1-16", ("trn1-16-2", "trn1-160", "trn1")
OTHER_REGION, OTHER_ZONE = "us-east-1", "use1-az4"


@pytest.fixture
def deployment(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    return Account(rehearsed_aws, monkeypatch).deployment


@pytest.fixture
def remains(rehearsed_aws: EmulatedAws, deployment: Deployment) -> Remains:
    return Remains(rehearsed_aws, parallelcluster_bucket(deployment))


@pytest.fixture
def leave(remains: Remains) -> Callable[[str], set[str]]:
    return remains.of


def ignore(_: str) -> None:
    pass


def is_removed(deployment: Deployment, leftover: Leftover) -> bool:
    try:
        remove(deployment, leftover)
    except InUseError:
        return False
    return True


def ids(deployment: Deployment) -> set[str]:
    return {each.id for each in leftovers.find(deployment)}


def test_everything_of_ours_is_found_and_removed_and_nothing_of_others(
    rehearsed_aws: EmulatedAws, deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    """Others have similar names, or the same in another Region."""
    for other in OTHERS:
        leave(other)
    Remains(rehearsed_aws, "elsewhere", OTHER_REGION, OTHER_ZONE).of(OURS)
    rehearsed_aws.client("iam", REGION).create_role(  # no stack of ours names it
        RoleName="trn1-16-RoleHeadNode-x",
        Path="/parallelcluster/trn1-16/",
        AssumeRolePolicyDocument=json.dumps(trust("ec2")),
    )
    assert ids(deployment) == set()
    before = inventory(rehearsed_aws, REGION)
    ours = leave(OURS)
    left = leftovers.find(deployment)
    assert {each.id for each in left} == ours
    assert [each.id for each in left if each.kept_on_purpose] == ["/aws/parallelcluster/trn1-16-202611210730"]
    for each in left:
        FastClock().until(partial(is_removed, deployment, each), every=1, limit=60)
    assert ids(deployment) == set()
    assert inventory(rehearsed_aws, REGION) == before


def test_a_zone_that_another_region_has_a_part_in_is_not_ours(
    rehearsed_aws: EmulatedAws, deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave(OURS)
    [zone] = [each.id for each in leftovers.find(deployment) if each.type == "AWS::Route53::HostedZone"]
    other = rehearsed_aws.client("ec2", OTHER_REGION).create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    rehearsed_aws.client("route53", REGION).associate_vpc_with_hosted_zone(
        HostedZoneId=zone, VPC={"VPCRegion": OTHER_REGION, "VPCId": other}
    )
    assert zone not in ids(deployment)


def test_a_table_with_our_name_but_without_our_tag_is_not_ours(
    deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave("slurm-trn1-16")  # its first table is named like our second one
    assert ids(deployment) == set()


def of_its_cluster(names: set[str]) -> set[str]:
    """Return what is named after a cluster, and not after its deployment, which could be another's."""
    of_deployment = ("-cluster-ClusterPlacementGroups", "/aws/lambda/", "/commands")
    return {each for each in names if not any(part in each for part in of_deployment)}


def test_leftovers_of_earlier_clusters_are_found(deployment: Deployment, leave: Callable[[str], set[str]]) -> None:
    first, second, _third = leave(OURS), leave("trn1-16-2"), leave("trn1-16-3")
    assert ids(deployment.of_generation(2)) == first | of_its_cluster(second)


def test_leftovers_of_a_later_cluster_are_found_if_its_stack_was_ours(deployment: Deployment, remains: Remains) -> None:
    second, _third = remains.of("trn1-16-2"), remains.of("trn1-16-3")
    resources = {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}
    described = {"Description": "Trn1 UltraCluster trn1-16: cluster", "Resources": resources}
    remains.deleted_stack("trn1-16-cluster-2", described)
    remains.deleted_stack("trn1-16-cluster-3", {**described, "Description": "another"})
    assert ids(deployment) == of_its_cluster(second)


def test_commands_of_a_cluster_that_exists_are_no_leftover(
    rehearsed_aws: EmulatedAws, deployment: Deployment, leave: Callable[[str], set[str]]
) -> None:
    leave(OURS)
    template = json.dumps({"Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
    rehearsed_aws.client("cloudformation", REGION).create_stack(StackName="trn1-16", TemplateBody=template)
    assert "/ultracluster/trn1-16/commands" not in ids(deployment)


def test_a_sweep_continues_if_something_cannot_be_removed(
    deployment: Deployment, leave: Callable[[str], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave(OURS)
    refusals = {PREFIX: ("AccessDenied", "DeleteObjects"), "AWS::IAM::Role": ("DeleteConflict", "DeleteRole")}

    def refusing(deployment: Deployment, leftover: Leftover) -> None:
        if leftover.type in refusals:
            code, operation = refusals[leftover.type]
            raise refusal(code, operation)
        remove(deployment, leftover)

    monkeypatch.setattr("scripts.change.destroy.destroy.remove", refusing)
    outcome = destroy(deployment, DestroyOptions(sweep=True), clock=FastClock(), say=ignore)
    assert [each for each in outcome.failures if "DeleteObjects" in each or "DeleteRole" in each] == outcome.failures
    assert len(outcome.failures) == len(VERSIONS) + 1
    left = outcome.left or []
    assert {each.type for each in left} == {*refusals, "AWS::EC2::Volume", "AWS::Logs::LogGroup"}
    assert all(each.kept_on_purpose or each.holds_data or each.type in refusals for each in left)
    [volume] = [each for each in left if each.type == "AWS::EC2::Volume"]
    assert volume.dollars_per_month == 100 * Decimal("0.08")


def test_a_sweep_waits_for_what_is_in_use_and_ignores_what_is_deleted_already(
    rehearsed_aws: EmulatedAws, deployment: Deployment, remains: Remains
) -> None:
    remains.of(OURS)
    user, ec2 = remains.user_of_group(OURS), rehearsed_aws.client("ec2", REGION)
    said: list[str] = []

    def quicker(sentence: str) -> None:
        said.append(sentence)
        if sentence.startswith("eni-"):
            ec2.delete_network_interface(NetworkInterfaceId=sentence.split(maxsplit=1)[0])

    outcome = destroy(deployment, DestroyOptions(sweep=True), clock=FastClock(moment=0), say=quicker)
    [failure] = outcome.failures
    assert "could not be removed within 30 minutes" in failure
    assert "(DependencyViolation) when calling the DeleteSecurityGroup" in failure
    assert {each.type for each in outcome.left or [] if each.is_swept} == {"AWS::EC2::SecurityGroup"}

    class Releasing(FastClock):
        def sleep(self, seconds: float) -> None:
            ec2.terminate_instances(InstanceIds=[user])
            super().sleep(seconds)

    assert destroy(deployment, DestroyOptions(sweep=True), clock=Releasing(), say=quicker).failures == []
    assert len([each for each in said if each.startswith("eni-")]) == 2
