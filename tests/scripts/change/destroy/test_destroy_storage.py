"""The deletion of storage: by the policies that are deployed, and never without a backup unless that is requested."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from botocore.client import BaseClient

from scripts.change.destroy.destroy import destroy
from scripts.change.destroy.model import DestroyOptions, DestroyOutcome
from scripts.change.destroy.plan import plan
from tests.scripts.change.destroy.accounts import Account, FastClock
from tests.scripts.change.destroy.remains import leave_in_network
from tests.scripts.refusals import refusal

pytestmark = pytest.mark.slow

STORAGE = DestroyOptions(parts=("storage",))
UNPROTECT = replace(STORAGE, unprotect=True)
PARAMETER = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}
LUSTRE = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}


def deploy(account: Account, policy: str, lustre: dict[str, Any], *, link: bool = False) -> dict[str, str]:
    """Make a storage stack with a policy for what holds data, and return the physical ids."""
    network = account.create_network("network")
    rule = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "CidrIp": "10.8.0.0/16"}
    group = {"GroupDescription": "-", "VpcId": network["Vpc"], "SecurityGroupIngress": [rule]}
    file_system = {
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 1200,
        "SubnetIds": [network["Subnet"]],
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


def end(account: Account, options: DestroyOptions = STORAGE, clock: FastClock | None = None) -> DestroyOutcome:
    return destroy(account.deployment, options, clock=clock or FastClock(), say=account.said.append)


@pytest.mark.parametrize("retain", [True, False])
def test_the_deployed_policy_counts_and_not_the_settings(account: Account, *, retain: bool) -> None:
    """And the next destruction deletes what a policy kept."""
    ids = deploy(account, "RetainExceptOnCreate" if retain else "Delete", LUSTRE)
    assert account.deployment.settings.storage.retain
    blockers, kept = plan(account.deployment, STORAGE).blockers, {ids["Files"], ids["Group"]}
    assert any("keeps file system" in each for each in blockers) is retain
    account.delete("trn1-16-storage", FastClock())
    planned = plan(account.deployment, UNPROTECT)
    assert {each.id for each in planned.left_behind} == (kept if retain else set())
    outcome = end(account, replace(UNPROTECT, bucket=True))
    assert set(outcome.deleted) == ({*kept, ids["Bucket"]} if retain else set())
    assert [each.dollars_per_month_at_most for each in outcome.backups] == [1200 * Decimal("0.05")] * retain
    assert account.client("fsx").describe_file_systems()["FileSystems"] == []
    assert account.client("s3").list_buckets()["Buckets"] == []


def test_a_file_system_that_the_stack_links_and_keeps_is_backed_up_after_the_stack(account: Account) -> None:
    ids = deploy(account, "RetainExceptOnCreate", LUSTRE, link=True)
    outcome = end(account, UNPROTECT)
    assert (outcome.failures, len(outcome.backups)) == ([], 1)
    assert outcome.deleted[0] == "trn1-16-storage"
    assert sorted(outcome.deleted[1:]) == sorted([ids["Files"], ids["Group"]])


def test_a_link_that_is_created_meanwhile_keeps_the_file_system(account: Account) -> None:
    ids = deploy(account, "Retain", LUSTRE)
    bucket = ids["Bucket"]

    class Linking(FastClock):
        def now(self) -> datetime:
            if not account.client("fsx").describe_data_repository_associations()["Associations"]:
                account.client("fsx").create_data_repository_association(
                    FileSystemId=ids["Files"], FileSystemPath="/d", DataRepositoryPath=f"s3://{bucket}"
                )
            return super().now()

    outcome = end(account, replace(UNPROTECT, parts=("storage", "network")), Linking())
    assert outcome.failures[0] == f"{ids['Files']} is kept: FSx backs up no file system that is linked to S3."
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
    [made] = end(account, UNPROTECT).backups
    assert made.id != stale


def test_a_refused_backup_keeps_the_storage_and_nothing_else(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    deploy(account, "Delete", LUSTRE)
    account.create("trn1-16-monitoring", Parameter=PARAMETER)
    call = BaseClient._make_api_call

    def refusing(client: BaseClient, operation: str, parameters: dict[str, Any]) -> Any:
        if operation == "CreateBackup":
            raise refusal("BadRequest", operation, "not now")
        return call(client, operation, parameters)

    monkeypatch.setattr(BaseClient, "_make_api_call", refusing)
    outcome = end(account, DestroyOptions(parts=("monitoring", "storage")))
    [failure] = outcome.failures
    assert failure.startswith("trn1-16-storage: An error occurred (BadRequest)")
    assert outcome.deleted == ["trn1-16-monitoring"]
    assert outcome.left is not None
    assert account.deployment.stack("trn1-16-storage") is not None


def test_own_leftovers_in_the_network_are_removed_before_it(account: Account) -> None:
    network = account.create_network("trn1-16-network")
    left = leave_in_network(account.client("ec2"), "trn1-16", network["Vpc"], network["Subnet"])
    options = DestroyOptions(parts=("cluster", "network"))
    [blocker] = plan(account.deployment, options).blockers
    assert blocker.startswith("Leftovers of the deployment use what would be deleted: ")
    assert all(each in blocker for each in left)
    outcome = end(account, replace(options, sweep=True))
    assert outcome.failures == []
    assert outcome.deleted[-1] == "trn1-16-network"
    assert left < set(outcome.deleted)
    assert not any("trying again" in each for each in account.said)
