"""Resource types of CloudFormation, made with boto3 from a template's own properties.

A model takes the properties that it knows out of a dictionary and calls the API with them; what is left over is a
property that it does not know, and an error. So is a type without a model: nothing passes in silence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Properties = dict[str, Any]


class UnsupportedError(LookupError):
    """A template uses something that the rehearsal does not know; the message names it."""


@dataclass(frozen=True)
class Physical:
    """A resource that exists: what Ref and Fn::GetAtt give."""

    ref: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """What a model may need beside the properties.

    Attributes:
        client: Gives a boto3 client of a service in the stack's region.
        name: The name that CloudFormation would make up for the resource.
    """

    client: Callable[[str], Any]
    name: str


Model = Callable[[Context, Properties], Physical]


def create(resource_type: str, context: Context, properties: Mapping[str, Any]) -> Physical:
    """Make a resource.

    Raises:
        UnsupportedError: The type or one of the properties is unknown here.
        botocore.exceptions.ClientError: AWS would refuse it.
    """
    if resource_type not in MODELS:
        raise UnsupportedError(f"resource type {resource_type}")
    remaining = dict(properties)
    made = MODELS[resource_type](context, remaining)
    if remaining:
        raise UnsupportedError(f"{resource_type}: properties {', '.join(sorted(remaining))}")
    return made


def make_bucket(s3: Any, name: str, region: str) -> None:
    """Make a bucket unless it exists."""
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    if name not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=name, **where)


def _vpc(context: Context, properties: Properties) -> Physical:
    ec2 = context.client("ec2")
    cidr = properties.pop("CidrBlock")
    tenancy = properties.pop("InstanceTenancy", "default")
    vpc_id = ec2.create_vpc(CidrBlock=cidr, InstanceTenancy=tenancy, **_tags(properties, "vpc"))["Vpc"]["VpcId"]
    for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
        if attribute in properties:
            ec2.modify_vpc_attribute(VpcId=vpc_id, **{attribute: {"Value": properties.pop(attribute)}})
    return Physical(vpc_id, {"VpcId": vpc_id, "CidrBlock": cidr})


def _subnet(context: Context, properties: Properties) -> Physical:
    ec2 = context.client("ec2")
    public = properties.pop("MapPublicIpOnLaunch", False)
    keys = ("VpcId", "CidrBlock", "AvailabilityZone", "AvailabilityZoneId")
    subnet = ec2.create_subnet(**_taken(properties, keys), **_tags(properties, "subnet"))["Subnet"]
    # Always stated: moto takes the first subnet of a zone for a default one, which assigns public addresses.
    ec2.modify_subnet_attribute(SubnetId=subnet["SubnetId"], MapPublicIpOnLaunch={"Value": public})
    attributes = {key: subnet[key] for key in ("SubnetId", *keys)}
    return Physical(subnet["SubnetId"], attributes)


def _internet_gateway(context: Context, properties: Properties) -> Physical:
    gateway = context.client("ec2").create_internet_gateway(**_tags(properties, "internet-gateway"))["InternetGateway"]
    gateway_id = gateway["InternetGatewayId"]
    return Physical(gateway_id, {"InternetGatewayId": gateway_id})


def _gateway_attachment(context: Context, properties: Properties) -> Physical:
    context.client("ec2").attach_internet_gateway(**_taken(properties, ("VpcId", "InternetGatewayId")))
    return Physical(context.name)


def _route_table(context: Context, properties: Properties) -> Physical:
    ec2 = context.client("ec2")
    vpc_id = properties.pop("VpcId")
    table = ec2.create_route_table(VpcId=vpc_id, **_tags(properties, "route-table"))["RouteTable"]
    return Physical(table["RouteTableId"], {"RouteTableId": table["RouteTableId"]})


def _route(context: Context, properties: Properties) -> Physical:
    keys = ("RouteTableId", "DestinationCidrBlock", "GatewayId", "NatGatewayId")
    context.client("ec2").create_route(**_taken(properties, keys))
    return Physical(context.name)


def _route_table_association(context: Context, properties: Properties) -> Physical:
    association = context.client("ec2").associate_route_table(**_taken(properties, ("SubnetId", "RouteTableId")))
    return Physical(association["AssociationId"])


def _address(context: Context, properties: Properties) -> Physical:
    address = context.client("ec2").allocate_address(
        **_taken(properties, ("Domain",)), **_tags(properties, "elastic-ip")
    )
    return Physical(address["PublicIp"], {"AllocationId": address["AllocationId"], "PublicIp": address["PublicIp"]})


def _nat_gateway(context: Context, properties: Properties) -> Physical:
    keys = ("SubnetId", "AllocationId", "SecondaryAllocationIds", "ConnectivityType")
    gateway = context.client("ec2").create_nat_gateway(**_taken(properties, keys), **_tags(properties, "natgateway"))
    return Physical(gateway["NatGateway"]["NatGatewayId"])


def _security_group(context: Context, properties: Properties) -> Physical:
    ec2 = context.client("ec2")
    vpc_id = properties.pop("VpcId")
    group_id = ec2.create_security_group(
        GroupName=properties.pop("GroupName", context.name),
        Description=properties.pop("GroupDescription"),
        VpcId=vpc_id,
        **_tags(properties, "security-group"),
    )["GroupId"]
    for rule in properties.pop("SecurityGroupIngress", []):
        ec2.authorize_security_group_ingress(GroupId=group_id, IpPermissions=[_permission(rule)])
    egress = properties.pop("SecurityGroupEgress", [])
    if egress:  # EC2 lets everything out until a rule says otherwise
        default = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]["IpPermissionsEgress"]
        ec2.revoke_security_group_egress(GroupId=group_id, IpPermissions=default)
    for rule in egress:
        ec2.authorize_security_group_egress(GroupId=group_id, IpPermissions=[_permission(rule)])
    return Physical(group_id, {"GroupId": group_id, "Id": group_id, "VpcId": vpc_id})


def _ingress_rule(context: Context, properties: Properties) -> Physical:
    group_id = properties.pop("GroupId")
    permission = _permission(properties)
    context.client("ec2").authorize_security_group_ingress(GroupId=group_id, IpPermissions=[permission])
    return Physical(context.name)


def _egress_rule(context: Context, properties: Properties) -> Physical:
    group_id = properties.pop("GroupId")
    permission = _permission(properties)
    context.client("ec2").authorize_security_group_egress(GroupId=group_id, IpPermissions=[permission])
    return Physical(context.name)


def _placement_group(context: Context, properties: Properties) -> Physical:
    keys = ("Strategy", "PartitionCount", "SpreadLevel")
    context.client("ec2").create_placement_group(
        GroupName=context.name, **_taken(properties, keys), **_tags(properties, "placement-group")
    )
    return Physical(context.name, {"GroupName": context.name})


def _file_system(context: Context, properties: Properties) -> Physical:
    keys = ("FileSystemType", "StorageCapacity", "StorageType", "SubnetIds", "SecurityGroupIds", "KmsKeyId", "Tags")
    request = _taken(properties, (*keys, "FileSystemTypeVersion", "LustreConfiguration"))
    made = context.client("fsx").create_file_system(**request)["FileSystem"]
    attributes = {"DNSName": made["DNSName"], "ResourceARN": made["ResourceARN"]}
    if "LustreConfiguration" in made:
        attributes["LustreMountName"] = made["LustreConfiguration"]["MountName"]
    return Physical(made["FileSystemId"], attributes)


def _managed_policy(context: Context, properties: Properties) -> Physical:
    document = json.dumps(properties.pop("PolicyDocument"))
    name = properties.pop("ManagedPolicyName", context.name)
    made = context.client("iam").create_policy(
        PolicyName=name, PolicyDocument=document, **_taken(properties, ("Path", "Description"))
    )["Policy"]
    return Physical(made["Arn"], {"PolicyArn": made["Arn"]})


def _log_group(context: Context, properties: Properties) -> Physical:
    logs = context.client("logs")
    name = properties.pop("LogGroupName", context.name)
    tags = {tag["Key"]: tag["Value"] for tag in properties.pop("Tags", [])}
    logs.create_log_group(logGroupName=name, tags=tags)
    if "RetentionInDays" in properties:
        logs.put_retention_policy(logGroupName=name, retentionInDays=properties.pop("RetentionInDays"))
    found = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"][0]
    return Physical(name, {"Arn": found["arn"]})


MODELS: Mapping[str, Model] = {
    "AWS::EC2::EIP": _address,
    "AWS::EC2::InternetGateway": _internet_gateway,
    "AWS::EC2::NatGateway": _nat_gateway,
    "AWS::EC2::PlacementGroup": _placement_group,
    "AWS::EC2::Route": _route,
    "AWS::EC2::RouteTable": _route_table,
    "AWS::EC2::SecurityGroup": _security_group,
    "AWS::EC2::SecurityGroupEgress": _egress_rule,
    "AWS::EC2::SecurityGroupIngress": _ingress_rule,
    "AWS::EC2::Subnet": _subnet,
    "AWS::EC2::SubnetRouteTableAssociation": _route_table_association,
    "AWS::EC2::VPC": _vpc,
    "AWS::EC2::VPCGatewayAttachment": _gateway_attachment,
    "AWS::FSx::FileSystem": _file_system,
    "AWS::IAM::ManagedPolicy": _managed_policy,
    "AWS::Logs::LogGroup": _log_group,
}

COMPANIONS: Mapping[str, str] = {
    "AWS::EC2::Route": "RouteTableId",
    "AWS::EC2::SecurityGroupEgress": "GroupId",
    "AWS::EC2::SecurityGroupIngress": "GroupId",
    "AWS::EC2::SubnetRouteTableAssociation": "SubnetId",
    "AWS::EC2::VPCGatewayAttachment": "VpcId",
}
"""Types that nothing refers to, but that change what the resource in the named property does."""


def _taken(properties: Properties, keys: Sequence[str]) -> Properties:
    return {key: properties.pop(key) for key in keys if key in properties}


def _tags(properties: Properties, resource_type: str) -> Properties:
    tags = properties.pop("Tags", [])
    return {"TagSpecifications": [{"ResourceType": resource_type, "Tags": tags}]} if tags else {}


def _permission(rule: Properties) -> Properties:
    """Turn a rule's properties into the API's IpPermission; the rule is emptied of what is known."""
    permission = _taken(rule, ("IpProtocol", "FromPort", "ToPort"))
    description = {"Description": rule.pop("Description")} if "Description" in rule else {}
    targets = {
        "CidrIp": ("IpRanges", "CidrIp"),
        "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
        "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
        "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
        "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
        "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
    }
    for name, (group, member) in targets.items():
        if name in rule:
            permission[group] = [{member: rule.pop(name), **description}]
    return permission
