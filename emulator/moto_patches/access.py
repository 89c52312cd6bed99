"""AWS Identity and Access Management, and the policies of resources."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
import re
from re import Match
from typing import Any

from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.exceptions import AccessDeniedError
from moto.core.request import Request
from moto.core.responses import BaseResponse
from moto.core.utils import get_service_model
from moto.iam.access_control import IAMPolicyStatement, IAMRequest
from moto.iam.models import SERVICE_NAME_CONVERSION, IAMBackend, ManagedPolicy
from moto.kms import models
from moto.kms.responses import KmsResponse
from moto.s3.responses import ACTION_MAP
from moto.secretsmanager.utils import SecretsManagerSecretIdentifier
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID

from emulator.calls import CALLS
from emulator.keys import KEYS, access_key
from emulator.moto_patches.tags import chosen_id

_UNKNOWN = "*"
"""The resource of a request, where it is not found out: everywhere but in S3, SQS, for IAM's roles and parameters."""
_OF_PARAMETERS = frozenset(
    {"DeleteParameter", "DeleteParameters", "GetParameter", "GetParameterHistory", "GetParameters", "PutParameter"}
)
_PREFIXES = {"monitoring": "cloudwatch", "tagging": "tag"}
"""Services' prefixes in IAM's actions, where they are not the names with which requests are signed.

https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""
_match_known = IAMPolicyStatement._match
_judge = ActionAuthenticatorMixin._authenticate_and_authorize_action


def refuse_as_services_do() -> None:
    """Give refusals the codes of AWS, and let what a policy says of a certain resource hold for an unknown one.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html needs s3:ListBucket,
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketEncryption.html s3:GetEncryptionConfiguration.
    """
    ACTION_MAP["BUCKET"]["HEAD"]["DEFAULT"] = "ListBucket"
    ACTION_MAP["BUCKET"]["GET"]["encryption"] = "GetEncryptionConfiguration"
    ActionAuthenticatorMixin._authenticate_and_authorize_action = _judge_others  # type: ignore[method-assign]
    ActionAuthenticatorMixin._authenticate_and_authorize_normal_action = _authorize  # type: ignore[assignment,method-assign]
    IAMPolicyStatement._check_principal = _is_principal  # type: ignore[method-assign]
    IAMPolicyStatement._match = staticmethod(_match)  # type: ignore[assignment,method-assign]


class _Request(IAMRequest):
    """A request whose action is named as policies name it, and whose signature fits also when it has no body."""

    def __init__(self, **request: Any) -> None:
        super().__init__(**request)
        service, action = self._action.split(":")
        if self._method in ("GET", "DELETE"):
            self._data = {}  # moto takes the headers for the body
        self._action = f"{_PREFIXES.get(service, service)}:{action}"


def _judge_others(self: ActionAuthenticatorMixin, iam_request_cls: type, resource: str = _UNKNOWN) -> None:
    """Ask IAM, but for what nodes, CloudFormation and the owner of the account do."""
    key = access_key(self.headers.get("Authorization", "")) or ""  # type: ignore[attr-defined]
    if key != KEYS.node and not KEYS.are_of_owner(key):
        _judge(self, iam_request_cls, resource)


def _authorize(self: BaseResponse, resource: str = _UNKNOWN) -> None:
    """Ask IAM. Its words are those of most services that talk XML; the others have their own.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
    https://docs.aws.amazon.com/systems-manager/latest/APIReference/CommonErrors.html
    """
    try:
        for each in _resources(self, resource):
            self._authenticate_and_authorize_action(_Request, each)
    except AccessDeniedError as error:
        protocol = self.determine_response_protocol(get_service_model(self.boto3_service_name))
        if protocol == "ec2":
            error.description = str(error.description).replace(error.error_type, "UnauthorizedOperation")
        elif protocol == "rest-xml":
            error.description = re.sub("</?Errors>", "", str(error.description))
        elif protocol.endswith("json"):
            code = "AccessDeniedException"
            error.description = json.dumps({"__type": code, "code": code, "message": error.message})
        raise


def _resources(request: BaseResponse, resource: str) -> list[str]:
    """Return what a request is about. Parameters are known by their names in it.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html
    """
    if request.boto3_service_name != "ssm" or request._get_action() not in _OF_PARAMETERS:
        return [resource]
    names = request._get_param("Names") or [request._get_param("Name")]
    prefix = f"arn:aws:ssm:{request.region}:{request.current_account}:parameter"
    bare = [name.removeprefix(prefix).split(":")[0].removeprefix("/") for name in names]  # without version or label
    return [f"{prefix}/{name}" for name in bare]


def _match(pattern: str, value: str) -> Match[str] | None:
    return re.match("", "") if value == _UNKNOWN else _match_known(pattern, value)


def _is_principal(self: IAMPolicyStatement, principal: str) -> bool:
    """Tell whether a trust policy names somebody, or the whole account, whose policies decide then who may.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html#principal-accounts
    """
    named = self._statement.get("Principal")
    if not isinstance(named, dict):
        return named in (None, "*")
    listed = named.get("AWS", [])
    account = principal.split(":")[4]
    allowed = {"*", account, principal, f"arn:aws:iam::{account}:root"}
    return not allowed.isdisjoint([listed] if isinstance(listed, str) else listed)


def name_service_roles() -> None:
    """Give FSx's service-linked role the name that AWS gives it.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-service-linked-roles.html
    """
    SERVICE_NAME_CONVERSION["fsx"] = "AmazonFSx"


class Kms(KmsResponse):
    """KMS that takes a chosen id, and knows what a key is for by default.

    https://docs.aws.amazon.com/kms/latest/APIReference/API_CreateKey.html, KeyUsage
    """

    def create_key(self) -> str:
        self.body = json.dumps({"KeyUsage": "ENCRYPT_DECRYPT", **json.loads(self.body)})
        tags = {each["TagKey"]: each["TagValue"] for each in self._get_param("Tags") or []}
        with chosen_id(models, "generate_key_id", tags):
            return super().create_key()


def choose_arns() -> None:
    """Give policies and secrets the ARN in the tag `_custom_id_`, which may be of another account than this one."""
    create, generate = IAMBackend.create_policy, SecretsManagerSecretIdentifier.generate

    def create_policy(self: IAMBackend, *arguments: Any, **options: Any) -> ManagedPolicy:
        policy = create(self, *arguments, **options)
        if chosen := policy.tags.pop(TAG_KEY_CUSTOM_ID, None):
            del self.managed_policies[policy.arn]
            policy.account_id = chosen["Value"].split(":")[4]
            self.managed_policies[policy.arn] = policy
        return policy

    def generate_arn(self: SecretsManagerSecretIdentifier, existing_ids: Any = None, tags: Any = None) -> str:
        chosen = (each["Value"] for each in tags or [] if each["Key"] == TAG_KEY_CUSTOM_ID)
        return next(chosen, None) or generate(self, existing_ids, tags)

    IAMBackend.create_policy = create_policy  # type: ignore[method-assign]
    SecretsManagerSecretIdentifier.generate = generate_arn  # type: ignore[method-assign]


def count_calls() -> None:
    """Note each request once it is known which call it is."""
    set_up = BaseResponse.setup_class

    def setup_class(self: BaseResponse, request: Request, *arguments: Any, **options: Any) -> None:
        set_up(self, request, *arguments, **options)
        CALLS.note(request.headers.get("Authorization", ""), f"{self.boto3_service_name}:{self._get_action()}")

    BaseResponse.setup_class = setup_class  # type: ignore[method-assign]
