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


@case("AWS::EC2::InternetGateway")
def _internet_gateway(account: Account) -> Case:
    def look(gateway: Resource) -> Any:
        account.client("ec2").describe_internet_gateways(InternetGatewayIds=[gateway.ref])
        return tags_of(account, gateway.ref)

    return Case(
        properties={"Tags": tags(Name="a")},
        look=look,
        made={"Name": "a"},
        changes={"Tags": None},
        changed={},
        attributes={"InternetGatewayId"},
    )


@case("AWS::EC2::VPCGatewayAttachment")
def _gateway_attachment(account: Account) -> Case:
    first, second = account.create("AWS::EC2::InternetGateway"), account.create("AWS::EC2::InternetGateway")

    def look(_: Resource) -> Any:
        found = account.client("ec2").describe_internet_gateways(InternetGatewayIds=[first.ref, second.ref])
        return [each["InternetGatewayId"] for each in found["InternetGateways"] if each["Attachments"]]

    return Case(
        properties={"VpcId": account.vpc().ref, "InternetGatewayId": first.ref},
        look=look,
        made=[first.ref],
        changes={"InternetGatewayId": second.ref},
        changed=[second.ref],
        attributes={"AttachmentType"},
    )


@case("AWS::EC2::RouteTable")
def _route_table(account: Account) -> Case:
    def look(table: Resource) -> Any:
        account.client("ec2").describe_route_tables(RouteTableIds=[table.ref])
        return tags_of(account, table.ref)

    return Case(
        properties={"VpcId": account.vpc().ref},
        look=look,
        made={},
        changes={"Tags": tags(Name="a")},
        changed={"Name": "a"},
        attributes={"RouteTableId"},
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


@case("AWS::EC2::SubnetRouteTableAssociation")
def _route_table_association(account: Account) -> Case:
    vpc = account.vpc()
    subnet, table = account.subnet(vpc), account.create("AWS::EC2::RouteTable", VpcId=vpc.ref)

    def look(_: Resource) -> Any:
        found = account.client("ec2").describe_route_tables(RouteTableIds=[table.ref])["RouteTables"][0]
        return [each["SubnetId"] for each in found["Associations"]]

    return Case(
        properties={"SubnetId": subnet.ref, "RouteTableId": table.ref},
        look=look,
        made=[subnet.ref],
        changes={},
        changed=[subnet.ref],
        attributes={"Id"},
    )


@case("AWS::EC2::EIP")
def _address(account: Account) -> Case:
    def look(address: Resource) -> Any:
        found = account.client("ec2").describe_addresses(AllocationIds=[address["AllocationId"]])["Addresses"][0]
        return found["Domain"], found.get("Tags", [])

    return Case(
        properties={"Domain": "vpc", "Tags": tags(Name="a")},
        look=look,
        made=("vpc", tags(Name="a")),
        changes={"Tags": tags(Name="b")},
        changed=("vpc", tags(Name="b")),
        attributes={"AllocationId", "PublicIp"},
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


@case("AWS::EC2::FlowLog")
def _flow_log(account: Account) -> Case:
    group = account.create("AWS::Logs::LogGroup")

    def look(flow_log: Resource) -> Any:
        found = account.client("ec2").describe_flow_logs(FlowLogIds=[flow_log.ref])["FlowLogs"]
        return [(each["ResourceId"], each["LogGroupName"], each["TrafficType"], each.get("Tags")) for each in found]

    vpc = account.vpc()
    return Case(
        properties={
            "DeliverLogsPermissionArn": account.role()["Arn"],
            "LogDestinationType": "cloud-watch-logs",
            "LogGroupName": group.ref,
            "ResourceId": vpc.ref,
            "ResourceType": "VPC",
            "TrafficType": "ALL",
        },
        look=look,
        made=[(vpc.ref, group.ref, "ALL", [])],
        changes={"Tags": tags(Name="a")},
        changed=[(vpc.ref, group.ref, "ALL", tags(Name="a"))],
        attributes={"Id"},
    )
