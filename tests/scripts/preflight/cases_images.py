"""Images that fit and images that do not, and what AWS publishes of a version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scripts.preflight import images
from scripts.preflight.check import Status
from tests.scripts.preflight.answers import Patch, answering
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.conftest import REGION, GoodAccount

BUCKET = f"{REGION}-aws-parallelcluster"
TEMPLATE = "parallelcluster/3.16.1/templates/custom_resource/cluster.yaml"
LAYER = "parallelcluster/3.16.1/layers/aws-parallelcluster/lambda-layer.zip"
IMAGE = "ami-0123456789abcdef0"


def own_image(raw: dict[str, Any]) -> None:
    raw["cluster"]["custom_ami"] = IMAGE


def image_that_is(**facts: object) -> Patch:
    return answering("describe_images", lambda answer: answer["Images"][0].update(facts))


def large_image(answer: Any) -> None:
    answer["Images"][0]["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] = 201


def without_official_images(account: GoodAccount) -> None:
    ec2 = account.client("ec2")
    for image in ec2.describe_images(Owners=["amazon"])["Images"]:
        if "x86_64" in image["Name"] and "ubuntu-2404" in image["Name"]:
            ec2.deregister_image(ImageId=image["ImageId"])


def with_namesake(account: GoodAccount) -> None:
    """Have an image of the official name that is not Amazon's."""
    without_official_images(account)
    device = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 45}}
    account.client("ec2").register_image(
        Name="aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64-202609010000",
        RootDeviceName="/dev/sda1",
        BlockDeviceMappings=[device],
    )


def without_image(account: GoodAccount) -> None:
    account.client("ec2").deregister_image(ImageId=IMAGE)


def without_anything(account: GoodAccount) -> None:
    account.aws.reset()


def with_tag(name: str, value: str) -> Callable[[GoodAccount], None]:
    return tagged(f"parallelcluster:{name}", value)


def with_neuron_sdk(release: str) -> Callable[[GoodAccount], None]:
    return tagged("ultracluster:neuron-sdk", release)


def tagged(key: str, value: str) -> Callable[[GoodAccount], None]:
    def spoil(account: GoodAccount) -> None:
        account.client("ec2").create_tags(Resources=[IMAGE], Tags=[{"Key": key, "Value": value}])

    return spoil


def without_tag(name: str) -> Callable[[GoodAccount], None]:
    def spoil(account: GoodAccount) -> None:
        account.client("ec2").delete_tags(Resources=[IMAGE], Tags=[{"Key": f"parallelcluster:{name}"}])

    return spoil


def without_object(key: str) -> Callable[[GoodAccount], None]:
    return lambda account: account.client("s3").delete_object(Bucket=BUCKET, Key=key)


def with_hidden_template(account: GoodAccount) -> None:
    account.client("s3").put_object_acl(Bucket=BUCKET, Key=TEMPLATE, ACL="private")


CASES = (
    Case(images.official_image, Status.PASS, ("ami-", "aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64-2026")),
    Case(images.official_image, Status.SKIP, edit=own_image, name="custom"),
    Case(
        images.official_image,
        Status.FAIL,
        ("no image aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64* in us-west-2", "`cluster.custom_ami`"),
        without_official_images,
        name="missing",
    ),
    Case(images.official_image, Status.FAIL, ("Amazon has no image",), with_namesake, name="namesake"),
    Case(images.custom_image, Status.SKIP, name="official"),
    Case(images.custom_image, Status.PASS, (IMAGE, "fits"), edit=own_image),
    Case(
        images.custom_image,
        Status.FAIL,
        (f"sees no image {IMAGE} in us-west-2", "`cluster.custom_ami` in config/trn1-16.yaml"),
        without_image,
        edit=own_image,
        name="deregistered",
    ),
    Case(images.custom_image, Status.FAIL, ("sees no image",), without_anything, edit=own_image, name="unknown"),
    Case(
        images.custom_image,
        Status.FAIL,
        (
            "no tag parallelcluster:version",
            f"create-tags --resources {IMAGE} --tags Key=parallelcluster:version,Value=3",
        ),
        without_tag("version"),
        edit=own_image,
        name="no-version",
    ),
    Case(
        images.custom_image,
        Status.FAIL,
        ("parallelcluster:version 3.15.0; allowed: 3.16.1", "pcluster build-image"),
        with_tag("version", "3.15.0"),
        edit=own_image,
        name="other-version",
    ),
    Case(
        images.custom_image,
        Status.FAIL,
        ("no tag parallelcluster:build_status", "Value=available"),
        without_tag("build_status"),
        edit=own_image,
        name="no-build-status",
    ),
    Case(
        images.custom_image,
        Status.FAIL,
        ("no tag parallelcluster:os", "Key=parallelcluster:os,Value=ubuntu2404"),
        without_tag("os"),
        edit=own_image,
        name="no-os",
    ),
    Case(
        images.custom_image,
        Status.FAIL,
        ("parallelcluster:os alinux2023; allowed: ubuntu2404",),
        with_tag("os", "alinux2023"),
        edit=own_image,
        name="other-os",
    ),
    Case(
        images.custom_image,
        Status.FAIL,
        ("for arm64; allowed: x86_64",),
        edit=own_image,
        patch=image_that_is(Architecture="arm64"),
        name="arm",
    ),
    Case(
        images.custom_image,
        Status.FAIL,
        ("the image is pending; allowed: available",),
        edit=own_image,
        patch=image_that_is(State="pending"),
        name="pending",
    ),
    Case(
        images.custom_image,
        Status.FAIL,
        ("root_volume_gib is 200; allowed: 201",),
        edit=own_image,
        patch=answering("describe_images", large_image),
        name="large",
    ),
    Case(
        images.custom_image,
        Status.PASS,
        (IMAGE, "fits"),
        with_neuron_sdk("2.28.1"),
        edit=own_image,
        name="baked",
    ),
    Case(
        images.custom_image,
        Status.WARN,
        ("has the Neuron SDK 2.27.1, so each node installs 2.28.1", "`make image ENV=trn1-16`"),
        with_neuron_sdk("2.27.1"),
        edit=own_image,
        name="other-sdk",
    ),
    Case(images.provider_template, Status.PASS, (f"s3://{BUCKET}/parallelcluster/3.16.1/",)),
    Case(
        images.provider_template,
        Status.FAIL,
        (f"has not published s3://{BUCKET}/{TEMPLATE}", "cannot be deployed in us-west-2", "--no-sign-request"),
        without_object(TEMPLATE),
        name="no-template",
    ),
    Case(
        images.provider_template,
        Status.FAIL,
        (f"has not published s3://{BUCKET}/{LAYER}",),
        without_object(LAYER),
        name="no-layer",
    ),
    Case(images.provider_template, Status.FAIL, ("S3 answers 403",), with_hidden_template, name="hidden"),
)
