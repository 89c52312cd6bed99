"""Errors of AWS are told apart by what they mean, in each spelling that a service has."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ProfileNotFound

from scripts.aws_errors import credentials_hint, is_denied, is_not_found, is_throttled


def refusal(code: str, message: str = "no", operation: str = "DescribeStacks") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


@pytest.mark.parametrize(
    ("service", "code"),
    [
        ("ec2", "UnauthorizedOperation"),
        ("cloudformation", "AccessDenied"),
        ("dynamodb", "AccessDeniedException"),
        ("s3, without a body", "403"),
        ("sns", "AuthorizationError"),
    ],
)
def test_a_missing_permission(service: str, code: str) -> None:
    assert is_denied(refusal(code)), service
    assert not is_not_found(refusal(code))
    assert credentials_hint(refusal(code)) == "", "the credentials are good"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("ValidationError", "Stack with id x does not exist"),
        ("InvalidGroup.NotFound", ""),
        ("InvalidPlacementGroup.Unknown", ""),
        ("InvalidAMIID.Malformed", ""),
        ("FileSystemNotFound", ""),
        ("ResourceNotFoundException", ""),
        ("NoSuchEntity", ""),
        ("404", ""),
    ],
)
def test_a_resource_that_does_not_exist(code: str, message: str) -> None:
    assert is_not_found(refusal(code, message))
    assert not is_denied(refusal(code, message))


def test_a_template_that_is_wrong_is_no_missing_stack() -> None:
    assert not is_not_found(refusal("ValidationError", "Template format error"))


@pytest.mark.parametrize("code", ["Throttling", "ThrottlingException", "RequestLimitExceeded"])
def test_throttling(code: str) -> None:
    assert is_throttled(refusal(code))


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (refusal("ExpiredToken"), "new session credentials"),
        (refusal("AuthFailure"), "deleted, inactive or mistyped"),
        (refusal("AccessDenied", operation="AssumeRole"), "trust policy"),
        (NoCredentialsError(), "export AWS_PROFILE"),
        (ProfileNotFound(profile="x"), "list-profiles"),
        (refusal("InternalFailure"), ""),
    ],
)
def test_what_helps_against_credentials_that_cannot_be_used(error: Exception, hint: str) -> None:
    assert hint in credentials_hint(error)
    assert bool(hint) is bool(credentials_hint(error))
