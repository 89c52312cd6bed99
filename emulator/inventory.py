"""Everything that exists in one Region of the emulated account, as the APIs of all services list it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jmespath

from emulator.aws import ACCOUNT, EmulatedAws

LISTINGS: Mapping[str, tuple[str, str, str]] = {
    "AWS::AutoScaling::AutoScalingGroup": (
        "autoscaling",
        "describe_auto_scaling_groups",
        "AutoScalingGroups[].AutoScalingGroupName",
    ),
    "AWS::Budgets::Budget": ("budgets", "describe_budgets", "Budgets[].BudgetName"),
    "AWS::CloudFormation::Stack": (
        "cloudformation",
        "list_stacks",
        "StackSummaries[?StackStatus!='DELETE_COMPLETE'].StackName",
    ),
    "AWS::CloudWatch::Alarm": ("cloudwatch", "describe_alarms", "MetricAlarms[].AlarmName"),
    "AWS::CloudWatch::CompositeAlarm": ("cloudwatch", "describe_alarms", "CompositeAlarms[].AlarmName"),
    "AWS::CloudWatch::Dashboard": ("cloudwatch", "list_dashboards", "DashboardEntries[].DashboardName"),
    "AWS::DLM::LifecyclePolicy": ("dlm", "get_lifecycle_policies", "Policies[].PolicyId"),
    "AWS::DynamoDB::Table": ("dynamodb", "list_tables", "TableNames[]"),
    "AWS::EC2::EIP": ("ec2", "describe_addresses", "Addresses[].AllocationId"),
    "AWS::EC2::FlowLog": ("ec2", "describe_flow_logs", "FlowLogs[].FlowLogId"),
    "AWS::EC2::Instance": (
        "ec2",
        "describe_instances",
        "Reservations[].Instances[?State.Name!='terminated'][].InstanceId",
    ),
    "AWS::EC2::InternetGateway": ("ec2", "describe_internet_gateways", "InternetGateways[].InternetGatewayId"),
    "AWS::EC2::LaunchTemplate": ("ec2", "describe_launch_templates", "LaunchTemplates[].LaunchTemplateName"),
    "AWS::EC2::NatGateway": ("ec2", "describe_nat_gateways", "NatGateways[?State!='deleted'].NatGatewayId"),
    "AWS::EC2::NetworkInterface": ("ec2", "describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    "AWS::EC2::PlacementGroup": ("ec2", "describe_placement_groups", "PlacementGroups[].GroupName"),
    "AWS::EC2::RouteTable": ("ec2", "describe_route_tables", "RouteTables[].RouteTableId"),
    "AWS::EC2::SecurityGroup": ("ec2", "describe_security_groups", "SecurityGroups[].GroupId"),
    "AWS::EC2::Subnet": ("ec2", "describe_subnets", "Subnets[].SubnetId"),
    "AWS::EC2::VPC": ("ec2", "describe_vpcs", "Vpcs[].VpcId"),
    "AWS::EC2::VPCEndpoint": ("ec2", "describe_vpc_endpoints", "VpcEndpoints[?State!='deleted'].VpcEndpointId"),
    "AWS::EC2::Volume": ("ec2", "describe_volumes", "Volumes[].VolumeId"),
    "AWS::ECR::Repository": ("ecr", "describe_repositories", "repositories[].repositoryName"),
    "AWS::EFS::FileSystem": ("efs", "describe_file_systems", "FileSystems[].FileSystemId"),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": (
        "elbv2",
        "describe_load_balancers",
        "LoadBalancers[].LoadBalancerName",
    ),
    "AWS::ElasticLoadBalancingV2::TargetGroup": ("elbv2", "describe_target_groups", "TargetGroups[].TargetGroupName"),
    "AWS::Events::Rule": ("events", "list_rules", "Rules[].Name"),
    "AWS::FSx::DataRepositoryAssociation": (
        "fsx",
        "describe_data_repository_associations",
        "Associations[].AssociationId",
    ),
    "AWS::FSx::FileSystem": ("fsx", "describe_file_systems", "FileSystems[].FileSystemId"),
    "AWS::FSx::Volume": ("fsx", "describe_volumes", "Volumes[?Name!='fsx'].VolumeId"),
    "AWS::IAM::InstanceProfile": ("iam", "list_instance_profiles", "InstanceProfiles[].InstanceProfileName"),
    "AWS::IAM::ManagedPolicy": ("iam", "list_policies", "Policies[].Arn"),
    "AWS::IAM::OIDCProvider": ("iam", "list_open_id_connect_providers", "OpenIDConnectProviderList[].Arn"),
    "AWS::IAM::Role": ("iam", "list_roles", "Roles[].RoleName"),
    "AWS::KMS::Alias": ("kms", "list_aliases", "Aliases[?!starts_with(AliasName, 'alias/aws/')].AliasName"),
    "AWS::Lambda::Function": ("lambda", "list_functions", "Functions[].FunctionName"),
    "AWS::Lambda::LayerVersion": ("lambda", "list_layers", "Layers[].LayerName"),
    "AWS::Logs::LogGroup": ("logs", "describe_log_groups", "logGroups[].logGroupName"),
    "AWS::RDS::DBInstance": ("rds", "describe_db_instances", "DBInstances[].DBInstanceIdentifier"),
    "AWS::RDS::DBParameterGroup": (
        "rds",
        "describe_db_parameter_groups",
        "DBParameterGroups[?!starts_with(DBParameterGroupName, 'default.')].DBParameterGroupName",
    ),
    "AWS::RDS::DBSnapshot": ("rds", "describe_db_snapshots", "DBSnapshots[].DBSnapshotIdentifier"),
    "AWS::RDS::DBSubnetGroup": (
        "rds",
        "describe_db_subnet_groups",
        "DBSubnetGroups[?DBSubnetGroupName!='default'].DBSubnetGroupName",
    ),
    "AWS::Route53::HostedZone": ("route53", "list_hosted_zones", "HostedZones[].Name"),
    "AWS::S3::Bucket": ("s3", "list_buckets", "Buckets[].Name"),
    "AWS::SecretsManager::Secret": ("secretsmanager", "list_secrets", "SecretList[].Name"),
    "AWS::SNS::Topic": ("sns", "list_topics", "Topics[].TopicArn"),
    "AWS::SSM::Document": ("ssm", "list_documents", "DocumentIdentifiers[].Name"),
    "AWS::SSM::Parameter": ("ssm", "describe_parameters", "Parameters[].Name"),
}
"""How each type is listed that exists by itself: the method of a boto3 client, and the JMESPath to the names."""

_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "AWS::Budgets::Budget": {"AccountId": ACCOUNT},
    "AWS::CloudWatch::CompositeAlarm": {"AlarmTypes": ["CompositeAlarm"]},
    "AWS::IAM::ManagedPolicy": {"Scope": "Local"},
    "AWS::SSM::Document": {"Filters": [{"Key": "Owner", "Values": ["Self"]}]},
}


def inventory(aws: EmulatedAws, region: str) -> set[tuple[str, str]]:
    """Return the type and the name of everything that exists."""
    return {
        (resource_type, name)
        for resource_type, (service, operation, names) in LISTINGS.items()
        for page in _pages(aws.client(service, region), operation, _ARGUMENTS.get(resource_type, {}))
        for name in jmespath.search(names, page) or []
    }


def _pages(client: Any, operation: str, arguments: Mapping[str, Any]) -> Any:
    if client.can_paginate(operation):
        return client.get_paginator(operation).paginate(**arguments)
    return [getattr(client, operation)(**arguments)]
