"""Amazon VPC: networks, subnets, gateways, routes, endpoints and flow logs."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import Ec2Model, retag_ec2, tag_specifications, taken, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError

_DNS_ATTRIBUTES = ("EnableDnsSupport", "EnableDnsHostnames")


class Vpc(Ec2Model):
    """AWS::EC2::VPC."""

    noun = "vpc"

    def create(self, context: Context, properties: Properties) -> Physical:
        ec2 = context.client("ec2")
        vpc_id = self._make(context, without(properties, *_DNS_ATTRIBUTES))["VpcId"]
        for attribute, value in taken(properties, _DNS_ATTRIBUTES).items():
            ec2.modify_vpc_attribute(VpcId=vpc_id, **{attribute: {"Value": value}})
        filters = [{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "group-name", "Values": ["default"]}]
        group = ec2.describe_security_groups(Filters=filters)["SecurityGroups"][0]
        return Physical(vpc_id, {"DefaultSecurityGroup": group["GroupId"]})


class Subnet(Ec2Model):
    """AWS::EC2::Subnet."""

    noun = "subnet"

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the subnet; it assigns public addresses only if the template says so."""
        made = self._make(context, without(properties, "MapPublicIpOnLaunch"))
        subnet_id = made["SubnetId"]
        public = properties.get("MapPublicIpOnLaunch", False)
        # Always stated: moto takes the first subnet of a zone for a default one, which assigns public addresses.
        context.client("ec2").modify_subnet_attribute(SubnetId=subnet_id, MapPublicIpOnLaunch={"Value": public})
        return Physical(subnet_id, {"AvailabilityZone": made["AvailabilityZone"]})


class InternetGateway(Ec2Model):
    """AWS::EC2::InternetGateway."""

    noun = "internet_gateway"
    properties = ("Tags",)


class VpcGatewayAttachment(Model):
    """AWS::EC2::VPCGatewayAttachment, of an internet gateway."""

    def create(self, context: Context, properties: Properties) -> Physical:
        context.client("ec2").attach_internet_gateway(**properties)
        return Physical(f"IGW|{properties['VpcId']}")

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("ec2").detach_internet_gateway(**properties)


class RouteTable(Ec2Model):
    """AWS::EC2::RouteTable."""

    noun = "route_table"


class Route(Model):
    """AWS::EC2::Route, to a gateway."""

    def create(self, context: Context, properties: Properties) -> Physical:
        context.client("ec2").create_route(**properties)
        return Physical(f"{properties['RouteTableId']}|{properties['DestinationCidrBlock']}")

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("ec2").delete_route(**taken(properties, ("DestinationCidrBlock", "RouteTableId")))


class SubnetRouteTableAssociation(Model):
    """AWS::EC2::SubnetRouteTableAssociation."""

    properties = ("RouteTableId", "SubnetId")

    def create(self, context: Context, properties: Properties) -> Physical:
        """Associate subnet and route table, in place of what the subnet is associated with already.

        So a template can lead a subnet to another table, although the old association is deleted only afterwards.
        """
        ec2 = context.client("ec2")
        subnet_id, table_id = properties["SubnetId"], properties["RouteTableId"]
        tables = ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}])
        until_now = [
            each["RouteTableAssociationId"]
            for table in tables["RouteTables"]
            for each in table["Associations"]
            if each.get("SubnetId") == subnet_id
        ]
        if until_now:
            answer = ec2.replace_route_table_association(AssociationId=until_now[0], RouteTableId=table_id)
            return Physical(answer["NewAssociationId"])
        return Physical(ec2.associate_route_table(SubnetId=subnet_id, RouteTableId=table_id)["AssociationId"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("ec2").disassociate_route_table(AssociationId=physical.ref)


class ElasticIp(Model):
    """AWS::EC2::EIP."""

    mutable = ("Tags",)

    def create(self, context: Context, properties: Properties) -> Physical:
        tags = tag_specifications(properties, "elastic-ip")
        address = context.client("ec2").allocate_address(**without(properties, "Tags"), **tags)
        return Physical(address["PublicIp"], taken(address, ("AllocationId", "PublicIp")))

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        retag_ec2(context, physical.attributes["AllocationId"], properties)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("ec2").release_address(AllocationId=physical.attributes["AllocationId"])


class NatGateway(Ec2Model):
    """AWS::EC2::NatGateway."""

    noun = "nat_gateway"
    tag_type = "natgateway"
    mutable = ("SecondaryAllocationIds", "Tags")

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the gateway; it is available at once."""
        gateway = self._make(context, properties)
        physical = Physical(gateway["NatGatewayId"])
        if gateway["State"] == "failed":
            self.delete(context, physical, properties)
            raise ResourceError(
                f"NatGateway {physical.ref} is in state failed and hence failed to stabilize. "
                f"Detailed failure message: {gateway['FailureMessage']}"
            )
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        ec2, gateway_id = context.client("ec2"), physical.ref
        old, new = (set(each.get("SecondaryAllocationIds", [])) for each in (context.previous, properties))
        if added := sorted(new - old):
            ec2.associate_nat_gateway_address(NatGatewayId=gateway_id, AllocationIds=added)
        gateway = ec2.describe_nat_gateways(NatGatewayIds=[gateway_id])["NatGateways"][0]
        removed = [
            each["AssociationId"] for each in gateway["NatGatewayAddresses"] if each["AllocationId"] in old - new
        ]
        if removed:
            ec2.disassociate_nat_gateway_address(NatGatewayId=gateway_id, AssociationIds=removed)
        return super().update(context, physical, properties, changed)


class VpcEndpoint(Ec2Model):
    """AWS::EC2::VPCEndpoint, of type Gateway or Interface."""

    noun = "vpc_endpoint"

    def create(self, context: Context, properties: Properties) -> Physical:
        defaults = {"PrivateDnsEnabled": False, "VpcEndpointType": "Gateway"}
        return super().create(context, {**defaults, **properties})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        answer = context.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[physical.ref])
        for failure in answer["Unsuccessful"]:
            if failure["Error"]["Code"] != "InvalidVpcEndpoint.NotFound":
                raise ResourceError(failure["Error"]["Message"])


class FlowLog(Ec2Model):
    """AWS::EC2::FlowLog."""

    def create(self, context: Context, properties: Properties) -> Physical:
        answer = context.client("ec2").create_flow_logs(
            ResourceIds=[properties["ResourceId"]],
            **without(properties, "ResourceId", "Tags"),
            **tag_specifications(properties, "vpc-flow-log"),
        )
        for failure in answer["Unsuccessful"]:
            raise ResourceError(failure["Error"]["Message"])
        return Physical(answer["FlowLogIds"][0])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("ec2").delete_flow_logs(FlowLogIds=[physical.ref])


MODELS: Mapping[str, Model] = {
    "AWS::EC2::EIP": ElasticIp(),
    "AWS::EC2::FlowLog": FlowLog(),
    "AWS::EC2::InternetGateway": InternetGateway(),
    "AWS::EC2::NatGateway": NatGateway(),
    "AWS::EC2::Route": Route(),
    "AWS::EC2::RouteTable": RouteTable(),
    "AWS::EC2::Subnet": Subnet(),
    "AWS::EC2::SubnetRouteTableAssociation": SubnetRouteTableAssociation(),
    "AWS::EC2::VPC": Vpc(),
    "AWS::EC2::VPCEndpoint": VpcEndpoint(),
    "AWS::EC2::VPCGatewayAttachment": VpcGatewayAttachment(),
}
