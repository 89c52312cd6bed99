"""Images that fit and images that do not, and what AWS publishes of a version."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.account.deployment import Account
from scripts.check.preflight import images
from scripts.core.findings import FAIL, PASS, SKIP, WARN
from tests.scripts.check.preflight.accounts import REGION, Case, Raw, case, deployment_of, everything
from tests.scripts.refusals import refusal
from tests.stacks.choices import use_arm

IMAGE = "ami-0123456789abcdef0"
TAGS = {"version": "3.16.1", "build_status": "available", "os": "ubuntu2404"}
NAMES = "aws-parallelcluster-3.16.1-ubuntu-2404-lts-hvm-x86_64"


def own_image(raw: Raw) -> None:
    raw["cluster"]["custom_ami"] = IMAGE


def own_image_on_arm(raw: Raw) -> None:
    use_arm(raw)
    own_image(raw)


def image(size: int = 45, sdk: str = "", tags: dict[str, str] = TAGS, **facts: Any) -> dict[str, Any]:
    """Return the answer of EC2 to the question for an image."""
    listed = {f"parallelcluster:{name}": value for name, value in tags.items()}
    if sdk:
        listed["ultracluster:neuron-sdk"] = sdk
    described = {
        "ImageId": IMAGE,
        "Name": "ours",
        "State": "available",
        "Architecture": "x86_64",
        "RootDeviceName": "/dev/sda1",
        "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": size}}],
        "Tags": [{"Key": key, "Value": value} for key, value in listed.items()],
        **facts,
    }
    return {"Images": [described]}


_own = partial(case, images.custom_image, edit=own_image)
CASES = [
    case(images.official_image, PASS, "ami-", f"{NAMES}-2026"),
    case(images.official_image, PASS, "ami-", f"{NAMES.replace('x86_64', 'arm64')}-2026", edit=use_arm),
    case(images.official_image, SKIP, edit=own_image),
    case(images.official_image, FAIL, f"no image {NAMES}* in us-west-2", describe_images=[]),
    case(images.custom_image, SKIP),
    _own(PASS, f"{IMAGE} (ours) fits", describe_images=image()),
    _own(WARN, "has the Neuron SDK 2.27.1, so each node installs 2.28.1", describe_images=image(sdk="2.27.1")),
    _own(FAIL, f"sees no image {IMAGE} in us-west-2", describe_images={"Images": []}),
    _own(
        FAIL,
        "version of the image is 3.15.0; allowed: 3.16.1",
        "build_status of the image is missing",
        "os of the image is missing",
        describe_images=image(tags={"version": "3.15.0"}),
    ),
    _own(FAIL, "for arm64; allowed: x86_64", describe_images=image(Architecture="arm64")),
    case(
        images.custom_image,
        FAIL,
        "for x86_64; allowed: arm64",
        edit=own_image_on_arm,
        describe_images=image(sdk="2.27.1"),
    ),
    _own(FAIL, "root_volume_gib is 200; allowed: 201", describe_images=image(size=201)),
    case(images.provider_template, PASS, f"s3://{REGION}-aws-parallelcluster/parallelcluster/3.16.1/"),
]


@pytest.mark.parametrize("each", CASES)
def test_images(each: Case, account: Account) -> None:
    each.verify(account)


def test_an_image_of_the_official_name_that_is_not_amazons_is_none() -> None:
    asked: list[dict[str, Any]] = []

    class Asked(Account):
        def list(self, *_: Any, **parameters: Any) -> list[Any]:
            asked.append(parameters)
            return []

    assert images.newest_official_image(Asked(REGION), deployment_of(everything()).settings.cluster) is None
    assert asked[0]["Owners"] == ["amazon"]


@pytest.mark.parametrize("code", ["404", "403"])
def test_what_aws_has_not_published(code: str, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    def head_object(Key: str, **_: str) -> None:
        if Key.endswith("lambda-layer.zip"):
            raise refusal(code)

    monkeypatch.setattr(images, "_anonymous_s3", lambda _: SimpleNamespace(head_object=head_object))
    says = ("has not published s3://us-west-2-aws-parallelcluster/", f"S3 answers {code}", "--no-sign")
    Case(images.provider_template, FAIL, says).verify(account)
