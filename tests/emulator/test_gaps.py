"""What the emulated APIs refuse, as AWS does: codes by the API references, messages as AWS's users report them.

EC2: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html. IAM, S3, FSx, Logs: the errors of the
actions in their API references. Reports: https://github.com/smoketurner/serverless-vpc-plugin/issues/147 (routes),
https://github.com/hashicorp/terraform/issues/1303 (addresses),
https://github.com/scylladb/scylla-cluster-tests/issues/6742 (placement groups),
https://github.com/kubernetes-sigs/aws-fsx-csi-driver/issues/32 (port 988).
"""

from collections.abc import Callable
from typing import Any

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from emulator.aws import ACCOUNT
from tests.emulator.account import REGION, Account, refused, statement, tags


def test_a_reset_detaches_the_policies_of_aws(account: Account) -> None:
    iam = account.client("iam")

    def attached() -> list[str]:
        pages = iam.get_paginator("list_policies").paginate(Scope="AWS", OnlyAttached=True)
        return [policy["Arn"] for page in pages for policy in page["Policies"]]

    arn = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
    account.role(ManagedPolicyArns=[arn])
    assert attached() == [arn]
    account.aws.reset()
    assert attached() == []


# What something else depends on is not deleted


def _with_a_subnet(account: Account) -> str:
    vpc = account.vpc()
    account.subnet(vpc)
    return vpc.ref


def _with_a_gateway(account: Account) -> str:
    vpc = account.vpc()
    account.attached_gateway(vpc)
    return vpc.ref


def _with_a_group(account: Account) -> str:
    vpc = account.vpc()
    account.group(vpc)
    return vpc.ref


def _with_a_route_table(account: Account) -> str:
    vpc = account.vpc()
    account.create("AWS::EC2::RouteTable", VpcId=vpc.ref)
    return vpc.ref


def _with_an_endpoint(account: Account) -> str:
    vpc = account.vpc()
    account.create("AWS::EC2::VPCEndpoint", VpcId=vpc.ref, ServiceName=f"com.amazonaws.{REGION}.s3")
    return vpc.ref


@pytest.mark.parametrize(
    "build", [_with_a_subnet, _with_a_gateway, _with_a_group, _with_a_route_table, _with_an_endpoint]
)
def test_a_vpc_with_anything_in_it(account: Account, build: Callable[[Account], str]) -> None:
    vpc_id = build(account)
    with refused("DependencyViolation", f"The vpc '{vpc_id}' has dependencies and cannot be deleted."):
        account.client("ec2").delete_vpc(VpcId=vpc_id)


def test_a_vpc_takes_what_belongs_to_it_along(account: Account) -> None:
    vpc = account.vpc()
    of_vpc = [{"Name": "vpc-id", "Values": [vpc.ref]}]
    account.delete(vpc)
    ec2 = account.client("ec2")
    assert ec2.describe_network_acls(Filters=of_vpc)["NetworkAcls"] == []
    assert ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"] == []
    assert ec2.describe_route_tables(Filters=of_vpc)["RouteTables"] == []


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


def test_a_default_group(account: Account) -> None:
    group_id = account.vpc()["DefaultSecurityGroup"]
    message = f'the specified group: "{group_id}" name: "default" cannot be deleted by a user'
    with refused("CannotDelete", message):
        account.client("ec2").delete_security_group(GroupId=group_id)


def test_an_attached_gateway(account: Account) -> None:
    gateway, _ = account.attached_gateway(account.vpc())
    message = f"The internetGateway '{gateway.ref}' has dependencies and cannot be deleted."
    with refused("DependencyViolation", message):
        account.delete(gateway)


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
        with refused(
            "Resource.AlreadyAssociated", f"Elastic IP address [{each['AllocationId']}] is already associated"
        ):
            account.nat_gateway(subnet, each)
    for resource in (nat_gateway, address, second, attachment, gateway, subnet, vpc):
        account.delete(resource)


def test_a_nat_gateway_that_is_not_there(account: Account) -> None:
    with refused("NatGatewayNotFound", "NAT gateway nat-0 was not found"):
        account.client("ec2").delete_nat_gateway(NatGatewayId="nat-0")


def test_an_associated_route_table(account: Account) -> None:
    vpc = account.vpc()
    subnet, table = account.subnet(vpc), account.create("AWS::EC2::RouteTable", VpcId=vpc.ref)
    account.create("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet.ref, RouteTableId=table.ref)
    with refused("DependencyViolation", f"The routeTable '{table.ref}' has dependencies and cannot be deleted."):
        account.delete(table)
    account.delete(subnet)  # which takes the association along
    account.delete(table)


def test_a_placement_group_with_an_instance(account: Account) -> None:
    group = account.create("AWS::EC2::PlacementGroup", Strategy="cluster")
    subnet = account.subnet(account.vpc())
    image = account.client("ssm").get_parameter(
        Name="/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
    )["Parameter"]["Value"]
    launched = account.client("ec2").run_instances(
        ImageId=image,
        InstanceType="c6i.large",
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet.ref,
        Placement={"GroupName": group.ref},
    )
    message = f"The placement group '{group.ref}' is in use and may not be deleted."
    with refused("InvalidPlacementGroup.InUse", message):
        account.delete(group)
    account.client("ec2").terminate_instances(InstanceIds=[launched["Instances"][0]["InstanceId"]])
    account.delete(group)


def test_a_role_with_a_policy_of_others(account: Account) -> None:
    role = account.role()
    policy = account.create(
        "AWS::IAM::ManagedPolicy", PolicyDocument=statement(Action="s3:*", Resource="*"), Roles=[role.ref]
    )
    with refused("DeleteConflict", "Cannot delete entity, must detach all policies first."):
        account.delete(role)
    account.delete(policy)
    account.delete(role)


def test_a_bucket_with_an_old_version(account: Account) -> None:
    bucket = account.create("AWS::S3::Bucket", VersioningConfiguration={"Status": "Enabled"})
    account.client("s3").put_object(Bucket=bucket.ref, Key="k", Body=b"1")
    account.client("s3").delete_object(Bucket=bucket.ref, Key="k")
    with refused("BucketNotEmpty", "The bucket you tried to delete is not empty"):
        account.delete(bucket)


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


def test_a_route_to_a_nat_gateway_of_another_vpc(account: Account) -> None:
    vpc, other = account.vpc(), account.vpc()
    account.attached_gateway(other)
    nat_gateway = account.nat_gateway(account.subnet(other), account.address())
    table = account.create("AWS::EC2::RouteTable", VpcId=vpc.ref)
    message = f"route table {table.ref} and interface {nat_gateway['EniId']} belong to different networks"
    with refused("InvalidParameterValue", message):
        account.create(
            "AWS::EC2::Route", RouteTableId=table.ref, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat_gateway.ref
        )


def test_a_route_table_for_a_subnet_of_another_vpc(account: Account) -> None:
    subnet = account.subnet(account.vpc())
    table = account.create("AWS::EC2::RouteTable", VpcId=account.vpc().ref)
    message = f"route table {table.ref} and subnet {subnet.ref} belong to different networks"
    with refused("InvalidParameterValue", message):
        account.create("AWS::EC2::SubnetRouteTableAssociation", SubnetId=subnet.ref, RouteTableId=table.ref)


def test_an_interface_in_a_group_of_another_vpc(account: Account) -> None:
    subnet, group = account.subnet(account.vpc()), account.group(account.vpc())
    message = f"Security group {group.ref} and subnet {subnet.ref} belong to different networks."
    with refused("InvalidParameter", message):
        account.client("ec2").create_network_interface(SubnetId=subnet.ref, Groups=[group.ref])
    with refused("InvalidGroup.NotFound", "The security group 'sg-0' does not exist"):
        account.client("ec2").create_network_interface(SubnetId=subnet.ref, Groups=["sg-0"])


def test_a_file_system_in_a_group_of_another_vpc(account: Account) -> None:
    group = account.group(account.vpc())
    message = f"The security group {group.ref} does not exist in the VPC of the subnets provided."
    with refused("InvalidNetworkSettings", message):
        account.file_system(account.subnet(account.vpc()), group)


# Settings that do not work


def test_a_second_table_for_a_subnet(account: Account) -> None:
    vpc = account.vpc()
    subnet = account.subnet(vpc)
    first, second = (account.create("AWS::EC2::RouteTable", VpcId=vpc.ref).ref for _ in range(2))
    ec2 = account.client("ec2")
    ec2.associate_route_table(SubnetId=subnet.ref, RouteTableId=first)
    message = f"the specified association for route table {second} conflicts with an existing association"
    with refused("Resource.AlreadyAssociated", message):
        ec2.associate_route_table(SubnetId=subnet.ref, RouteTableId=second)


def test_an_interface_endpoint_with_private_dns_needs_host_names(account: Account) -> None:
    vpc = account.create("AWS::EC2::VPC", CidrBlock="10.0.0.0/16")
    message = (
        "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to true "
        f"for {vpc.ref}"
    )
    with refused("InvalidParameter", message):
        account.create(
            "AWS::EC2::VPCEndpoint",
            VpcId=vpc.ref,
            ServiceName=f"com.amazonaws.{REGION}.logs",
            VpcEndpointType="Interface",
            PrivateDnsEnabled=True,
            SubnetIds=[account.subnet(vpc).ref],
        )


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


def test_a_file_system_does_not_shrink(account: Account) -> None:
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    file_system = account.update(file_system, StorageCapacity=2400)
    with pytest.raises(ClientError, match="can only be increased"):
        account.update(file_system, StorageCapacity=1200)


def test_a_file_system_grows_in_steps(account: Account) -> None:
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    with refused("BadRequest", "Invalid Lustre FS storage capacity: 1300. Must be 1200 or a multiple of 2400."):
        account.update(file_system, StorageCapacity=1300)


def _queue(account: Account, service: str, action: str) -> str:
    queue = account.create("AWS::SQS::Queue")
    allowed = statement(Action=action, Principal={"Service": service}, Resource=queue["Arn"])
    account.create("AWS::SQS::QueuePolicy", PolicyDocument=allowed, Queues=[queue.ref])
    return str(queue["Arn"])


DESTINATIONS: dict[str, tuple[str, Callable[[Account], str]]] = {
    "queue that is not there": ("Queue", lambda account: f"arn:aws:sqs:{REGION}:{ACCOUNT}:nowhere"),
    "queue without a policy": ("Queue", lambda account: str(account.create("AWS::SQS::Queue")["Arn"])),
    "queue for another service": ("Queue", lambda account: _queue(account, "sns.amazonaws.com", "sqs:SendMessage")),
    "queue for another action": ("Queue", lambda account: _queue(account, "s3.amazonaws.com", "sqs:ReceiveMessage")),
    "topic that is not there": ("Topic", lambda account: f"arn:aws:sns:{REGION}:{ACCOUNT}:nowhere"),
    "function without a permission": ("Function", lambda account: str(account.function()["Arn"])),
}


@pytest.mark.parametrize("destination", DESTINATIONS)
def test_a_notification_that_nobody_receives(account: Account, destination: str) -> None:
    kind, make = DESTINATIONS[destination]
    configuration = {"Event": "s3:ObjectCreated:*", kind: make(account)}
    key = "LambdaConfigurations" if kind == "Function" else f"{kind}Configurations"
    with refused("InvalidArgument", "Unable to validate the following destination configurations"):
        account.create("AWS::S3::Bucket", NotificationConfiguration={key: [configuration]})


def test_a_notification_of_a_topic_and_a_function(account: Account) -> None:
    topic, function = account.create("AWS::SNS::Topic").ref, account.function()["Arn"]
    allowed = statement(Action="sns:Publish", Principal={"Service": "s3.amazonaws.com"}, Resource=topic)
    account.create("AWS::SNS::TopicPolicy", PolicyDocument=allowed, Topics=[topic])
    account.create(
        "AWS::Lambda::Permission",
        Action="lambda:InvokeFunction",
        FunctionName=function,
        Principal="s3.amazonaws.com",
    )
    event = "s3:ObjectCreated:*"
    bucket = account.create(
        "AWS::S3::Bucket",
        NotificationConfiguration={
            "LambdaConfigurations": [{"Event": event, "Function": function}],
            "TopicConfigurations": [{"Event": event, "Topic": topic}],
        },
    )
    found = account.client("s3").get_bucket_notification_configuration(Bucket=bucket.ref)
    assert [each["TopicArn"] for each in found["TopicConfigurations"]] == [topic]
    assert [each["LambdaFunctionArn"] for each in found["LambdaFunctionConfigurations"]] == [function]


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


def test_links_of_a_file_system_do_not_overlap(account: Account) -> None:
    vpc = account.vpc()
    link = {
        "FileSystemId": account.file_system(account.subnet(vpc), account.group(vpc)).ref,
        "DataRepositoryPath": f"s3://{account.create('AWS::S3::Bucket').ref}",
    }
    account.create("AWS::FSx::DataRepositoryAssociation", FileSystemPath="/data", **link)
    account.create("AWS::FSx::DataRepositoryAssociation", FileSystemPath="/data2", **link)
    with pytest.raises(ClientError, match="overlaps"):
        account.create("AWS::FSx::DataRepositoryAssociation", FileSystemPath="/data/more", **link)


def test_links_go_with_their_file_system(account: Account) -> None:
    vpc = account.vpc()
    file_system = account.file_system(account.subnet(vpc), account.group(vpc))
    link = account.create(
        "AWS::FSx::DataRepositoryAssociation",
        FileSystemId=file_system.ref,
        FileSystemPath="/",
        DataRepositoryPath=f"s3://{account.create('AWS::S3::Bucket').ref}",
    )
    account.delete(file_system)
    with pytest.raises(ClientError, match="DataRepositoryAssociationNotFound"):
        account.client("fsx").describe_data_repository_associations(AssociationIds=[link.ref])


def test_a_metric_filter_needs_its_group_and_goes_with_it(account: Account) -> None:
    transformation = {"MetricName": "m", "MetricNamespace": "n", "MetricValue": "1"}
    properties: dict[str, Any] = {"FilterPattern": "x", "LogGroupName": "g", "MetricTransformations": [transformation]}
    with refused("ResourceNotFoundException", "The specified log group does not exist."):
        account.create("AWS::Logs::MetricFilter", **properties)
    group = account.create("AWS::Logs::LogGroup", LogGroupName="g")
    account.create("AWS::Logs::MetricFilter", **properties)
    account.delete(group)
    assert account.client("logs").describe_metric_filters(logGroupName="g")["metricFilters"] == []


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


def test_a_policy_that_denies_everybody_does(account: Account) -> None:
    bucket = account.create("AWS::S3::Bucket").ref
    document = _deny_unless_tls(bucket)
    document["Statement"] = [{**document["Statement"][0], "Action": "s3:GetObject"}]
    del document["Statement"][0]["Condition"]
    account.create("AWS::S3::BucketPolicy", Bucket=bucket, PolicyDocument=document)
    s3 = account.client("s3")
    s3.put_object(Bucket=bucket, Key="k", Body=b"1")
    with pytest.raises(ClientError, match=r"AccessDenied|Forbidden"):
        s3.get_object(Bucket=bucket, Key="k")


def test_a_bucket_that_logs_itself_stays_empty(account: Account) -> None:
    bucket = account.create("AWS::S3::Bucket", AccessControl="LogDeliveryWrite", LoggingConfiguration={})
    account.client("s3").list_objects_v2(Bucket=bucket.ref)
    account.delete(bucket)


def test_public_parameters_name_images_and_are_not_the_account_s_own(account: Account) -> None:
    ssm = account.client("ssm")
    name = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64"
    image_id = ssm.get_parameters(Names=[name])["Parameters"][0]["Value"]
    image = account.client("ec2").describe_images(ImageIds=[image_id])["Images"][0]
    assert (image["Architecture"], image["ImageOwnerAlias"]) == ("arm64", "amazon")
    assert name not in {each["Name"] for each in ssm.describe_parameters()["Parameters"]}


def test_rules_that_differ_in_their_description_are_one(account: Account) -> None:
    group = account.group(account.vpc()).ref
    ec2 = account.client("ec2")

    def permission(description: str) -> list[dict[str, object]]:
        pairs = [{"GroupId": group, "Description": description}]
        return [{"IpProtocol": "-1", "UserIdGroupPairs": pairs}]

    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=permission("a"))
    with pytest.raises(ClientError, match=r"InvalidPermission\.Duplicate"):
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=permission("b"))
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=permission("c"))


def test_members_of_a_default_group_reach_each_other(account: Account) -> None:
    group_id = account.vpc()["DefaultSecurityGroup"]
    group = account.client("ec2").describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
    assert [pair["GroupId"] for rule in group["IpPermissions"] for pair in rule["UserIdGroupPairs"]] == [group_id]


def test_resources_get_the_ids_that_their_tags_choose(account: Account) -> None:
    ec2 = account.client("ec2")

    def chosen(resource_type: str, resource_id: str) -> list[dict[str, object]]:
        return [{"ResourceType": resource_type, "Tags": tags(_custom_id_=resource_id)}]

    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=chosen("vpc", "vpc-0123456789abcdef0"))["Vpc"]
    subnet = ec2.create_subnet(
        VpcId=vpc["VpcId"],
        CidrBlock="10.0.0.0/24",
        TagSpecifications=chosen("subnet", "subnet-0123456789abcdef0"),
    )["Subnet"]
    assert (vpc["VpcId"], subnet["SubnetId"]) == ("vpc-0123456789abcdef0", "subnet-0123456789abcdef0")


def test_zones_need_no_opting_in(account: Account) -> None:
    zones = account.client("ec2").describe_availability_zones()["AvailabilityZones"]
    assert {zone["OptInStatus"] for zone in zones} == {"opt-in-not-required"}


def test_services_of_endpoints_by_name_and_type(account: Account) -> None:
    names = {short: f"com.amazonaws.{REGION}.{short}" for short in ("s3", "ssm", "nothing")}

    def found(*types: str) -> list[str]:
        filters = [{"Name": "service-name", "Values": list(names.values())}]
        filters += [{"Name": "service-type", "Values": list(types)}] if types else []
        return list(account.client("ec2").describe_vpc_endpoint_services(Filters=filters)["ServiceNames"])

    assert found() == [names["s3"], names["s3"], names["ssm"]]
    assert found("Interface") == [names["s3"], names["ssm"]]
    assert found("Gateway") == [names["s3"]]


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
