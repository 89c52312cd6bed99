"""Amazon VPC: networks, subnets, gateways, routes, endpoints and flow logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.api import EC2
from emulator.resources.common import taken, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError

_DNS_ATTRIBUTES = ("EnableDnsSupport", "EnableDnsHostnames")


def _create_vpc(context: Context, request: Properties) -> Properties:
    ec2 = context.client("ec2")
    vpc_id = ec2.create_vpc(**without(request, *_DNS_ATTRIBUTES))["Vpc"]["VpcId"]
    for attribute, value in taken(request, _DNS_ATTRIBUTES).items():
        ec2.modify_vpc_attribute(VpcId=vpc_id, **{attribute: {"Value": value}})
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "group-name", "Values": ["default"]}]
    return {"VpcId": vpc_id, **ec2.describe_security_groups(Filters=filters)["SecurityGroups"][0]}


def _assign_public_addresses(context: Context, subnet: Physical, _: Properties, properties: Properties) -> None:
    """Have a subnet assign public addresses only if the template says so.

    Always stated: moto takes the first subnet of a zone for a default one, which assigns public addresses.
    """
    public = {"Value": properties.get("MapPublicIpOnLaunch", False)}
    context.client("ec2").modify_subnet_attribute(SubnetId=subnet.ref, MapPublicIpOnLaunch=public)


def _attach_gateway(context: Context, request: Properties) -> Properties:
    context.client("ec2").attach_internet_gateway(**request)
    return {"GatewayAttachmentId": f"IGW|{request['VpcId']}"}


def _create_route(context: Context, request: Properties) -> Properties:
    context.client("ec2").create_route(**request)
    return {"RouteId": f"{request['RouteTableId']}|{request['DestinationCidrBlock']}"}


def _associate_route_table(context: Context, request: Properties) -> Properties:
    """Associate subnet and route table, in place of what the subnet is associated with already.

    So a template can lead a subnet to another table, although the old association is deleted only afterwards.
    """
    ec2, subnet_id = context.client("ec2"), request["SubnetId"]
    tables = ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}])
    until_now = [
        each["RouteTableAssociationId"]
        for table in tables["RouteTables"]
        for each in table["Associations"]
        if each.get("SubnetId") == subnet_id
    ]
    if not until_now:
        return dict(ec2.associate_route_table(**request))
    table_id = request["RouteTableId"]
    answer = ec2.replace_route_table_association(AssociationId=until_now[0], RouteTableId=table_id)
    return {"AssociationId": answer["NewAssociationId"]}


def _create_nat_gateway(context: Context, request: Properties) -> Properties:
    """Make a public gateway; it is available at once.

    Raises:
        UnsupportedError: It is to be private.
    """
    if request.get("ConnectivityType", "public") != "public":
        raise UnsupportedError(f"AWS::EC2::NatGateway: ConnectivityType {request['ConnectivityType']}")
    gateway: Properties = context.client("ec2").create_nat_gateway(**request)["NatGateway"]
    if gateway["State"] == "failed":
        context.client("ec2").delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])
        raise ResourceError(
            f"NatGateway {gateway['NatGatewayId']} is in state failed and hence failed to stabilize. "
            f"Detailed failure message: {gateway['FailureMessage']}"
        )
    return gateway


def _change_addresses(context: Context, physical: Physical, properties: Properties, _: set[str]) -> None:
    ec2, gateway_id = context.client("ec2"), physical.ref
    old, new = (set(each.get("SecondaryAllocationIds", [])) for each in (context.previous, properties))
    if added := sorted(new - old):
        ec2.associate_nat_gateway_address(NatGatewayId=gateway_id, AllocationIds=added)
    gateway = ec2.describe_nat_gateways(NatGatewayIds=[gateway_id])["NatGateways"][0]
    removed = [each["AssociationId"] for each in gateway["NatGatewayAddresses"] if each["AllocationId"] in old - new]
    if removed:
        ec2.disassociate_nat_gateway_address(NatGatewayId=gateway_id, AssociationIds=removed)


def _delete_endpoint(context: Context, physical: Physical, _: Properties) -> None:
    answer = context.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[physical.ref])
    _raise_failures(answer, "InvalidVpcEndpoint.NotFound")


def _create_flow_log(context: Context, request: Properties) -> Properties:
    request["ResourceIds"] = [request.pop("ResourceId")]
    answer = context.client("ec2").create_flow_logs(**request)
    _raise_failures(answer)
    return {"FlowLogId": answer["FlowLogIds"][0]}


def _raise_failures(answer: Mapping[str, Any], *accepted: str) -> None:
    for failure in answer["Unsuccessful"]:
        if failure["Error"]["Code"] not in accepted:
            raise ResourceError(failure["Error"]["Message"])


MODELS: Mapping[str, Model] = {
    "AWS::EC2::EIP": EC2(
        "address",
        "PublicIp",
        {"AllocationId": "AllocationId", "PublicIp": "PublicIp"},
        id="AllocationId",
        creation="allocate_address",
        deletion="release_address",
        tag_type="elastic-ip",
    ),
    "AWS::EC2::FlowLog": EC2(
        "flow_log",
        creation=_create_flow_log,
        deletion=lambda context, log, _: context.client("ec2").delete_flow_logs(FlowLogIds=[log.ref]),
        tag_type="vpc-flow-log",
    ),
    "AWS::EC2::InternetGateway": EC2(
        "internet_gateway", attributes={"InternetGatewayId": "InternetGatewayId"}, properties=("Tags",)
    ),
    "AWS::EC2::NatGateway": EC2(
        "nat_gateway",
        creation=_create_nat_gateway,
        modification=_change_addresses,
        tag_type="natgateway",
        mutable=("SecondaryAllocationIds", "Tags"),
    ),
    "AWS::EC2::Route": EC2(
        "route",
        creation=_create_route,
        deletion=lambda context, _, properties: context.client("ec2").delete_route(
            **taken(properties, ("DestinationCidrBlock", "RouteTableId"))
        ),
        mutable=(),
    ),
    "AWS::EC2::RouteTable": EC2("route_table"),
    "AWS::EC2::Subnet": EC2(
        "subnet",
        attributes={"AvailabilityZone": "AvailabilityZone"},
        later=("MapPublicIpOnLaunch",),
        configuration=_assign_public_addresses,
    ),
    "AWS::EC2::SubnetRouteTableAssociation": EC2(
        "route_table",
        "AssociationId",
        creation=_associate_route_table,
        deletion="disassociate_route_table",
        mutable=(),
    ),
    "AWS::EC2::VPC": EC2(
        "vpc",
        attributes={"CidrBlock": "CidrBlock", "DefaultSecurityGroup": "GroupId", "VpcId": "VpcId"},
        creation=_create_vpc,
    ),
    "AWS::EC2::VPCEndpoint": EC2(
        "vpc_endpoint",
        parameters=lambda given: {"PrivateDnsEnabled": False, "VpcEndpointType": "Gateway", **given},
        deletion=_delete_endpoint,
    ),
    "AWS::EC2::VPCGatewayAttachment": EC2(
        "gateway_attachment",
        creation=_attach_gateway,
        deletion=lambda context, _, properties: context.client("ec2").detach_internet_gateway(**properties),
        mutable=(),
    ),
}
