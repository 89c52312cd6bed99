"""What is true of all resources of a type: a row for each type of our templates, and of what a cluster leaves.

Where a fact needs more than a call, `scripts.watch.inventory` has a function for the type: `removal` finds and deletes,
`costs` prices.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from toolchain.cluster import CLUSTER_TYPE

PREFIX: Final = "prefix of a bucket"
"""The type of what ParallelCluster keeps of one cluster in its bucket, which all clusters of a Region share."""


class Paid(Enum):
    """What a resource is paid for."""

    NOTHING = auto()
    """It is free, or its price is that of others, such as of the instances that use it."""
    RATE = auto()
    """It costs what any other of its type costs."""
    SIZE = auto()
    """Its service tells what it costs, such as by its size."""
    USE = auto()
    """By use, which is not known."""


@dataclass(frozen=True)
class Call:
    """A call of a service about one resource.

    Attributes:
        service: The service.
        operation: Name of the method in boto3.
        parameter: Its parameter that takes the resource's physical id.
        many: Whether that takes a list of them.
    """

    service: str
    operation: str
    parameter: str
    many: bool = False

    def arguments(self, name: str) -> dict[str, Any]:
        """Return the call's arguments for the resource of an id."""
        return {self.parameter: [name] if self.many else name}


@dataclass(frozen=True)
class ResourceKind:
    """What is true of all resources of a type.

    Attributes:
        type: CloudFormation's name of it.
        holds_data: Whether it holds data of people, so that it is deleted only if that is requested.
        paid: What it is paid for.
        loss: What its replacement or removal means; empty: nothing that somebody must know.
        is_guarded: Whether its replacement or removal must be accepted, not only announced.
        found: The call that fails where it does not exist; None: no stack of ours keeps one, or a function finds it.
        deleted: The call that deletes it; None: a function does, or it is left on purpose, or goes with its stack.
        tagged: The operation of EC2 that lists those with ParallelCluster's tag, and the ids in its answer.
        arn: What ARNs of those that storage and team can keep have for the service, and in front of the name.
    """

    type: str
    holds_data: bool = False
    paid: Paid = Paid.NOTHING
    loss: str = ""
    is_guarded: bool = False
    found: Call | None = None
    deleted: Call | None = None
    tagged: tuple[str, str] | None = None
    arn: str = ""


LEFT: Final = (
    ResourceKind(
        "AWS::EC2::Instance",
        paid=Paid.SIZE,
        tagged=("describe_instances", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId"),
    ),
    ResourceKind(
        "AWS::EC2::NetworkInterface",
        found=Call("ec2", "describe_network_interfaces", "NetworkInterfaceIds", many=True),
        deleted=Call("ec2", "delete_network_interface", "NetworkInterfaceId"),
        tagged=("describe_network_interfaces", "NetworkInterfaces[].NetworkInterfaceId"),
    ),
    ResourceKind(
        "AWS::EC2::Volume",
        holds_data=True,
        paid=Paid.SIZE,
        deleted=Call("ec2", "delete_volume", "VolumeId"),
        tagged=("describe_volumes", "Volumes[].VolumeId"),
    ),
    ResourceKind("AWS::EC2::Snapshot", holds_data=True, paid=Paid.SIZE),
    ResourceKind(
        "AWS::FSx::FileSystem",
        holds_data=True,
        paid=Paid.SIZE,
        loss="a new one is empty: nothing is copied",
        is_guarded=True,
        found=Call("fsx", "describe_file_systems", "FileSystemIds", many=True),
        arn="fsx:file-system",
    ),
    ResourceKind(
        "AWS::EFS::FileSystem",
        holds_data=True,
        paid=Paid.SIZE,
        loss="it holds /home of all users: a new one is empty",
        is_guarded=True,
        found=Call("efs", "describe_file_systems", "FileSystemId"),
        arn="elasticfilesystem:file-system",
    ),
    ResourceKind(
        "AWS::RDS::DBInstance",
        holds_data=True,
        paid=Paid.SIZE,
        loss="it holds the history of all jobs: a new one is empty",
        is_guarded=True,
        found=Call("rds", "describe_db_instances", "DBInstanceIdentifier"),
    ),
    ResourceKind(
        "AWS::RDS::DBSubnetGroup",
        found=Call("rds", "describe_db_subnet_groups", "DBSubnetGroupName"),
        deleted=Call("rds", "delete_db_subnet_group", "DBSubnetGroupName"),
    ),
    ResourceKind(
        "AWS::RDS::DBParameterGroup",
        found=Call("rds", "describe_db_parameter_groups", "DBParameterGroupName"),
        deleted=Call("rds", "delete_db_parameter_group", "DBParameterGroupName"),
    ),
    ResourceKind(
        "AWS::SecretsManager::Secret", paid=Paid.RATE, deleted=Call("secretsmanager", "delete_secret", "SecretId")
    ),
    ResourceKind("AWS::RDS::DBSnapshot", holds_data=True, paid=Paid.USE),
    ResourceKind("AWS::Backup::RecoveryPoint", holds_data=True, paid=Paid.SIZE),
    ResourceKind("AWS::Backup::BackupVault", deleted=Call("backup", "delete_backup_vault", "BackupVaultName")),
    ResourceKind(
        "AWS::EC2::SecurityGroup",
        found=Call("ec2", "describe_security_groups", "GroupIds", many=True),
        tagged=("describe_security_groups", "SecurityGroups[].GroupId"),
        arn="ec2:security-group",
    ),
    ResourceKind(
        "AWS::EC2::Subnet",
        loss="file system and nodes are in it",
        is_guarded=True,
        found=Call("ec2", "describe_subnets", "SubnetIds", many=True),
        deleted=Call("ec2", "delete_subnet", "SubnetId"),
    ),
    ResourceKind(
        "AWS::EC2::RouteTable",
        found=Call("ec2", "describe_route_tables", "RouteTableIds", many=True),
        deleted=Call("ec2", "delete_route_table", "RouteTableId"),
    ),
    ResourceKind(  # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeletePlacementGroup.html
        "AWS::EC2::PlacementGroup",
        loss="it can be deleted only when no instance is in it any more",
        found=Call("ec2", "describe_placement_groups", "GroupNames", many=True),
        deleted=Call("ec2", "delete_placement_group", "GroupName"),
    ),
    ResourceKind("AWS::EC2::LaunchTemplate", deleted=Call("ec2", "delete_launch_template", "LaunchTemplateId")),
    ResourceKind("AWS::IAM::InstanceProfile", found=Call("iam", "get_instance_profile", "InstanceProfileName")),
    ResourceKind("AWS::IAM::Role", found=Call("iam", "get_role", "RoleName")),
    ResourceKind(
        "AWS::DynamoDB::Table",
        paid=Paid.USE,
        found=Call("dynamodb", "describe_table", "TableName"),
        deleted=Call("dynamodb", "delete_table", "TableName"),
    ),
    ResourceKind("AWS::Route53::HostedZone", paid=Paid.RATE),
    ResourceKind("AWS::SSM::Parameter", deleted=Call("ssm", "delete_parameter", "Name")),
    ResourceKind(
        "AWS::Lambda::Function",
        paid=Paid.USE,
        found=Call("lambda", "get_function", "FunctionName"),
        deleted=Call("lambda", "delete_function", "FunctionName"),
    ),
    ResourceKind(PREFIX),
    ResourceKind(
        "AWS::S3::Bucket",
        holds_data=True,
        paid=Paid.USE,
        loss="it holds data",
        is_guarded=True,
        found=Call("s3", "head_bucket", "Bucket"),
        arn="s3:",
    ),
    ResourceKind(
        "AWS::Logs::LogGroup",
        paid=Paid.SIZE,
        loss="its logs do not move to another one",
        deleted=Call("logs", "delete_log_group", "logGroupName"),
    ),
)
"""Those that can be left of a destroyed deployment, each after those that use it: the order of their removal."""

OTHERS: Final = (
    ResourceKind("AWS::CloudWatch::Alarm", paid=Paid.RATE),
    ResourceKind("AWS::CloudWatch::CompositeAlarm", paid=Paid.RATE),
    ResourceKind("AWS::CloudWatch::Dashboard", paid=Paid.RATE),
    ResourceKind("AWS::EC2::EIP", paid=Paid.RATE, loss="the address that others see the nodes come from changes"),
    ResourceKind(
        "AWS::EC2::NatGateway",
        paid=Paid.RATE,
        loss="the nodes' connections to the internet break, and the address they come from may change",
    ),
    ResourceKind("AWS::EC2::VPC", loss="everything is in it", is_guarded=True),
    ResourceKind("AWS::EC2::VPCEndpoint", paid=Paid.SIZE),
    ResourceKind("AWS::ElasticLoadBalancingV2::LoadBalancer", paid=Paid.RATE),
    ResourceKind("AWS::FSx::Backup", holds_data=True, paid=Paid.USE),
    ResourceKind(
        "AWS::FSx::Volume",
        holds_data=True,
        loss="it holds /home of all users: a new one is empty",
        is_guarded=True,
    ),
    ResourceKind(
        "AWS::FSx::DataRepositoryAssociation",
        loss="what the file system has not loaded from S3, or not exported, is cut off",
        is_guarded=True,
    ),
    ResourceKind("AWS::KMS::Key", paid=Paid.RATE),
    ResourceKind("AWS::SNS::Topic", paid=Paid.USE),
    ResourceKind(CLUSTER_TYPE, loss="the cluster goes, with its jobs and what is on the head node", is_guarded=True),
    *map(
        ResourceKind,
        (
            "AWS::Budgets::Budget",
            "AWS::CloudFormation::Stack",
            "AWS::CloudFormation::WaitConditionHandle",
            "AWS::CodeBuild::Project",
            "AWS::CodePipeline::Pipeline",
            "AWS::DLM::LifecyclePolicy",
            "AWS::EC2::FlowLog",
            "AWS::EC2::InternetGateway",
            "AWS::EC2::Route",
            "AWS::EC2::SecurityGroupEgress",
            "AWS::EC2::SecurityGroupIngress",
            "AWS::EC2::SubnetRouteTableAssociation",
            "AWS::EC2::VPCGatewayAttachment",
            "AWS::EFS::MountTarget",
            "AWS::IAM::ManagedPolicy",
            "AWS::IAM::OIDCProvider",
            "AWS::IAM::Policy",
            "AWS::S3::BucketPolicy",
            "AWS::SNS::Subscription",
            "AWS::SNS::TopicPolicy",
            "AWS::SSM::Document",
            "Custom::S3AutoDeleteObjects",
            "Custom::VpcRestrictDefaultSG",
        ),
    ),
)
"""Those that go with their stacks. The last ones hold no data, and cost nothing that an inventory has a price for."""

REMOVAL_ORDER: Final = tuple(each.type for each in LEFT)
_BY_TYPE: Final = {each.type: each for each in (*LEFT, *OTHERS)}


def kind_of(resource_type: str) -> ResourceKind:
    """Return what is known of a type; of one without a row nothing is true."""
    return _BY_TYPE.get(resource_type, ResourceKind(resource_type))
