"""Errors of AWS by what they mean, and its messages where it gives no code. Each service spells them in its own way.

https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html,
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError

_T = TypeVar("_T")

_DENIED = frozenset(
    {"403", "AccessDenied", "AccessDeniedException", "AuthorizationError", "Forbidden", "UnauthorizedOperation"}
)
"""403 is S3's, for requests whose answer has no body.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html
"""
_THROTTLED = frozenset({"RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException"})
_UNKNOWN_KEY = frozenset({"AuthFailure", "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException"})
_NOT_FOUND = frozenset({"404", "NoSuchBucket", "NoSuchEntity", "NoSuchHostedZone", "NoSuchResourceException"})
_NOT_FOUND_ENDS = (
    "NotFound",
    "NotFoundException",
    "NotFoundFault",
    "Unknown",
    ".Malformed",
    "InvalidAMIID.Unavailable",
)
_PASSES = re.compile(
    r"in ?use|has a dependent object|has dependencies|DependencyViolation|Rate exceeded|Throttling|RequestLimitExceeded"
    r"|Internal ?Failure|ServiceUnavailable",
    re.IGNORECASE,
)
_NOT_EMPTY = re.compile("must (detach|delete|remove)|DeleteConflict|resource record|HostedZoneNotEmpty")
_CANCELLED = re.compile(
    r"Resource (creation|update|deletion) cancelled|The following resource\(s\) failed to|"
    r"Embedded stack \S+ was not successfully"
)
_DENIES = re.compile(r"not authorized|lack of permissions|forbidden|access ?denied", re.IGNORECASE)
_ACTION = re.compile(r"authorized to perform: ([a-z0-9-]+:\w+)")
NEW_SESSION = "get new session credentials, the way you got these; a job is run again"
UNKNOWN_KEY = (
    "AWS does not know the access key: it is deleted, inactive or mistyped; `aws configure list` shows where it is from"
)
_SSO_LOGIN = "`aws sso login`, with `--profile` unless it is the default one"
_HINTS_BY_EXCEPTION: Mapping[str, str] = {
    "ConfigParseError": "fix the file",
    "CredentialRetrievalError": "the program or role that the profile takes its credentials from gives none: fix that",
    "InvalidConfigError": "fix the profile in ~/.aws/config",
    "LoginError": "`aws login`, with `--profile` unless it is the default one",
    "NoCredentialsError": "`export AWS_PROFILE=...`, or set one up with `aws configure sso` or `aws configure`",
    "PartialCredentialsError": "access key and secret access key go together; `aws configure list` shows what there is",
    "ProfileNotFound": "`export AWS_PROFILE=...` with one of those that `aws configure list-profiles` lists",
    "SSOError": _SSO_LOGIN,
    "TokenRetrievalError": _SSO_LOGIN,
}
"""What helps, by the class that botocore raises, or one above it (botocore/exceptions.py)."""
_HINTS_BY_CODE: Mapping[str, str] = {
    "ExpiredToken": NEW_SESSION,
    "ExpiredTokenException": NEW_SESSION,
    "ForbiddenException": "IAM Identity Center has not given you the profile's account with that permission set",
    "RequestExpired": NEW_SESSION,
    "SignatureDoesNotMatch": "the secret access key is not that of the access key, or this machine's clock is wrong",
}
"""What helps, by the code of STS or Identity Center.

https://docs.aws.amazon.com/singlesignon/latest/PortalAPIReference/API_GetRoleCredentials.html
"""


def code_of(error: ClientError) -> str:
    """Return the error code."""
    return str(error.response["Error"]["Code"])


def is_denied(error: Exception) -> bool:
    """Tell whether AWS refused a call because a permission is missing."""
    return _has_code(error, _DENIED)


def is_throttled(error: Exception) -> bool:
    """Tell whether AWS refused a call because there were too many."""
    return _has_code(error, _THROTTLED)


def is_unknown_key(error: Exception) -> bool:
    """Tell whether AWS does not know the access key, as in a Region that the account has not enabled."""
    return _has_code(error, _UNKNOWN_KEY)


def is_not_found(error: Exception) -> bool:
    """Tell whether AWS refused a call because the resource does not exist.

    CloudFormation has no code for that: it answers ValidationError with a message.
    """
    from botocore.exceptions import ClientError

    if not isinstance(error, ClientError):
        return False
    code = code_of(error)
    if code == "ValidationError":
        return "does not exist" in str(error)
    return code in _NOT_FOUND or code.endswith(_NOT_FOUND_ENDS)


def if_found(ask: Callable[[], _T]) -> _T | None:
    """Return what a function asks of AWS; None if AWS answers that its subject does not exist."""
    try:
        return ask()
    except Exception as error:
        if is_not_found(error):
            return None
        raise


def is_unreachable(error: Exception) -> bool:
    """Tell whether Systems Manager does not reach an instance.

    https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_SendCommand.html,
    https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_StartSession.html
    """
    return _has_code(error, frozenset({"InvalidInstanceId", "TargetNotConnected"}))


def passes(message: str) -> bool:
    """Tell by the message of an error, or the reason of a failed deletion, whether the same may work minutes later.

    Instances that stop keep the placement group in use for more than 15 minutes
    (https://github.com/aws/aws-parallelcluster/issues/6329), and AWS releases network interfaces, which keep security
    groups and subnets in use, with a delay (https://repost.aws/knowledge-center/cloudformation-stack-delete-failed).
    CloudFormation gives no code, only what the service said.
    """
    return _PASSES.search(message) is not None


def is_not_empty(reason: str) -> bool:
    """Tell by the reason of a failed deletion whether a role or hosted zone has something in it that has to go first.

    https://docs.aws.amazon.com/IAM/latest/APIReference/API_DeleteRole.html,
    https://docs.aws.amazon.com/Route53/latest/APIReference/API_DeleteHostedZone.html
    """
    return _NOT_EMPTY.search(reason) is not None


def is_consequence(reason: str) -> bool:
    """Tell by the reason in an event of a stack whether the resource failed because another one did.

    Such an event has the same status as that of the cause.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/troubleshooting.html
    """
    return _CANCELLED.search(reason) is not None


def is_without_changes(change_set: Mapping[str, Any]) -> bool:
    """Tell whether a change set, as CloudFormation describes it, failed because it would change nothing.

    Its status is FAILED, as for any other reason; the AWS CLI reads the message, too.
    https://github.com/aws/aws-cli/blob/v2/awscli/customizations/cloudformation/deployer.py
    """
    reason = change_set.get("StatusReason", "")
    empty = ("didn't contain changes", "No updates are to be performed")
    return change_set["Status"] == "FAILED" and any(text in reason for text in empty)


def denies(message: str) -> bool:
    """Tell whether a message that a validator of ParallelCluster passes on says that a permission is missing.

    `Forbidden` is S3's HeadObject; the others are AWS's, and validators/common.py's of aws-parallelcluster 3.16.1.
    """
    return _DENIES.search(message) is not None


def denied_actions(message: str) -> set[str]:
    """Return the actions that a message says are not permitted; older messages name none.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
    """
    return set(_ACTION.findall(message))


def hint(error: Exception) -> str:
    """Return what helps against an error of AWS; empty: nothing is known to."""
    from botocore.exceptions import ConnectionError as NoConnectionError
    from botocore.exceptions import HTTPClientError

    if is_throttled(error):
        return "there are too many calls in this account and Region at the moment: try again in a minute"
    if isinstance(error, NoConnectionError | HTTPClientError):
        return credentials_hint(error) or "check this machine's network, and HTTPS_PROXY if it needs a proxy"
    return credentials_hint(error)


def credentials_hint(error: Exception) -> str:
    """Return what helps when no call can succeed with these credentials, or with AWS_ENDPOINT_URL; empty: others can.

    AWS_ENDPOINT_URL is often left from `./ultracluster emulate`, and nothing listens there after its end.
    """
    from botocore.exceptions import ClientError, EndpointConnectionError

    if isinstance(error, EndpointConnectionError) and (endpoint := os.environ.get("AWS_ENDPOINT_URL")):
        return (
            f"AWS_ENDPOINT_URL is {endpoint}, where nothing listens. If it is from `./ultracluster emulate`, which has "
            "ended: leave this shell, or unset that and all other AWS_ variables that it gave you"
        )
    if isinstance(error, ClientError):
        if is_unknown_key(error):
            return UNKNOWN_KEY
        if error.operation_name.startswith("AssumeRole") and is_denied(error):
            return "these credentials may not assume the profile's role: look at its trust policy"
        return _HINTS_BY_CODE.get(code_of(error), "")
    classes = [each.__name__ for each in type(error).__mro__]
    return next((_HINTS_BY_EXCEPTION[name] for name in classes if name in _HINTS_BY_EXCEPTION), "")


def explain(error: BotoCoreError | ClientError) -> str:
    """Return the message of an error for people, with what helps on a line of its own."""
    return "\n".join(filter(None, [str(error), hint(error)]))


def _has_code(error: Exception, codes: frozenset[str]) -> bool:
    from botocore.exceptions import ClientError

    return isinstance(error, ClientError) and code_of(error) in codes
