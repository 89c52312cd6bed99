"""Everything that exists in one Region of the emulated account, as the APIs of all services list it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jmespath

from emulator.aws import EmulatedAws


@dataclass(frozen=True)
class Listing:
    """How to list one type: an operation of a service, and where in its answer the names are.

    Attributes:
        service: Name of the boto3 client.
        operation: Its method.
        names: JMESPath to the names.
        arguments: Arguments of the method.
    """

    service: str
    operation: str
    names: str
    arguments: Mapping[str, Any]


def _listing(service: str, operation: str, names: str, **arguments: Any) -> Listing:
    return Listing(service, operation, names, arguments)


LISTINGS: Mapping[str, Listing] = {
    "AWS::AutoScaling::AutoScalingGroup": _listing(
        "autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups[].AutoScalingGroupName"
    ),
    "AWS::CloudFormation::Stack": _listing(
        "cloudformation", "list_stacks", "StackSummaries[?StackStatus!='DELETE_COMPLETE'].StackName"
    ),
    "AWS::CloudWatch::Alarm": _listing("cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    "AWS::CloudWatch::CompositeAlarm": _listing(
        "cloudwatch", "describe_alarms", "CompositeAlarms[].AlarmName", AlarmTypes=["CompositeAlarm"]
    ),
    "AWS::CloudWatch::Dashboard": _listing("cloudwatch", "list_dashboards", "DashboardEntries[].DashboardName"),
    "AWS::DLM::LifecyclePolicy": _listing("dlm", "get_lifecycle_policies", "Policies[].PolicyId"),
    "AWS::DynamoDB::Table": _listing("dynamodb", "list_tables", "TableNames[]"),
    "AWS::EC2::EIP": _listing("ec2", "describe_addresses", "Addresses[].AllocationId"),
    "AWS::EC2::FlowLog": _listing("ec2", "describe_flow_logs", "FlowLogs[].FlowLogId"),
    "AWS::EC2::Instance": _listing(
        "ec2", "describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"
    ),
    "AWS::EC2::InternetGateway": _listing("ec2", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    "AWS::EC2::LaunchTemplate": _listing("ec2", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateName"),
    "AWS::EC2::NatGateway": _listing("ec2", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    "AWS::EC2::NetworkInterface": _listing(
        "ec2", "describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"
    ),
    "AWS::EC2::PlacementGroup": _listing("ec2", "describe_placement_groups", "PlacementGroups[].GroupName"),
    "AWS::EC2::RouteTable": _listing("ec2", "describe_route_tables", "RouteTables[].RouteTableId"),
    "AWS::EC2::SecurityGroup": _listing("ec2", "describe_security_groups", "SecurityGroups[].GroupId"),
    "AWS::EC2::Subnet": _listing("ec2", "describe_subnets", "Subnets[].SubnetId"),
    "AWS::EC2::VPC": _listing("ec2", "describe_vpcs", "Vpcs[].VpcId"),
    "AWS::EC2::VPCEndpoint": _listing("ec2", "describe_vpc_endpoints", "VpcEndpoints[?State!='deleted'].VpcEndpointId"),
    "AWS::EC2::Volume": _listing("ec2", "describe_volumes", "Volumes[].VolumeId"),
    "AWS::ECR::Repository": _listing("ecr", "describe_repositories", "repositories[].repositoryName"),
    "AWS::EFS::FileSystem": _listing("efs", "describe_file_systems", "FileSystems[].FileSystemId"),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": _listing(
        "elbv2", "describe_load_balancers", "LoadBalancers[].LoadBalancerName"
    ),
    "AWS::ElasticLoadBalancingV2::TargetGroup": _listing(
        "elbv2", "describe_target_groups", "TargetGroups[].TargetGroupName"
    ),
    "AWS::Events::Rule": _listing("events", "list_rules", "Rules[].Name"),
    "AWS::FSx::DataRepositoryAssociation": _listing(
        "fsx", "describe_data_repository_associations", "Associations[].AssociationId"
    ),
    "AWS::FSx::FileSystem": _listing("fsx", "describe_file_systems", "FileSystems[].FileSystemId"),
    "AWS::IAM::InstanceProfile": _listing("iam", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName"),
    "AWS::IAM::ManagedPolicy": _listing("iam", "list_policies", "Policies[].Arn", Scope="Local"),
    "AWS::IAM::Role": _listing("iam", "list_roles", "Roles[].RoleName"),
    "AWS::KMS::Alias": _listing("kms", "list_aliases", "Aliases[?!starts_with(AliasName, 'alias/aws/')].AliasName"),
    "AWS::Lambda::Function": _listing("lambda", "list_functions", "Functions[].FunctionName"),
    "AWS::Lambda::LayerVersion": _listing("lambda", "list_layers", "Layers[].LayerName"),
    "AWS::Logs::LogGroup": _listing("logs", "describe_log_groups", "logGroups[].logGroupName"),
    "AWS::Route53::HostedZone": _listing("route53", "list_hosted_zones", "HostedZones[].Name"),
    "AWS::S3::Bucket": _listing("s3", "list_buckets", "Buckets[].Name"),
    "AWS::SNS::Topic": _listing("sns", "list_topics", "Topics[].TopicArn"),
    "AWS::SSM::Parameter": _listing("ssm", "describe_parameters", "Parameters[].Name"),
}
"""How each type is listed that exists by itself."""


def inventory(aws: EmulatedAws, region: str) -> set[tuple[str, str]]:
    """Return the type and the name of everything that exists."""
    return {
        (resource_type, name)
        for resource_type, listing in LISTINGS.items()
        for page in _pages(aws.client(listing.service, region), listing)
        for name in jmespath.search(listing.names, page) or []
    }


def _pages(client: Any, listing: Listing) -> Any:
    if client.can_paginate(listing.operation):
        return client.get_paginator(listing.operation).paginate(**listing.arguments)
    return [getattr(client, listing.operation)(**listing.arguments)]
