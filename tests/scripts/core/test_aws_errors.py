"""Errors of AWS are told apart by what they mean, in each spelling that a service has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from botocore.exceptions import NoCredentialsError, ProfileNotFound, TokenRetrievalError

from scripts.core.aws_errors import (
    credentials_hint,
    denied_actions,
    denies,
    is_consequence,
    is_denied,
    is_not_empty,
    is_not_found,
    is_throttled,
    is_without_changes,
    passes,
)
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


RUN = "You are not authorized to perform: ec2:RunInstances because no identity-based policy allows it"
IN_USE = "resource sg-1 has a dependent object (Service: AmazonEC2; Error Code: DependencyViolation)"
ROLE = "Cannot delete entity, must detach all policies first. (Error Code: DeleteConflict)"


@pytest.mark.parametrize(
    ("message", "meanings"),
    [
        (IN_USE, {passes}),
        (str(refusal("InvalidPlacementGroup.InUse", "DeletePlacementGroup")), {passes}),
        (ROLE, {is_not_empty}),
        ("The specified hosted zone contains non-required resource record sets", {is_not_empty}),
        ("Resource creation cancelled", {is_consequence}),
        ("The following resource(s) failed to create: [Vpc]. Rollback requested by user.", {is_consequence}),
        (RUN, {denies}),
        ("An error occurred (403) when calling the HeadObject operation: Forbidden", {denies}),
        ("The security group 'sg-1' does not exist", set()),
        ("", set()),
    ],
)
def test_what_a_message_without_a_code_means(message: str, meanings: set[Callable[[str], bool]]) -> None:
    assert {each for each in (passes, is_not_empty, is_consequence, denies) if each(message)} == meanings


def test_what_is_denied_is_read_out_of_the_message() -> None:
    assert denied_actions(RUN) == {"ec2:RunInstances"}
    assert denied_actions(f"{RUN}; User: arn:x is not authorized to perform: iam:PassRole on y") > denied_actions(RUN)
    assert denied_actions("You are not authorized to perform this operation.") == set()


@pytest.mark.parametrize(
    ("status", "reason", "is_empty"),
    [
        ("FAILED", "The submitted information didn't contain changes. Submit different information", True),
        ("FAILED", "No updates are to be performed.", True),
        ("FAILED", "Template error", False),
        ("CREATE_COMPLETE", "No updates are to be performed.", False),
    ],
)
def test_a_change_set_without_changes(status: str, reason: str, is_empty: bool) -> None:
    assert is_without_changes({"Status": status, "StatusReason": reason}) is is_empty
    assert not is_without_changes({"Status": status})


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
