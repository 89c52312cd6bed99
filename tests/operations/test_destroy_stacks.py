"""Deletion of one stack: tried again where AWS only needs time, and nowhere else."""

import json
import os
from typing import Any

import pytest

from config.settings import load
from rehearsal.aws import EmulatedAws
from scripts.deployment import Deployment
from scripts.operations import destruction_stacks
from scripts.operations.command import CONFIG, OperationError
from tests.operations.destroying import FastClock

REGION = "us-west-2"
PARAMETER = {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}


class Account:
    def __init__(self, aws: EmulatedAws) -> None:
        self._aws = aws
        self.deployment = Deployment("trn1-16", load(CONFIG / "trn1-16.yaml"))
        self.said: list[str] = []

    def client(self, service: str) -> Any:
        return self._aws.client(service, REGION)

    def create(self, name: str, *, protected: bool = False, **resources: dict[str, Any]) -> dict[str, str]:
        """Make a stack, and return the physical ids of its resources."""
        cloudformation = self.client("cloudformation")
        cloudformation.create_stack(
            StackName=name, TemplateBody=json.dumps({"Resources": resources}), EnableTerminationProtection=protected
        )
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 0.1})
        return self.deployment.physical_ids(name)

    def delete(self, name: str, clock: FastClock, *, unprotect: bool = False) -> None:
        destruction_stacks.delete(self.deployment, name, clock=clock, say=self.said.append, unprotect=unprotect)


@pytest.fixture
def account(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Account:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in rehearsed_aws.settings.items():
        monkeypatch.setenv(name, value)
    return Account(rehearsed_aws)


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
