"""What users of the construct can choose that no golden template has: links to S3, a key, provisioned metadata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_logs as logs

from tests.stacks.small_app import ZONE_ID, Template, synthesize
from ultracluster.domain.lustre import DataRepository, LustreSpec
from ultracluster.lustre import LustreFileSystem
from ultracluster.network import Network

FILE_SYSTEM = "AWS::FSx::FileSystem"
LINK = "AWS::FSx::DataRepositoryAssociation"
SECURITY_GROUP = "AWS::EC2::SecurityGroup"
BUCKET = "AWS::S3::Bucket"
BUCKET_POLICY = "AWS::S3::BucketPolicy"
EMPTYING = "Custom::S3AutoDeleteObjects"
CIDR = "10.0.0.0/16"

LINKED = LustreSpec(backup_retention_days=0)
DATA = DataRepository(path="/data", prefix="corpus", import_events=["NEW", "CHANGED"], export_events=[])
NAMED = DataRepository(path="/", bucket="my-runs", import_events=[], export_events=[])


def lustre(
    outdir: Path, spec: LustreSpec = LINKED, *, retain: bool = True, repositories: Sequence[DataRepository] = ()
) -> Template:
    def build(stack: cdk.Stack) -> None:
        network = Network.existing(
            stack,
            vpc_id="vpc-0123456789abcdef0",
            cidr=CIDR,
            public_subnet_id="subnet-0123456789abcdef0",
            private_subnet_id="subnet-0123456789abcdef1",
            zone_id=ZONE_ID,
        )
        LustreFileSystem(
            stack,
            "Lustre",
            spec=spec,
            network=network,
            vpc_cidr=CIDR,
            retain=retain,
            log_retention=logs.RetentionDays.ONE_MONTH,
            repositories=repositories,
        )

    return synthesize(build, outdir)


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return lustre(tmp_path_factory.mktemp("linked"), repositories=[DATA, NAMED])


@pytest.fixture(scope="module")
def linked_throw_away(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return lustre(tmp_path_factory.mktemp("away"), retain=False, repositories=[DATA, NAMED])


def policies(item: dict[str, Any]) -> tuple[object, object]:
    return item.get("DeletionPolicy"), item.get("UpdateReplacePolicy")


def test_a_key_and_metadata_operations_of_ones_own(tmp_path: Path) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    file_system = lustre(tmp_path, LustreSpec(kms_key_arn=key, metadata_iops=12_000)).properties(FILE_SYSTEM)

    metadata = file_system["LustreConfiguration"]["MetadataConfiguration"]
    assert file_system["KmsKeyId"] == key
    assert metadata == {"Mode": "USER_PROVISIONED", "Iops": 12_000}


def test_the_data_and_what_holds_it_are_kept_or_go_together(linked: Template, linked_throw_away: Template) -> None:
    for resource_type in (FILE_SYSTEM, SECURITY_GROUP, BUCKET, BUCKET_POLICY):
        assert policies(linked.one(resource_type)[1]) == ("RetainExceptOnCreate", "Retain")
        assert policies(linked_throw_away.one(resource_type)[1]) == ("Delete", "Delete")


def test_a_bucket_that_goes_is_emptied_after_the_links_are_gone(linked: Template, linked_throw_away: Template) -> None:
    _, link = linked_throw_away.one(LINK, FileSystemPath="/data")

    assert linked.of_type(EMPTYING) == {}
    assert {*linked_throw_away.of_type(EMPTYING), *linked_throw_away.of_type(BUCKET_POLICY)} <= set(link["DependsOn"])


def test_a_link_to_the_own_bucket_follows_the_events_of_its_settings(linked: Template) -> None:
    [bucket], [file_system] = linked.of_type(BUCKET), linked.of_type(FILE_SYSTEM)
    link = linked.one(LINK, FileSystemPath="/data")[1]["Properties"]

    assert link["FileSystemId"] == {"Ref": file_system}
    assert link["DataRepositoryPath"] == {"Fn::Join": ["", ["s3://", {"Ref": bucket}, "/corpus/"]]}
    assert link["BatchImportMetaDataOnCreate"] is True
    assert link["S3"] == {"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}}


def test_a_link_to_a_named_bucket_without_events_is_bare(linked: Template, tmp_path: Path) -> None:
    alone = lustre(tmp_path, repositories=[NAMED])
    _, link = linked.one(LINK, FileSystemPath="/")

    assert link["Properties"]["DataRepositoryPath"] == "s3://my-runs"
    assert "S3" not in link["Properties"]
    assert "DependsOn" not in link
    assert alone.of_type(BUCKET) == {}


def test_links_go_with_the_stack_and_are_the_same_in_any_order(linked: Template, tmp_path: Path) -> None:
    assert [policies(link) for link in linked.of_type(LINK).values()] == [(None, None)] * 2
    assert lustre(tmp_path, repositories=[NAMED, DATA]).of_type(LINK) == linked.of_type(LINK)
