"""The end of storage: by the policies that are deployed, and never without a backup unless that is asked for."""

from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError, EndpointConnectionError

from config.settings import Settings
from emulator.aws import EmulatedAws
from scripts.command import run
from scripts.commands import destroy
from scripts.deployment import Deployment
from scripts.destroy import destroy as destruction
from scripts.destroy import plan as destruction_plan
from scripts.destroy.outcome import Outcome
from tests.scripts.destroy.destroying import Account, FastClock, unanswered, validate
from tests.scripts.destroy.remains import leave_in_network

STORAGE = ("storage",)
PARAMETER = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}
LUSTRE = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}
SCRATCH = {"DeploymentType": "SCRATCH_2"}


@pytest.fixture
def account(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Account:
    return Account(rehearsed_aws, monkeypatch)


def deploy(account: Account, policy: str, lustre: dict[str, Any], *, link: bool = False) -> dict[str, str]:
    """Make a storage stack with a policy for what holds data, and return the physical ids."""
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.0.0/24", AvailabilityZoneId="usw2-az4")["Subnet"]["SubnetId"]
    rule = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "CidrIp": "10.7.0.0/16"}
    group = {"GroupDescription": "-", "VpcId": vpc, "SecurityGroupIngress": [rule]}
    file_system = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [subnet],
        "SecurityGroupIds": [{"Ref": "Group"}],
        "LustreConfiguration": lustre,
    }
    resources: dict[str, Any] = {
        "Group": {"Type": "AWS::EC2::SecurityGroup", "DeletionPolicy": policy, "Properties": group},
        "Files": {"Type": "AWS::FSx::FileSystem", "DeletionPolicy": policy, "Properties": file_system},
        "Bucket": {"Type": "AWS::S3::Bucket", "DeletionPolicy": policy},
    }
    if link:
        path = {"Fn::Sub": "s3://${Bucket}"}
        properties = {"FileSystemId": {"Ref": "Files"}, "FileSystemPath": "/d", "DataRepositoryPath": path}
        resources["Link"] = {"Type": "AWS::FSx::DataRepositoryAssociation", "Properties": properties}
    return account.create("trn1-16-storage", **resources)


def end(account: Account, **wish: Any) -> Outcome:
    return destruction.destroy(account.deployment, parts=STORAGE, clock=FastClock(), say=account.said.append, **wish)


def with_retain(settings: Settings, *, retain: bool) -> Deployment:
    storage = settings.storage.model_copy(update={"retain": retain})
    return Deployment("trn1-16", settings.model_copy(update={"storage": storage}))


@pytest.mark.parametrize("retain", [True, False])
def test_the_deployed_policy_counts_and_not_the_settings(account: Account, *, retain: bool) -> None:
    ids = deploy(account, "RetainExceptOnCreate" if retain else "Delete", LUSTRE)
    account.deployment = with_retain(account.deployment.settings, retain=not retain)
    plan = destruction_plan.plan(account.deployment, STORAGE)
    assert any("keeps file system" in each for each in plan.obstacles) is retain
    stays = f"Bucket {ids['Bucket']} stays; --bucket deletes it."
    assert (stays in plan.remarks) is retain
    end(account, unprotect=True)
    buckets = [each["Name"] for each in account.client("s3").list_buckets()["Buckets"]]
    assert (ids["Bucket"] in buckets) is retain
    assert account.client("fsx").describe_file_systems()["FileSystems"] == []


def test_what_was_left_behind_goes_the_next_time(account: Account) -> None:
    ids = deploy(account, "Retain", LUSTRE)
    account.delete("trn1-16-storage", FastClock())
    assert any(ids["Files"] in each for each in destruction_plan.plan(account.deployment, STORAGE).obstacles)
    plan = destruction_plan.plan(account.deployment, STORAGE, unprotect=True)
    assert {each.id for each in plan.left_behind} == {ids["Files"], ids["Group"]}
    assert not plan.empty
    outcome = end(account, unprotect=True, bucket=True)
    assert set(outcome.deleted) == {ids["Files"], ids["Group"], ids["Bucket"]}
    assert len(outcome.backups) == 1


def test_a_scratch_file_system_goes_only_when_no_backup_is_asked_for(account: Account) -> None:
    deploy(account, "Delete", SCRATCH)
    [obstacle] = destruction_plan.plan(account.deployment, STORAGE).obstacles
    assert "no SCRATCH_2 file system. --no-final-backup deletes it all the same." in obstacle
    assert end(account, final_backup=False).failures == []
    assert account.client("fsx").describe_file_systems()["FileSystems"] == []


def test_links_that_go_with_the_stack_only_put_the_backup_off(account: Account) -> None:
    ids = deploy(account, "RetainExceptOnCreate", LUSTRE, link=True)
    plan = destruction_plan.plan(account.deployment, STORAGE, unprotect=True)
    assert plan.obstacles == ()
    assert any("once its links to S3 are gone" in each and "AgeOfOldestQueuedMessage" in each for each in plan.remarks)
    outcome = end(account, unprotect=True)
    assert (outcome.failures, len(outcome.backups)) == ([], 1)
    assert outcome.deleted == ["trn1-16-storage", ids["Files"], ids["Group"]]


def test_a_linked_file_system_that_goes_with_its_stack_stands_against_it(account: Account) -> None:
    deploy(account, "Delete", LUSTRE, link=True)
    [obstacle] = destruction_plan.plan(account.deployment, STORAGE).obstacles
    assert "linked to S3. --no-final-backup deletes it all the same. First wait until" in obstacle
    plan = destruction_plan.plan(account.deployment, STORAGE, final_backup=False)
    assert plan.obstacles == ()
    assert any("without a backup, as asked for. First wait until" in each for each in plan.remarks)


def test_a_link_that_comes_meanwhile_keeps_the_file_system(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = deploy(account, "Retain", LUSTRE)
    bucket = ids["Bucket"]

    class Linking(FastClock):
        def now(self) -> datetime:
            if not account.client("fsx").describe_data_repository_associations()["Associations"]:
                account.client("fsx").create_data_repository_association(
                    FileSystemId=ids["Files"], FileSystemPath="/d", DataRepositoryPath=f"s3://{bucket}"
                )
            return super().now()

    outcome = destruction.destroy(
        account.deployment, parts=("storage", "network"), clock=Linking(), say=account.said.append, unprotect=True
    )
    assert outcome.failures[0] == f"{ids['Files']} stays: FSx backs up no file system that is linked to S3."
    assert (outcome.deleted, outcome.backups) == ([], [])


def test_a_backup_from_before_the_last_cluster_ended_is_not_current(account: Account) -> None:
    ids = deploy(account, "Retain", LUSTRE)
    for stack in ("trn1-16-cluster", "trn1-16", "trn1-16-cluster-2", "trn1-16-2"):
        account.create(stack, description="Trn1 UltraCluster trn1-16: cluster", Parameter=PARAMETER)
    for stack in ("trn1-16-cluster", "trn1-16"):
        account.delete(stack, FastClock())
    tag = {"Key": "ultracluster:final-backup-of", "Value": "trn1-16"}
    stale = account.client("fsx").create_backup(FileSystemId=ids["Files"], Tags=[tag])["Backup"]["BackupId"]
    for stack in ("trn1-16-cluster-2", "trn1-16-2"):
        account.delete(stack, FastClock())
    account.client("fsx").describe_backups()
    [made] = end(account, unprotect=True).backups
    assert made.id != stale


def test_waits_on_for_a_backup_while_fsx_does_not_answer(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(account, "Delete", LUSTRE)
    with unanswered(monkeypatch, "CreateBackup", "DescribeBackups"):
        outcome = end(account)
    assert outcome.failures == []
    assert [each.monthly for each in outcome.backups] == [1200 * Decimal("0.05")]


def test_a_refused_backup_keeps_the_storage_and_nothing_else(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(account, "Delete", LUSTRE)
    account.create("trn1-16-monitoring", Parameter=PARAMETER)
    call = BaseClient._make_api_call

    def refusing(client: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
        if operation == "CreateBackup":
            raise ClientError({"Error": {"Code": "BadRequest", "Message": "not now"}}, operation)
        return call(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", refusing)
    outcome = destruction.destroy(
        account.deployment, parts=("monitoring", "storage"), clock=FastClock(), say=account.said.append
    )
    [failure] = outcome.failures
    assert failure.startswith("trn1-16-storage: An error occurred (BadRequest)")
    assert outcome.deleted == ["trn1-16-monitoring"]
    assert outcome.left is not None
    assert account.deployment.stack("trn1-16-storage") is not None


def test_own_leftovers_in_the_network_go_before_it(account: Account) -> None:
    vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.8.0.0/16"}}
    subnet = {"Type": "AWS::EC2::Subnet", "Properties": {"CidrBlock": "10.8.0.0/24", "VpcId": {"Ref": "Vpc"}}}
    network = account.create("trn1-16-network", Vpc=vpc, Subnet=subnet)
    left = leave_in_network(account.client("ec2"), "trn1-16", network["Vpc"], network["Subnet"])
    parts = ("cluster", "network")
    [obstacle] = destruction_plan.plan(account.deployment, parts).obstacles
    assert obstacle.startswith("Leftovers of the deployment use what would go: ")
    assert obstacle.endswith("--sweep removes them first.")
    assert all(each in obstacle for each in left)
    assert destruction_plan.plan(account.deployment, parts, sweep=True).obstacles == ()
    outcome = destruction.destroy(
        account.deployment, parts=parts, clock=FastClock(), say=account.said.append, sweep=True
    )
    assert outcome.failures == []
    assert outcome.deleted[-1] == "trn1-16-network"
    assert left < set(outcome.deleted)
    assert not any("trying again" in each for each in account.said)


BROKEN_OFF = {
    "The token is expired": (
        2,
        ClientError({"Error": {"Code": "ExpiredToken", "Message": "The token is expired"}}, "DescribeStacks"),
    ),
    "Could not connect": (1, EndpointConnectionError(endpoint_url="https://aws")),
    "It was interrupted.": (130, KeyboardInterrupt()),
}


@pytest.mark.parametrize("reason", BROKEN_OFF)
def test_broken_off_it_says_what_was_done_and_that_the_same_command_goes_on(
    account: Account, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], reason: str
) -> None:
    account.create("trn1-16-monitoring", Parameter=PARAMETER)
    monkeypatch.setattr("scripts.clock.Clock", partial(FastClock, moment=0.01))
    arguments = destroy.arguments().parse_args(["trn1-16", "--monitoring", "--yes", "--json"])
    call, made = BaseClient._make_api_call, []
    code, error = BROKEN_OFF[reason]

    def failing(client: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
        if "DeleteStack" in made:
            raise error
        made.append(operation)
        return call(client, operation, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", failing)
        assert run(arguments, destroy.program) == code
    printed = capsys.readouterr()
    outcome = validate("destroy", printed.out)["outcome"]
    assert reason in outcome["failures"][-1]
    assert (outcome["deleted"], outcome["left"]) == ([], None)
    if code != 130:
        assert reason in printed.err
        assert "the same command goes on where it stopped" in printed.err
    assert ("get new session credentials" in printed.err) is (code == 2)
    assert run(arguments, destroy.program) == 0
    account.deployment.account.forget()
    assert account.deployment.stack("trn1-16-monitoring") is None
