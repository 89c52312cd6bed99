"""Sessions of roles, whose calls IAM judges in an emulated account: what succeeds shows that permissions suffice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws, of_session

Credentials = dict[str, str]
"""Environment variables."""


def client(aws: EmulatedAws, service: str, region: str, credentials: Mapping[str, str]) -> Any:
    """Return a client of somebody else than the owner of the account."""
    return boto3.client(
        service,
        region_name=region,
        endpoint_url=aws.endpoint,
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials["AWS_SESSION_TOKEN"],
    )


def assume(sts: Any, aws: EmulatedAws, role_arn: str, seconds: int = 3600) -> Credentials:
    """Assume a role, and see that a call outside of its policies is refused."""
    answer = sts.assume_role(RoleArn=role_arn, RoleSessionName="ci", DurationSeconds=seconds)
    session = of_session(answer["Credentials"])
    with pytest.raises(ClientError, match="AccessDenied"):
        client(aws, "iam", "us-east-1", session).create_user(UserName="nobody")
    return session


def given_to(service: str, aws: EmulatedAws, role_arn: str) -> Credentials:
    """Return a session that a service of AWS gets, if the role trusts it."""
    role = aws.client("iam", "us-east-1").get_role(RoleName=role_arn.rpartition("/")[2])["Role"]
    trusted = [each["Principal"].get("Service") for each in role["AssumeRolePolicyDocument"]["Statement"]]
    assert trusted == [service], role
    return assume(aws.client("sts", "us-east-1"), aws, role_arn)
