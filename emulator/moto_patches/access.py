"""AWS Identity and Access Management, and the policies of resources."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Self

from moto.core.authorization import ActionAuthenticatorMixin
from moto.core.exceptions import AccessDeniedError
from moto.core.request import Request as HttpRequest
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
from moto.kms.models import kms_backends
from moto.kms.responses import KmsResponse
from moto.kms.utils import _deserialize_ciphertext_blob
from moto.s3.models import s3_backends
from moto.s3.responses import ACTION_MAP
from moto.secretsmanager.utils import SecretsManagerSecretIdentifier
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID

from emulator.calls import CALLS
from emulator.keys import KEYS, access_key
from emulator.moto_patches.policies import (
    UNKNOWN,
    Caller,
    Document,
    Known,
    Request,
    Verdict,
    holds,
    judge,
    named_as,
    takes_in,
)
from emulator.moto_patches.tags import chosen_id

_WITH_POLICIES = frozenset({"kms", "s3"})
"""Services whose resources have policies that count here."""
_EVERYTHING = {"policy_document": json.dumps({"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}})}
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


def _judge_others(self: ActionAuthenticatorMixin, iam_request_cls: type, resource: str = UNKNOWN) -> None:
    """Ask IAM, but for what CloudFormation and the owner of the account do.

    Of nodes all policies count for services whose resources are known here and have policies, else their boundary.
    """
    key = access_key(self.headers.get("Authorization", "")) or ""  # type: ignore[attr-defined]
    if not KEYS.are_of_node(key) and not KEYS.are_of_owner(key):
        _judge(self, iam_request_cls, resource)
    elif role_of_node(self.current_account, key):  # type: ignore[attr-defined]
        request = iam_request_cls(
            account_id=self.current_account,  # type: ignore[attr-defined]
            method=self.method,  # type: ignore[attr-defined]
            path=self.raw_path,  # type: ignore[attr-defined]
            data=self.data,  # type: ignore[attr-defined]
            body=self.raw_body,  # type: ignore[attr-defined]
            headers=self.headers,  # type: ignore[attr-defined]
            action=self._get_action(),  # type: ignore[attr-defined]
        )
        if request._service in _WITH_POLICIES:
            request.check_action_permitted(resource)
        else:
            decide(request, resource, [_EVERYTHING])


class _NodeKey:
    """The key of a node, as moto has those of users and of roles' sessions."""

    def __init__(self, account_id: str, role: Role, instance_id: str) -> None:
        self._owner_role_name = role.name
        self.backend = iam_backends[account_id]["aws"]
        self.arn = f"arn:aws:sts::{account_id}:assumed-role/{role.name}/{instance_id}"

    collect_policies = AssumedRoleAccessKey.collect_policies


def role_of_node(account_id: str, key: str) -> Role | None:
    """Return the role of the instance that has a key; None: none has it, the instance has no role, or is gone."""
    instance_id = KEYS.instance_of(key) if KEYS.are_of_node(key) else ""
    if not instance_id:
        return None
    for backend in list(ec2_backends[account_id].values()):
        association = backend.iam_instance_profile_associations.get(instance_id)
        if association is not None:
            return next(iter(association.iam_instance_profile.roles), None)
    return None


def _access_key(
    account_id: str, partition: str, access_key_id: str, headers: dict[str, str]
) -> IAMUserAccessKey | AssumedRoleAccessKey | _NodeKey:
    if role := role_of_node(account_id, access_key_id):
        return _NodeKey(account_id, role, KEYS.instance_of(access_key_id))
    return _key_of(account_id, partition, access_key_id, headers)


def _check(self: IAMRequestBase, resource: str) -> None:
    """Refuse what policies do not allow, or whom a role does not trust that is to be assumed."""
    decide(self, resource, self._access_key.collect_policies())
    if self._is_assuming_role_operation(resource) and not self._check_role_trust_relationship(resource):
        self._raise_access_denied()


def decide(request: IAMRequestBase, resource: str, policies: Iterable[object], **context: str) -> None:
    """Refuse what the policies of an identity, the boundary of its role and the policy of the resource do not allow.

    The words: https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot_access-denied.html

    Args:
        request: Who asks, and for which action.
        resource: What it is about.
        policies: Of the identity, as moto has them.
        context: Further keys of conditions, with `_` for their colon.
    """
    action, caller = request._action, _caller(request._access_key.arn)
    if action == "sts:GetCallerIdentity":
        return
    known = _known(resource, {**caller.keys, **{key.replace("_", ":"): value for key, value in context.items()}})
    of_resource = policy_of(request.account_id, resource)
    verdict = judge(
        Request(action, resource, known, caller),
        map(_document, policies),
        boundary=_boundary(request),
        of_resource=of_resource,
        of_key=of_resource is not None and resource.split(":")[2] == "kms",
    )
    if verdict is Verdict.ALLOWED:
        return
    try:
        request._raise_access_denied()
    except AccessDeniedError as error:
        if verdict is not Verdict.DENIED:
            reason = verdict.value.format(action)
            error.message = f"{error.message} {reason}"
            error.description = str(error.description).replace(f"perform: {action}", f"perform: {action} {reason}")
        raise


def _boundary(request: IAMRequestBase) -> list[Document] | None:
    """Return the boundary of the caller's role; an empty list: it is gone; None: there is none.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
    """
    key = request._access_key
    name = getattr(key, "_owner_role_name", None)
    role = None if name is None else key.backend.get_role(name)
    if role is None or not role.permissions_boundary_arn:
        return None
    boundary = key.backend.managed_policies.get(role.permissions_boundary_arn)
    return [_document(boundary)] if boundary else []


def policy_of(account_id: str, resource: str) -> Document | None:
    """Return the policy of a bucket, of an object's bucket, or of a key; None: it has none, or is not known here."""
    _, _, service, region, _, name = resource.split(":", 5) if resource.startswith("arn:") else [""] * 6
    if service == "s3":
        bucket = s3_backends[account_id]["aws"].buckets.get(name.partition("/")[0])
        return json.loads(bucket.policy) if bucket and bucket.policy else None
    if service == "kms":
        key = kms_backends[account_id][region].keys.get(name.removeprefix("key/"))
        return json.loads(key.policy) if key else None
    return None


def _document(policy: object) -> Document:
    document: Document = IAMPolicy(policy)._policy_json
    return document


def _authorize(self: BaseResponse, resource: str = UNKNOWN) -> None:
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
        return [document, *(instances or [UNKNOWN])]
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


def _of_kms(request: BaseResponse) -> list[str]:
    """Return the key that a request names, or with which its text was encrypted."""
    name, text = request._get_param("KeyId"), request._get_param("CiphertextBlob")
    if not name and text:
        with suppress(struct.error):  # KMS itself refuses what is no text of its own
            name = _deserialize_ciphertext_blob(text).key_id
    found = key_arn(request.current_account, request.region, name) if name else None
    return [found] if found else []


def key_arn(account_id: str, region: str, name: str) -> str | None:
    """Return the ARN of a key by its id, ARN or alias; None: there is none."""
    kms = kms_backends[account_id][region]
    alias = kms.get_alias_name(name)
    key_id = kms.get_key_id_from_alias(alias) if alias.startswith("alias/") else kms.get_key_id(name)
    return kms.keys[key_id].arn if key_id in kms.keys else None


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
    "kms": _of_kms,
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
    resource: str = UNKNOWN,
    principal: str | None = None,
    incoming_condition_values: Mapping[str, str] | None = None,
) -> PermissionResult:
    """Tell what a statement says of a request, for moto's own questions: whom a role trusts.

    Args:
        self: The statement.
        action: What the request does.
        resource: What it is about.
        principal: Whose it is, for a statement of a trust policy.
        incoming_condition_values: What a request to assume a role says of conditions.
    """
    statement, values = self._statement, incoming_condition_values
    context: Mapping[str, str | None] = {} if values is None else {_EXTERNAL_ID: None, **values}
    fits = (
        takes_in(statement, "Action", action)
        and takes_in(statement, "Resource", resource)
        and (principal is None or named_as(statement, _caller(principal)) is not None)
        and holds(statement.get("Condition", {}), _known(resource, context)) is not False
    )
    if not fits:
        return PermissionResult.NEUTRAL
    return PermissionResult.PERMITTED if statement["Effect"] == "Allow" else PermissionResult.DENIED


def _known(resource: str, context: Mapping[str, str | None]) -> Known:
    """Return what tells of keys of conditions: those of a context, and the tags of a resource that has them."""
    tags = {key.lower(): value for key, value in resource.tags.items()} if isinstance(resource, _Resource) else None
    prefixes, values = {each.lower() for each in _TAGS}, {key.lower(): value for key, value in context.items()}

    def value_of(key: str) -> tuple[bool, str | None]:
        prefix, _, tag = key.lower().partition("/")
        if prefix in prefixes and tags is not None and not tag.startswith("aws:cloudformation:"):
            return True, tags.get(tag)
        return key.lower() in values, values.get(key.lower())

    return value_of


def _caller(arn: str) -> Caller:
    """Return who has an ARN; a session of a role has one that says nothing of the role's path."""
    account, _, name = arn.split(":", 4)[4].partition(":")
    kind, role, *_ = name.split("/")
    if kind != "assumed-role":
        return Caller(arn, arn)
    return Caller(arn, iam_backends[account]["aws"].get_role(role).arn)


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

    def setup_class(self: BaseResponse, request: HttpRequest, *arguments: Any, **options: Any) -> None:
        set_up(self, request, *arguments, **options)
        CALLS.note(request.headers.get("Authorization", ""), f"{self.boto3_service_name}:{self._get_action()}")

    BaseResponse.setup_class = setup_class  # type: ignore[method-assign]
