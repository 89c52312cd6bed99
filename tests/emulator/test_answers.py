"""What the emulated APIs answer where moto's answer is not AWS's."""

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.account import Account


@pytest.fixture
def account(aws: EmulatedAws) -> Account:
    return Account(aws)


def state_of_the_route(account: Account, table_id: str) -> str:
    [table] = account.client("ec2").describe_route_tables(RouteTableIds=[table_id])["RouteTables"]
    [state] = [each["State"] for each in table["Routes"] if each.get("DestinationCidrBlock") == "0.0.0.0/0"]
    return str(state)


def test_a_route_is_a_black_hole_once_its_nat_gateway_is_deleted(account: Account) -> None:
    vpc = account.vpc()
    account.attached_gateway(vpc)
    gateway = account.nat_gateway(account.subnet(vpc), account.address())
    table_id = account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref
    ec2 = account.client("ec2")
    ec2.create_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=gateway.ref)
    assert state_of_the_route(account, table_id) == "active"
    ec2.delete_nat_gateway(NatGatewayId=gateway.ref)
    assert state_of_the_route(account, table_id) == "blackhole"


def test_a_route_is_a_black_hole_once_its_internet_gateway_is_detached(account: Account) -> None:
    vpc = account.vpc()
    gateway, _ = account.attached_gateway(vpc)
    table_id = account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref
    ec2 = account.client("ec2")
    ec2.create_route(RouteTableId=table_id, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway.ref)
    assert state_of_the_route(account, table_id) == "active"
    ec2.detach_internet_gateway(VpcId=vpc.ref, InternetGatewayId=gateway.ref)
    assert state_of_the_route(account, table_id) == "blackhole"


def test_a_key_takes_a_chosen_id(account: Account) -> None:
    key_id = "01234567-89ab-cdef-0123-456789abcdef"
    kms = account.client("kms")
    assert kms.create_key(Tags=[{"TagKey": "_custom_id_", "TagValue": key_id}])["KeyMetadata"]["KeyId"] == key_id
    assert kms.create_key(Tags=[{"TagKey": "team", "TagValue": "ml"}])["KeyMetadata"]["KeyId"] != key_id
