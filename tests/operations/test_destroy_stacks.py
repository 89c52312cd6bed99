"""Deletion of one stack: tried again where AWS only needs time, and nowhere else."""

from typing import Any

import pytest

from rehearsal.aws import EmulatedAws
from scripts.deployment import Deployment
from scripts.operations.command import OperationError
from scripts.operations.destruction import stacks as destruction_stacks
from tests.operations.destroying import Account, FastClock

PARAMETER = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}


@pytest.fixture
def account(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Account:
    return Account(rehearsed_aws, monkeypatch)


def test_tries_again_what_is_in_use(account: Account) -> None:
    vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.8.0.0/16"}}
    subnet = {"Type": "AWS::EC2::Subnet", "Properties": {"CidrBlock": "10.8.0.0/24", "VpcId": {"Ref": "Vpc"}}}
    ids = account.create("made", Vpc=vpc, Subnet=subnet)
    ec2 = account.client("ec2")
    interface = ec2.create_network_interface(SubnetId=ids["Subnet"])["NetworkInterface"]["NetworkInterfaceId"]

    class Releasing(FastClock):
        def sleep(self, seconds: float) -> None:
            if seconds == destruction_stacks.PAUSE:
                ec2.delete_network_interface(NetworkInterfaceId=interface)
            super().sleep(seconds)

    account.delete("made", Releasing())
    assert account.deployment.stack("made") is None
    assert any("trying again" in each for each in account.said)


def test_gives_up_at_once_where_time_does_not_help(account: Account) -> None:
    ids = account.create("made", Bucket={"Type": "AWS::S3::Bucket"})
    account.client("s3").put_object(Bucket=ids["Bucket"], Key="k", Body=b"-")
    with pytest.raises(OperationError, match=r"made could not be deleted:\n  Bucket \(AWS::S3::Bucket\): .*not empty"):
        account.delete("made", FastClock())
    assert not any("trying again" in each for each in account.said)


def test_protection_is_taken_away_only_if_wanted(account: Account) -> None:
    account.create(
        "made",
        protected=True,
        Parameter={"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}},
    )
    with pytest.raises(Exception, match="TerminationProtection"):
        account.delete("made", FastClock())
    account.delete("made", FastClock(), unprotect=True)
    assert account.deployment.stack("made") is None


def test_a_stack_named_like_the_cluster_may_be_somebody_elses(account: Account) -> None:
    account.create("trn1-16", Parameter=PARAMETER)
    assert account.deployment.stack("trn1-16") is not None
    assert destruction_stacks.of_cluster(account.deployment) is None


def test_deletes_what_could_not_be_made(account: Account) -> None:
    vpc = {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.8.0.0/33"}}
    account.begin("made", Parameter=PARAMETER, Vpc=vpc)

    def rolled_back() -> bool:
        account.deployment.account.forget()
        return (account.deployment.stack("made") or {}).get("StackStatus") == "ROLLBACK_COMPLETE"

    assert FastClock().until(rolled_back, every=1, limit=600)
    account.delete("made", FastClock())
    assert account.deployment.stack("made") is None


def test_ends_with_the_reason_when_the_deletion_is_no_longer_under_way(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.create("made", Parameter=PARAMETER)
    found = account.deployment.stack("made") or {}
    stack = Deployment.stack

    def changed(deployment: Deployment, name: str) -> dict[str, Any] | None:
        deleting = any("is being deleted" in each for each in account.said)
        answer = {**found, "StackStatus": "UPDATE_ROLLBACK_FAILED", "StackStatusReason": "somebody was quicker"}
        return answer if deleting else stack(deployment, name)

    monkeypatch.setattr(Deployment, "stack", changed)
    with pytest.raises(OperationError, match="made is UPDATE_ROLLBACK_FAILED: somebody was quicker"):
        account.delete("made", FastClock())
