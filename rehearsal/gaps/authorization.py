"""What IAM lets pass, once `EmulatedAws.restricted` has it look, and each service's own words for what it does not."""

from __future__ import annotations

import json
import re
from re import Match

from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.exceptions import AccessDeniedError
from moto.core.responses import BaseResponse
from moto.core.utils import get_service_model
from moto.iam.access_control import IAMPolicyStatement, IAMRequest
from moto.s3.responses import ACTION_MAP

_UNKNOWN = "*"
"""The resource of a request, where moto does not find it out: everywhere but in S3, SQS and for IAM's roles."""
_match_known = IAMPolicyStatement._match


def refuse_as_services_do() -> None:
    """Give refusals the codes of AWS, and let what a policy says of a certain resource hold for an unknown one.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html needs s3:ListBucket.
    """
    ACTION_MAP["BUCKET"]["HEAD"]["DEFAULT"] = "ListBucket"
    ActionAuthenticatorMixin._authenticate_and_authorize_normal_action = _authorize  # type: ignore[assignment,method-assign]
    IAMPolicyStatement._match = staticmethod(_match)  # type: ignore[assignment,method-assign]


def _authorize(self: BaseResponse, resource: str = _UNKNOWN) -> None:
    """Ask IAM, whose words are those of the services that talk XML; EC2, and those that talk JSON, have their own.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
    https://docs.aws.amazon.com/systems-manager/latest/APIReference/CommonErrors.html
    """
    try:
        self._authenticate_and_authorize_action(IAMRequest, resource)
    except AccessDeniedError as error:
        protocol = self.determine_response_protocol(get_service_model(self.boto3_service_name))
        if protocol == "ec2":
            error.description = str(error.description).replace(error.error_type, "UnauthorizedOperation")
        elif protocol.endswith("json"):
            code = "AccessDeniedException"
            error.description = json.dumps({"__type": code, "code": code, "message": error.message})
        raise


def _match(pattern: str, value: str) -> Match[str] | None:
    return re.match("", "") if value == _UNKNOWN else _match_known(pattern, value)
