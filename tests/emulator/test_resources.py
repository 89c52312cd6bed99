"""Resource types that change in place: made as a template says, changed, and deleted without a trace; boto3 looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.exceptions import ClientError

from emulator.aws import ACCOUNT
from emulator.resources import ResourceError
from tests.emulator.account import Account, Resource, statement, tags, trust
from toolchain.values import UnsupportedError

S3_READ = statement(Action="s3:GetObject", Resource="*")


@dataclass(frozen=True)
class Case:
    """A resource's life.

    Attributes:
        properties: What it is made with.
        look: What boto3 sees of it; once it is gone, nothing or an error.
        made: What that is after its creation.
        changes: Properties that are changed; None takes one away.
        changed: What boto3 sees then.
    """

    properties: dict[str, Any]
    look: Callable[[Resource], Any]
    made: Any
    changes: dict[str, Any]
    changed: Any


CASES: dict[str, Callable[[Account], Case]] = {}


def case(resource_type: str) -> Callable[[Callable[[Account], Case]], Callable[[Account], Case]]:
    def register(build: Callable[[Account], Case]) -> Callable[[Account], Case]:
        CASES[resource_type] = build
        return build

    return register


def part(described: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: described.get(key) for key in keys}


@case("AWS::EC2::NatGateway")
def _nat_gateway(account: Account) -> Case:
    vpc = account.vpc()
    account.attached_gateway(vpc)
    first, second, third = (account.address()["AllocationId"] for _ in range(3))

    def look(gateway: Resource) -> Any:
        described = account.client("ec2").describe_nat_gateways(NatGatewayIds=[gateway.ref])["NatGateways"][0]
        gone = described["State"] == "deleted"  # EC2 lists a deleted gateway for an hour
        return [] if gone else [each["AllocationId"] for each in described["NatGatewayAddresses"]]

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
    )


def _rules(account: Account, group_id: str) -> list[tuple[Any, ...]]:
    answer = account.client("ec2").describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group_id]}])
    return sorted(
        (
            each["IsEgress"],
            each["IpProtocol"],
            each["FromPort"],
            each.get("CidrIpv4") or each["ReferencedGroupInfo"]["GroupId"],
            each.get("Description"),
        )
        for each in answer["SecurityGroupRules"]
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
    )


@case("AWS::FSx::Volume")
def _volume(account: Account) -> Case:
    vpc = account.vpc()
    nfs = {"CidrIp": "10.0.0.0/16", "IpProtocol": "tcp", "FromPort": 2049, "ToPort": 2049}
    group = account.create("AWS::EC2::SecurityGroup", GroupDescription="nfs", VpcId=vpc.ref, SecurityGroupIngress=[nfs])
    file_system = account.create(
        "AWS::FSx::FileSystem",
        FileSystemType="OPENZFS",
        OpenZFSConfiguration={"DeploymentType": "SINGLE_AZ_1", "ThroughputCapacity": 64},
        SecurityGroupIds=[group.ref],
        StorageCapacity=64,
        StorageType="SSD",
        SubnetIds=[account.subnet(vpc).ref],
    )
    root = file_system["RootVolumeId"]

    def look(volume: Resource) -> Any:
        name = volume["VolumeId"]
        described = account.client("fsx").describe_volumes(VolumeIds=[name])["Volumes"][0]
        zfs = described["OpenZFSConfiguration"]
        return described["FileSystemId"] == file_system.ref, zfs["VolumePath"], zfs.get("UserAndGroupQuotas")

    def quota(gib: int) -> dict[str, Any]:
        limits = [{"Type": "USER", "Id": 2001, "StorageCapacityQuotaGiB": gib}]
        return {"ParentVolumeId": root, "UserAndGroupQuotas": limits}

    return Case(
        properties={"Name": "home", "VolumeType": "OPENZFS", "OpenZFSConfiguration": quota(1)},
        look=look,
        made=(True, "/fsx/home", quota(1)["UserAndGroupQuotas"]),
        changes={"OpenZFSConfiguration": quota(2)},
        changed=(True, "/fsx/home", quota(2)["UserAndGroupQuotas"]),
    )


@case("AWS::EFS::FileSystem")
def _elastic_file_system(account: Account) -> Case:
    def look(file_system: Resource) -> Any:
        described = account.client("efs").describe_file_systems(FileSystemId=file_system.ref)["FileSystems"][0]
        backups = account.client("efs").describe_backup_policy(FileSystemId=file_system.ref)["BackupPolicy"]
        return described["ThroughputMode"], backups["Status"], described["Tags"]

    return Case(
        properties={
            "BackupPolicy": {"Status": "ENABLED"},
            "Encrypted": True,
            "FileSystemPolicy": {"Version": "2012-10-17", "Statement": []},
            "FileSystemTags": tags(Name="a", Old="b"),
            "ThroughputMode": "elastic",
        },
        look=look,
        made=("elastic", "ENABLED", tags(Name="a", Old="b")),
        changes={"FileSystemTags": tags(Name="c")},
        changed=("elastic", "ENABLED", tags(Name="c")),
    )


@case("AWS::FSx::FileSystem")
def _file_system(account: Account) -> Case:
    vpc = account.vpc()

    def look(file_system: Resource) -> Any:
        described = account.client("fsx").describe_file_systems(FileSystemIds=[file_system.ref])["FileSystems"][0]
        lustre = part(described["LustreConfiguration"], "DataCompressionType", "PerUnitStorageThroughput")
        return described["StorageCapacity"], described["FileSystemTypeVersion"], lustre, described["Tags"]

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
    )


@case("AWS::FSx::DataRepositoryAssociation")
def _data_repository_association(account: Account) -> Case:
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    uri = f"s3://{account.create('AWS::S3::Bucket').ref}/data"

    def look(link: Resource) -> Any:
        fsx = account.client("fsx")
        described = fsx.describe_data_repository_associations(AssociationIds=[link.ref])["Associations"][0]
        keys = ("FileSystemId", "FileSystemPath", "DataRepositoryPath", "Lifecycle", "S3", "Tags")
        return part(described, *keys)

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
    )


@case("AWS::IAM::Role")
def _role(account: Account) -> Case:
    iam = account.client("iam")

    def look(role: Resource) -> Any:
        described = iam.get_role(RoleName=role.ref)["Role"]
        attached = iam.list_attached_role_policies(RoleName=role.ref)["AttachedPolicies"]
        return (
            described["AssumeRolePolicyDocument"],
            [each["PolicyName"] for each in attached],
            iam.list_role_policies(RoleName=role.ref)["PolicyNames"],
            iam.list_role_tags(RoleName=role.ref)["Tags"],
            described.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
        )

    return Case(
        properties={
            "AssumeRolePolicyDocument": trust("lambda"),
            "ManagedPolicyArns": ["arn:aws:iam::aws:policy/ReadOnlyAccess"],
            "Policies": [{"PolicyName": "one", "PolicyDocument": S3_READ}],
            "Tags": tags(Name="a"),
        },
        look=look,
        made=(trust("lambda"), ["ReadOnlyAccess"], ["one"], tags(Name="a"), None),
        changes={
            "PermissionsBoundary": "arn:aws:iam::aws:policy/PowerUserAccess",
            "AssumeRolePolicyDocument": trust("ec2"),
            "ManagedPolicyArns": ["arn:aws:iam::aws:policy/PowerUserAccess"],
            "Policies": [{"PolicyName": "two", "PolicyDocument": S3_READ}],
            "Tags": None,
        },
        changed=(trust("ec2"), ["PowerUserAccess"], ["two"], [], "arn:aws:iam::aws:policy/PowerUserAccess"),
    )


@case("AWS::RDS::DBInstance")
def _database(account: Account) -> Case:
    group = account.subnet_group()
    parameters = account.create("AWS::RDS::DBParameterGroup", Description="x", Family="mysql8.4")

    def look(database: Resource) -> Any:
        described = account.client("rds").describe_db_instances(DBInstanceIdentifier=database.ref)["DBInstances"][0]
        assert database["Endpoint.Address"] == described["Endpoint"]["Address"]
        return (
            part(described, "DBInstanceClass", "AllocatedStorage", "Engine", "MasterUsername", "BackupRetentionPeriod"),
            [each["DBParameterGroupName"] for each in described["DBParameterGroups"]],
            described["DBSubnetGroup"]["DBSubnetGroupName"],
            described["DBInstanceStatus"],
            described["TagList"],
        )

    made = {
        "DBInstanceClass": "db.t4g.micro",
        "AllocatedStorage": 20,
        "Engine": "mysql",
        "MasterUsername": "slurm",
        "BackupRetentionPeriod": 7,
    }
    return Case(
        properties={
            "AllocatedStorage": "20",
            "BackupRetentionPeriod": 7,
            "DBInstanceClass": "db.t4g.micro",
            "DBSubnetGroupName": group.ref,
            "Engine": "mysql",
            "EngineLifecycleSupport": "open-source-rds-extended-support-disabled",
            "MasterUserPassword": "a-password",
            "MasterUsername": "slurm",
            "Tags": tags(Name="a"),
            "VPCSecurityGroups": [account.group(account.vpc()).ref],
        },
        look=look,
        made=(made, ["default.mysql8.4"], group.ref, "available", tags(Name="a")),
        changes={
            "AllocatedStorage": "40",
            "BackupRetentionPeriod": 1,
            "DBInstanceClass": "db.t4g.small",
            "DBParameterGroupName": parameters.ref,
            "Tags": tags(Name="b"),
        },
        changed=(
            {**made, "AllocatedStorage": 40, "BackupRetentionPeriod": 1, "DBInstanceClass": "db.t4g.small"},
            [parameters.ref],
            group.ref,
            "available",
            tags(Name="b"),
        ),
    )


@case("AWS::RDS::DBSubnetGroup")
def _subnet_group(account: Account) -> Case:
    vpc = account.vpc()
    one, two, three = (account.zonal_subnet(vpc, number).ref for number in range(3))

    def look(group: Resource) -> Any:
        described = account.client("rds").describe_db_subnet_groups(DBSubnetGroupName=group.ref)["DBSubnetGroups"][0]
        return described["DBSubnetGroupDescription"], [each["SubnetIdentifier"] for each in described["Subnets"]]

    return Case(
        properties={"DBSubnetGroupDescription": "x", "SubnetIds": [one, two]},
        look=look,
        made=("x", [one, two]),
        changes={"DBSubnetGroupDescription": "y", "SubnetIds": [two, three]},
        changed=("y", [two, three]),
    )


@case("AWS::RDS::DBParameterGroup")
def _parameter_group(account: Account) -> Case:
    rds = account.client("rds")

    def look(group: Resource) -> Any:
        [described] = rds.describe_db_parameter_groups(DBParameterGroupName=group.ref)["DBParameterGroups"]
        parameters = rds.describe_db_parameters(DBParameterGroupName=group.ref)["Parameters"]
        values = {each["ParameterName"]: each["ParameterValue"] for each in parameters}
        return (
            described["DBParameterGroupFamily"],
            values,
            rds.list_tags_for_resource(ResourceName=described["DBParameterGroupArn"])["TagList"],
        )

    return Case(
        properties={
            "Description": "x",
            "Family": "mysql8.4",
            "Parameters": {"require_secure_transport": "1", "innodb_lock_wait_timeout": 900},
        },
        look=look,
        made=("mysql8.4", {"require_secure_transport": "1", "innodb_lock_wait_timeout": "900"}, []),
        changes={"Parameters": {"innodb_lock_wait_timeout": 60}, "Tags": tags(Name="a")},
        changed=("mysql8.4", {"innodb_lock_wait_timeout": "60"}, tags(Name="a")),
    )


@case("AWS::SecretsManager::Secret")
def _secret(account: Account) -> Case:
    def look(secret: Resource) -> Any:
        client = account.client("secretsmanager")
        value = client.get_secret_value(SecretId=secret.ref)["SecretString"]
        described = client.describe_secret(SecretId=secret.ref)
        return len(value), set(value) <= set("abcdefghijklmnopqrstuvwxyz"), described["Description"], described["Tags"]

    def generated(length: int) -> dict[str, Any]:
        excluded = {f"Exclude{each}": True for each in ("Numbers", "Punctuation", "Uppercase")}
        return {**excluded, "PasswordLength": length}

    return Case(
        properties={"Description": "x", "GenerateSecretString": generated(30), "Tags": tags(Name="a")},
        look=look,
        made=(30, True, "x", tags(Name="a")),
        changes={"Description": "y", "GenerateSecretString": generated(40), "Tags": tags(Name="b")},
        changed=(40, True, "y", tags(Name="b")),
    )


@case("AWS::Budgets::Budget")
def _budget(account: Account) -> Case:
    budgets = account.client("budgets")
    notification = {"ComparisonOperator": "GREATER_THAN", "NotificationType": "ACTUAL", "Threshold": 80.0}

    def look(budget: Resource) -> Any:
        which = {"AccountId": ACCOUNT, "BudgetName": budget.ref}
        described = budgets.describe_budget(**which)["Budget"]
        return described["BudgetLimit"], budgets.describe_notifications_for_budget(**which)["Notifications"]

    def limit(amount: int) -> dict[str, Any]:
        return {"BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": {"Amount": amount, "Unit": "USD"}}

    subscriber = {"Address": "arn:aws:sns:us-west-2:123456789012:alarms", "SubscriptionType": "SNS"}
    return Case(
        properties={
            "Budget": limit(100),
            "NotificationsWithSubscribers": [{"Notification": notification, "Subscribers": [subscriber]}],
        },
        look=look,
        made=({"Amount": "100", "Unit": "USD"}, [notification]),
        changes={"Budget": limit(200)},
        changed=({"Amount": "200", "Unit": "USD"}, [notification]),
    )


@case("AWS::SSM::Document")
def _document(account: Account) -> Case:
    def look(document: Resource) -> Any:
        described = account.client("ssm").get_document(Name=document.ref)
        return described["DocumentType"], json.loads(described["Content"])["inputs"]

    def content(user: str) -> dict[str, Any]:
        inputs = {"runAsEnabled": True, "runAsDefaultUser": user}
        return {"schemaVersion": "1.0", "description": "x", "sessionType": "Standard_Stream", "inputs": inputs}

    return Case(
        properties={"Content": content("one"), "DocumentType": "Session", "UpdateMethod": "NewVersion"},
        look=look,
        made=("Session", {"runAsEnabled": True, "runAsDefaultUser": "one"}),
        changes={"Content": content("two")},
        changed=("Session", {"runAsEnabled": True, "runAsDefaultUser": "two"}),
    )


@pytest.mark.parametrize("resource_type", CASES)
def test_life_of_a_resource(account: Account, resource_type: str) -> None:
    expected = CASES[resource_type](account)
    resource = account.create(resource_type, **expected.properties)
    assert expected.look(resource) == expected.made
    if expected.changes:
        resource = account.update(resource, **expected.changes)
        assert expected.look(resource) == expected.changed
    account.delete(resource)
    assert _is_gone(expected.look, resource)
    if not resource_type.startswith("Custom::"):
        account.delete(resource)  # what is gone already is no error


def _is_gone(look: Callable[[Resource], Any], resource: Resource) -> bool:
    try:
        return not look(resource)
    except ClientError:
        return True


def test_unknown_properties_fail_by_name(account: Account) -> None:
    with pytest.raises(UnsupportedError, match="AWS::EC2::InternetGateway: properties Foo"):
        account.create("AWS::EC2::InternetGateway", Foo=1)
    gateway = account.create("AWS::EC2::InternetGateway")
    with pytest.raises(UnsupportedError, match="AWS::EC2::InternetGateway: update of properties Foo"):
        account.update(gateway, Foo=1)


def test_what_the_api_does_not_take_fails_by_name(account: Account) -> None:
    rules = [{"Status": "Enabled", "Id": "r", "ObjectSizeGreaterThan": "1"}]
    with pytest.raises(UnsupportedError, match=r'AWS::S3::Bucket: Unknown parameter .*"ObjectSizeGreaterThan"'):
        account.create("AWS::S3::Bucket", LifecycleConfiguration={"Rules": rules})


def test_properties_have_other_names_and_defaults_than_parameters(account: Account) -> None:
    ecr = account.create("AWS::ECR::Repository", ImageScanningConfiguration={"ScanOnPush": True})
    [repository] = account.client("ecr").describe_repositories(repositoryNames=[ecr.ref])["repositories"]
    assert repository["imageScanningConfiguration"] == {"scanOnPush": True}

    moved = {"Id": "r", "Status": "Enabled", "Transitions": [{"StorageClass": "GLACIER", "TransitionInDays": 9}]}
    bucket = account.create("AWS::S3::Bucket", LifecycleConfiguration={"Rules": [moved]})
    [rule] = account.client("s3").get_bucket_lifecycle_configuration(Bucket=bucket.ref)["Rules"]
    assert rule["Transitions"] == [{"Days": 9, "StorageClass": "GLACIER"}]

    key = account.create("AWS::KMS::Key", Enabled=False)
    assert not account.client("kms").describe_key(KeyId=key.ref)["KeyMetadata"]["Enabled"]
    key = account.update(key, Enabled=True)
    assert account.client("kms").describe_key(KeyId=key.ref)["KeyMetadata"]["Enabled"]

    table = account.create(
        "AWS::DynamoDB::Table",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamViewType": "KEYS_ONLY"},
    )
    assert table["StreamArn"].startswith(f"{table['Arn']}/stream/")

    vpc = account.vpc()
    assert (vpc["CidrBlock"], vpc["VpcId"]) == ("10.0.0.0/16", vpc.ref)

    topic = account.create("AWS::SNS::Topic", TopicName="t", DisplayName="d")
    assert (topic["TopicArn"], topic["TopicName"], topic["DisplayName"]) == (topic.ref, "t", "d")


@pytest.mark.parametrize(
    ("resource_type", "name"), [("AWS::S3::Bucket", "BucketName"), ("AWS::SNS::Topic", "TopicName")]
)
def test_a_name_in_use_is_refused(account: Account, resource_type: str, name: str) -> None:
    account.create(resource_type, **{name: "in-use"})
    with pytest.raises(ResourceError, match="identifier 'in-use' already exists"):
        account.create(resource_type, **{name: "in-use"})


def test_a_subnet_is_led_to_another_table_before_the_old_association_is_deleted(account: Account) -> None:
    vpc = account.vpc()
    subnet = account.subnet(vpc).ref
    tables = [account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref for _ in range(2)]
    old, new = (
        account.create("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet, RouteTableId=each) for each in tables
    )
    assert old.ref != new.ref
    account.delete(old)
    associated = account.client("ec2").describe_route_tables(
        Filters=[{"Name": "association.subnet-id", "Values": [subnet]}]
    )["RouteTables"]
    assert [each["RouteTableId"] for each in associated] == tables[1:]


def test_a_nat_gateway_without_internet_gateway_fails_as_it_stabilizes(account: Account) -> None:
    vpc = account.vpc()
    subnet, address = account.subnet(vpc), account.address()
    reason = f"is in state failed .*: Network {vpc.ref} has no Internet gateway attached"
    with pytest.raises(ResourceError, match=reason):
        account.nat_gateway(subnet, address)
    for resource in (address, subnet, vpc):
        account.delete(resource)
