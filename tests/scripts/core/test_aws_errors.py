"""Errors of AWS are told apart by what they mean, in each spelling that a service has."""

from __future__ import annotations

import pytest
from botocore.exceptions import NoCredentialsError, ProfileNotFound, TokenRetrievalError

from scripts.core.aws_errors import credentials_hint, is_denied, is_not_found, is_throttled
from tests.scripts.refusals import refusal

DENIED = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthorizationError", "403")
MISSING = (
    "InvalidGroup.NotFound",
    "InvalidPlacementGroup.Unknown",
    "InvalidAMIID.Malformed",
    "FileSystemNotFound",
    "ResourceNotFoundException",
    "NoSuchEntity",
    "404",
)
THROTTLED = ("Throttling", "ThrottlingException", "RequestLimitExceeded")


@pytest.mark.parametrize("code", [*DENIED, *MISSING, *THROTTLED])
def test_what_a_code_means(code: str) -> None:
    meanings = (is_denied(refusal(code)), is_not_found(refusal(code)), is_throttled(refusal(code)))
    assert meanings == (code in DENIED, code in MISSING, code in THROTTLED)


def test_a_stack_that_does_not_exist_is_told_from_a_wrong_template() -> None:
    assert is_not_found(refusal("ValidationError", message="Stack with id x does not exist"))
    assert not is_not_found(refusal("ValidationError", message="Template format error"))


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (refusal("ExpiredToken"), "new session credentials"),
        (refusal("AuthFailure"), "deleted, inactive or mistyped"),
        (refusal("AccessDenied", operation="AssumeRole"), "trust policy"),
        (NoCredentialsError(), "export AWS_PROFILE"),
        (ProfileNotFound(profile="x"), "list-profiles"),
        (TokenRetrievalError(provider="sso", error_msg="expired"), "aws sso login"),
        (refusal("InternalFailure"), ""),
        (refusal("AccessDenied"), ""),
    ],
)
def test_what_helps_against_credentials_that_cannot_be_used(error: Exception, hint: str) -> None:
    assert hint in credentials_hint(error)
    assert bool(hint) is bool(credentials_hint(error))
