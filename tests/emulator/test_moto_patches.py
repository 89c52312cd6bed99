"""What the emulated APIs refuse, as AWS does: codes by the API references, messages as AWS's users report them.

EC2: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html. IAM, S3, FSx, Logs: the errors of the
actions in their API references. Reports: https://github.com/smoketurner/serverless-vpc-plugin/issues/147 (routes),
https://github.com/hashicorp/terraform/issues/1303 (addresses),
https://github.com/scylladb/scylla-cluster-tests/issues/6742 (placement groups),
https://github.com/kubernetes-sigs/aws-fsx-csi-driver/issues/32 (port 988).
"""

from typing import Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.emulator.account import REGION, Account, refused, statement

# What something else depends on is not deleted


def test_a_vpc_with_anything_in_it(account: Account) -> None:
    vpc = account.vpc()
    gateway, attachment = account.attached_gateway(vpc)
    with refused("DependencyViolation", f"{gateway.ref} is being utilized by {vpc.ref}"):
        account.delete(gateway)
    dependents = [
        attachment,
        account.subnet(vpc),
        account.group(vpc),
        account.create("AWS::EC2::RouteTable", VpcId=vpc.ref),
        account.create("AWS::EC2::VPCEndpoint", VpcId=vpc.ref, ServiceName=f"com.amazonaws.{REGION}.s3"),
    ]
    for each in dependents:
        with refused("DependencyViolation", f"The vpc '{vpc.ref}' has dependencies and cannot be deleted."):
            account.delete(vpc)
        account.delete(each)
    account.delete(vpc)


def test_subnet_and_group_of_a_file_system(account: Account) -> None:
    vpc = account.vpc()
    subnet, group = account.subnet(vpc), account.group(vpc)
    file_system = account.file_system(subnet, group)
    message = f"The subnet '{subnet.ref}' has dependencies and cannot be deleted."
    with refused("DependencyViolation", message):
        account.delete(subnet)
    with refused("DependencyViolation", f"resource {group.ref} has a dependent object"):
        account.delete(group)
    for resource in (file_system, group, subnet, vpc):
        account.delete(resource)


def test_subnet_and_group_of_an_interface_endpoint(account: Account) -> None:
    vpc = account.vpc()
    subnet, group = account.subnet(vpc), account.group(vpc)
    endpoint = account.create(
        "AWS::EC2::VPCEndpoint",
        VpcId=vpc.ref,
        ServiceName=f"com.amazonaws.{REGION}.logs",
        VpcEndpointType="Interface",
        SubnetIds=[subnet.ref],
        SecurityGroupIds=[group.ref],
    )
    for each in (subnet, group):
        with pytest.raises(ClientError, match="DependencyViolation"):
            account.delete(each)
    for each in (endpoint, group, subnet, vpc):
        account.delete(each)


def test_a_group_in_a_rule_of_another(account: Account) -> None:
    vpc = account.vpc()
    group, other = account.group(vpc), account.group(vpc)
    rule = account.create(
        "AWS::EC2::SecurityGroupIngress", GroupId=other.ref, IpProtocol="-1", SourceSecurityGroupId=group.ref
    )
    with refused("DependencyViolation", f"resource {group.ref} has a dependent object"):
        account.delete(group)
    account.delete(rule)
    account.delete(group)


def test_gateway_and_address_of_a_nat_gateway(account: Account) -> None:
    vpc = account.vpc()
    gateway, attachment = account.attached_gateway(vpc)
    subnet = account.subnet(vpc)
    address, second = account.address(), account.address()
    nat_gateway = account.nat_gateway(subnet, address, second)
    message = (
        f"Network {vpc.ref} has some mapped public address(es). Please unmap those public address(es) before "
        "detaching the gateway."
    )
    with refused("DependencyViolation", message):
        account.delete(attachment)
    for each in (address, second):
        with refused("InvalidIPAddress.InUse", f"Address {each.ref} is in use."):
            account.delete(each)
    for resource in (nat_gateway, address, second, attachment, gateway, subnet, vpc):
        account.delete(resource)


def test_a_placement_group_with_an_instance(account: Account) -> None:
    group = account.create("AWS::EC2::PlacementGroup", Strategy="cluster")
    instances = account.launch(Placement={"GroupName": group.ref})
    message = f"The placement group '{group.ref}' is in use and may not be deleted."
    with refused("InvalidPlacementGroup.InUse", message):
        account.delete(group)
    account.client("ec2").terminate_instances(InstanceIds=instances)
    account.delete(group)


# What is of another VPC


def test_a_route_to_a_gateway_of_another_vpc(account: Account) -> None:
    vpc, other = account.vpc(), account.vpc()
    table = account.create("AWS::EC2::RouteTable", VpcId=vpc.ref)
    detached = account.create("AWS::EC2::InternetGateway")
    elsewhere, _ = account.attached_gateway(other)
    for gateway in (detached, elsewhere):
        message = f"route table {table.ref} and network gateway {gateway.ref} belong to different networks"
        with refused("InvalidParameterValue", message):
            account.create(
                "AWS::EC2::Route", RouteTableId=table.ref, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway.ref
            )


def test_an_interface_in_a_group_of_another_vpc(account: Account) -> None:
    subnet, group = account.subnet(account.vpc()), account.group(account.vpc())
    message = f"Security group {group.ref} and subnet {subnet.ref} belong to different networks."
    with refused("InvalidParameter", message):
        account.client("ec2").create_network_interface(SubnetId=subnet.ref, Groups=[group.ref])
    with refused("InvalidGroup.NotFound", "The security group 'sg-0' does not exist"):
        account.client("ec2").create_network_interface(SubnetId=subnet.ref, Groups=["sg-0"])


# Settings that do not work


def test_a_lustre_file_system_needs_its_port(account: Account) -> None:
    vpc = account.vpc()
    rule = {"IpProtocol": "tcp", "FromPort": 989, "ToPort": 1023, "CidrIp": "10.0.0.0/16"}
    group = account.create("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId=vpc.ref, SecurityGroupIngress=[rule])
    message = (
        "The file system cannot be created because the default security group in the subnet provided or the provided "
        "security groups do not permit Lustre LNET network traffic on port 988"
    )
    with refused("InvalidNetworkSettings", message):
        account.file_system(account.subnet(vpc), group)


def test_metadata_iops_grow_before_the_capacity(account: Account) -> None:
    # https://github.com/hashicorp/terraform-provider-aws/issues/44432 and the pull request 44456 that closed it,
    # https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystemLustreMetadataConfiguration.html
    vpc = account.vpc()
    network: dict[str, Any] = {"SubnetIds": [account.subnet(vpc).ref], "SecurityGroupIds": [account.group(vpc).ref]}
    persistent = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}

    def metadata(mode: str, iops: int | None = None) -> dict[str, Any]:
        chosen = {"Mode": mode} | ({} if iops is None else {"Iops": iops})
        return {"LustreConfiguration": {**persistent, "MetadataConfiguration": chosen}}

    automatic, provisioned = (
        account.create("AWS::FSx::FileSystem", FileSystemType="LUSTRE", StorageCapacity=1200, **network, **chosen)
        for chosen in (metadata("AUTOMATIC"), metadata("USER_PROVISIONED", 1500))
    )
    account.update(automatic, StorageCapacity=2400)
    for change in ({}, metadata("USER_PROVISIONED", 3000)):
        with pytest.raises(ClientError, match=r"BadRequest.*at least 3000 Metadata IOPS"):
            account.update(provisioned, StorageCapacity=2400, **change)
    more = account.update(provisioned, **metadata("USER_PROVISIONED", 3000))
    with pytest.raises(ClientError, match=r"BadRequest.*can only be increased from 3000"):
        account.update(more, **metadata("AUTOMATIC"))
    account.update(more, StorageCapacity=2400)


def test_updates_of_a_file_system_are_recorded_the_newest_first(account: Account) -> None:
    # https://docs.aws.amazon.com/fsx/latest/APIReference/API_AdministrativeAction.html
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    account.update(file_system, StorageCapacity=2400)
    account.update(file_system, StorageCapacity=4800)
    described = account.client("fsx").describe_file_systems(FileSystemIds=[file_system.ref])["FileSystems"][0]
    actions = [
        (each["AdministrativeActionType"], each["TargetFileSystemValues"]["StorageCapacity"])
        for each in described["AdministrativeActions"]
    ]
    assert actions == [("FILE_SYSTEM_UPDATE", 4800), ("FILE_SYSTEM_UPDATE", 2400)]


# What does not lock, fill or hide


def _deny_unless_tls(bucket: str) -> dict[str, Any]:
    denied = statement(
        Action="s3:*",
        Principal={"AWS": "*"},
        Resource=[f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
        Condition={"Bool": {"aws:SecureTransport": "false"}},
    )
    denied["Statement"][0]["Effect"] = "Deny"
    return denied


def test_a_policy_that_asks_for_tls_locks_nobody_out(account: Account) -> None:
    bucket = account.create("AWS::S3::Bucket").ref
    account.create("AWS::S3::BucketPolicy", Bucket=bucket, PolicyDocument=_deny_unless_tls(bucket))
    s3 = account.client("s3")
    s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == b"1"
    s3.head_bucket(Bucket=bucket)


def test_anybody_sees_what_is_public_and_nothing_else(account: Account) -> None:
    bucket = account.create("AWS::S3::Bucket").ref
    account.client("s3").put_object(Bucket=bucket, Key="public", ACL="public-read")
    account.client("s3").put_object(Bucket=bucket, Key="private")
    unsigned = Config(signature_version=UNSIGNED)
    nobody = boto3.client("s3", REGION, endpoint_url=account.aws.endpoint, config=unsigned)
    statement = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}
    with account.aws.restricted({"Version": "2012-10-17", "Statement": [statement]}):
        nobody.head_object(Bucket=bucket, Key="public")
        with pytest.raises(ClientError, match="403"):
            nobody.head_object(Bucket=bucket, Key="private")


# Filters


def test_offerings_are_filtered_by_wildcards(account: Account) -> None:
    """https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html."""
    ec2 = account.client("ec2")

    def offered(**filters: str) -> set[tuple[str, str]]:
        wanted = [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in filters.items()]
        answer = ec2.describe_instance_type_offerings(LocationType="availability-zone-id", Filters=wanted)
        return {(each["InstanceType"], each["Location"]) for each in answer["InstanceTypeOfferings"]}

    trn1 = {each for name in ("trn1.2xlarge", "trn1.32xlarge") for each in offered(instance_type=name)}
    assert trn1
    assert offered(instance_type="trn1.*") == trn1
    assert offered(instance_type="trn1.?xlarge", location="usw2-*") == offered(instance_type="trn1.2xlarge")
    with refused("InvalidParameterValue", "The filter 'type' is invalid"):
        offered(type="trn1.*")
