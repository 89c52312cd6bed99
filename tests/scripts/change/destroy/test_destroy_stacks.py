"""Deletion of one stack: tried again where AWS only needs time, and nowhere else."""

import json

import pytest

from scripts.change.destroy import stacks as destroy_stacks
from scripts.core.errors import OperationError
from tests.emulator.account import statement, trust
from tests.scripts.change.destroy.accounts import Account, FastClock

pytestmark = pytest.mark.slow


def test_tries_again_what_is_in_use(account: Account) -> None:
    ids = account.create_network("made")
    ec2 = account.client("ec2")
    interface = ec2.create_network_interface(SubnetId=ids["Subnet"])["NetworkInterface"]["NetworkInterfaceId"]

    class Releasing(FastClock):
        def sleep(self, seconds: float) -> None:
            if seconds == destroy_stacks.PAUSE:
                ec2.delete_network_interface(NetworkInterfaceId=interface)
            super().sleep(seconds)

    account.delete("made", Releasing())
    assert account.deployment.stack("made") is None
    assert any("trying again" in each for each in account.said)


def test_gives_up_at_once_where_time_does_not_help(account: Account) -> None:
    """A bucket that is not empty, and protection."""
    ids = account.create("made", protected=True, Bucket={"Type": "AWS::S3::Bucket"})
    account.client("s3").put_object(Bucket=ids["Bucket"], Key="k", Body=b"-")
    refused = r"made could not be deleted:\n  Bucket \(AWS::S3::Bucket\): .*not empty"
    with pytest.raises(Exception, match="TerminationProtection"):
        account.delete("made", FastClock())
    with pytest.raises(OperationError, match=refused):
        account.delete("made", FastClock(), unprotect=True)
    assert not any("trying again" in each for each in account.said)


def test_groups_roles_and_zones_are_emptied_first(account: Account) -> None:
    network = account.create_network("network")
    group = {"GroupDescription": "-", "VpcId": network["Vpc"]}
    zone = {"Name": "made.pcluster.", "VPCs": [{"VPCId": network["Vpc"], "VPCRegion": "us-west-2"}]}
    ids = account.create(
        "made",
        Group={"Type": "AWS::EC2::SecurityGroup", "Properties": group},
        Role={"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": trust("ec2")}},
        Zone={"Type": "AWS::Route53::HostedZone", "Properties": zone},
    )
    policy = json.dumps(statement(Action="*", Resource="*"))
    account.client("iam").put_role_policy(RoleName=ids["Role"], PolicyName="theirs", PolicyDocument=policy)
    record = {"Name": "node.made.pcluster.", "Type": "A", "TTL": 1, "ResourceRecords": [{"Value": "10.8.0.9"}]}
    change = {"Changes": [{"Action": "CREATE", "ResourceRecordSet": record}]}
    account.client("route53").change_resource_record_sets(HostedZoneId=ids["Zone"], ChangeBatch=change)
    account.client("ec2").create_network_interface(SubnetId=network["Subnet"], Groups=[ids["Group"]])
    account.delete("made", FastClock())
    assert account.deployment.stack("made") is None
    emptied = [each for each in account.said if "deleting what" in each]
    assert {each.split()[3] for each in emptied} == {"Group", "Role", "Zone"}
