"""The file system as a construct of any CDK app."""

from __future__ import annotations

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Match, Template

from ultracluster.domain.violations import InvalidArguments
from ultracluster.lustre import LustreFileSystem

GROUP = {"Fn::GetAtt": [Match.string_like_regexp("^DataSecurityGroup"), "GroupId"]}


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    return cdk.Stack(app, "Training")


@pytest.fixture
def vpc(stack: cdk.Stack) -> ec2.Vpc:
    return ec2.Vpc(stack, "Vpc", max_azs=1)


def test_a_vpc_is_all_that_a_file_system_needs(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    LustreFileSystem(stack, "Data", vpc=vpc)
    template = Template.from_stack(stack)
    template.has_resource(
        "AWS::FSx::FileSystem",
        {
            "Properties": {"SubnetIds": [{"Ref": Match.string_like_regexp("^VpcPrivateSubnet1")}]},
            "DeletionPolicy": "RetainExceptOnCreate",
        },
    )
    for first, last in ((988, 988), (1018, 1023)):
        template.has_resource_properties(
            "AWS::EC2::SecurityGroupIngress",
            {"FromPort": first, "ToPort": last, "GroupId": GROUP, "SourceSecurityGroupId": GROUP},
        )
    # FSx takes no other names.
    log_group = {"LogGroupName": Match.string_like_regexp("^/aws/fsx/lustre/Training-Data-")}
    template.has_resource_properties("AWS::Logs::LogGroup", log_group)


def test_invalid_arguments_are_named_together_and_leave_nothing_in_the_tree(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0123456789abcdef0", availability_zones=["us-west-2a"])
    with pytest.raises(InvalidArguments) as refused:
        LustreFileSystem(
            stack,
            "Data",
            vpc=vpc,
            deployment_type="SCRATCH_2",
            capacity_gib=cdk.Size.tebibytes(1),
            backup_retention_days=cdk.Duration.days(1),
            kms_key=kms.Key(stack, "Key"),
            vpc_cidr="10.0.0.1/16",
            log_group_name="/data",
        )
    assert str(refused.value).startswith("invalid arguments of LustreFileSystem Training/Data:\n  subnet: got None")
    assert "\n  capacity_gib: got 1024" in str(refused.value)
    assert "throughput_mbps_per_tib: got 250; allowed: None (" in str(refused.value)
    assert [each.path for each in refused.value.violations] == [
        ("subnet",),
        ("vpc_cidr",),
        ("capacity_gib",),
        ("throughput_mbps_per_tib",),
        ("backup_retention_days",),
        ("kms_key",),
        ("log_group_name",),
    ]
    assert stack.node.try_find_child("Data") is None


def test_values_of_a_wrong_type_are_named_together(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    with pytest.raises(InvalidArguments) as refused:
        LustreFileSystem(stack, "Data", vpc=vpc, capacity_gib="1200", compression="ZSTD")  # type: ignore[arg-type]
    assert [each.path for each in refused.value.violations] == [("capacity_gib",), ("compression",)]


def test_a_default_in_the_place_of_a_wrong_value_is_not_blamed(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    with pytest.raises(InvalidArguments) as refused:
        LustreFileSystem(
            stack,
            "Data",
            vpc="vpc-1",  # type: ignore[arg-type]
            deployment_type="PERSISTANT_1",  # type: ignore[arg-type]
            throughput_mbps_per_tib=50,
            capacity_gib=5,
        )
    assert [each.path for each in refused.value.violations] == [("vpc",), ("deployment_type",), ("capacity_gib",)]


def test_amounts_that_are_no_whole_numbers_are_named_together(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    with pytest.raises(InvalidArguments) as refused:
        LustreFileSystem(
            stack,
            "Data",
            vpc=vpc,
            capacity_gib=cdk.Size.mebibytes(100),
            backup_retention_days=cdk.Duration.hours(5),
            throughput_mbps_per_tib=1,
        )
    allowed = [each.allowed for each in refused.value.violations]
    assert allowed[:2] == ["a whole number of gibibytes", "a whole number of days"]
    assert [each.path for each in refused.value.violations][2:] == [("throughput_mbps_per_tib",)]
    data = LustreFileSystem(
        stack, "Data", vpc=vpc, capacity_gib=cdk.Size.gibibytes(1200), backup_retention_days=cdk.Duration.days(2)
    )
    assert data.capacity_gib == 1200
    Template.from_stack(stack).has_resource_properties(
        "AWS::FSx::FileSystem", {"LustreConfiguration": {"AutomaticBackupRetentionDays": 2}}
    )


def test_keys_and_buckets_may_be_made_in_the_same_app(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    bucket = s3.Bucket(stack, "Corpus")
    data = LustreFileSystem(stack, "Data", vpc=vpc, kms_key=kms.Key(stack, "Key"), backup_retention_days=0)
    data.add_data_repository("/corpus", bucket=bucket, prefix="text")
    data.add_data_repository("/runs")
    with pytest.raises(InvalidArguments, match="prefix: got 'text/en'"):
        data.add_data_repository("/other", bucket=bucket, prefix="text/en")

    template = Template.from_stack(stack)
    template.has_resource_properties(
        "AWS::FSx::DataRepositoryAssociation",
        {"DataRepositoryPath": {"Fn::Join": ["", ["s3://", {"Ref": Match.string_like_regexp("^Corpus")}, "/text/"]]}},
    )
    template.resource_count_is("AWS::FSx::DataRepositoryAssociation", 2)
    template.resource_count_is("AWS::S3::Bucket", 2)
    assert data.shared_storage_name("/fsx") != LustreFileSystem(stack, "Other", vpc=vpc).shared_storage_name("/fsx")


def test_no_link_to_a_file_system_with_backups(stack: cdk.Stack, vpc: ec2.Vpc) -> None:
    data = LustreFileSystem(stack, "Data", vpc=vpc)
    with pytest.raises(InvalidArguments, match="backup_retention_days: got 7; allowed: 0 with data repositories"):
        data.add_data_repository("/corpus")
    assert data.bucket is None


@pytest.mark.parametrize("imported", [False, True])
def test_what_cdk_connects_and_grants_works_with_it(stack: cdk.Stack, vpc: ec2.Vpc, imported: bool) -> None:
    group = ec2.SecurityGroup.from_security_group_id(stack, "Group", "sg-0123456789abcdef0")
    data = (
        LustreFileSystem.from_lustre_file_system_attributes(
            stack, "Data", file_system_id="fs-0123456789abcdef0", security_group=group
        )
        if imported
        else LustreFileSystem(stack, "Data", vpc=vpc, security_group=group, vpc_cidr="10.0.0.0/16")
    )
    client = ec2.SecurityGroup(stack, "Client", vpc=vpc)
    client.connections.allow_to(data, ec2.Port.tcp(988))
    data.connections.allow_default_port_from(client)
    data.grant(iam.Role(stack, "Role", assumed_by=iam.AccountRootPrincipal()), "fsx:CreateDataRepositoryTask")

    template = Template.from_stack(stack)
    for first, last in ((988, 988), (988, 1023)):
        template.has_resource_properties(
            "AWS::EC2::SecurityGroupIngress",
            {
                "FromPort": first,
                "ToPort": last,
                "GroupId": "sg-0123456789abcdef0",
                "SourceSecurityGroupId": Match.any_value(),
            },
        )
    template.has_resource_properties(
        "AWS::IAM::Policy",
        {"PolicyDocument": {"Statement": [Match.object_like({"Action": "fsx:CreateDataRepositoryTask"})]}},
    )
    metric = stack.resolve(data.metric_free_capacity().to_metric_config().metric_stat)
    assert [each["name"] for each in metric["dimensions"]] == ["FileSystemId"]


def test_the_name_that_clusters_mount_does_not_depend_on_what_else_is_in_the_app() -> None:
    names = set()
    for others in (0, 7):
        app = cdk.App(builtin_cloud_formation_validation=False)
        stack = cdk.Stack(app, "Training")
        for number in range(others):
            _ = cdk.CfnParameter(stack, f"Other{number}").value_as_string
        nested = cdk.NestedStack(stack, "Storage")
        names.add(LustreFileSystem(nested, "Data", vpc=ec2.Vpc(nested, "Vpc", max_azs=1)).shared_storage_name("/fsx"))
    assert len(names) == 1
