"""The account that local workflows work in."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import boto3
import pytest

from scripts.delivery.workflows.cloud import EmulatedCloud

FORK = Path(__file__).parents[1] / "fork"


@pytest.mark.slow
@pytest.mark.usefixtures("boto3_data")
def test_it_is_ready_for_the_stages_of_a_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FORK, tmp_path, dirs_exist_ok=True)
    with closing(EmulatedCloud()) as cloud:
        first, second = (cloud.credentials(tmp_path, "us-west-2") for _ in range(2))
        assert first["AWS_ENDPOINT_URL"] == second["AWS_ENDPOINT_URL"]
        assert first["AWS_SECRET_ACCESS_KEY"] != second["AWS_SECRET_ACCESS_KEY"]
        for name, value in second.items():
            monkeypatch.setenv(name, value)
        session = boto3.Session()
        assert session.client("sts").get_caller_identity()["Account"] == "123456789012"
        assert session.client("ssm").get_parameter(Name="/cdk-bootstrap/hnb659fds/version")["Parameter"]["Value"]
        assert session.client("ec2").describe_images(Owners=["amazon"])["Images"]
