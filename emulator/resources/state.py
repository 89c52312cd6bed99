"""What exists of a resource, as the APIs tell it: the properties that a template can have, by which drift is told.

A row names the call that describes a resource, and where in its answer the description is. Its members are the
properties of the same names, but for `names`; what an answer has in another form a function of the row adds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import jmespath
from botocore.exceptions import ClientError

from emulator.resources.model import Context, Physical, Properties
from emulator.resources.security_groups import rule_of
from emulator.resources.tags import as_dictionary

_NOT_THERE: Final = re.compile("NotFound|NoSuch|NotAttached|Unknown$|InvalidDocument$|^404$")


@dataclass(frozen=True)
class State:
    """How what exists of a type is described.

    Attributes:
        call: Service and action, such as `ec2.describe_vpcs`.
        request: Parameters of the action, from the physical id.
        found: JMESPath of the description in the answer; without one the resource does not exist.
        names: JMESPaths in the description by property, where the names differ; None: not compared.
        more: Further properties, from calls of their own.
    """

    call: str
    request: Callable[[str], Properties]
    found: str
    names: Mapping[str, str | None] = field(default_factory=dict)
    more: Callable[[Context, Physical, Properties], Properties] | None = None

    def read(self, context: Context, physical: Physical, properties: Properties) -> Properties | None:
        """Return the properties that exist, of those that the template has; None: the resource does not exist."""
        service, action = self.call.split(".")
        try:
            answer = getattr(context.client(service), action)(**self.request(physical.ref))
            description = jmespath.search(self.found, answer)
            if not description:
                return None
            state = {}
            for name in properties:
                path = self.names.get(name, name)
                value = None if path is None else jmespath.search(path, description)
                if value is None and path == name:
                    value = jmespath.search(f"{name[0].lower()}{name[1:]}", description)
                if value is not None:
                    state[name] = value
            if self.more:
                state |= self.more(context, physical, properties)
            if isinstance(properties.get("Tags"), Mapping):  # so they are of some types of Systems Manager
                state["Tags"] = as_dictionary(state.get("Tags", []))
        except ClientError as error:
            if not _NOT_THERE.search(error.response["Error"]["Code"]):
                raise
            return None
        return state


def _of(parameter: str) -> Callable[[str], Properties]:
    return lambda name: {parameter: [name]}


def _by(parameter: str) -> Callable[[str], Properties]:
    return lambda name: {parameter: name}


def _filtered(name: str) -> Callable[[str], Properties]:
    return lambda value: {"Filters": [{"Name": name, "Values": [value]}]}


def _document(text: str) -> Any:
    """Return a policy, which IAM gives as such and others as text."""
    return json.loads(unquote(text)) if isinstance(text, str) else text


def _vpc(context: Context, physical: Physical, _: Properties) -> Properties:
    ec2 = context.client("ec2")
    return {
        name: ec2.describe_vpc_attribute(VpcId=physical.ref, Attribute=f"{name[0].lower()}{name[1:]}")[name]["Value"]
        for name in ("EnableDnsHostnames", "EnableDnsSupport")
    }


def _group(context: Context, physical: Physical, _: Properties) -> Properties:
    """Return the rules that are no resources of the stack themselves.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html, attachments
    """
    rules = context.client("ec2").describe_security_group_rules(**_filtered("group-id")(physical.ref))
    found = [each for each in rules["SecurityGroupRules"] if each["SecurityGroupRuleId"] not in context.siblings]
    return {
        "SecurityGroupIngress": [rule_of(each) for each in found if not each["IsEgress"]],
        "SecurityGroupEgress": [rule_of(each) for each in found if each["IsEgress"]],
    }


def _role(context: Context, physical: Physical, _: Properties) -> Properties:
    iam, name = context.client("iam"), {"RoleName": physical.ref}
    attached = iam.list_attached_role_policies(**name)["AttachedPolicies"]
    return {
        "AssumeRolePolicyDocument": _document(iam.get_role(**name)["Role"]["AssumeRolePolicyDocument"]),
        "ManagedPolicyArns": [each["PolicyArn"] for each in attached],
        "Tags": iam.list_role_tags(**name)["Tags"],
    }


def _managed_policy(context: Context, physical: Physical, _: Properties) -> Properties:
    iam = context.client("iam")
    version = iam.get_policy(PolicyArn=physical.ref)["Policy"]["DefaultVersionId"]
    found = iam.get_policy_version(PolicyArn=physical.ref, VersionId=version)["PolicyVersion"]
    return {"PolicyDocument": _document(found["Document"])}


def _key(context: Context, physical: Physical, _: Properties) -> Properties:
    kms, key = context.client("kms"), {"KeyId": physical.ref}
    return {
        "EnableKeyRotation": kms.get_key_rotation_status(**key)["KeyRotationEnabled"],
        "KeyPolicy": _document(kms.get_key_policy(**key, PolicyName="default")["Policy"]),
        "Tags": [{"Key": each["TagKey"], "Value": each["TagValue"]} for each in kms.list_resource_tags(**key)["Tags"]],
    }


def _bucket(context: Context, physical: Physical, _: Properties) -> Properties:
    s3, bucket = context.client("s3"), {"Bucket": physical.ref}
    try:
        tags = s3.get_bucket_tagging(**bucket)["TagSet"]
    except ClientError:  # it has none
        tags = []
    state = {"Tags": tags, "VersioningConfiguration": {"Status": s3.get_bucket_versioning(**bucket).get("Status", "")}}
    try:
        blocked = s3.get_public_access_block(**bucket)["PublicAccessBlockConfiguration"]
    except ClientError:
        blocked = {}
    return {**state, "PublicAccessBlockConfiguration": blocked}


def _bucket_policy(context: Context, physical: Physical, _: Properties) -> Properties:
    return {"PolicyDocument": _document(context.client("s3").get_bucket_policy(Bucket=physical.ref)["Policy"])}


def _tags(action: str, parameter: str, found: str, name: str = "Tags", arn: str = "{}") -> Any:
    """Return a function that asks for tags by an action of its own, of a physical id or of an ARN made with it."""
    service, action = action.split(".")

    def more(context: Context, physical: Physical, _: Properties) -> Properties:
        named = arn.format(physical.ref)
        named = context.arn(*named.split(" ")) if " " in named else named
        request = {parameter: [named] if parameter.endswith("s") else named}
        if service == "ssm":
            request["ResourceType"] = "Parameter"
        if service == "route53":
            request["ResourceType"] = "hostedzone"
        tags = jmespath.search(found, getattr(context.client(service), action)(**request)) or []
        return {name: [{"Key": key, "Value": tags[key]} for key in tags] if isinstance(tags, dict) else tags}

    return more


def _function(context: Context, physical: Physical, properties: Properties) -> Properties:
    tags = context.client("lambda").get_function(FunctionName=physical.ref).get("Tags", {})
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}


def _topic(context: Context, physical: Physical, _: Properties) -> Properties:
    return {"Tags": context.client("sns").list_tags_for_resource(ResourceArn=physical.ref)["Tags"]}


def _metric_alarm(kind: str) -> State:
    return State(
        "cloudwatch.describe_alarms",
        lambda name: {"AlarmNames": [name], "AlarmTypes": [kind]},
        f"{kind}s[0]",
        more=_tags("cloudwatch.list_tags_for_resource", "ResourceARN", "Tags", arn="cloudwatch alarm:{}"),
    )


_RULE: Final = State(
    "ec2.describe_security_group_rules",
    _of("SecurityGroupRuleIds"),
    "SecurityGroupRules[0]",
    {
        "CidrIp": "CidrIpv4",
        "DestinationSecurityGroupId": None,
        "SourceSecurityGroupId": None,
        **{port: f"[@][?IpProtocol!='-1'] | [0].{port}" for port in ("FromPort", "ToPort")},
    },
)

STATES: Final[Mapping[str, State]] = {
    "AWS::AutoScaling::AutoScalingGroup": State(
        "autoscaling.describe_auto_scaling_groups",
        _of("AutoScalingGroupNames"),
        "AutoScalingGroups[0]",
        {"Tags": "Tags[].{Key: Key, Value: Value, PropagateAtLaunch: PropagateAtLaunch}", "VPCZoneIdentifier": None},
    ),
    "AWS::CloudWatch::Alarm": _metric_alarm("MetricAlarm"),
    "AWS::CloudWatch::CompositeAlarm": _metric_alarm("CompositeAlarm"),
    "AWS::CloudWatch::Dashboard": State("cloudwatch.get_dashboard", _by("DashboardName"), "@", {"Tags": None}),
    "AWS::DLM::LifecyclePolicy": State("dlm.get_lifecycle_policy", _by("PolicyId"), "Policy", {"Tags": None}),
    "AWS::DynamoDB::Table": State(
        "dynamodb.describe_table",
        _by("TableName"),
        "Table",
        {
            "BillingMode": "BillingModeSummary.BillingMode",
            "GlobalSecondaryIndexes": "GlobalSecondaryIndexes[].{IndexName: IndexName, KeySchema: KeySchema, "
            "Projection: Projection}",
            "ProvisionedThroughput": None,
        },
        _tags("dynamodb.list_tags_of_resource", "ResourceArn", "Tags", arn="dynamodb table/{}"),
    ),
    "AWS::EC2::EIP": State("ec2.describe_addresses", _of("PublicIps"), "Addresses[0]"),
    "AWS::EC2::FlowLog": State("ec2.describe_flow_logs", _of("FlowLogIds"), "FlowLogs[0]", {"ResourceType": None}),
    "AWS::EC2::Instance": State(
        "ec2.describe_instances",
        _of("InstanceIds"),
        "Reservations[].Instances[] | [?State.Name!='terminated'] | [0]",
        {"LaunchTemplate": None, "Tags": "Tags[?!starts_with(Key, 'aws:')]"},
    ),
    "AWS::EC2::InternetGateway": State(
        "ec2.describe_internet_gateways", _of("InternetGatewayIds"), "InternetGateways[0]"
    ),
    "AWS::EC2::LaunchTemplate": State(
        "ec2.describe_launch_templates", _of("LaunchTemplateIds"), "LaunchTemplates[0]", {"TagSpecifications": None}
    ),
    "AWS::EC2::NatGateway": State(
        "ec2.describe_nat_gateways", _of("NatGatewayIds"), "NatGateways[?State!='deleted'] | [0]"
    ),
    "AWS::EC2::NetworkInterface": State(
        "ec2.describe_network_interfaces",
        _of("NetworkInterfaceIds"),
        "NetworkInterfaces[0]",
        {"GroupSet": "Groups[].GroupId", "Tags": "TagSet", "PrivateIpAddresses": None},
    ),
    "AWS::EC2::PlacementGroup": State("ec2.describe_placement_groups", _of("GroupNames"), "PlacementGroups[0]"),
    "AWS::EC2::RouteTable": State("ec2.describe_route_tables", _of("RouteTableIds"), "RouteTables[0]"),
    "AWS::EC2::SecurityGroup": State(
        "ec2.describe_security_groups",
        _of("GroupIds"),
        "SecurityGroups[0]",
        {"GroupDescription": "Description"},
        _group,
    ),
    "AWS::EC2::SecurityGroupEgress": _RULE,
    "AWS::EC2::SecurityGroupIngress": _RULE,
    "AWS::EC2::Subnet": State("ec2.describe_subnets", _of("SubnetIds"), "Subnets[0]"),
    "AWS::EC2::SubnetRouteTableAssociation": State(
        "ec2.describe_route_tables",
        _filtered("association.route-table-association-id"),
        "RouteTables[0]",
        {"SubnetId": None},
    ),
    "AWS::EC2::Volume": State("ec2.describe_volumes", _of("VolumeIds"), "Volumes[0]"),
    "AWS::EC2::VPC": State("ec2.describe_vpcs", _of("VpcIds"), "Vpcs[0]", more=_vpc),
    "AWS::EC2::VPCEndpoint": State(
        "ec2.describe_vpc_endpoints",
        _of("VpcEndpointIds"),
        "VpcEndpoints[?State!='deleted'] | [0]",
        {"PolicyDocument": None, "SecurityGroupIds": None},
    ),
    "AWS::ECR::Repository": State(
        "ecr.describe_repositories",
        _of("repositoryNames"),
        "repositories[0]",
        {"EncryptionConfiguration": None, "ImageScanningConfiguration": None},
        _tags("ecr.list_tags_for_resource", "resourceArn", "tags", arn="ecr repository/{}"),
    ),
    "AWS::EFS::FileSystem": State(
        "efs.describe_file_systems", _by("FileSystemId"), "FileSystems[0]", {"FileSystemTags": "Tags"}
    ),
    "AWS::EFS::MountTarget": State("efs.describe_mount_targets", _by("MountTargetId"), "MountTargets[0]"),
    "AWS::ElasticLoadBalancingV2::Listener": State(
        "elbv2.describe_listeners",
        _of("ListenerArns"),
        "Listeners[0]",
        {"DefaultActions": None},
        _tags("elbv2.describe_tags", "ResourceArns", "TagDescriptions[0].Tags"),
    ),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": State(
        "elbv2.describe_load_balancers",
        _of("LoadBalancerArns"),
        "LoadBalancers[0]",
        {"Name": "LoadBalancerName", "Subnets": "AvailabilityZones[].SubnetId", "LoadBalancerAttributes": None},
        _tags("elbv2.describe_tags", "ResourceArns", "TagDescriptions[0].Tags"),
    ),
    "AWS::ElasticLoadBalancingV2::TargetGroup": State(
        "elbv2.describe_target_groups",
        _of("TargetGroupArns"),
        "TargetGroups[0]",
        {"Name": "TargetGroupName", "TargetGroupAttributes": None},
        _tags("elbv2.describe_tags", "ResourceArns", "TagDescriptions[0].Tags"),
    ),
    "AWS::FSx::DataRepositoryAssociation": State(
        "fsx.describe_data_repository_associations", _of("AssociationIds"), "Associations[0]"
    ),
    "AWS::FSx::Volume": State(
        "fsx.describe_volumes",
        lambda arn: {"VolumeIds": [arn.rpartition("/")[2]]},
        "Volumes[0]",
        {"OpenZFSConfiguration": None},
    ),
    "AWS::IAM::InstanceProfile": State(
        "iam.get_instance_profile", _by("InstanceProfileName"), "InstanceProfile", {"Roles": "Roles[].RoleName"}
    ),
    "AWS::IAM::ManagedPolicy": State("iam.get_policy", _by("PolicyArn"), "Policy", more=_managed_policy),
    "AWS::IAM::OIDCProvider": State(
        "iam.get_open_id_connect_provider",
        _by("OpenIDConnectProviderArn"),
        "@",
        {"ClientIdList": "ClientIDList", "Url": None},
    ),
    "AWS::IAM::Role": State("iam.get_role", _by("RoleName"), "Role", {"Policies": None}, _role),
    "AWS::KMS::Alias": State("kms.describe_key", _by("KeyId"), "KeyMetadata", {"TargetKeyId": None}),
    "AWS::KMS::Key": State(
        "kms.describe_key", _by("KeyId"), "[KeyMetadata][?KeyState!='PendingDeletion'] | [0]", more=_key
    ),
    "AWS::Lambda::Function": State(
        "lambda.get_function_configuration", _by("FunctionName"), "@", {"Layers": "Layers[].Arn"}, _function
    ),
    "AWS::Logs::LogGroup": State(
        "logs.describe_log_groups",
        _by("logGroupNamePrefix"),
        "logGroups[0]",
        more=_tags("logs.list_tags_for_resource", "resourceArn", "tags", arn="logs log-group:{}"),
    ),
    "AWS::Logs::MetricFilter": State(
        "logs.describe_metric_filters", _by("filterNamePrefix"), "metricFilters[0]", {"MetricTransformations": None}
    ),
    "AWS::RDS::DBInstance": State(
        "rds.describe_db_instances",
        _by("DBInstanceIdentifier"),
        "DBInstances[0]",
        {
            "DBParameterGroupName": "DBParameterGroups[0].DBParameterGroupName",
            "DBSubnetGroupName": "DBSubnetGroup.DBSubnetGroupName",
            "MasterUserPassword": None,
            "Port": "Endpoint.Port",
            "Tags": "TagList",
            "VPCSecurityGroups": "VpcSecurityGroups[].VpcSecurityGroupId",
        },
    ),
    "AWS::RDS::DBParameterGroup": State(
        "rds.describe_db_parameter_groups",
        _by("DBParameterGroupName"),
        "DBParameterGroups[0]",
        {"Family": "DBParameterGroupFamily"},
        _tags("rds.list_tags_for_resource", "ResourceName", "TagList", arn="rds pg:{}"),
    ),
    "AWS::RDS::DBSubnetGroup": State(
        "rds.describe_db_subnet_groups",
        _by("DBSubnetGroupName"),
        "DBSubnetGroups[0]",
        {"SubnetIds": "Subnets[].SubnetIdentifier"},
        _tags("rds.list_tags_for_resource", "ResourceName", "TagList", arn="rds subgrp:{}"),
    ),
    "AWS::Route53::HostedZone": State(
        "route53.get_hosted_zone",
        _by("Id"),
        "HostedZone",
        more=_tags("route53.list_tags_for_resource", "ResourceId", "ResourceTagSet.Tags", name="HostedZoneTags"),
    ),
    "AWS::S3::Bucket": State("s3.head_bucket", _by("Bucket"), "@", more=_bucket),
    "AWS::S3::BucketPolicy": State("s3.get_bucket_policy", _by("Bucket"), "@", more=_bucket_policy),
    "AWS::SNS::Subscription": State("sns.get_subscription_attributes", _by("SubscriptionArn"), "Attributes"),
    "AWS::SNS::Topic": State("sns.get_topic_attributes", _by("TopicArn"), "Attributes", more=_topic),
    "AWS::SSM::Document": State("ssm.describe_document", _by("Name"), "Document", {"Content": None, "Tags": None}),
    "AWS::SSM::Parameter": State(
        "ssm.get_parameter", _by("Name"), "Parameter", more=_tags("ssm.list_tags_for_resource", "ResourceId", "TagList")
    ),
    "AWS::SecretsManager::Secret": State("secretsmanager.describe_secret", _by("SecretId"), "@"),
}
"""By type. Of the types that CloudFormation compares, Budget, LayerVersion, Route and VPCGatewayAttachment are missing.

Which it compares, the schemas say: those whose handlers can read.
"""
