"""AWS Identity and Access Management, and the policies of resources."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Self

from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.exceptions import AccessDeniedError
from moto.core.request import Request
from moto.core.responses import BaseResponse
from moto.core.utils import get_service_model
from moto.ec2.models import ec2_backends
from moto.iam import access_control
from moto.iam.access_control import (
    AssumedRoleAccessKey,
    IAMPolicy,
    IAMPolicyStatement,
    IAMRequest,
    IAMRequestBase,
    IAMUserAccessKey,
    PermissionResult,
)
from moto.iam.exceptions import NotFoundException
from moto.iam.models import SERVICE_NAME_CONVERSION, IAMBackend, ManagedPolicy, Role, iam_backends
from moto.kms import models
from moto.kms.responses import KmsResponse
from moto.s3.responses import ACTION_MAP
from moto.secretsmanager.utils import SecretsManagerSecretIdentifier
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID

from emulator.calls import CALLS
from emulator.keys import KEYS, access_key
from emulator.moto_patches.tags import chosen_id

_UNKNOWN = "*"
"""The resource of a request, where it is not found out: emulator/README.md says for which it is."""
_OF_PARAMETERS = frozenset(
    {"DeleteParameter", "DeleteParameters", "GetParameter", "GetParameterHistory", "GetParameters", "PutParameter"}
)
_OF_EC2 = {
    **dict.fromkeys(("RebootInstances", "StartInstances", "StopInstances", "TerminateInstances"), "instance"),
    "CreateSnapshot": "volume",
    "DeleteSecurityGroup": "security-group",
}
"""Actions of EC2 that are about things which exist, and their kind.

https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
"""
_IDS = {"instance": "InstanceId", "volume": "VolumeId", "security-group": "GroupId"}
_TAGS = ("aws:ResourceTag", "ec2:ResourceTag", "iam:ResourceTag", "ssm:resourceTag")
"""Keys of conditions on the tags of what a request is about."""
_EXTERNAL_ID = "sts:ExternalId"
_PREFIXES = {"monitoring": "cloudwatch", "tagging": "tag"}
"""Services' prefixes in IAM's actions, where they are not the names with which requests are signed.

https://docs.aws.amazon.com/service-authorization/latest/reference/reference_policies_actions-resources-contextkeys.html
"""
_judge = ActionAuthenticatorMixin._authenticate_and_authorize_action
_check_policies = IAMRequestBase.check_action_permitted
_key_of = access_control.create_access_key


def refuse_as_services_do() -> None:
    """Give refusals the codes of AWS, and let what a policy says of a certain resource hold for an unknown one.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadBucket.html needs s3:ListBucket,
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketEncryption.html s3:GetEncryptionConfiguration.
    """
    ACTION_MAP["BUCKET"]["HEAD"]["DEFAULT"] = "ListBucket"
    ACTION_MAP["BUCKET"]["GET"]["encryption"] = "GetEncryptionConfiguration"
    ActionAuthenticatorMixin._authenticate_and_authorize_action = _judge_others  # type: ignore[method-assign]
    ActionAuthenticatorMixin._authenticate_and_authorize_normal_action = _authorize  # type: ignore[assignment,method-assign]
    IAMPolicyStatement.is_action_permitted = _result  # type: ignore[method-assign]
    IAMRequestBase.check_action_permitted = _check  # type: ignore[method-assign]
    access_control.create_access_key = _access_key  # type: ignore[assignment]


class _Request(IAMRequest):
    """A request whose action is named as policies name it, and whose signature fits also when it has no body."""

    def __init__(self, **request: Any) -> None:
        super().__init__(**request)
        service, action = self._action.split(":")
        if self._method in ("GET", "DELETE"):
            self._data = {}  # moto takes the headers for the body
        self._action = f"{_PREFIXES.get(service, service)}:{action}"


def _judge_others(self: ActionAuthenticatorMixin, iam_request_cls: type, resource: str = _UNKNOWN) -> None:
    """Ask IAM, but for what CloudFormation and the owner of the account do; of nodes, ask their boundary."""
    key = access_key(self.headers.get("Authorization", "")) or ""  # type: ignore[attr-defined]
    if not KEYS.are_of_node(key) and not KEYS.are_of_owner(key):
        _judge(self, iam_request_cls, resource)
    elif (instance_id := KEYS.instance_of(key) if KEYS.are_of_node(key) else "") and _role_of(
        self.current_account,  # type: ignore[attr-defined]
        instance_id,
    ):
        request = iam_request_cls(
            account_id=self.current_account,  # type: ignore[attr-defined]
            method=self.method,  # type: ignore[attr-defined]
            path=self.raw_path,  # type: ignore[attr-defined]
            data=self.data,  # type: ignore[attr-defined]
            body=self.raw_body,  # type: ignore[attr-defined]
            headers=self.headers,  # type: ignore[attr-defined]
            action=self._get_action(),  # type: ignore[attr-defined]
        )
        _check_boundary(request, resource)


class _NodeKey:
    """The key of a node, as moto has those of users and of roles' sessions."""

    def __init__(self, account_id: str, role: Role, instance_id: str) -> None:
        self._owner_role_name = role.name
        self.backend = iam_backends[account_id]["aws"]
        self.arn = f"arn:aws:sts::{account_id}:assumed-role/{role.name}/{instance_id}"


def _role_of(account_id: str, instance_id: str) -> Role | None:
    """Return the role of an instance; None: it has none, or is gone."""
    for backend in list(ec2_backends[account_id].values()):
        association = backend.iam_instance_profile_associations.get(instance_id)
        if association is not None:
            return next(iter(association.iam_instance_profile.roles), None)
    return None


def _access_key(
    account_id: str, partition: str, access_key_id: str, headers: dict[str, str]
) -> IAMUserAccessKey | AssumedRoleAccessKey | _NodeKey:
    instance_id = KEYS.instance_of(access_key_id) if KEYS.are_of_node(access_key_id) else ""
    role = _role_of(account_id, instance_id) if instance_id else None
    return _NodeKey(account_id, role, instance_id) if role else _key_of(account_id, partition, access_key_id, headers)


def _check(self: IAMRequestBase, resource: str) -> None:
    """Refuse what policies do not allow, or what the boundary of the role does not."""
    _check_policies(self, resource)
    _check_boundary(self, resource)


def _check_boundary(request: IAMRequestBase, resource: str) -> None:
    """Refuse what the boundary of a role does not allow, if it has one.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html; the words:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html
    """
    key, action = request._access_key, request._action
    name = getattr(key, "_owner_role_name", None)
    role = None if name is None else key.backend.get_role(name)
    if role is None or not role.permissions_boundary_arn or action == "sts:GetCallerIdentity":
        return
    boundary = key.backend.managed_policies.get(role.permissions_boundary_arn)
    result = IAMPolicy(boundary).is_action_permitted(action, resource) if boundary else PermissionResult.NEUTRAL
    if result is PermissionResult.PERMITTED:
        return
    try:
        request._raise_access_denied()
    except AccessDeniedError as error:
        reason = f"because no permissions boundary allows the {action} action"
        if result is PermissionResult.DENIED:
            reason = "with an explicit deny in a permissions boundary"
        error.message = f"{error.message} {reason}"
        error.description = str(error.description).replace(f"perform: {action}", f"perform: {action} {reason}")
        raise


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


class _Resource(str):
    """The ARN of something that exists here, with its tags."""

    tags: Mapping[str, str]

    def __new__(cls, arn: str, tags: Mapping[str, str]) -> Self:
        made = super().__new__(cls, arn)
        made.tags = tags
        return made


def _resources(request: BaseResponse, resource: str) -> list[str]:
    """Return what a request is about; all of it has to be allowed."""
    find = _FOUND_BY.get(request.boto3_service_name)
    return (find(request) if find else []) or [resource]


def _of_systems_manager(request: BaseResponse) -> list[str]:
    """Return parameters, or the document of a command and its instances.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awssystemsmanager.html
    """
    action, arn = request._get_action(), f"arn:aws:ssm:{request.region}"
    if action == "SendCommand":
        document = request._get_param("DocumentName")
        if not document.startswith("arn:"):
            document = f"{arn}:{'' if document.startswith('AWS-') else request.current_account}:document/{document}"
        instances: list[str] = [_in_ec2(request, "instance", each) for each in request._get_param("InstanceIds") or []]
        return [document, *(instances or [_UNKNOWN])]
    if action not in _OF_PARAMETERS:
        return []
    names = request._get_param("Names") or [request._get_param("Name")]
    prefix = f"{arn}:{request.current_account}:parameter"
    bare = [name.removeprefix(prefix).split(":")[0].removeprefix("/") for name in names]  # without version or label
    return [f"{prefix}/{name}" for name in bare]


def _of_cloudformation(request: BaseResponse) -> list[str]:
    """Return the stack that a request names; one to come has no id.

    https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscloudformation.html
    """
    name = request._get_param("StackName")
    if not name:
        return []
    stack = request.engine.store.find(request.region, name)  # type: ignore[attr-defined]
    to_come = name if name.startswith("arn:") else f"{_arn(request, 'cloudformation')}:stack/{name}/*"
    return [stack.id if stack else to_come]


def _of_ec2(request: BaseResponse) -> list[str]:
    kind = _OF_EC2.get(request._get_action())
    if kind is None:
        return []
    found = [
        _in_ec2(request, kind, value[0])
        for key, value in request.querystring.items()
        if key.partition(".")[0] == _IDS[kind]
    ]
    made = [f"arn:aws:ec2:{request.region}::snapshot/*"] if kind == "volume" else []
    return [*found, *made]


def _of_sts(request: BaseResponse) -> list[str]:
    arn = request._get_param("RoleArn")
    try:
        role = iam_backends[request.current_account]["aws"].get_role_by_arn(arn)
    except NotFoundException:
        return []
    return [_Resource(arn, {each["Key"]: each["Value"] for each in role.tags})]


_FOUND_BY: dict[str, Callable[[BaseResponse], list[str]]] = {
    "cloudformation": _of_cloudformation,
    "ec2": _of_ec2,
    "ssm": _of_systems_manager,
    "sts": _of_sts,
}


def _in_ec2(request: BaseResponse, kind: str, resource_id: str) -> _Resource:
    tags = ec2_backends[request.current_account][request.region].tags.get(resource_id, {})
    return _Resource(f"{_arn(request, 'ec2')}:{kind}/{resource_id}", tags)


def _arn(request: BaseResponse, service: str) -> str:
    return f"arn:aws:{service}:{request.region}:{request.current_account}"


def _result(
    self: IAMPolicyStatement,
    action: str,
    resource: str = _UNKNOWN,
    principal: str | None = None,
    incoming_condition_values: Mapping[str, str] | None = None,
) -> PermissionResult:
    """Tell what a statement says of a request: nothing, where one of its elements does not fit.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html

    Args:
        self: The statement.
        action: What the request does.
        resource: What it is about.
        principal: Whose it is, for a statement of a trust policy.
        incoming_condition_values: What a request to assume a role says of conditions.
    """
    statement = self._statement
    known = _known(resource, incoming_condition_values)
    fits = (
        _names(statement, "Action", action)
        and _names(statement, "Resource", resource)
        and (principal is None or _is_principal(statement, principal))
        and all(_holds(operator, keys, known) for operator, keys in statement.get("Condition", {}).items())
    )
    if not fits:
        return PermissionResult.NEUTRAL
    return PermissionResult.PERMITTED if statement["Effect"] == "Allow" else PermissionResult.DENIED


def _names(statement: Mapping[str, Any], element: str, value: str) -> bool:
    """Tell whether an element, or its opposite, takes in a value. Case counts in resources alone."""
    if value == _UNKNOWN:
        return True
    flags = re.IGNORECASE if element == "Action" else re.NOFLAG
    if negated := statement.get(f"Not{element}"):
        return not any(_fits(pattern, value, flags) for pattern in _listed(negated))
    return element not in statement or any(_fits(pattern, value, flags) for pattern in _listed(statement[element]))


def _known(resource: str, values: Mapping[str, str] | None) -> Callable[[str], tuple[bool, str | None]]:
    """Return what tells whether a key of conditions is known here, and which value it has; None: it is absent."""
    tags = {key.lower(): value for key, value in resource.tags.items()} if isinstance(resource, _Resource) else None
    prefixes = {each.lower() for each in _TAGS}

    def value_of(key: str) -> tuple[bool, str | None]:
        prefix, _, tag = key.lower().partition("/")
        if prefix in prefixes and tags is not None and not tag.startswith("aws:cloudformation:"):
            return True, tags.get(tag)
        if key.lower() == _EXTERNAL_ID.lower() and values is not None:
            return True, values.get(_EXTERNAL_ID)
        return False, None

    return value_of


def _holds(operator: str, keys: Mapping[str, str | list[str]], known: Callable[[str], tuple[bool, str | None]]) -> bool:
    """Tell whether a condition holds: a key that is absent does not, one that is unknown here does.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition_operators.html
    """
    comparisons: dict[str, Callable[[str, str], bool]] = {"StringEquals": str.__eq__, "StringLike": _fits}
    equal = comparisons.get(operator.removeprefix("ForAnyValue:"))
    for key, expected in keys.items():
        is_known, value = known(key)
        if equal and is_known and not (value is not None and any(equal(each, value) for each in _listed(expected))):
            return False
    return True


def _fits(pattern: str, value: str, flags: re.RegexFlag = re.NOFLAG) -> bool:
    """Tell whether a value fits a pattern, in which only * and ? are special."""
    return bool(re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), value, flags | re.DOTALL))


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _is_principal(statement: Mapping[str, Any], principal: str) -> bool:
    """Tell whether a trust policy names somebody, the role of a session, or the whole account.

    Of the whole account its policies decide then who may.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_principal.html
    """
    named = statement.get("Principal")
    if not isinstance(named, dict):
        return named in (None, "*")
    account, role = principal.split(":")[4], principal.split("/")[1]
    allowed = {"*", account, principal, f"arn:aws:iam::{account}:root"}
    if ":assumed-role/" in principal:
        allowed.add(f"arn:aws:iam::{account}:role/{role}")
    return not allowed.isdisjoint(_listed(named.get("AWS", [])))


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
    create: Callable[..., ManagedPolicy] = IAMBackend.create_policy
    generate = SecretsManagerSecretIdentifier.generate

    def create_policy(self: IAMBackend, *arguments: Any) -> ManagedPolicy:
        *described, tags = arguments
        chosen = (each["Value"] for each in tags if each["Key"] == TAG_KEY_CUSTOM_ID)
        _, partition, _, _, account, *_ = next(chosen, f"arn:aws:iam::{self.account_id}:policy").split(":")
        kept = [each for each in tags if each["Key"] != TAG_KEY_CUSTOM_ID]
        policy = create(iam_backends[account][partition], *described, kept)
        self.managed_policies[policy.arn] = policy
        return policy

    def generate_arn(self: SecretsManagerSecretIdentifier, existing_ids: Any = None, tags: Any = None) -> str:
        chosen = (each["Value"] for each in tags or [] if each["Key"] == TAG_KEY_CUSTOM_ID)
        return next(chosen, None) or generate(self, existing_ids, tags)

    IAMBackend.create_policy = create_policy  # type: ignore[assignment, method-assign]
    SecretsManagerSecretIdentifier.generate = generate_arn  # type: ignore[method-assign]


def count_calls() -> None:
    """Note each request once it is known which call it is."""
    set_up = BaseResponse.setup_class

    def setup_class(self: BaseResponse, request: Request, *arguments: Any, **options: Any) -> None:
        set_up(self, request, *arguments, **options)
        CALLS.note(request.headers.get("Authorization", ""), f"{self.boto3_service_name}:{self._get_action()}")

    BaseResponse.setup_class = setup_class  # type: ignore[method-assign]
