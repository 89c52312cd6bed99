"""Amazon VPC: networks, subnets, gateways, routes, endpoints and flow logs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.resources.common import Ec2Model, retag_ec2, tag_specifications, taken, undone_on_failure, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError

_DNS_ATTRIBUTES = {"EnableDnsSupport": True, "EnableDnsHostnames": False}
"""Attributes of a VPC, with what they are unless a template says otherwise."""

_ROUTE_DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
_ROUTE_TARGETS = (
    "EgressOnlyInternetGatewayId",
    "GatewayId",
    "InstanceId",
    "NatGatewayId",
    "NetworkInterfaceId",
    "VpcEndpointId",
    "VpcPeeringConnectionId",
)


class Vpc(Ec2Model):
    """AWS::EC2::VPC."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the VPC and set its attributes."""
        ec2 = context.client("ec2")
        request = {**taken(properties, ("CidrBlock", "InstanceTenancy")), **tag_specifications(properties, "vpc")}
        vpc = ec2.create_vpc(**request)["Vpc"]
        vpc_id = vpc["VpcId"]
        with undone_on_failure(lambda: ec2.delete_vpc(VpcId=vpc_id)):
            for attribute, value in taken(properties, _DNS_ATTRIBUTES).items():
                ec2.modify_vpc_attribute(VpcId=vpc_id, **{attribute: {"Value": value}})
        of_vpc = {"Name": "vpc-id", "Values": [vpc_id]}
        groups = ec2.describe_security_groups(Filters=[of_vpc, {"Name": "group-name", "Values": ["default"]}])
        acls = ec2.describe_network_acls(Filters=[of_vpc, {"Name": "default", "Values": ["true"]}])
        attributes = {
            "VpcId": vpc_id,
            "CidrBlock": vpc["CidrBlock"],
            "CidrBlockAssociations": [each["AssociationId"] for each in vpc["CidrBlockAssociationSet"]],
            "DefaultNetworkAcl": acls["NetworkAcls"][0]["NetworkAclId"],
            "DefaultSecurityGroup": groups["SecurityGroups"][0]["GroupId"],
            "Ipv6CidrBlocks": [],
        }
        return Physical(vpc_id, attributes)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the attributes, the tenancy and the tags."""
        ec2 = context.client("ec2")
        for attribute in changed & _DNS_ATTRIBUTES.keys():
            value = properties.get(attribute, _DNS_ATTRIBUTES[attribute])
            ec2.modify_vpc_attribute(VpcId=physical.ref, **{attribute: {"Value": value}})
        if "InstanceTenancy" in changed:
            ec2.modify_vpc_tenancy(VpcId=physical.ref, InstanceTenancy=properties.get("InstanceTenancy", "default"))
        changed -= {*_DNS_ATTRIBUTES, "InstanceTenancy"}
        return super().update(context, physical, properties, changed)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the VPC."""
        with unless_gone("InvalidVpcID.NotFound"):
            context.client("ec2").delete_vpc(VpcId=physical.ref)


class Subnet(Ec2Model):
    """AWS::EC2::Subnet."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the subnet; it assigns public addresses only if the template says so."""
        ec2 = context.client("ec2")
        public = properties.pop("MapPublicIpOnLaunch", False)
        keys = ("VpcId", "CidrBlock", "AvailabilityZone", "AvailabilityZoneId")
        request = {**taken(properties, keys), **tag_specifications(properties, "subnet")}
        subnet = ec2.create_subnet(**request)["Subnet"]
        subnet_id = subnet["SubnetId"]
        # Always stated: moto takes the first subnet of a zone for a default one, which assigns public addresses.
        ec2.modify_subnet_attribute(SubnetId=subnet_id, MapPublicIpOnLaunch={"Value": public})
        acls = ec2.describe_network_acls(Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}])
        associations = {
            each["SubnetId"]: each["NetworkAclAssociationId"] for each in acls["NetworkAcls"][0]["Associations"]
        }
        attributes = {
            **{key: subnet[key] for key in ("SubnetId", *keys)},
            "Ipv6CidrBlocks": [],
            "NetworkAclAssociationId": associations[subnet_id],
        }
        return Physical(subnet_id, attributes)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the tags, and whether instances get a public address."""
        if "MapPublicIpOnLaunch" in changed:
            public = properties.get("MapPublicIpOnLaunch", False)
            context.client("ec2").modify_subnet_attribute(SubnetId=physical.ref, MapPublicIpOnLaunch={"Value": public})
            changed.remove("MapPublicIpOnLaunch")
        return super().update(context, physical, properties, changed)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the subnet."""
        with unless_gone("InvalidSubnetID.NotFound"):
            context.client("ec2").delete_subnet(SubnetId=physical.ref)


class InternetGateway(Ec2Model):
    """AWS::EC2::InternetGateway."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the gateway."""
        request = tag_specifications(properties, "internet-gateway")
        gateway = context.client("ec2").create_internet_gateway(**request)["InternetGateway"]
        return Physical(gateway["InternetGatewayId"], {"InternetGatewayId": gateway["InternetGatewayId"]})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the gateway."""
        with unless_gone("InvalidInternetGatewayID.NotFound"):
            context.client("ec2").delete_internet_gateway(InternetGatewayId=physical.ref)


class VpcGatewayAttachment(Model):
    """AWS::EC2::VPCGatewayAttachment, of an internet gateway."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Attach the gateway."""
        request = taken(properties, ("VpcId", "InternetGatewayId"))
        context.client("ec2").attach_internet_gateway(**request)
        return Physical(f"IGW|{request['VpcId']}", {"AttachmentType": "IGW"})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Attach another gateway in place of the one until now."""
        if "InternetGatewayId" in changed:
            self._detach(context, context.previous)
            self.create(context, properties)
            changed.remove("InternetGatewayId")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Detach the gateway."""
        self._detach(context, properties)

    def _detach(self, context: Context, properties: Mapping[str, Any]) -> None:
        with unless_gone("Gateway.NotAttached", "InvalidInternetGatewayID.NotFound"):
            context.client("ec2").detach_internet_gateway(
                VpcId=properties["VpcId"], InternetGatewayId=properties["InternetGatewayId"]
            )


class RouteTable(Ec2Model):
    """AWS::EC2::RouteTable."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the route table."""
        request = {**taken(properties, ("VpcId",)), **tag_specifications(properties, "route-table")}
        table = context.client("ec2").create_route_table(**request)["RouteTable"]
        return Physical(table["RouteTableId"], {"RouteTableId": table["RouteTableId"]})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the route table."""
        with unless_gone("InvalidRouteTableID.NotFound"):
            context.client("ec2").delete_route_table(RouteTableId=physical.ref)


class Route(Model):
    """AWS::EC2::Route."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Add the route."""
        request = taken(properties, ("RouteTableId", *_ROUTE_DESTINATIONS, *_ROUTE_TARGETS))
        context.client("ec2").create_route(**request)
        destination = next(request[key] for key in _ROUTE_DESTINATIONS if key in request)
        return Physical(f"{request['RouteTableId']}|{destination}", {"CidrBlock": destination})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Lead the route elsewhere."""
        if changed & set(_ROUTE_TARGETS):
            context.client("ec2").replace_route(**properties)
            changed -= set(_ROUTE_TARGETS)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the route."""
        with unless_gone("InvalidRoute.NotFound", "InvalidRouteTableID.NotFound"):
            context.client("ec2").delete_route(**taken(properties, ("RouteTableId", *_ROUTE_DESTINATIONS)))


class SubnetRouteTableAssociation(Model):
    """AWS::EC2::SubnetRouteTableAssociation."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Associate subnet and route table, in place of what the subnet is associated with already.

        So a template can lead a subnet to another table, although the old association is deleted only afterwards.
        """
        ec2 = context.client("ec2")
        subnet_id, table_id = properties.pop("SubnetId"), properties.pop("RouteTableId")
        tables = ec2.describe_route_tables(Filters=[{"Name": "association.subnet-id", "Values": [subnet_id]}])
        until_now = [
            each["RouteTableAssociationId"]
            for table in tables["RouteTables"]
            for each in table["Associations"]
            if each.get("SubnetId") == subnet_id
        ]
        if until_now:
            answer = ec2.replace_route_table_association(AssociationId=until_now[0], RouteTableId=table_id)
            association_id = answer["NewAssociationId"]
        else:
            association_id = ec2.associate_route_table(SubnetId=subnet_id, RouteTableId=table_id)["AssociationId"]
        return Physical(association_id, {"Id": association_id})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Leave the subnet to the VPC's main route table."""
        with unless_gone("InvalidAssociationID.NotFound"):
            context.client("ec2").disassociate_route_table(AssociationId=physical.ref)


class ElasticIp(Model):
    """AWS::EC2::EIP."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Allocate an address."""
        request = {**taken(properties, ("Domain",)), **tag_specifications(properties, "elastic-ip")}
        address = context.client("ec2").allocate_address(**request)
        attributes = {key: address[key] for key in ("AllocationId", "PublicIp")}
        return Physical(address["PublicIp"], attributes)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the tags."""
        retag_ec2(context, physical.attributes["AllocationId"], properties, changed)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Release the address."""
        with unless_gone("InvalidAllocationID.NotFound"):
            context.client("ec2").release_address(AllocationId=physical.attributes["AllocationId"])


class NatGateway(Ec2Model):
    """AWS::EC2::NatGateway."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the gateway; it is available at once."""
        keys = ("SubnetId", "AllocationId", "SecondaryAllocationIds", "ConnectivityType", "PrivateIpAddress")
        request = {**taken(properties, keys), **tag_specifications(properties, "natgateway")}
        gateway = context.client("ec2").create_nat_gateway(**request)["NatGateway"]
        if gateway["State"] == "failed":
            self.delete(context, Physical(gateway["NatGatewayId"]), properties)
            raise ResourceError(
                f"NatGateway {gateway['NatGatewayId']} is in state failed and hence failed to stabilize. "
                f"Detailed failure message: {gateway['FailureMessage']}"
            )
        interface_id = gateway["NatGatewayAddresses"][0]["NetworkInterfaceId"]
        return Physical(gateway["NatGatewayId"], {"NatGatewayId": gateway["NatGatewayId"], "EniId": interface_id})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the secondary addresses and the tags."""
        if "SecondaryAllocationIds" in changed:
            ec2 = context.client("ec2")
            old = context.previous.get("SecondaryAllocationIds", [])
            new = properties.get("SecondaryAllocationIds", [])
            if added := [each for each in new if each not in old]:
                ec2.associate_nat_gateway_address(NatGatewayId=physical.ref, AllocationIds=added)
            gateway = ec2.describe_nat_gateways(NatGatewayIds=[physical.ref])["NatGateways"][0]
            removed = [
                address["AssociationId"]
                for address in gateway["NatGatewayAddresses"]
                if address["AllocationId"] in old and address["AllocationId"] not in new
            ]
            if removed:
                ec2.disassociate_nat_gateway_address(NatGatewayId=physical.ref, AssociationIds=removed)
            changed.remove("SecondaryAllocationIds")
        return super().update(context, physical, properties, changed)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the gateway; its network interface and its addresses are free then."""
        with unless_gone("NatGatewayNotFound"):
            context.client("ec2").delete_nat_gateway(NatGatewayId=physical.ref)


class VpcEndpoint(Ec2Model):
    """AWS::EC2::VPCEndpoint, of type Gateway or Interface."""

    _LISTS = ("RouteTableIds", "SecurityGroupIds", "SubnetIds")

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the endpoint."""
        request = taken(properties, ("VpcId", "ServiceName", "VpcEndpointType", "PrivateDnsEnabled", *self._LISTS))
        request.setdefault("VpcEndpointType", "Gateway")
        request.setdefault("PrivateDnsEnabled", False)
        if "PolicyDocument" in properties:
            request["PolicyDocument"] = json.dumps(properties.pop("PolicyDocument"))
        tags = tag_specifications(properties, "vpc-endpoint")
        endpoint = context.client("ec2").create_vpc_endpoint(**request, **tags)["VpcEndpoint"]
        return self._physical(endpoint)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change route tables, subnets, security groups, private DNS, the policy and the tags."""
        ec2 = context.client("ec2")
        request: Properties = {}
        for name in changed.intersection(self._LISTS):
            old, new = (each.get(name, []) for each in (context.previous, properties))
            request[f"Add{name}"] = [each for each in new if each not in old]
            request[f"Remove{name}"] = [each for each in old if each not in new]
        if "PrivateDnsEnabled" in changed:
            request["PrivateDnsEnabled"] = properties.get("PrivateDnsEnabled", False)
        if "PolicyDocument" in changed:
            document = properties.get("PolicyDocument")
            request |= {"PolicyDocument": json.dumps(document)} if document else {"ResetPolicy": True}
        if request:
            ec2.modify_vpc_endpoint(VpcEndpointId=physical.ref, **request)
        changed -= {*self._LISTS, "PrivateDnsEnabled", "PolicyDocument"}
        super().update(context, physical, properties, changed)
        return self._physical(ec2.describe_vpc_endpoints(VpcEndpointIds=[physical.ref])["VpcEndpoints"][0])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the endpoint."""
        answer = context.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[physical.ref])
        for failure in answer["Unsuccessful"]:
            if failure["Error"]["Code"] != "InvalidVpcEndpoint.NotFound":
                raise ResourceError(failure["Error"]["Message"])

    def _physical(self, endpoint: Properties) -> Physical:
        attributes = {
            "Id": endpoint["VpcEndpointId"],
            "CreationTimestamp": endpoint["CreationTimestamp"].isoformat(),
            "DnsEntries": [f"{each['HostedZoneId']}:{each['DnsName']}" for each in endpoint.get("DnsEntries", [])],
            "NetworkInterfaceIds": endpoint.get("NetworkInterfaceIds", []),
        }
        return Physical(endpoint["VpcEndpointId"], attributes)


class FlowLog(Ec2Model):
    """AWS::EC2::FlowLog."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the flow log."""
        keys = (
            "DeliverLogsPermissionArn",
            "LogDestination",
            "LogDestinationType",
            "LogFormat",
            "LogGroupName",
            "MaxAggregationInterval",
            "ResourceType",
            "TrafficType",
        )
        request = {**taken(properties, keys), **tag_specifications(properties, "vpc-flow-log")}
        answer = context.client("ec2").create_flow_logs(ResourceIds=[properties.pop("ResourceId")], **request)
        for failure in answer["Unsuccessful"]:
            raise ResourceError(failure["Error"]["Message"])
        flow_log_id = answer["FlowLogIds"][0]
        return Physical(flow_log_id, {"Id": flow_log_id})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the flow log."""
        with unless_gone("InvalidFlowLogId.NotFound"):
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
