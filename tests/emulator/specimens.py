"""A stack with one resource of each type, with what the type needs and little more."""

import io
import zipfile
from typing import Any

from emulator.aws import EmulatedAws
from tests.emulator.account import statement, trust

REGION = "us-west-2"
BUCKET = "specimens"


def ref(logical_id: str) -> dict[str, str]:
    return {"Ref": logical_id}


def attribute(logical_id: str, name: str) -> dict[str, list[str]]:
    return {"Fn::GetAtt": [logical_id, name]}


def prepare(aws: EmulatedAws) -> str:
    """Make what the resources refer to outside of their stack, and return the id of an image."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("python/layer.py", "")
    s3 = aws.client("s3", REGION)
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    s3.put_object(Bucket=BUCKET, Key="layer.zip", Body=content.getvalue())
    image: str = aws.client("ec2", REGION).register_image(Name="specimens", RootDeviceName="/dev/sda1")["ImageId"]
    return image


def resources(image: str) -> dict[str, dict[str, Any]]:
    """Return the resources by the last part of their types, or with the service where two have the same."""
    lustre = {"DeploymentType": "SCRATCH_2"}
    zfs = {"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 64}
    nfs = {"CidrIp": "10.0.0.0/16", "IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535}
    launched = {"ImageId": image, "InstanceType": "c6i.large"}
    version = {"LaunchTemplateId": ref("LaunchTemplate"), "Version": attribute("LaunchTemplate", "LatestVersionNumber")}
    forwarded = {"Type": "forward", "TargetGroupArn": ref("TargetGroup")}
    snapshots = {
        "PolicyType": "EBS_SNAPSHOT_MANAGEMENT",
        "ResourceTypes": ["VOLUME"],
        "TargetTags": [{"Key": "a", "Value": "b"}],
        "Schedules": [
            {"Name": "daily", "CreateRule": {"Interval": 24, "IntervalUnit": "HOURS"}, "RetainRule": {"Count": 1}}
        ],
    }
    code = {"ZipFile": "def handler(event, context): return 1"}
    session = {"schemaVersion": "1.0", "description": "x", "sessionType": "Standard_Stream", "inputs": {}}
    of_types = {
        "AWS::AutoScaling::AutoScalingGroup": {
            "MinSize": "0",
            "MaxSize": "1",
            "LaunchTemplate": version,
            "VPCZoneIdentifier": [ref("Subnet")],
        },
        "AWS::CDK::Metadata": {"Analytics": "v2:deflate64:"},
        "AWS::Budgets::Budget": {
            "Budget": {"BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": {"Amount": 1, "Unit": "USD"}}
        },
        "AWS::CloudWatch::Alarm": {
            "ComparisonOperator": "GreaterThanThreshold",
            "EvaluationPeriods": 1,
            "MetricName": "m",
            "Namespace": "n",
            "Period": 60,
            "Statistic": "Sum",
            "Threshold": 1,
        },
        "AWS::CloudWatch::CompositeAlarm": {"AlarmRule": {"Fn::Sub": 'ALARM("${Alarm}")'}},
        "AWS::CloudWatch::Dashboard": {"DashboardBody": '{"widgets": []}'},
        "AWS::DLM::LifecyclePolicy": {
            "Description": "x",
            "ExecutionRoleArn": attribute("Role", "Arn"),
            "PolicyDetails": snapshots,
            "State": "ENABLED",
        },
        "AWS::DynamoDB::Table": {
            "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{"AttributeName": "Id", "KeyType": "HASH"}],
        },
        "AWS::EC2::EIP": {"Domain": "vpc"},
        "AWS::EC2::FlowLog": {
            "DeliverLogsPermissionArn": attribute("Role", "Arn"),
            "LogGroupName": ref("LogGroup"),
            "ResourceId": ref("VPC"),
            "ResourceType": "VPC",
            "TrafficType": "ALL",
        },
        "AWS::EC2::Instance": {"LaunchTemplate": version},
        "AWS::EC2::InternetGateway": {},
        "AWS::EC2::LaunchTemplate": {
            "LaunchTemplateData": {**launched, "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": ref("Subnet")}]}
        },
        "AWS::EC2::NatGateway": {"AllocationId": attribute("EIP", "AllocationId"), "SubnetId": ref("Subnet")},
        "AWS::EC2::NetworkInterface": {"SubnetId": ref("Subnet")},
        "AWS::EC2::PlacementGroup": {"Strategy": "cluster"},
        "AWS::EC2::Volume": {"AvailabilityZone": "us-west-2a", "Size": 20, "VolumeType": "gp3", "Encrypted": True},
        "AWS::EC2::Route": {
            "DestinationCidrBlock": "0.0.0.0/0",
            "GatewayId": ref("InternetGateway"),
            "RouteTableId": ref("RouteTable"),
        },
        "AWS::EC2::RouteTable": {"VpcId": ref("VPC")},
        "AWS::EC2::SecurityGroup": {"GroupDescription": "x", "VpcId": ref("VPC"), "SecurityGroupIngress": [nfs]},
        "AWS::EC2::SecurityGroupEgress": {"GroupId": ref("SecurityGroup"), **nfs},
        "AWS::EC2::SecurityGroupIngress": {"GroupId": ref("SecurityGroup"), **nfs, "CidrIp": "10.1.0.0/16"},
        "AWS::EC2::Subnet": {"AvailabilityZone": "us-west-2a", "CidrBlock": "10.0.0.0/24", "VpcId": ref("VPC")},
        "AWS::EC2::SubnetRouteTableAssociation": {"RouteTableId": ref("RouteTable"), "SubnetId": ref("Subnet")},
        "AWS::EC2::VPC": {"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": True, "EnableDnsSupport": True},
        "AWS::EC2::VPCEndpoint": {
            "RouteTableIds": [ref("RouteTable")],
            "ServiceName": {"Fn::Sub": "com.amazonaws.${AWS::Region}.s3"},
            "VpcId": ref("VPC"),
        },
        "AWS::EC2::VPCGatewayAttachment": {"InternetGatewayId": ref("InternetGateway"), "VpcId": ref("VPC")},
        "AWS::ECR::Repository": {},
        "AWS::EFS::FileSystem": {"Encrypted": True, "FileSystemTags": [{"Key": "Name", "Value": "a"}]},
        "AWS::EFS::MountTarget": {
            "FileSystemId": ref("EFSFileSystem"),
            "SecurityGroups": [ref("SecurityGroup")],
            "SubnetId": ref("Subnet"),
        },
        "AWS::ElasticLoadBalancingV2::Listener": {
            "DefaultActions": [forwarded],
            "LoadBalancerArn": ref("LoadBalancer"),
            "Port": 22,
            "Protocol": "TCP",
        },
        "AWS::ElasticLoadBalancingV2::LoadBalancer": {
            "Scheme": "internal",
            "Subnets": [ref("Subnet")],
            "Type": "network",
        },
        "AWS::ElasticLoadBalancingV2::TargetGroup": {"Port": 22, "Protocol": "TCP", "VpcId": ref("VPC")},
        "AWS::FSx::DataRepositoryAssociation": {
            "DataRepositoryPath": {"Fn::Sub": "s3://${Bucket}/data"},
            "FileSystemId": ref("FSxFileSystem"),
            "FileSystemPath": "/data",
        },
        "AWS::FSx::FileSystem": {
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": "2.15",
            "LustreConfiguration": lustre,
            "SecurityGroupIds": [ref("SecurityGroup")],
            "StorageCapacity": 1200,
            "SubnetIds": [ref("Subnet")],
        },
        "AWS::FSx::Volume": {
            "Name": "home",
            "OpenZFSConfiguration": {"ParentVolumeId": attribute("ZFS", "RootVolumeId")},
            "VolumeType": "OPENZFS",
        },
        "AWS::IAM::InstanceProfile": {"Roles": [ref("Role")]},
        "AWS::IAM::ManagedPolicy": {"PolicyDocument": statement(Action="s3:GetObject", Resource="*")},
        "AWS::IAM::OIDCProvider": {
            "ClientIdList": ["sts.amazonaws.com"],
            "ThumbprintList": ["a" * 40],
            "Url": "https://token.actions.githubusercontent.com",
        },
        "AWS::IAM::Policy": {
            "PolicyDocument": statement(Action="s3:GetObject", Resource="*"),
            "PolicyName": "p",
            "Roles": [ref("Role")],
        },
        "AWS::IAM::Role": {"AssumeRolePolicyDocument": trust("lambda")},
        "AWS::KMS::Alias": {"AliasName": "alias/specimen", "TargetKeyId": ref("Key")},
        "AWS::KMS::Key": {"Description": "x"},
        "AWS::Lambda::Function": {
            "Code": code,
            "Handler": "index.handler",
            "Role": attribute("Role", "Arn"),
            "Runtime": "python3.12",
        },
        "AWS::Lambda::LayerVersion": {"Content": {"S3Bucket": BUCKET, "S3Key": "layer.zip"}},
        "AWS::Logs::LogGroup": {"RetentionInDays": 7},
        "AWS::Logs::MetricFilter": {
            "FilterPattern": "x",
            "LogGroupName": ref("LogGroup"),
            "MetricTransformations": [{"MetricName": "m", "MetricNamespace": "n", "MetricValue": "1"}],
        },
        "AWS::RDS::DBInstance": {
            "AllocatedStorage": "20",
            "DBInstanceClass": "db.t4g.micro",
            "DBParameterGroupName": ref("DBParameterGroup"),
            "DBSubnetGroupName": ref("DBSubnetGroup"),
            "Engine": "mysql",
            "MasterUserPassword": "a-password",
            "MasterUsername": "slurm",
        },
        "AWS::RDS::DBParameterGroup": {"Description": "x", "Family": "mysql8.4"},
        "AWS::RDS::DBSubnetGroup": {
            "DBSubnetGroupDescription": "x",
            "SubnetIds": [ref("Subnet"), ref("OtherSubnet")],
        },
        "AWS::Route53::HostedZone": {
            "HostedZoneTags": [{"Key": "Name", "Value": "a"}],
            "Name": "cluster.",
            "VPCs": [{"VPCId": ref("VPC"), "VPCRegion": ref("AWS::Region")}],
        },
        "AWS::S3::Bucket": {},
        "AWS::S3::BucketPolicy": {
            "Bucket": ref("Bucket"),
            "PolicyDocument": statement(Action="s3:GetObject", Principal="*", Resource={"Fn::Sub": "${Bucket.Arn}/*"}),
        },
        "AWS::SNS::Subscription": {"Endpoint": "a@example.com", "Protocol": "email", "TopicArn": ref("Topic")},
        "AWS::SNS::Topic": {"DisplayName": "x"},
        "AWS::SNS::TopicPolicy": {
            "PolicyDocument": statement(
                Action="sns:Publish", Principal={"Service": "budgets.amazonaws.com"}, Resource=ref("Topic")
            ),
            "Topics": [ref("Topic")],
        },
        "AWS::SSM::Document": {"Content": session, "DocumentType": "Session", "UpdateMethod": "NewVersion"},
        "AWS::SSM::Parameter": {"Type": "String", "Value": "v"},
        "AWS::SecretsManager::Secret": {"GenerateSecretString": {}},
        "Custom::S3AutoDeleteObjects": {"BucketName": ref("Bucket"), "ServiceToken": attribute("Function", "Arn")},
        "Custom::VpcRestrictDefaultSG": {
            "Account": ref("AWS::AccountId"),
            "DefaultSecurityGroupId": attribute("VPC", "DefaultSecurityGroup"),
            "ServiceToken": attribute("Function", "Arn"),
        },
    }
    made = {_logical_id(each): {"Type": each, "Properties": properties} for each, properties in of_types.items()}
    for late in ("NatGateway", "Route"):
        made[late]["DependsOn"] = "VPCGatewayAttachment"
    subnet = {"AvailabilityZone": "us-west-2b", "CidrBlock": "10.0.1.0/24", "VpcId": ref("VPC")}
    of_zfs = {"SecurityGroupIds": [ref("SecurityGroup")], "StorageCapacity": 64, "SubnetIds": [ref("Subnet")]}
    second = {
        "OtherSubnet": {"Type": "AWS::EC2::Subnet", "Properties": subnet},
        "ZFS": {
            "Type": "AWS::FSx::FileSystem",
            "Properties": {"FileSystemType": "OPENZFS", "OpenZFSConfiguration": zfs, **of_zfs},
        },
    }
    return {**made, **second}


def _logical_id(resource_type: str) -> str:
    _, *service, part = resource_type.split("::")
    return f"{service[0]}{part}" if part in ("FileSystem", "Volume") else part
