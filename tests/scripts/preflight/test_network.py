"""An existing VPC in which the deployment stands already, or that is as large as it gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scripts.preflight.check import Status
from scripts.preflight.network import free_addresses
from tests.scripts.preflight.cases import Case, Edit
from tests.scripts.preflight.cases_network import PRIVATE, VPC, existing, small_public_subnet, taken
from tests.scripts.preflight.conftest import GoodAccount
from tests.scripts.preflight.deployed import stack

GoodAccounts = Callable[..., GoodAccount]


def account_of(good_account: GoodAccounts, edit: Edit, environment: str = "trn1-16") -> GoodAccount:
    case = Case(free_addresses, Status.PASS, edit=edit, environment=environment)
    return good_account(environment, case.settings())


def sentences(account: GoodAccount) -> list[str]:
    """Return what is said of both subnets, each after its id."""
    return [found.sentence.partition(" are free; ")[2] for found in account.look(free_addresses)]


def node(account: GoodAccount, cluster_name: str) -> None:
    ec2 = account.client("ec2")
    tags = [{"Key": "parallelcluster:cluster-name", "Value": cluster_name}]
    ec2.run_instances(
        ImageId=ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"],
        InstanceType="trn1.32xlarge",
        MinCount=1,
        MaxCount=1,
        SubnetId=PRIVATE,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )


def file_system(account: GoodAccount) -> str:
    rule = {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}
    ec2 = account.client("ec2")
    group_id = ec2.create_security_group(GroupName="fsx", Description="fsx", VpcId=VPC)["GroupId"]
    ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=[rule])
    made = account.client("fsx").create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=4800,
        SubnetIds=[PRIVATE],
        SecurityGroupIds=[group_id],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )["FileSystem"]
    assert len(made["NetworkInterfaceIds"]) == 1  # on AWS one for each file server
    file_system_id: str = made["FileSystemId"]
    return file_system_id


def with_login_nodes(raw: dict[str, Any]) -> None:
    existing(raw)
    raw["cluster"]["login_nodes"] = [{"name": "login"}]


def test_what_stands_there_already_counts(good_account: GoodAccounts) -> None:
    account = account_of(good_account, with_login_nodes)
    # In the one the head node, in the other 16 nodes, 4 file servers, a login node and its load balancer.
    assert sentences(account) == ["1 more are needed at max_count, 0 held", "22 more are needed at max_count, 0 held"]
    stack(account, "trn1-16-storage", FileSystemId=file_system(account))
    assert sentences(account)[1] == "21 more are needed at max_count, 1 held"
    node(account, "trn1-16")
    node(account, "other")
    assert sentences(account)[1] == "20 more are needed at max_count, 2 held"
    stack(account, "trn1-16")
    assert sentences(account)[1] == "19 more are needed at max_count, 3 held"


@pytest.mark.parametrize(("interface_type", "needed"), [("efa-only", 1956), ("efa", 15_081)])
def test_the_largest(good_account: GoodAccounts, interface_type: str, needed: int) -> None:
    def edit(raw: dict[str, Any]) -> None:
        existing(raw)
        raw["cluster"]["efa_interface_type"] = interface_type

    account = account_of(good_account, edit, "ultracluster")
    assert sentences(account)[1] == f"{needed:,} more are needed at max_count, 0 held"
    assert account.statuses(free_addresses) == [Status.PASS, Status.PASS]


def test_the_last_address_suffices(good_account: GoodAccounts) -> None:
    account = account_of(good_account, small_public_subnet)
    taken(account.settings.network.existing.public_subnet_id, 9)(account)  # type: ignore[union-attr]
    assert account.statuses(free_addresses) == [Status.PASS, Status.PASS]
