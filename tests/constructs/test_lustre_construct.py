from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_logs as logs

from config.settings import DataRepositorySettings, FileSystemSettings, StorageSettings
from stacks.log_retention import RETENTIONS
from stacks.storage_stack import StorageStack
from tests.stacks.small_app import ZONE_ID, Template, new_app, synthesize, template_of
from ultracluster.domain.cluster import LOG_RETENTION_DAYS
from ultracluster.domain.lustre import DataRepository, LustreSpec
from ultracluster.lustre import LustreFileSystem
from ultracluster.network import Network

FILE_SYSTEM = "AWS::FSx::FileSystem"
LINK = "AWS::FSx::DataRepositoryAssociation"
SECURITY_GROUP = "AWS::EC2::SecurityGroup"
BUCKET = "AWS::S3::Bucket"
BUCKET_POLICY = "AWS::S3::BucketPolicy"
LOG_GROUP = "AWS::Logs::LogGroup"
PRIVATE_SUBNET = "subnet-0123456789abcdef1"
CIDR = "10.0.0.0/16"

PERSISTENT_2 = LustreSpec(
    deployment_type="PERSISTENT_2",
    capacity_gib=4800,
    throughput_mbps_per_tib=250,
    compression="LZ4",
    metadata_iops=None,
    backup_retention_days=7,
    kms_key_arn=None,
    mount_dir="/fsx",
)
SCRATCH_2 = replace(PERSISTENT_2, deployment_type="SCRATCH_2", throughput_mbps_per_tib=None, backup_retention_days=0)
LINKED = replace(PERSISTENT_2, backup_retention_days=0)
DATA = DataRepository(
    path="/data", bucket=None, prefix="corpus", import_events=("NEW", "CHANGED"), export_events=("DELETED",)
)
NAMED = DataRepository(path="/runs/old", bucket="my-runs", prefix="", import_events=(), export_events=())


def existing_network(stack: cdk.Stack) -> Network:
    return Network.existing(
        stack,
        vpc_id="vpc-0123456789abcdef0",
        cidr=CIDR,
        public_subnet_id="subnet-0123456789abcdef0",
        private_subnet_id=PRIVATE_SUBNET,
        zone_id=ZONE_ID,
    )


def lustre(
    outdir: Path,
    spec: LustreSpec = PERSISTENT_2,
    *,
    retain: bool = True,
    repositories: Sequence[DataRepository] = (),
) -> Template:
    def build(stack: cdk.Stack) -> None:
        LustreFileSystem(
            stack,
            "Lustre",
            spec=spec,
            network=existing_network(stack),
            vpc_cidr=CIDR,
            retain=retain,
            log_retention=logs.RetentionDays.ONE_MONTH,
            repositories=repositories,
        )

    return synthesize(build, outdir)


@pytest.fixture(scope="module")
def retained(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return lustre(tmp_path_factory.mktemp("retained"))


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return lustre(tmp_path_factory.mktemp("linked"), LINKED, repositories=[DATA, NAMED])


@pytest.fixture(scope="module")
def linked_throw_away(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return lustre(tmp_path_factory.mktemp("away"), LINKED, retain=False, repositories=[DATA, NAMED])


def configuration(template: Template) -> dict[str, Any]:
    return dict(template.properties(FILE_SYSTEM)["LustreConfiguration"])


def policies(item: dict[str, Any]) -> tuple[object, object]:
    return item.get("DeletionPolicy"), item.get("UpdateReplacePolicy")


def test_the_file_system_stands_in_the_private_subnet_with_the_size_asked_for(retained: Template) -> None:
    file_system = retained.properties(FILE_SYSTEM)

    assert file_system["FileSystemType"] == "LUSTRE"
    assert file_system["FileSystemTypeVersion"] == "2.15"
    assert file_system["SubnetIds"] == [PRIVATE_SUBNET]
    assert file_system["StorageCapacity"] == 4800
    assert file_system["StorageType"] == "SSD"
    assert {"Key": "Name", "Value": "small/Lustre"} in file_system["Tags"]


def test_persistent_storage_has_throughput_compression_metadata_and_backups(retained: Template) -> None:
    found = configuration(retained)

    assert found["DeploymentType"] == "PERSISTENT_2"
    assert found["PerUnitStorageThroughput"] == 250
    assert found["DataCompressionType"] == "LZ4"
    assert found["MetadataConfiguration"] == {"Mode": "AUTOMATIC"}
    assert found["AutomaticBackupRetentionDays"] == 7


def test_nothing_is_set_that_makes_a_new_file_system_later(retained: Template) -> None:
    """CopyTagsToBackups is not to be had with links to S3, and a change of it replaces the file system."""
    assert configuration(retained).keys().isdisjoint({"CopyTagsToBackups", "EfaEnabled"})


def test_metadata_operations_can_be_provisioned(tmp_path: Path) -> None:
    template = lustre(tmp_path, replace(PERSISTENT_2, metadata_iops=12_000))

    assert configuration(template)["MetadataConfiguration"] == {"Mode": "USER_PROVISIONED", "Iops": 12_000}


def test_a_key_of_ones_own_encrypts_the_file_system(tmp_path: Path, retained: Template) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"

    template = lustre(tmp_path, replace(PERSISTENT_2, kms_key_arn=key))

    assert template.properties(FILE_SYSTEM)["KmsKeyId"] == key
    assert "KmsKeyId" not in retained.properties(FILE_SYSTEM)


def test_scratch_storage_has_none_of_what_only_persistent_types_have(tmp_path: Path) -> None:
    template = lustre(tmp_path, SCRATCH_2)

    assert configuration(template).keys() == {"DeploymentType", "DataCompressionType", "LogConfiguration"}


def test_warnings_and_errors_go_to_a_log_group_of_its_own(retained: Template) -> None:
    name, log_group = retained.one(LOG_GROUP)

    found = configuration(retained)["LogConfiguration"]

    assert log_group["Properties"]["LogGroupName"] == "/aws/fsx/lustre/small"
    assert log_group["Properties"]["RetentionInDays"] == 30
    assert found["Level"] == "WARN_ERROR"
    arn = ["arn:aws:logs:us-west-2:123456789012:log-group:", {"Ref": name}]
    assert found["Destination"] == {"Fn::Join": ["", arn]}


def test_the_log_group_goes_with_the_stack_so_that_its_name_is_free_again(retained: Template) -> None:
    assert policies(retained.one(LOG_GROUP)[1]) == ("Delete", "Delete")


def test_one_security_group_opens_the_lustre_ports_to_the_vpc_and_everything_outward(retained: Template) -> None:
    name, group = retained.one(SECURITY_GROUP)
    ingress = [
        (rule["IpProtocol"], rule["FromPort"], rule["ToPort"], rule["CidrIp"])
        for rule in group["Properties"]["SecurityGroupIngress"]
    ]
    (egress,) = group["Properties"]["SecurityGroupEgress"]

    assert ingress == [("tcp", 988, 988, CIDR), ("tcp", 1018, 1023, CIDR)]
    assert (egress["IpProtocol"], egress["CidrIp"]) == ("-1", "0.0.0.0/0")
    assert retained.properties(FILE_SYSTEM)["SecurityGroupIds"] == [{"Fn::GetAtt": [name, "GroupId"]}]


@pytest.mark.parametrize("resource_type", [FILE_SYSTEM, SECURITY_GROUP, BUCKET, BUCKET_POLICY])
def test_the_data_and_what_holds_it_are_kept_or_go_together(
    linked: Template, linked_throw_away: Template, resource_type: str
) -> None:
    assert policies(linked.one(resource_type)[1]) == ("RetainExceptOnCreate", "Retain")
    assert policies(linked_throw_away.one(resource_type)[1]) == ("Delete", "Delete")


def test_a_bucket_that_goes_is_emptied_first(linked: Template, linked_throw_away: Template) -> None:
    emptying = "Custom::S3AutoDeleteObjects"
    (bucket,) = linked_throw_away.of_type(BUCKET)

    assert linked.of_type(emptying) == {}
    assert linked_throw_away.properties(emptying)["BucketName"] == {"Ref": bucket}


def test_links_are_gone_before_their_bucket_is_emptied(linked_throw_away: Template) -> None:
    _, link = linked_throw_away.one(LINK, FileSystemPath="/data")
    before = [*linked_throw_away.of_type("Custom::S3AutoDeleteObjects"), *linked_throw_away.of_type(BUCKET_POLICY)]

    assert len(before) == 2
    assert set(before) <= set(link["DependsOn"])


def test_the_bucket_is_private_encrypted_and_takes_tls_only(linked: Template) -> None:
    name, bucket = linked.one(BUCKET)
    policy = linked.properties(BUCKET_POLICY)
    access = bucket["Properties"]["PublicAccessBlockConfiguration"]
    ((encryption),) = bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]

    assert set(access) == {"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"}
    assert all(access.values())
    assert encryption["ServerSideEncryptionByDefault"] == {"SSEAlgorithm": "AES256"}
    assert policy["Bucket"] == {"Ref": name}
    (statement,) = policy["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Action"]) == ("Deny", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_incomplete_uploads_are_cleared_away_after_a_week(linked: Template) -> None:
    (rule,) = linked.properties(BUCKET)["LifecycleConfiguration"]["Rules"]

    assert rule == {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}, "Status": "Enabled"}


def test_a_link_to_the_own_bucket_follows_events_both_ways(linked: Template) -> None:
    (bucket,) = linked.of_type(BUCKET)
    (file_system,) = linked.of_type(FILE_SYSTEM)
    _, link = linked.one(LINK, FileSystemPath="/data")

    found = link["Properties"]

    assert found["FileSystemId"] == {"Ref": file_system}
    assert found["DataRepositoryPath"] == {"Fn::Join": ["", ["s3://", {"Ref": bucket}, "/corpus/"]]}
    assert found["BatchImportMetaDataOnCreate"] is True
    assert found["S3"] == {
        "AutoImportPolicy": {"Events": ["NEW", "CHANGED"]},
        "AutoExportPolicy": {"Events": ["DELETED"]},
    }


def test_a_link_to_a_named_bucket_without_events_is_bare(linked: Template) -> None:
    _, link = linked.one(LINK, FileSystemPath="/runs/old")

    assert link["Properties"]["DataRepositoryPath"] == "s3://my-runs"
    assert "S3" not in link["Properties"]
    assert "DependsOn" not in link


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"export_events": ()}, {"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}}),
        ({"import_events": ()}, {"AutoExportPolicy": {"Events": ["DELETED"]}}),
    ],
)
def test_a_link_may_follow_events_one_way(tmp_path: Path, change: dict[str, Any], expected: dict[str, Any]) -> None:
    template = lustre(tmp_path, LINKED, repositories=[replace(DATA, **change)])

    assert template.properties(LINK)["S3"] == expected


def test_links_go_with_the_stack(linked: Template) -> None:
    assert [policies(link) for link in linked.of_type(LINK).values()] == [(None, None)] * 2


def test_a_link_is_the_same_wherever_it_stands_in_the_list(linked: Template, tmp_path: Path) -> None:
    reordered = lustre(tmp_path, LINKED, repositories=[NAMED, DATA])

    assert reordered.of_type(LINK) == linked.of_type(LINK)


def test_no_bucket_is_made_when_none_is_needed(retained: Template, tmp_path: Path) -> None:
    named_only = lustre(tmp_path, LINKED, repositories=[NAMED])

    assert retained.of_type(BUCKET) == named_only.of_type(BUCKET) == {}
    assert len(named_only.of_type(LINK)) == 1


def test_the_whole_file_system_can_be_linked(tmp_path: Path) -> None:
    template = lustre(tmp_path, LINKED, repositories=[replace(DATA, path="/")])

    assert template.properties(LINK)["FileSystemPath"] == "/"


def test_retention_periods_are_those_of_cloudwatch(tmp_path: Path) -> None:
    def build(stack: cdk.Stack) -> None:
        for days, retention in RETENTIONS.items():
            logs.LogGroup(stack, f"Days{days}", retention=retention, log_group_name=str(days))

    groups = synthesize(build, tmp_path).of_type(LOG_GROUP).values()

    assert {int(group["Properties"]["LogGroupName"]): group["Properties"]["RetentionInDays"] for group in groups} == {
        days: days for days in LOG_RETENTION_DAYS
    }


def stack_of(settings: StorageSettings, outdir: Path) -> Template:
    app = new_app(outdir)
    env = cdk.Environment(account="123456789012", region="us-west-2")
    network = existing_network(cdk.Stack(app, "elsewhere", env=env))
    StorageStack(
        app,
        "trn1-storage",
        settings=settings,
        network=network,
        vpc_cidr=CIDR,
        deployment="trn1",
        snapshots=None,
        env=env,
    )
    return template_of(app, "trn1-storage")


def test_the_stack_makes_the_storage_of_its_settings_and_sums_it_up(tmp_path: Path) -> None:
    settings = StorageSettings(
        file_system=FileSystemSettings(
            capacity_gib=2400, backup_retention_days=0, mount_dir="/lustre", log_retention_days=14
        ),
        data_repositories=[DataRepositorySettings(path="/data")],
        retain=False,
    )

    template = stack_of(settings, tmp_path)

    (file_system, made), (bucket, _) = template.one(FILE_SYSTEM), template.one(BUCKET)
    assert made["Properties"]["StorageCapacity"] == 2400
    assert policies(made) == ("Delete", "Delete")
    assert template.properties(LOG_GROUP)["RetentionInDays"] == 14
    assert template.properties(LINK)["FileSystemPath"] == "/data"
    assert template.summary() == {
        "file_system_id": file_system,
        "dns_name": f"{file_system}|DNSName",
        "mount_name": f"{file_system}|LustreMountName",
        "mount_dir": "/lustre",
        "security_group_id": f"{template.one(SECURITY_GROUP)[0]}|GroupId",
        "bucket": bucket,
        "log_group": template.one(LOG_GROUP)[0],
        "retained": False,
    }


def test_the_stack_of_plain_storage_names_no_bucket(tmp_path: Path) -> None:
    template = stack_of(StorageSettings(), tmp_path)

    assert "bucket" not in template.summary()
    assert "BucketName" not in template.body["Outputs"]
    assert policies(template.one(FILE_SYSTEM)[1]) == ("RetainExceptOnCreate", "Retain")
