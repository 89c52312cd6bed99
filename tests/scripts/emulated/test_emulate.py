"""What is left of a deployment in an emulated account, and may be."""

import pytest

from config.settings import load
from scripts.emulated.accounts import reason_to_stay
from tests.configurations import CONFIG


@pytest.mark.parametrize(
    ("resource_type", "name", "stays"),
    [
        ("AWS::S3::Bucket", "cdk-hnb659fds-assets", False),
        ("AWS::S3::Bucket", "parallelcluster-0-v1-do-not-delete", True),
        ("AWS::S3::Bucket", "parallelcluster-mine", False),
        ("AWS::Logs::LogGroup", "/aws/lambda/dev-f", True),
        ("AWS::Logs::LogGroup", "/aws/lambda/f", False),
        ("AWS::Logs::LogGroup", "/aws/parallelcluster/dev", False),
    ],
)
def test_what_aws_keeps(resource_type: str, name: str, stays: bool) -> None:
    assert bool(reason_to_stay(load(CONFIG / "dev.yaml"), resource_type, name)) == stays
