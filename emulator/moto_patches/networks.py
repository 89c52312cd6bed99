"""EC2's networks: what depends on what, NAT gateways, routes and endpoints."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from typing import Any, cast

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models import (
    elastic_block_store,
    elastic_network_interfaces,
    managed_prefixes,
    security_groups,
    subnets,
    vpcs,
)
from moto.ec2.models.availability_zones_and_regions import Zone
from moto.ec2.models.internet_gateways import InternetGateway
from moto.ec2.models.nat_gateways import NatGateway
from moto.ec2.models.route_tables import Route
from moto.ec2.models.security_groups import SecurityGroupRule
from moto.ec2.models.vpcs import VPC, VPCEndPoint
from moto.ec2.responses import EC2Response
from moto.ec2.utils import random_eip_association_id, random_private_ip

from emulator.moto_patches.tags import chosen_id, requested_tags


class Rule(SecurityGroupRule):
    """A rule whose description is not part of what it is: moto takes rules between groups for different ones then."""

    def __eq__(self, other: SecurityGroupRule) -> bool:  # type: ignore[override]
        return _identity(self) == _identity(other)

    def __hash__(self) -> int:
        return hash(_identity(self))


class NetworkInterface(elastic_network_interfaces.NetworkInterface):
    """A network interface whose public address is Amazon's, unless it is an Elastic IP address.

    moto reads the names of attributes out of the name of the class.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_NetworkInterfaceAssociation.html
    """

    @property
    def association(self) -> dict[str, Any]:
        own = dict(super().association)
        return {**own, "ipOwnerId": "amazon"} if own and not own.get("allocationId") else own


class Networks(EC2Response):
    """EC2 that refuses to delete what is in use, with the codes of the EC2 API reference, "Error codes"."""

    def describe_availability_zones(self) -> ActionResult:
        answer = super().describe_availability_zones()
        for zone in cast(dict[str, list[Zone]], answer.result)["AvailabilityZones"]:
            vars(zone).setdefault("opt_in_status", "opt-in-not-required")  # as EC2 says of all but Local Zones
        return answer

    def create_vpc(self) -> ActionResult:
        with chosen_id(vpcs, "random_vpc_id", requested_tags(self, "vpc")):
            answer = super().create_vpc()
        # EC2 lets the members of a default group reach each other; moto has no such rule.
        default = self.ec2_backend.get_default_security_group(cast(dict[str, VPC], answer.result)["Vpc"].id).id
        self.ec2_backend.authorize_security_group_ingress(default, "-1", None, None, [], None, [{"GroupId": default}])
        return answer

    def delete_vpc(self) -> ActionResult:
        ec2, vpc_id = self.ec2_backend, self._get_param("VpcId")
        ec2.get_vpc(vpc_id)
        dependents = (
            any(gateway.vpc and gateway.vpc.id == vpc_id for gateway in ec2.internet_gateways.values()),
            any(not group.is_default for group in ec2.groups[vpc_id].values()),
            any(interface.vpc_id == vpc_id for interface in ec2.enis.values()),
            any(endpoint.vpc_id == vpc_id for endpoint in ec2.vpc_end_points.values()),
            any(acl.vpc_id == vpc_id and not acl.default for acl in ec2.network_acls.values()),
            len(ec2.describe_route_tables(filters={"vpc-id": [vpc_id]})) > 1,  # the main one goes with the VPC
            bool(ec2.describe_subnets(filters={"vpc-id": [vpc_id]})),
        )
        if any(dependents):
            raise DependencyViolationError(f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")
        for acl in [acl for acl in ec2.network_acls.values() if acl.vpc_id == vpc_id]:
            del ec2.network_acls[acl.id]
        for flow_log in [each for each in ec2.flow_logs.values() if each.resource_id == vpc_id]:
            del ec2.flow_logs[flow_log.id]
        return super().delete_vpc()

    def create_subnet(self) -> ActionResult:
        with chosen_id(subnets, "random_subnet_id", requested_tags(self, "subnet")):
            return super().create_subnet()

    def create_security_group(self) -> ActionResult:
        with chosen_id(security_groups, "random_security_group_id", requested_tags(self, "security-group")):
            return super().create_security_group()

    def create_managed_prefix_list(self) -> ActionResult:
        with chosen_id(managed_prefixes, "random_managed_prefix_list_id", requested_tags(self, "prefix-list")):
            return super().create_managed_prefix_list()

    def create_volume(self) -> ActionResult:
        with chosen_id(elastic_block_store, "random_volume_id", requested_tags(self, "volume")):
            return super().create_volume()

    def create_snapshot(self) -> ActionResult:
        with chosen_id(elastic_block_store, "random_snapshot_id", requested_tags(self, "snapshot")):
            return super().create_snapshot()

    def delete_subnet(self) -> ActionResult:
        ec2, subnet_id = self.ec2_backend, self._get_param("SubnetId")
        ec2.get_subnet(subnet_id)
        if any(interface.subnet_id == subnet_id for interface in ec2.enis.values()):
            raise DependencyViolationError(f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")
        for table in ec2.route_tables.values():
            for association_id in [key for key, target in table._associations.items() if target == subnet_id]:
                del table._associations[association_id]
        for acl in ec2.network_acls.values():
            for association in [each for each in acl.associations if each.subnet_id == subnet_id]:
                del acl._associations[association.id]
        return super().delete_subnet()

    # Gateways and routes

    def detach_internet_gateway(self) -> ActionResult:
        vpc_id = self._get_param("VpcId")
        if any(interface.vpc_id == vpc_id and interface.public_ip for interface in self.ec2_backend.enis.values()):
            raise DependencyViolationError(
                f"Network {vpc_id} has some mapped public address(es). Please unmap those public address(es) before "
                "detaching the gateway."
            )
        return super().detach_internet_gateway()

    def create_route(self) -> ActionResult:
        """Refuse a route to an internet gateway of another network, or of none yet."""
        ec2 = self.ec2_backend
        table = ec2.get_route_table(self._get_param("RouteTableId"))
        gateway_id = self._get_param("GatewayId") or ""
        if gateway_id.startswith("igw-"):
            gateway = ec2.get_internet_gateway(gateway_id)
            if gateway.vpc is None or gateway.vpc.id != table.vpc_id:
                raise EC2ClientError(
                    "InvalidParameterValue",
                    f"route table {table.id} and network gateway {gateway_id} belong to different networks",
                )
        return super().create_route()

    def delete_route_table(self) -> ActionResult:
        answer = super().delete_route_table()
        for endpoint in self.ec2_backend.vpc_end_points.values():
            if self._get_param("RouteTableId") in endpoint.route_table_ids:
                endpoint.route_table_ids.remove(self._get_param("RouteTableId"))
        return answer

    # Addresses and NAT gateways

    def release_address(self) -> ActionResult:
        if allocation_id := self._get_param("AllocationId"):
            address = self.ec2_backend.address_by_allocation([allocation_id])[0]
            if address.association_id:
                raise EC2ClientError("InvalidIPAddress.InUse", f"Address {address.public_ip} is in use.")
        return super().release_address()

    def create_nat_gateway(self) -> ActionResult:
        answer = super().create_nat_gateway()
        gateway = cast(dict[str, NatGateway], answer.result)["NatGateway"]
        gateway.connectivity_type = gateway.connectivity_type or "public"
        subnet = self.ec2_backend.get_subnet(gateway.subnet_id)
        gateway._eni.description = f"Interface for NAT Gateway {gateway.id}"
        gateway._eni.private_ip_address = self._get_param("PrivateIpAddress") or random_private_ip(subnet.cidr_block)
        gateway.address_set[0] |= {"privateIp": gateway._eni.private_ip_address, "isPrimary": True}
        attached = any(
            internet_gateway.vpc and internet_gateway.vpc.id == gateway.vpc_id
            for internet_gateway in self.ec2_backend.internet_gateways.values()
        )
        if gateway.connectivity_type == "public" and not attached:
            # A gateway that cannot work is made, and fails a little later.
            gateway.state = "failed"
            vars(gateway)["failure_code"] = "Gateway.NotAttached"
            vars(gateway)["failure_message"] = f"Network {gateway.vpc_id} has no Internet gateway attached"
            self._disconnect(gateway)
        else:
            self._add_addresses(gateway, self._get_param("SecondaryAllocationIds", []))
        return answer

    def delete_nat_gateway(self) -> ActionResult:
        gateway = self._nat_gateway(self._get_param("NatGatewayId"))
        if gateway.state != "deleted":
            self._disconnect(gateway)
        return super().delete_nat_gateway()

    def associate_nat_gateway_address(self) -> ActionResult:
        gateway = self._nat_gateway(self._get_param("NatGatewayId"))
        self._add_addresses(gateway, self._get_param("AllocationIds"))
        return ActionResult({"NatGatewayId": gateway.id, "NatGatewayAddresses": gateway.nat_gateway_addresses})

    def disassociate_nat_gateway_address(self) -> ActionResult:
        gateway = self._nat_gateway(self._get_param("NatGatewayId"))
        association_ids = self._get_param("AssociationIds")
        for association_id in association_ids:
            self.ec2_backend.disassociate_address(association_id=association_id)
        gateway.address_set = [each for each in gateway.address_set if each["associationId"] not in association_ids]
        gateway._eni.public_ip = gateway.address_set[0]["publicIp"]
        return ActionResult({"NatGatewayId": gateway.id, "NatGatewayAddresses": gateway.nat_gateway_addresses})

    def _nat_gateway(self, gateway_id: str) -> NatGateway:
        if gateway_id not in self.ec2_backend.nat_gateways:
            raise EC2ClientError("NatGatewayNotFound", f"NAT gateway {gateway_id} was not found")
        gateway: NatGateway = self.ec2_backend.nat_gateways[gateway_id]
        return gateway

    def _add_addresses(self, gateway: NatGateway, allocation_ids: list[str]) -> None:
        for allocation_id in allocation_ids:
            address = self.ec2_backend.address_by_allocation([allocation_id])[0]
            address.eni = gateway._eni
            address.association_id = random_eip_association_id()
            gateway.address_set.append(
                {
                    "allocationId": address.allocation_id,
                    "associationId": address.association_id,
                    "isPrimary": False,
                    "networkInterfaceId": gateway._eni.id,
                    "privateIp": random_private_ip(self.ec2_backend.get_subnet(gateway.subnet_id).cidr_block),
                    "publicIp": address.public_ip,
                }
            )

    def _disconnect(self, gateway: NatGateway) -> None:
        """Free a NAT gateway's addresses and network interface, if it still has them."""
        for address in gateway.address_set:
            if "associationId" in address:
                self.ec2_backend.disassociate_address(association_id=address.pop("associationId"))
        if gateway._eni.id in self.ec2_backend.enis:
            self.ec2_backend.delete_network_interface(gateway._eni.id)

    # Interfaces and security groups

    def create_network_interface(self) -> ActionResult:
        subnet = self.ec2_backend.get_subnet(self._get_param("SubnetId"))
        self._check_groups(self._get_param("Groups", []), subnet)
        return super().create_network_interface()

    def _check_groups(self, group_ids: list[str], subnet: Any) -> None:
        for group_id in group_ids:
            group = self.ec2_backend.get_security_group_from_id(group_id)
            if group is None:
                raise EC2ClientError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
            if group.vpc_id != subnet.vpc_id:
                raise EC2ClientError(
                    "InvalidParameter",
                    f"Security group {group_id} and subnet {subnet.id} belong to different networks.",
                )

    def delete_security_group(self) -> ActionResult:
        group_id = self._get_param("GroupId")
        group = self.ec2_backend.get_security_group_from_id(group_id)
        if group:
            of_interfaces = (each for interface in self.ec2_backend.enis.values() for each in interface.group_set)
            others = (each for each in self.ec2_backend.groups[group.vpc_id].values() if each is not group)
            of_rules = (rule.source_group for other in others for rule in (*other.ingress_rules, *other.egress_rules))
            if group in of_interfaces or group_id in (each.get("GroupId") for each in of_rules):
                raise DependencyViolationError(f"resource {group_id} has a dependent object")
        return super().delete_security_group()

    # Endpoints

    def describe_vpc_endpoint_services(self) -> ActionResult:
        if "Filters" in self.params:  # whose values moto looks for under another name
            self.params["Filters"] = [{**each, "Value": each["Values"]} for each in self.params["Filters"]]
        return super().describe_vpc_endpoint_services()

    def create_vpc_endpoint(self) -> ActionResult:
        # It raises InvalidServiceName for a service that the Region does not have.
        self.ec2_backend.describe_vpc_endpoint_services([self._get_param("ServiceName")], [], None, None, self.region)
        answer = super().create_vpc_endpoint()
        endpoint = cast(dict[str, VPCEndPoint], answer.result)["VpcEndpoint"]
        endpoint.vpc_endpoint_type = endpoint.vpc_endpoint_type or "Gateway"
        if endpoint.vpc_endpoint_type == "Interface":
            ec2 = self.ec2_backend
            endpoint.security_group_ids = endpoint.security_group_ids or [
                ec2.get_default_security_group(endpoint.vpc_id).id
            ]
            for interface in (ec2.enis[each] for each in endpoint.network_interface_ids):
                interface.description = f"VPC Endpoint Interface {endpoint.id}"
                interface._group_set = [ec2.get_security_group_from_id(each) for each in endpoint.security_group_ids]
        return answer

    def delete_vpc_endpoints(self) -> ActionResult:
        answer = super().delete_vpc_endpoints()
        for endpoint_id in self._get_param("VpcEndpointIds"):
            self.ec2_backend.vpc_end_points.pop(endpoint_id, None)
        return answer


def _identity(rule: SecurityGroupRule) -> tuple[Any, ...]:
    peers = (rule.cidr_ipv4, rule.cidr_ipv6, rule.source_group.get("GroupId"), rule.prefix_list_id)
    return rule.ip_protocol, rule.from_port, rule.to_port, *peers


def find_black_holes() -> None:
    """Let routes tell when their target is gone; moto calls all of them active.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Route.html, State;
    https://docs.aws.amazon.com/vpc/latest/userguide/nat-gateway-working-with.html
    """
    Route.state = property(_state)  # type: ignore[assignment, method-assign]


def _state(route: Route) -> str:
    detached = isinstance(route.gateway, InternetGateway) and route.gateway.vpc is None
    deleted = route.nat_gateway is not None and route.nat_gateway.state == "deleted"
    return "blackhole" if detached or deleted else "active"
