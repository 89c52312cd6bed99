"""Networks: VPCs, subnets, routes, gateways, endpoints and flow logs."""

from __future__ import annotations

from typing import Any

from tests.emulator.account import REGION, Account, Resource, tags
from tests.emulator.lives.case import Case, case, part, tags_of


@case("AWS::EC2::VPC")
def _vpc(account: Account) -> Case:
    ec2 = account.client("ec2")

    def look(vpc: Resource) -> Any:
        found = ec2.describe_vpcs(VpcIds=[vpc.ref])["Vpcs"][0]
        names = ec2.describe_vpc_attribute(VpcId=vpc.ref, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]
        return found["CidrBlock"], names, tags_of(account, vpc.ref)

    return Case(
        properties={"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": True, "Tags": tags(Name="a", other="b")},
        look=look,
        made=("10.0.0.0/16", True, {"Name": "a", "other": "b"}),
        changes={"EnableDnsHostnames": None, "Tags": tags(Name="c")},
        changed=("10.0.0.0/16", False, {"Name": "c"}),
        attributes={
            "CidrBlock",
            "CidrBlockAssociations",
            "DefaultNetworkAcl",
            "DefaultSecurityGroup",
            "Ipv6CidrBlocks",
            "VpcId",
        },
    )


@case("AWS::EC2::Subnet")
def _subnet(account: Account) -> Case:
    def look(subnet: Resource) -> Any:
        found = account.client("ec2").describe_subnets(SubnetIds=[subnet.ref])["Subnets"][0]
        return found["CidrBlock"], found["AvailabilityZoneId"], found["MapPublicIpOnLaunch"]

    return Case(
        properties={
            "VpcId": account.vpc().ref,
            "CidrBlock": "10.0.0.0/24",
            "AvailabilityZoneId": "usw2-az4",
            "MapPublicIpOnLaunch": True,
        },
        look=look,
        made=("10.0.0.0/24", "usw2-az4", True),
        changes={"MapPublicIpOnLaunch": None},
        changed=("10.0.0.0/24", "usw2-az4", False),
        attributes={
            "AvailabilityZone",
            "AvailabilityZoneId",
            "CidrBlock",
            "Ipv6CidrBlocks",
            "NetworkAclAssociationId",
            "SubnetId",
            "VpcId",
        },
    )


@case("AWS::EC2::Route")
def _route(account: Account) -> Case:
    vpc = account.vpc()
    gateway, _ = account.attached_gateway(vpc)
    nat_gateway = account.nat_gateway(account.subnet(vpc), account.address())
    table = account.create("AWS::EC2::RouteTable", VpcId=vpc.ref)

    def look(_: Resource) -> Any:
        found = account.client("ec2").describe_route_tables(RouteTableIds=[table.ref])["RouteTables"][0]["Routes"]
        return [part(each, "GatewayId", "NatGatewayId") for each in found if each["Origin"] == "CreateRoute"]

    return Case(
        properties={"RouteTableId": table.ref, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway.ref},
        look=look,
        made=[{"GatewayId": gateway.ref, "NatGatewayId": None}],
        changes={"GatewayId": None, "NatGatewayId": nat_gateway.ref},
        changed=[{"GatewayId": None, "NatGatewayId": nat_gateway.ref}],
        attributes={"CidrBlock"},
    )


@case("AWS::EC2::NatGateway")
def _nat_gateway(account: Account) -> Case:
    vpc = account.vpc()
    account.attached_gateway(vpc)
    first, second, third = (account.address()["AllocationId"] for _ in range(3))

    def look(gateway: Resource) -> Any:
        found = account.client("ec2").describe_nat_gateways(NatGatewayIds=[gateway.ref])["NatGateways"][0]
        gone = found["State"] == "deleted"  # EC2 lists a deleted gateway for an hour
        return [] if gone else [each["AllocationId"] for each in found["NatGatewayAddresses"]]

    return Case(
        properties={
            "SubnetId": account.subnet(vpc).ref,
            "AllocationId": first,
            "SecondaryAllocationIds": [second],
        },
        look=look,
        made=[first, second],
        changes={"SecondaryAllocationIds": [third]},
        changed=[first, third],
        attributes={"EniId", "NatGatewayId"},
    )


@case("AWS::EC2::VPCEndpoint")
def _endpoint(account: Account) -> Case:
    vpc = account.vpc()
    subnets = [account.subnet(vpc, f"10.0.{number}.0/24").ref for number in range(2)]
    groups = [account.group(vpc).ref for _ in range(2)]
    ec2 = account.client("ec2")

    def look(endpoint: Resource) -> Any:
        found = ec2.describe_vpc_endpoints(VpcEndpointIds=[endpoint.ref])["VpcEndpoints"][0]
        interfaces = ec2.describe_network_interfaces(NetworkInterfaceIds=found["NetworkInterfaceIds"])
        return found["PrivateDnsEnabled"], [
            (each["SubnetId"], [group["GroupId"] for group in each["Groups"]])
            for each in interfaces["NetworkInterfaces"]
        ]

    return Case(
        properties={
            "VpcId": vpc.ref,
            "ServiceName": f"com.amazonaws.{REGION}.logs",
            "VpcEndpointType": "Interface",
            "PrivateDnsEnabled": True,
            "SubnetIds": subnets[:1],
            "SecurityGroupIds": groups[:1],
        },
        look=look,
        made=(True, [(subnets[0], groups[:1])]),
        changes={"PrivateDnsEnabled": None, "SubnetIds": subnets[1:], "SecurityGroupIds": groups[1:]},
        changed=(False, [(subnets[1], groups[1:])]),
        attributes={"CreationTimestamp", "DnsEntries", "Id", "NetworkInterfaceIds"},
    )
