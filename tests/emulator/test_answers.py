"""What the emulated APIs answer where moto's answer is not AWS's."""

import pytest
from botocore.exceptions import ClientError

from tests.emulator.account import Account


def state_of_the_route(account: Account, table_id: str) -> str:
    [table] = account.client("ec2").describe_route_tables(RouteTableIds=[table_id])["RouteTables"]
    [state] = [each["State"] for each in table["Routes"] if each.get("DestinationCidrBlock") == "0.0.0.0/0"]
    return str(state)


def test_a_route_is_a_black_hole_once_its_gateway_is_gone(account: Account) -> None:
    vpc = account.vpc()
    internet_gateway, _ = account.attached_gateway(vpc)
    nat_gateway = account.nat_gateway(account.subnet(vpc), account.address())
    by_internet, by_nat = (account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref for _ in range(2))
    ec2 = account.client("ec2")
    everywhere = {"DestinationCidrBlock": "0.0.0.0/0"}
    ec2.create_route(RouteTableId=by_internet, GatewayId=internet_gateway.ref, **everywhere)
    ec2.create_route(RouteTableId=by_nat, NatGatewayId=nat_gateway.ref, **everywhere)
    assert [state_of_the_route(account, each) for each in (by_internet, by_nat)] == ["active", "active"]
    ec2.delete_nat_gateway(NatGatewayId=nat_gateway.ref)
    assert [state_of_the_route(account, each) for each in (by_internet, by_nat)] == ["active", "blackhole"]
    ec2.detach_internet_gateway(VpcId=vpc.ref, InternetGatewayId=internet_gateway.ref)
    assert state_of_the_route(account, by_internet) == "blackhole"


@pytest.mark.parametrize(("service", "operation"), [("chime", "list_accounts"), ("bedrock", "list_foundation_models")])
def test_a_service_that_nobody_emulates_is_not_implemented(account: Account, service: str, operation: str) -> None:
    with pytest.raises(ClientError, match=r"\(NotImplemented\)"):
        getattr(account.client(service), operation)()
