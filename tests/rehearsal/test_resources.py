"""Each resource type is made as its template says, changed in place, and deleted without a trace; boto3 looks."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal import resources
from rehearsal.aws import ACCOUNT, EmulatedAws
from rehearsal.inventory import inventory
from rehearsal.resources import ResourceError
from tests.rehearsal.account import REGION, Account, Resource, statement, tags, trust
from toolchain.values import UnsupportedError

S3_READ = statement(Action="s3:GetObject", Resource="*")
EC2_READ = statement(Action="ec2:Describe*", Resource="*")
PUBLIC_READ = statement(Action="s3:GetObject", Principal="*", Resource="*")
PUBLIC_LIST = statement(Action="s3:ListBucket", Principal="*", Resource="*")


@dataclass(frozen=True)
class Case:
    """A resource's life.

    Attributes:
        properties: What it is made with.
        look: What boto3 sees of it; once it is gone, nothing or an error.
        made: What that is after its creation.
        changes: Properties that are changed; None takes one away.
        changed: What boto3 sees then.
        attributes: What Fn::GetAtt gives, all names (AWS's template reference of the type, "Return values").
    """

    properties: dict[str, Any]
    look: Callable[[Resource], Any]
    made: Any
    changes: dict[str, Any]
    changed: Any
    attributes: set[str]


CASES: dict[str, Callable[[Account], Case]] = {}


def case(resource_type: str) -> Callable[[Callable[[Account], Case]], Callable[[Account], Case]]:
    def register(build: Callable[[Account], Case]) -> Callable[[Account], Case]:
        CASES[resource_type] = build
        return build

    return register


def part(described: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: described.get(key) for key in keys}


def tags_of(account: Account, resource_id: str) -> dict[str, str]:
    found = account.client("ec2").describe_tags(Filters=[{"Name": "resource-id", "Values": [resource_id]}])["Tags"]
    return {tag["Key"]: tag["Value"] for tag in found}


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


@case("AWS::EC2::PlacementGroup")
def _placement_group(account: Account) -> Case:
    def look(group: Resource) -> Any:
        found = account.client("ec2").describe_placement_groups(GroupNames=[group.ref])["PlacementGroups"][0]
        return found["Strategy"]

    return Case(
        properties={"Strategy": "cluster"},
        look=look,
        made="cluster",
        changes={},
        changed="cluster",
        attributes={"GroupName"},
    )


def _rules(account: Account, group_id: str) -> list[tuple[Any, ...]]:
    found = account.client("ec2").describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group_id]}])
    return sorted(
        (
            each["IsEgress"],
            each["IpProtocol"],
            each["FromPort"],
            each.get("CidrIpv4") or each["ReferencedGroupInfo"]["GroupId"],
            each.get("Description"),
        )
        for each in found["SecurityGroupRules"]
    )


@case("AWS::EC2::SecurityGroup")
def _security_group(account: Account) -> Case:
    def look(group: Resource) -> Any:
        account.client("ec2").describe_security_groups(GroupIds=[group.ref])
        return _rules(account, group.ref)

    def rule(port: int, description: str) -> dict[str, Any]:
        return {
            "CidrIp": "10.0.0.0/16",
            "Description": description,
            "FromPort": port,
            "IpProtocol": "tcp",
            "ToPort": port,
        }

    return Case(
        properties={
            "GroupDescription": "x",
            "VpcId": account.vpc().ref,
            "SecurityGroupIngress": [rule(1, "one"), rule(2, "two")],
            # As EC2's own rule for a new group, which CloudFormation takes away before it adds this one.
            "SecurityGroupEgress": [{"CidrIp": "0.0.0.0/0", "IpProtocol": "-1"}],
        },
        look=look,
        made=[
            (False, "tcp", 1, "10.0.0.0/16", "one"),
            (False, "tcp", 2, "10.0.0.0/16", "two"),
            (True, "-1", -1, "0.0.0.0/0", None),
        ],
        changes={"SecurityGroupIngress": [rule(1, "uno")], "SecurityGroupEgress": [rule(3, "three")]},
        changed=[(False, "tcp", 1, "10.0.0.0/16", "uno"), (True, "tcp", 3, "10.0.0.0/16", "three")],
        attributes={"GroupId", "Id", "VpcId"},
    )


@case("AWS::EC2::SecurityGroupIngress")
def _ingress(account: Account) -> Case:
    group = account.create("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId=account.vpc().ref)
    egress = (True, "-1", -1, "0.0.0.0/0", None)

    def look(_: Resource) -> Any:
        return [rule for rule in _rules(account, group.ref) if rule != egress]

    return Case(
        properties={
            "GroupId": group.ref,
            "IpProtocol": "-1",
            "SourceSecurityGroupId": group.ref,
            "Description": "members",
        },
        look=look,
        made=[(False, "-1", -1, group.ref, "members")],
        changes={"Description": "among members"},
        changed=[(False, "-1", -1, group.ref, "among members")],
        attributes={"Id"},
    )


@case("AWS::EC2::SecurityGroupEgress")
def _egress(account: Account) -> Case:
    group = account.create("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId=account.vpc().ref)

    def look(_: Resource) -> Any:
        return [rule for rule in _rules(account, group.ref) if rule[1] == "tcp"]

    return Case(
        properties={"GroupId": group.ref, "IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIp": "10.0.0.0/8"},
        look=look,
        made=[(True, "tcp", 1, "10.0.0.0/8", None)],
        changes={"Description": "out"},
        changed=[(True, "tcp", 1, "10.0.0.0/8", "out")],
        attributes={"Id"},
    )


@case("Custom::VpcRestrictDefaultSG")
def _restricted_default_group(account: Account) -> Case:
    group_id = account.vpc()["DefaultSecurityGroup"]
    open_rules = [(False, "-1", -1, group_id, None), (True, "-1", -1, "0.0.0.0/0", None)]

    def look(_: Resource) -> Any:
        rules = _rules(account, group_id)
        return [] if rules == open_rules else ["restricted", *rules]

    return Case(
        properties={
            "ServiceToken": account.function()["Arn"],
            "DefaultSecurityGroupId": group_id,
            "Account": ACCOUNT,
        },
        look=look,
        made=["restricted"],
        changes={},
        changed=["restricted"],
        attributes=set(),
    )


@case("AWS::FSx::FileSystem")
def _file_system(account: Account) -> Case:
    vpc = account.vpc()

    def look(file_system: Resource) -> Any:
        found = account.client("fsx").describe_file_systems(FileSystemIds=[file_system.ref])["FileSystems"][0]
        lustre = part(found["LustreConfiguration"], "DataCompressionType", "PerUnitStorageThroughput")
        return found["StorageCapacity"], found["FileSystemTypeVersion"], lustre, found["Tags"]

    def lustre(compression: str) -> dict[str, Any]:
        return {
            "DataCompressionType": compression,
            "DeploymentType": "PERSISTENT_2",
            "PerUnitStorageThroughput": 250,
        }

    return Case(
        properties={
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": "2.15",
            "LustreConfiguration": lustre("LZ4"),
            "SecurityGroupIds": [account.group(vpc).ref],
            "StorageCapacity": 1200,
            "SubnetIds": [account.subnet(vpc).ref],
            "Tags": tags(Name="a"),
        },
        look=look,
        made=(1200, "2.15", {"DataCompressionType": "LZ4", "PerUnitStorageThroughput": 250}, tags(Name="a")),
        changes={"LustreConfiguration": lustre("NONE"), "StorageCapacity": 2400, "Tags": tags(Name="b")},
        changed=(2400, "2.15", {"DataCompressionType": "NONE", "PerUnitStorageThroughput": 250}, tags(Name="b")),
        attributes={"DNSName", "LustreMountName", "ResourceARN"},
    )


@case("AWS::FSx::DataRepositoryAssociation")
def _data_repository_association(account: Account) -> Case:
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    uri = f"s3://{account.create('AWS::S3::Bucket').ref}/data"

    def look(link: Resource) -> Any:
        fsx = account.client("fsx")
        found = fsx.describe_data_repository_associations(AssociationIds=[link.ref])["Associations"][0]
        keys = ("FileSystemId", "FileSystemPath", "DataRepositoryPath", "Lifecycle", "S3", "Tags")
        return part(found, *keys)

    made = {
        "FileSystemId": file_system.ref,
        "FileSystemPath": "/data",
        "DataRepositoryPath": uri,
        "Lifecycle": "AVAILABLE",
        "S3": {"AutoImportPolicy": {"Events": ["NEW"]}},
        "Tags": [],
    }
    changes = {"S3": {"AutoExportPolicy": {"Events": ["CHANGED"]}}, "Tags": tags(Name="a")}
    return Case(
        properties={key: made[key] for key in ("FileSystemId", "FileSystemPath", "DataRepositoryPath", "S3")},
        look=look,
        made=made,
        changes=changes,
        changed={**made, **changes},
        attributes={"AssociationId", "ResourceARN"},
    )


@case("AWS::IAM::Role")
def _role(account: Account) -> Case:
    iam = account.client("iam")

    def look(role: Resource) -> Any:
        found = iam.get_role(RoleName=role.ref)["Role"]
        attached = iam.list_attached_role_policies(RoleName=role.ref)["AttachedPolicies"]
        return (
            part(found, "Path", "Description", "MaxSessionDuration", "AssumeRolePolicyDocument"),
            [each["PolicyName"] for each in attached],
            iam.list_role_policies(RoleName=role.ref)["PolicyNames"],
            iam.list_role_tags(RoleName=role.ref)["Tags"],
        )

    made = {
        "Path": "/x/",
        "Description": "d",
        "MaxSessionDuration": 7200,
        "AssumeRolePolicyDocument": trust("lambda"),
    }
    changed = {
        "Path": "/x/",
        "Description": "",
        "MaxSessionDuration": 3600,
        "AssumeRolePolicyDocument": trust("ec2"),
    }
    return Case(
        properties={
            **made,
            "ManagedPolicyArns": ["arn:aws:iam::aws:policy/ReadOnlyAccess"],
            "Policies": [{"PolicyName": "one", "PolicyDocument": S3_READ}],
            "Tags": tags(Name="a"),
        },
        look=look,
        made=(made, ["ReadOnlyAccess"], ["one"], tags(Name="a")),
        changes={
            "AssumeRolePolicyDocument": trust("ec2"),
            "Description": None,
            "ManagedPolicyArns": ["arn:aws:iam::aws:policy/PowerUserAccess"],
            "MaxSessionDuration": None,
            "Policies": [{"PolicyName": "two", "PolicyDocument": S3_READ}],
            "Tags": None,
        },
        changed=(changed, ["PowerUserAccess"], ["two"], []),
        attributes={"Arn", "RoleId"},
    )


@case("AWS::IAM::Policy")
def _policy(account: Account) -> Case:
    first, second = account.role().ref, account.role().ref
    iam = account.client("iam")

    def look(_: Resource) -> Any:
        return [
            (role, iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])
            for role in (first, second)
            for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
        ]

    return Case(
        properties={"PolicyName": "p", "PolicyDocument": S3_READ, "Roles": [first]},
        look=look,
        made=[(first, S3_READ)],
        changes={"PolicyDocument": EC2_READ, "Roles": [second]},
        changed=[(second, EC2_READ)],
        attributes={"Id"},
    )


@case("AWS::IAM::ManagedPolicy")
def _managed_policy(account: Account) -> Case:
    first, second = account.role().ref, account.role().ref
    iam = account.client("iam")

    def look(policy: Resource) -> Any:
        found = iam.get_policy(PolicyArn=policy.ref)["Policy"]
        version = iam.get_policy_version(PolicyArn=policy.ref, VersionId=found["DefaultVersionId"])["PolicyVersion"]
        roles = iam.list_entities_for_policy(PolicyArn=policy.ref)["PolicyRoles"]
        return found["Path"], version["Document"], [role["RoleName"] for role in roles]

    return Case(
        properties={"Description": "", "Path": "/x/", "PolicyDocument": S3_READ, "Roles": [first]},
        look=look,
        made=("/x/", S3_READ, [first]),
        changes={"PolicyDocument": EC2_READ, "Roles": [second]},
        changed=("/x/", EC2_READ, [second]),
        attributes={
            "AttachmentCount",
            "CreateDate",
            "DefaultVersionId",
            "IsAttachable",
            "PermissionsBoundaryUsageCount",
            "PolicyArn",
            "PolicyId",
            "UpdateDate",
        },
    )


@case("AWS::IAM::InstanceProfile")
def _instance_profile(account: Account) -> Case:
    first, second = account.role().ref, account.role().ref

    def look(profile: Resource) -> Any:
        found = account.client("iam").get_instance_profile(InstanceProfileName=profile.ref)["InstanceProfile"]
        return found["Path"], [role["RoleName"] for role in found["Roles"]]

    return Case(
        properties={"Path": "/x/", "Roles": [first]},
        look=look,
        made=("/x/", [first]),
        changes={"Roles": [second]},
        changed=("/x/", [second]),
        attributes={"Arn"},
    )


@case("AWS::Lambda::Function")
def _function(account: Account) -> Case:
    def look(function: Resource) -> Any:
        found = account.client("lambda").get_function(FunctionName=function.ref)
        environment = found["Configuration"].get("Environment", {}).get("Variables", {})
        configuration = part(found["Configuration"], "Handler", "MemorySize", "Runtime", "Timeout")
        return configuration, environment, found.get("Tags", {})

    made = {"Handler": "index.handler", "MemorySize": 256, "Runtime": "python3.12", "Timeout": 60}
    return Case(
        properties={
            **made,
            "Code": {"ZipFile": "def handler(event, context): return 1"},
            "Environment": {"Variables": {"A": "1"}},
            "Role": account.role()["Arn"],
            "Tags": tags(Name="a"),
        },
        look=look,
        made=(made, {"A": "1"}, {"Name": "a"}),
        changes={"Code": account.archive(), "Environment": None, "MemorySize": None, "Tags": tags(Name="b")},
        changed=({**made, "MemorySize": 128}, {}, {"Name": "b"}),
        attributes={"Arn"},
    )


@case("AWS::Lambda::Permission")
def _permission(account: Account) -> Case:
    function = account.function().ref

    def look(_: Resource) -> Any:
        policy = json.loads(account.client("lambda").get_policy(FunctionName=function)["Policy"])
        return [(each["Action"], each["Principal"]) for each in policy["Statement"]]

    permission = [("lambda:InvokeFunction", {"Service": "s3.amazonaws.com"})]
    return Case(
        properties={"Action": "lambda:InvokeFunction", "FunctionName": function, "Principal": "s3.amazonaws.com"},
        look=look,
        made=permission,
        changes={},
        changed=permission,
        attributes={"Id"},
    )


@case("AWS::Lambda::LayerVersion")
def _layer_version(account: Account) -> Case:
    def look(layer: Resource) -> Any:
        found = account.client("lambda").list_layer_versions(LayerName=layer.properties["LayerName"])["LayerVersions"]
        return [(each["LayerVersionArn"], each["CompatibleRuntimes"]) for each in found]

    arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:l:1"
    return Case(
        properties={"LayerName": "l", "Content": account.archive(), "CompatibleRuntimes": ["python3.12"]},
        look=look,
        made=[(arn, ["python3.12"])],
        changes={},
        changed=[(arn, ["python3.12"])],
        attributes={"LayerVersionArn"},
    )


@case("AWS::Logs::LogGroup")
def _log_group(account: Account) -> Case:
    logs = account.client("logs")

    def look(group: Resource) -> Any:
        return [
            (each.get("retentionInDays"), logs.list_tags_for_resource(resourceArn=each["logGroupArn"])["tags"])
            for each in logs.describe_log_groups(logGroupNamePrefix=group.ref)["logGroups"]
        ]

    return Case(
        properties={"RetentionInDays": 7, "Tags": tags(Name="a", other="b")},
        look=look,
        made=[(7, {"Name": "a", "other": "b"})],
        changes={"RetentionInDays": None, "Tags": tags(Name="c")},
        changed=[(None, {"Name": "c"})],
        attributes={"Arn"},
    )


@case("AWS::Logs::LogStream")
def _log_stream(account: Account) -> Case:
    group = account.create("AWS::Logs::LogGroup").ref

    def look(_: Resource) -> Any:
        found = account.client("logs").describe_log_streams(logGroupName=group)["logStreams"]
        return [each["logStreamName"] for each in found]

    return Case(
        properties={"LogGroupName": group, "LogStreamName": "s"},
        look=look,
        made=["s"],
        changes={},
        changed=["s"],
        attributes=set(),
    )


@case("AWS::Logs::MetricFilter")
def _metric_filter(account: Account) -> Case:
    group = account.create("AWS::Logs::LogGroup").ref

    def look(_: Resource) -> Any:
        found = account.client("logs").describe_metric_filters(logGroupName=group)["metricFilters"]
        return [(each["filterPattern"], each["metricTransformations"]) for each in found]

    transformation = {"MetricName": "m", "MetricNamespace": "n", "MetricValue": "1", "DefaultValue": 0}
    transformed = [{"metricName": "m", "metricNamespace": "n", "metricValue": "1", "defaultValue": 0.0}]
    return Case(
        properties={"FilterPattern": "a", "LogGroupName": group, "MetricTransformations": [transformation]},
        look=look,
        made=[("a", transformed)],
        changes={"FilterPattern": "b"},
        changed=[("b", transformed)],
        attributes=set(),
    )


@case("AWS::SSM::Parameter")
def _parameter(account: Account) -> Case:
    ssm = account.client("ssm")

    def look(parameter: Resource) -> Any:
        found = ssm.list_tags_for_resource(ResourceType="Parameter", ResourceId=parameter.ref)["TagList"]
        return ssm.get_parameter(Name=parameter.ref)["Parameter"]["Value"], found

    return Case(
        properties={"Name": "/a/b", "Type": "String", "Value": "v", "Tags": {"a": "1", "b": "2"}},
        look=look,
        made=("v", tags(a="1", b="2")),
        changes={"Value": "w", "Tags": {"b": "3"}},
        changed=("w", tags(b="3")),
        attributes={"Type", "Value"},
    )


def _read(action: Callable[..., Any], member: str, bucket: str) -> Any:
    """Return one configuration of a bucket; None if it has none."""
    try:
        return action(Bucket=bucket).get(member)
    except ClientError as error:
        if error.response["Error"]["Code"] == "NoSuchBucket":
            raise
        return None


def _queue_for_s3(account: Account) -> str:
    queue = account.create("AWS::SQS::Queue")
    sent = statement(Action="sqs:SendMessage", Principal={"Service": "s3.amazonaws.com"}, Resource=queue["Arn"])
    account.create("AWS::SQS::QueuePolicy", PolicyDocument=sent, Queues=[queue.ref])
    return str(queue["Arn"])


@case("AWS::S3::Bucket")
def _bucket(account: Account) -> Case:
    s3 = account.client("s3")
    queue = _queue_for_s3(account)
    readers = {
        "BucketEncryption": (s3.get_bucket_encryption, "ServerSideEncryptionConfiguration"),
        "CorsConfiguration": (s3.get_bucket_cors, "CORSRules"),
        "LifecycleConfiguration": (s3.get_bucket_lifecycle_configuration, "Rules"),
        "LoggingConfiguration": (s3.get_bucket_logging, "LoggingEnabled"),
        "NotificationConfiguration": (s3.get_bucket_notification_configuration, "QueueConfigurations"),
        "OwnershipControls": (s3.get_bucket_ownership_controls, "OwnershipControls"),
        "PublicAccessBlockConfiguration": (s3.get_public_access_block, "PublicAccessBlockConfiguration"),
        "Tags": (s3.get_bucket_tagging, "TagSet"),
        "VersioningConfiguration": (s3.get_bucket_versioning, "Status"),
    }

    def look(bucket: Resource) -> Any:
        s3.head_bucket(Bucket=bucket.ref)
        found = {key: _read(*reader, bucket.ref) for key, reader in readers.items()}
        for notification in found["NotificationConfiguration"] or []:
            del notification["Id"]  # S3 makes it up
        return found

    public_access = dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    encryption = {"SSEAlgorithm": "AES256"}
    ownership = {"Rules": [{"ObjectOwnership": "ObjectWriter"}]}
    prefix_rule = {"Name": "prefix", "Value": "in/"}
    properties = {
        "BucketName": "b-1",
        "AccessControl": "LogDeliveryWrite",
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [
                {"BucketKeyEnabled": True, "ServerSideEncryptionByDefault": encryption}
            ]
        },
        "CorsConfiguration": {"CorsRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"], "MaxAge": 9}]},
        "LifecycleConfiguration": {
            "Rules": [
                {"Id": "a", "Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
                {"Id": "b", "Status": "Enabled", "Prefix": "tmp/", "ExpirationInDays": 3},
                {"Id": "c", "Status": "Enabled", "Transitions": [{"StorageClass": "GLACIER", "TransitionInDays": 9}]},
            ]
        },
        "LoggingConfiguration": {"LogFilePrefix": "log/"},
        "NotificationConfiguration": {
            "QueueConfigurations": [
                {"Event": "s3:ObjectCreated:*", "Queue": queue, "Filter": {"S3Key": {"Rules": [prefix_rule]}}}
            ]
        },
        "OwnershipControls": ownership,
        "PublicAccessBlockConfiguration": public_access,
        "Tags": tags(Name="a"),
        "VersioningConfiguration": {"Status": "Enabled"},
    }
    made = {
        "BucketEncryption": {
            "Rules": [{"BucketKeyEnabled": True, "ApplyServerSideEncryptionByDefault": encryption}],
        },
        "CorsConfiguration": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"], "MaxAgeSeconds": 9}],
        "LifecycleConfiguration": [
            {
                "ID": "a",
                "Status": "Enabled",
                "Filter": {"Prefix": ""},
                "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7},
            },
            {"ID": "b", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 3}},
            {
                "ID": "c",
                "Status": "Enabled",
                "Filter": {"Prefix": ""},
                "Transitions": [{"StorageClass": "GLACIER", "Days": 9}],
            },
        ],
        "LoggingConfiguration": {"TargetBucket": "b-1", "TargetPrefix": "log/"},
        "NotificationConfiguration": [
            {
                "Events": ["s3:ObjectCreated:*"],
                "QueueArn": queue,
                "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "in/"}]}},
            }
        ],
        "OwnershipControls": ownership,
        "PublicAccessBlockConfiguration": public_access,
        "Tags": tags(Name="a"),
        "VersioningConfiguration": "Enabled",
    }
    return Case(
        properties=properties,
        look=look,
        made=made,
        changes=dict.fromkeys(made),
        changed={**dict.fromkeys(made), "VersioningConfiguration": "Suspended"},
        attributes={"Arn", "DomainName", "DualStackDomainName", "RegionalDomainName", "WebsiteURL"},
    )


@case("AWS::S3::BucketPolicy")
def _bucket_policy(account: Account) -> Case:
    bucket = account.create("AWS::S3::Bucket")

    def look(_: Resource) -> Any:
        return json.loads(account.client("s3").get_bucket_policy(Bucket=bucket.ref)["Policy"])

    return Case(
        properties={"Bucket": bucket.ref, "PolicyDocument": PUBLIC_READ},
        look=look,
        made=PUBLIC_READ,
        changes={"PolicyDocument": PUBLIC_LIST},
        changed=PUBLIC_LIST,
        attributes={"Bucket"},
    )


@case("Custom::S3AutoDeleteObjects")
def _auto_delete_objects(account: Account) -> Case:
    s3 = account.client("s3")
    tag = tags(**{"aws-cdk:auto-delete-objects": "true"})
    versioning = {"Status": "Enabled"}
    bucket = account.create("AWS::S3::Bucket", Tags=tag, VersioningConfiguration=versioning).ref
    s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    s3.delete_object(Bucket=bucket, Key="k")

    def look(_: Resource) -> Any:
        found = s3.list_object_versions(Bucket=bucket)
        return [each["Key"] for each in (*found.get("Versions", []), *found.get("DeleteMarkers", []))]

    return Case(
        properties={"ServiceToken": account.function()["Arn"], "BucketName": bucket},
        look=look,
        made=["k", "k"],
        changes={},
        changed=["k", "k"],
        attributes=set(),
    )


@case("AWS::KMS::Key")
def _key(account: Account) -> Case:
    kms = account.client("kms")

    def look(key: Resource) -> Any:
        found = kms.describe_key(KeyId=key.ref)["KeyMetadata"]
        if found["KeyState"] == "PendingDeletion":  # KMS deletes no key at once
            return None
        rotated = kms.get_key_rotation_status(KeyId=key.ref)["KeyRotationEnabled"]
        return found["Description"], found["KeyState"], rotated, kms.list_resource_tags(KeyId=key.ref)["Tags"]

    policy = statement(Action="kms:*", Principal="*", Resource="*")
    return Case(
        properties={"Description": "d", "EnableKeyRotation": True, "KeyPolicy": policy, "Tags": tags(Name="a")},
        look=look,
        made=("d", "Enabled", True, [{"TagKey": "Name", "TagValue": "a"}]),
        changes={"Description": None, "EnableKeyRotation": None, "Tags": None},
        changed=("", "Enabled", False, []),
        attributes={"Arn", "KeyId"},
    )


@case("AWS::KMS::Alias")
def _alias(account: Account) -> Case:
    policy = statement(Action="kms:*", Principal="*", Resource="*")
    first, second = (account.create("AWS::KMS::Key", KeyPolicy=policy).ref for _ in range(2))

    def look(_: Resource) -> Any:
        found = account.client("kms").list_aliases()["Aliases"]
        return [each["TargetKeyId"] for each in found if each["AliasName"] == "alias/a"]

    return Case(
        properties={"AliasName": "alias/a", "TargetKeyId": first},
        look=look,
        made=[first],
        changes={"TargetKeyId": second},
        changed=[second],
        attributes=set(),
    )


@case("AWS::ECR::Repository")
def _repository(account: Account) -> Case:
    ecr = account.client("ecr")

    def look(repository: Resource) -> Any:
        found = ecr.describe_repositories(repositoryNames=[repository.ref])["repositories"][0]
        policies = [
            bool(_try(ecr.get_lifecycle_policy, repository.ref)),
            bool(_try(ecr.get_repository_policy, repository.ref)),
        ]
        return found["imageTagMutability"], policies

    rule = {
        "rulePriority": 1,
        "selection": {
            "tagStatus": "untagged",
            "countType": "sinceImagePushed",
            "countUnit": "days",
            "countNumber": 365,
        },
        "action": {"type": "expire"},
    }
    return Case(
        properties={
            "RepositoryName": "images",
            "ImageTagMutability": "IMMUTABLE",
            "LifecyclePolicy": {"LifecyclePolicyText": json.dumps({"rules": [rule]})},
            "RepositoryPolicyText": statement(Action="ecr:BatchGetImage", Principal="*"),
        },
        look=look,
        made=("IMMUTABLE", [True, True]),
        changes={"ImageTagMutability": None, "LifecyclePolicy": None, "RepositoryPolicyText": None},
        changed=("MUTABLE", [False, False]),
        attributes={"Arn", "RepositoryUri"},
    )


def _try(action: Callable[..., Any], repository: str) -> Any:
    try:
        return action(repositoryName=repository)
    except ClientError as error:
        if error.response["Error"]["Code"].endswith("PolicyNotFoundException"):
            return None
        raise


def _queue_attributes(account: Account, url: str, *names: str) -> Any:
    found = account.client("sqs").get_queue_attributes(QueueUrl=url, AttributeNames=list(names))
    return found.get("Attributes", {})


@case("AWS::SQS::Queue")
def _queue(account: Account) -> Case:
    def look(queue: Resource) -> Any:
        attributes = _queue_attributes(account, queue.ref, "VisibilityTimeout", "DelaySeconds")
        return attributes, account.client("sqs").list_queue_tags(QueueUrl=queue.ref).get("Tags", {})

    return Case(
        properties={"VisibilityTimeout": 300, "Tags": tags(Name="a")},
        look=look,
        made=({"VisibilityTimeout": "300", "DelaySeconds": "0"}, {"Name": "a"}),
        changes={"VisibilityTimeout": None, "DelaySeconds": 3, "Tags": None},
        changed=({"VisibilityTimeout": "30", "DelaySeconds": "3"}, {}),
        attributes={"Arn", "QueueName", "QueueUrl"},
    )


@case("AWS::SQS::QueuePolicy")
def _queue_policy(account: Account) -> Case:
    first, second = account.create("AWS::SQS::Queue").ref, account.create("AWS::SQS::Queue").ref

    def look(_: Resource) -> Any:
        return [url for url in (first, second) if _queue_attributes(account, url, "Policy").get("Policy")]

    policy = statement(Action="sqs:SendMessage", Principal="*", Resource="*")
    return Case(
        properties={"PolicyDocument": policy, "Queues": [first]},
        look=look,
        made=[first],
        changes={"Queues": [second]},
        changed=[second],
        attributes={"Id"},
    )


@case("AWS::SNS::Topic")
def _topic(account: Account) -> Case:
    sns = account.client("sns")

    def look(topic: Resource) -> Any:
        name = sns.get_topic_attributes(TopicArn=topic.ref)["Attributes"]["DisplayName"]
        return name, sns.list_tags_for_resource(ResourceArn=topic.ref)["Tags"]

    return Case(
        properties={"DisplayName": "d", "Tags": tags(Name="a")},
        look=look,
        made=("d", tags(Name="a")),
        changes={"DisplayName": "e", "Tags": tags(Name="b")},
        changed=("e", tags(Name="b")),
        attributes={"TopicArn", "TopicName"},
    )


@case("AWS::SNS::Subscription")
def _subscription(account: Account) -> Case:
    topic, queue = account.create("AWS::SNS::Topic").ref, account.create("AWS::SQS::Queue")["Arn"]

    def look(subscription: Resource) -> Any:
        found = account.client("sns").get_subscription_attributes(SubscriptionArn=subscription.ref)["Attributes"]
        return found["Endpoint"], found["RawMessageDelivery"]

    return Case(
        properties={"Endpoint": queue, "Protocol": "sqs", "TopicArn": topic},
        look=look,
        made=(queue, "false"),
        changes={"RawMessageDelivery": True},
        changed=(queue, "true"),
        attributes={"Arn"},
    )


# What all of them have in common


@pytest.fixture(scope="module")
def account(rehearsal_server: EmulatedAws) -> Account:
    rehearsal_server.reset()
    return Account(rehearsal_server)


@pytest.mark.parametrize("resource_type", CASES)
def test_life_of_a_resource(account: Account, resource_type: str) -> None:
    expected = CASES[resource_type](account)
    resource = account.create(resource_type, **expected.properties)
    assert resource.physical.attributes.keys() == expected.attributes
    assert expected.look(resource) == expected.made
    with pytest.raises(UnsupportedError, match="update of properties Foo"):
        account.update(resource, Foo=1)
    if expected.changes:
        resource = account.update(resource, **expected.changes)
        assert resource.physical.attributes.keys() == expected.attributes
        assert expected.look(resource) == expected.changed
    account.delete(resource)
    assert _is_gone(expected.look, resource)


def _is_gone(look: Callable[[Resource], Any], resource: Resource) -> bool:
    try:
        return not look(resource)
    except ClientError:
        return True


@pytest.mark.parametrize("resource_type", sorted(CASES.keys() - {"Custom::VpcRestrictDefaultSG"}))
def test_what_is_gone_already_is_deleted(account: Account, resource_type: str) -> None:
    resource = account.create(resource_type, **CASES[resource_type](account).properties)
    account.delete(resource)
    account.delete(resource)


@pytest.mark.parametrize("resource_type", ["AWS::EC2::VPC", "AWS::FSx::FileSystem", "AWS::S3::Bucket"])
def test_an_unknown_property_fails_by_name_and_leaves_nothing(account: Account, resource_type: str) -> None:
    properties = CASES[resource_type](account).properties
    before = inventory(account.aws, REGION)
    with pytest.raises(UnsupportedError, match=f"{resource_type}: properties Foo"):
        account.create(resource_type, **properties, Foo=1)
    assert inventory(account.aws, REGION) == before


def test_each_model_has_a_case() -> None:
    services = (
        resources.ec2,
        resources.ecr,
        resources.fsx,
        resources.iam,
        resources.kms,
        resources.lambda_,
        resources.logs,
        resources.s3,
        resources.security_groups,
        resources.sns,
        resources.sqs,
        resources.ssm,
        resources.vpc,
    )
    types = {resource_type for service in services for resource_type in service.MODELS}
    assert types - CASES.keys() == {"AWS::SNS::TopicPolicy"}


def test_an_unknown_type_fails_by_name(account: Account) -> None:
    with pytest.raises(UnsupportedError, match="resource type AWS::Foo::Bar"):
        account.create("AWS::Foo::Bar")


def test_a_custom_resource_needs_a_model_for_all(account: Account) -> None:
    with pytest.raises(UnsupportedError, match="resource type Custom::Foo"):
        account.create("Custom::Foo")
    general = resources.MODELS["AWS::CDK::Metadata"]
    assert resources.find("Custom::Foo", {"AWS::CloudFormation::CustomResource": general}) is general


@pytest.mark.parametrize(
    ("resource_type", "properties", "name"),
    [
        (
            "AWS::FSx::FileSystem",
            {"FileSystemType": "LUSTRE", "SubnetIds": [], "LustreConfiguration": {"Foo": 1}},
            'LustreConfiguration: "Foo"',
        ),
        ("AWS::S3::Bucket", {"PublicAccessBlockConfiguration": {"Foo": True}}, 'PublicAccessBlockConfiguration: "Foo"'),
        ("AWS::S3::Bucket", {"LifecycleConfiguration": {"Rules": [{"Status": "Enabled", "Foo": 1}]}}, "Foo"),
        (
            "AWS::S3::Bucket",
            {"LifecycleConfiguration": {"Rules": [], "TransitionDefaultMinimumObjectSize": "varies_by_storage_class"}},
            "TransitionDefaultMinimumObjectSize",
        ),
        (
            "AWS::S3::Bucket",
            {"LifecycleConfiguration": {"Rules": [{"Status": "Enabled", "Transitions": [{"Foo": 1}]}]}},
            "Foo",
        ),
        ("AWS::S3::Bucket", {"NotificationConfiguration": {"Foo": []}}, "Foo"),
        (
            "AWS::S3::Bucket",
            {"NotificationConfiguration": {"QueueConfigurations": [{"Event": "e", "Queue": "q", "Foo": 1}]}},
            "Foo",
        ),
        (
            "AWS::S3::Bucket",
            {
                "NotificationConfiguration": {
                    "QueueConfigurations": [{"Event": "e", "Queue": "q", "Filter": {"S3Key": {"Rules": [], "Foo": 1}}}]
                }
            },
            "Foo",
        ),
        ("AWS::S3::Bucket", {"NotificationConfiguration": {"EventBridgeConfiguration": {"Foo": 1}}}, "Foo"),
        ("AWS::S3::Bucket", {"CorsConfiguration": {"CorsRules": [], "Foo": 1}}, "Foo"),
        ("AWS::S3::Bucket", {"BucketEncryption": {"ServerSideEncryptionConfiguration": [], "Foo": 1}}, "Foo"),
        ("AWS::EC2::SecurityGroup", {"GroupDescription": "x", "SecurityGroupIngress": [{"Foo": 1}]}, "Foo"),
    ],
)
def test_an_unknown_property_within_a_property_fails_by_name(
    account: Account, resource_type: str, properties: dict[str, Any], name: str
) -> None:
    before = inventory(account.aws, REGION)
    with pytest.raises((UnsupportedError, ResourceError), match=name):
        account.create(resource_type, **properties)
    assert inventory(account.aws, REGION) == before


# Particular resources


@pytest.mark.parametrize(
    ("resource_type", "wrong", "message"),
    [
        ("AWS::SQS::Queue", [*tags(a="1"), *tags(a="2")], "Duplicate tag key 'a' specified."),
        ("AWS::EC2::VPC", tags(**{"aws:x": "1"}), "Tag keys starting with 'aws:' are reserved for internal use"),
        ("AWS::SSM::Parameter", {"AWS:x": "1"}, "Tag keys starting with 'aws:' are reserved for internal use"),
    ],
)
def test_tags_that_no_service_takes(account: Account, resource_type: str, wrong: Any, message: str) -> None:
    properties = {key: each for key, each in CASES[resource_type](account).properties.items() if key != "Tags"}
    with pytest.raises(ResourceError, match=message):
        account.create(resource_type, **properties, Tags=wrong)
    resource = account.create(resource_type, **properties)
    with pytest.raises(ResourceError, match=message):
        account.update(resource, Tags=wrong)
    account.delete(resource)


@pytest.mark.parametrize("resource_type", ["Custom::S3AutoDeleteObjects", "Custom::VpcRestrictDefaultSG"])
def test_a_custom_resource_needs_its_token(account: Account, resource_type: str) -> None:
    with pytest.raises(ResourceError, match=r"required key \[ServiceToken\] not found"):
        account.create(resource_type)


@pytest.mark.parametrize(
    ("configuration", "asked"),
    [({"EventBridgeEnabled": True}, {"EventBridgeConfiguration": {}}), ({"EventBridgeEnabled": False}, {})],
)
def test_events_go_to_the_event_bus_only_if_that_is_wanted(
    account: Account, configuration: dict[str, Any], asked: dict[str, Any]
) -> None:
    requests = []  # moto sets this, but does not tell of it
    events = account.client("s3").meta.events
    name = "provide-client-params.s3.PutBucketNotificationConfiguration"

    def note(params: dict[str, Any], **_: Any) -> None:
        requests.append(params["NotificationConfiguration"])

    events.register(name, note)
    account.create("AWS::S3::Bucket", NotificationConfiguration={"EventBridgeConfiguration": configuration})
    events.unregister(name, note)
    assert requests == [asked]


def test_a_life_that_ends_on_a_date(account: Account) -> None:
    rule = {
        "Status": "Enabled",
        "ExpirationDate": "2031-01-01T00:00:00Z",
        "Transitions": [{"StorageClass": "GLACIER", "TransitionDate": "2030-01-01T00:00:00Z"}],
    }
    bucket = account.create("AWS::S3::Bucket", LifecycleConfiguration={"Rules": [rule]})
    [found] = account.client("s3").get_bucket_lifecycle_configuration(Bucket=bucket.ref)["Rules"]
    assert found["Expiration"]["Date"].year == 2031
    assert [(each["StorageClass"], each["Date"].year) for each in found["Transitions"]] == [("GLACIER", 2030)]


def test_an_expiration_of_objects_and_of_markers_is_refused(account: Account) -> None:
    rule = {"Status": "Enabled", "ExpirationInDays": 1, "ExpiredObjectDeleteMarker": True}
    with pytest.raises(ClientError, match="MalformedXML"):
        account.create("AWS::S3::Bucket", LifecycleConfiguration={"Rules": [rule]})


@pytest.mark.parametrize(
    ("resource_type", "name"),
    [
        ("AWS::ECR::Repository", "RepositoryName"),
        ("AWS::IAM::Role", "RoleName"),
        ("AWS::Lambda::Function", "FunctionName"),
        ("AWS::Logs::LogGroup", "LogGroupName"),
        ("AWS::S3::Bucket", "BucketName"),
        ("AWS::SNS::Topic", "TopicName"),
        ("AWS::SQS::Queue", "QueueName"),
        ("AWS::SSM::Parameter", "Name"),
    ],
)
def test_a_name_in_use_is_refused(account: Account, resource_type: str, name: str) -> None:
    properties = {**CASES[resource_type](account).properties, name: "taken"}
    resource = account.create(resource_type, **properties)
    with pytest.raises((ClientError, ResourceError), match=r"[Aa]lready.?[Ee]xists?"):
        account.create(resource_type, **properties)
    account.delete(resource)


def test_a_bucket_has_one_policy(account: Account) -> None:
    bucket = account.create("AWS::S3::Bucket").ref
    account.create("AWS::S3::BucketPolicy", Bucket=bucket, PolicyDocument=PUBLIC_READ)
    with pytest.raises(ResourceError, match=f"The bucket policy already exists on bucket {bucket}"):
        account.create("AWS::S3::BucketPolicy", Bucket=bucket, PolicyDocument=PUBLIC_READ)


def test_cdk_metadata_is_nothing(account: Account) -> None:
    account.delete(account.update(account.create("AWS::CDK::Metadata", Analytics="v2:a"), Analytics="v2:b"))


def test_a_topic_keeps_the_policy_that_was_its_last(account: Account) -> None:
    topic = account.create("AWS::SNS::Topic").ref
    document = statement(Action="sns:Publish", Principal="*", Resource=topic)
    policy = account.create("AWS::SNS::TopicPolicy", PolicyDocument=document, Topics=[topic])
    account.delete(policy)
    attributes = account.client("sns").get_topic_attributes(TopicArn=topic)["Attributes"]
    assert json.loads(attributes["Policy"]) == document


def test_a_gateway_endpoint_is_a_route(account: Account) -> None:
    vpc = account.vpc()
    first, second = (account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref for _ in range(2))
    endpoint = account.create(
        "AWS::EC2::VPCEndpoint", VpcId=vpc.ref, ServiceName=f"com.amazonaws.{REGION}.s3", RouteTableIds=[first]
    )

    def tables() -> list[str]:
        found = account.client("ec2").describe_route_tables(RouteTableIds=[first, second])["RouteTables"]
        return [
            each["RouteTableId"] for each in found for route in each["Routes"] if "DestinationPrefixListId" in route
        ]

    assert tables() == [first]
    endpoint = account.update(endpoint, RouteTableIds=[second])
    assert tables() == [second]
    account.delete(endpoint)
    assert tables() == []


def test_a_subnet_is_led_to_another_table_before_the_old_association_is_deleted(account: Account) -> None:
    vpc = account.vpc()
    subnet = account.subnet(vpc).ref
    tables = [account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref for _ in range(2)]
    old, new = (
        account.create("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet, RouteTableId=each) for each in tables
    )
    assert old.ref != new.ref
    account.delete(old)
    found = account.client("ec2").describe_route_tables(
        Filters=[{"Name": "association.subnet-id", "Values": [subnet]}]
    )["RouteTables"]
    assert [each["RouteTableId"] for each in found] == tables[1:]


def test_a_nat_gateway_without_internet_gateway_fails_as_it_stabilizes(account: Account) -> None:
    vpc = account.vpc()
    subnet, address = account.subnet(vpc), account.address()
    reason = f"is in state failed .*: Network {vpc.ref} has no Internet gateway attached"
    with pytest.raises(ResourceError, match=reason):
        account.nat_gateway(subnet, address)
    for resource in (address, subnet, vpc):
        account.delete(resource)


def test_a_link_to_a_bucket_that_is_not_there_fails(account: Account) -> None:
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    with pytest.raises(ResourceError, match="unable to access the S3 bucket nowhere"):
        account.create(
            "AWS::FSx::DataRepositoryAssociation",
            FileSystemId=file_system.ref,
            FileSystemPath="/data",
            DataRepositoryPath="s3://nowhere/data",
        )
    of_file_system = [{"Name": "file-system-id", "Values": [file_system.ref]}]
    found = account.client("fsx").describe_data_repository_associations(Filters=of_file_system)
    assert found["Associations"] == []


def test_inline_code_needs_a_runtime_that_takes_it(account: Account) -> None:
    with pytest.raises(ResourceError, match="ZipFile"):
        account.create(
            "AWS::Lambda::Function",
            Code={"ZipFile": "x"},
            Handler="x",
            Role=account.role()["Arn"],
            Runtime="java21",
        )


def test_a_role_that_cannot_have_its_policies_is_not_there(account: Account) -> None:
    with pytest.raises(ClientError, match="NoSuchEntity"):
        account.role(RoleName="r", ManagedPolicyArns=["arn:aws:iam::aws:policy/NoSuchPolicy"])
    assert "r" not in {role["RoleName"] for role in account.client("iam").list_roles()["Roles"]}


@pytest.mark.parametrize(
    ("resource_type", "limit"),
    [("AWS::IAM::Role", 64), ("AWS::Lambda::Function", 64), ("AWS::S3::Bucket", 63), ("AWS::SQS::Queue", 80)],
)
def test_made_up_names_are_as_long_as_the_service_allows(account: Account, resource_type: str, limit: int) -> None:
    properties = CASES[resource_type](account).properties
    properties.pop("BucketName", None)
    resource = account.create(resource_type, stack_name="S" * 100, **properties)
    name = resource.ref.rpartition("/")[2]
    assert len(name) == limit
    assert name.rpartition("-")[2].upper() == resource.context.name.rpartition("-")[2]
