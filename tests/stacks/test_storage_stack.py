"""The file system and its links to S3, as settings choose them that no golden template has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.small_app import Template

FILE_SYSTEM = "AWS::FSx::FileSystem"
LINK = "AWS::FSx::DataRepositoryAssociation"
BUCKET = "AWS::S3::Bucket"
BUCKET_POLICY = "AWS::S3::BucketPolicy"
EMPTYING = "Custom::S3AutoDeleteObjects"

DATA = {"path": "/data", "prefix": "corpus", "import_events": ["NEW", "CHANGED"], "export_events": []}
NAMED = {"path": "/old", "bucket": "my-runs", "import_events": [], "export_events": []}


def with_links(*links: dict[str, Any], retain: bool = True) -> Callable[[Raw], None]:
    def edit(raw: Raw) -> None:
        raw["storage"].update(data_repositories=list(links), retain=retain)
        raw["storage"]["file_system"]["backup_retention_days"] = 0

    return edit


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    return deploy(edited("trn1-16", with_links(DATA, NAMED)), tmp_path_factory.mktemp("linked"))


@pytest.fixture(scope="module")
def throw_away(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return deploy(edited("trn1-16", with_links(DATA, retain=False)), tmp_path_factory.mktemp("away")).storage


def policies(item: dict[str, Any]) -> tuple[object, object]:
    return item.get("DeletionPolicy"), item.get("UpdateReplacePolicy")


def test_a_key_and_metadata_operations_of_ones_own(tmp_path: Path) -> None:
    key = "arn:aws:kms:us-west-2:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    own = {"kms_key_arn": key, "metadata_iops": 12_000}
    storage = deploy(edited("trn1-16", lambda raw: raw["storage"]["file_system"].update(own)), tmp_path).storage

    file_system = storage.properties(FILE_SYSTEM)
    metadata = file_system["LustreConfiguration"]["MetadataConfiguration"]
    assert file_system["KmsKeyId"] == key
    assert metadata == {"Mode": "USER_PROVISIONED", "Iops": 12_000}


def test_the_data_and_what_holds_it_are_kept_or_go_together(linked: Deployment, throw_away: Template) -> None:
    for resource_type in (FILE_SYSTEM, "AWS::EC2::SecurityGroup", BUCKET, BUCKET_POLICY):
        assert policies(linked.storage.one(resource_type)[1]) == ("RetainExceptOnCreate", "Retain")
        assert policies(throw_away.one(resource_type)[1]) == ("Delete", "Delete")


def test_a_bucket_that_goes_is_emptied_after_the_links_are_gone(linked: Deployment, throw_away: Template) -> None:
    _, link = throw_away.one(LINK)

    assert linked.storage.of_type(EMPTYING) == {}
    assert {*throw_away.of_type(EMPTYING), *throw_away.of_type(BUCKET_POLICY)} <= set(link["DependsOn"])


def test_a_link_to_the_own_bucket_follows_the_events_of_its_settings(linked: Deployment) -> None:
    [bucket] = linked.storage.of_type(BUCKET)
    link = linked.storage.one(LINK, FileSystemPath="/data")[1]

    assert link["Properties"]["DataRepositoryPath"] == {"Fn::Join": ["", ["s3://", {"Ref": bucket}, "/corpus/"]]}
    assert link["Properties"]["S3"] == {"AutoImportPolicy": {"Events": ["NEW", "CHANGED"]}}
    assert policies(link) == (None, None), "it goes with the stack"
    assert linked.storage.summary()["bucket"] == bucket
    assert linked.cluster.summary()["bucket"].startswith("trn1-16-storage|")


def test_links_are_the_same_in_any_order_and_one_to_a_named_bucket_without_events_is_bare(
    linked: Deployment, tmp_path: Path
) -> None:
    turned = deploy(edited("trn1-16", with_links(NAMED, DATA)), tmp_path)
    _, link = linked.storage.one(LINK, FileSystemPath="/old")

    assert turned.storage.of_type(LINK) == linked.storage.of_type(LINK)
    assert link["Properties"]["DataRepositoryPath"] == "s3://my-runs"
    assert "S3" not in link["Properties"]
    assert "DependsOn" not in link
