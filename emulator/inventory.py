"""Everything that exists in one Region of the emulated account, as the APIs of all services list it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jmespath

from emulator.aws import EmulatedAws


class Listing(NamedTuple):
    """How to list one type: the method of a boto3 client with its arguments, and the JMESPath to the names."""

    service: str
    operation: str
    names: str
    arguments: Mapping[str, Any] = {}


LISTINGS: Mapping[str, Listing] = {
    "AWS::AutoScaling::AutoScalingGroup": Listing(
        "autoscaling", "describe_auto_scaling_groups", "AutoScalingGroups[].AutoScalingGroupName"
    ),
    "AWS::CloudFormation::Stack": Listing(
        "cloudformation", "list_stacks", "StackSummaries[?StackStatus!='DELETE_COMPLETE'].StackName"
    ),
    "AWS::CloudWatch::Alarm": Listing("cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    "AWS::CloudWatch::CompositeAlarm": Listing(
        "cloudwatch", "describe_alarms", "CompositeAlarms[].AlarmName", {"AlarmTypes": ["CompositeAlarm"]}
    ),
    "AWS::CloudWatch::Dashboard": Listing("cloudwatch", "list_dashboards", "DashboardEntries[].DashboardName"),
    "AWS::DLM::LifecyclePolicy": Listing("dlm", "get_lifecycle_policies", "Policies[].PolicyId"),
    "AWS::DynamoDB::Table": Listing("dynamodb", "list_tables", "TableNames[]"),
    "AWS::EC2::EIP": Listing("ec2", "describe_addresses", "Addresses[].AllocationId"),
    "AWS::EC2::FlowLog": Listing("ec2", "describe_flow_logs", "FlowLogs[].FlowLogId"),
    "AWS::EC2::Instance": Listing(
        "ec2", "describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"
    ),
    "AWS::EC2::InternetGateway": Listing("ec2", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    "AWS::EC2::LaunchTemplate": Listing("ec2", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateName"),
    "AWS::EC2::NatGateway": Listing("ec2", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    "AWS::EC2::NetworkInterface": Listing(
        "ec2", "describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"
    ),
    "AWS::EC2::PlacementGroup": Listing("ec2", "describe_placement_groups", "PlacementGroups[].GroupName"),
    "AWS::EC2::RouteTable": Listing("ec2", "describe_route_tables", "RouteTables[].RouteTableId"),
    "AWS::EC2::SecurityGroup": Listing("ec2", "describe_security_groups", "SecurityGroups[].GroupId"),
    "AWS::EC2::Subnet": Listing("ec2", "describe_subnets", "Subnets[].SubnetId"),
    "AWS::EC2::VPC": Listing("ec2", "describe_vpcs", "Vpcs[].VpcId"),
    "AWS::EC2::VPCEndpoint": Listing("ec2", "describe_vpc_endpoints", "VpcEndpoints[?State!='deleted'].VpcEndpointId"),
    "AWS::EC2::Volume": Listing("ec2", "describe_volumes", "Volumes[].VolumeId"),
    "AWS::ECR::Repository": Listing("ecr", "describe_repositories", "repositories[].repositoryName"),
    "AWS::EFS::FileSystem": Listing("efs", "describe_file_systems", "FileSystems[].FileSystemId"),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": Listing(
        "elbv2", "describe_load_balancers", "LoadBalancers[].LoadBalancerName"
    ),
    "AWS::ElasticLoadBalancingV2::TargetGroup": Listing(
        "elbv2", "describe_target_groups", "TargetGroups[].TargetGroupName"
    ),
    "AWS::Events::Rule": Listing("events", "list_rules", "Rules[].Name"),
    "AWS::FSx::DataRepositoryAssociation": Listing(
        "fsx", "describe_data_repository_associations", "Associations[].AssociationId"
    ),
    "AWS::FSx::FileSystem": Listing("fsx", "describe_file_systems", "FileSystems[].FileSystemId"),
    "AWS::IAM::InstanceProfile": Listing("iam", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName"),
    "AWS::IAM::ManagedPolicy": Listing("iam", "list_policies", "Policies[].Arn", {"Scope": "Local"}),
    "AWS::IAM::Role": Listing("iam", "list_roles", "Roles[].RoleName"),
    "AWS::KMS::Alias": Listing("kms", "list_aliases", "Aliases[?!starts_with(AliasName, 'alias/aws/')].AliasName"),
    "AWS::Lambda::Function": Listing("lambda", "list_functions", "Functions[].FunctionName"),
    "AWS::Lambda::LayerVersion": Listing("lambda", "list_layers", "Layers[].LayerName"),
    "AWS::Logs::LogGroup": Listing("logs", "describe_log_groups", "logGroups[].logGroupName"),
    "AWS::Route53::HostedZone": Listing("route53", "list_hosted_zones", "HostedZones[].Name"),
    "AWS::S3::Bucket": Listing("s3", "list_buckets", "Buckets[].Name"),
    "AWS::SNS::Topic": Listing("sns", "list_topics", "Topics[].TopicArn"),
    "AWS::SSM::Parameter": Listing("ssm", "describe_parameters", "Parameters[].Name"),
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
