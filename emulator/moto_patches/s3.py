"""Amazon S3."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from moto.iam.access_control import IAMPolicy, PermissionResult, S3IAMRequest
from moto.s3.exceptions import BucketAccessDeniedError
from moto.s3.models import FakeBucket
from moto.s3.responses import S3Response

from emulator import gate
from emulator.keys import access_key
from emulator.moto_patches.access import decide, key_arn, role_of_node

_OF_CONTENT = frozenset({"GetObject", "GetObjectVersion", "PutObject"})
"""Actions for which S3 encrypts or decrypts, but for HEAD, which does not."""


class Bucket(FakeBucket):
    """A bucket whose policy is judged with the other policies, and locks nobody out before.

    moto asks the policy also for its owner's calls, without saying whose they are: statements with a condition, and
    denials, are passed over here. What it allows anybody stays public.
    """

    def get_permission(self, action: str, resource: str) -> Any:
        """Return what the policy says of an action."""
        if self.policy is None:
            return PermissionResult.NEUTRAL
        policy = json.loads(self.policy)
        listed = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
        judged = [each for each in listed if "Condition" not in each and each["Effect"] == "Allow"]
        return IAMPolicy(json.dumps({**policy, "Statement": judged})).is_action_permitted(action, resource)


class _UseOfKey(S3IAMRequest):
    """What S3 asks KMS for on behalf of whoever reads or writes an object."""

    def __init__(self, **request: Any) -> None:
        super().__init__(**request)
        self._action = "kms:Decrypt" if self._method == "GET" else "kms:GenerateDataKey"

    def check_action_permitted(self, resource: str) -> None:
        """Judge the caller."""
        via = f"s3.{self._region}.amazonaws.com"
        decide(self, resource, self._access_key.collect_policies(), kms_ViaService=via)


class _ReadingToCopy(S3IAMRequest):
    """What a request to copy an object needs for its source."""

    def __init__(self, **request: Any) -> None:
        super().__init__(**request)
        self._action = "s3:GetObject"


class _WritingByMachine(S3IAMRequest):
    """An object that a machine writes, which may do so only where the bucket's own policy lets it in."""

    def check_action_permitted(self, resource: str) -> None:
        """Judge the machine by the policy of the bucket alone."""
        decide(self, resource, [])


def judge_signed_requests() -> None:
    """Let IAM judge signed requests only, and who reads or writes an object also by the customer's key of it.

    What is public moto finds out by itself, but only after IAM.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html,
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html (permissions),
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html (of the source)
    """
    authorize = S3Response._authenticate_and_authorize_s3_action

    def authorize_signed(request: S3Response, bucket_name: str | None = None, key_name: str | None = None) -> None:
        signed = "Authorization" in request.headers
        if signed:
            authorize(request, bucket_name, key_name)
        if gate.of_machine() and request.method not in gate.READING:
            _judge_machine(request, bucket_name, key_name)
        if not signed or not bucket_name or not key_name or request._get_action() not in _OF_CONTENT:
            return
        if request.method == "PUT" and (source := request.headers.get("x-amz-copy-source")):
            path = unquote(source).partition("?")[0].removeprefix("/")
            request._authenticate_and_authorize_action(_ReadingToCopy, f"arn:aws:s3:::{path}")
        if key := _key(request, bucket_name, key_name):
            request._authenticate_and_authorize_action(_UseOfKey, key)

    S3Response._authenticate_and_authorize_s3_action = authorize_signed  # type: ignore[assignment,method-assign]


def _judge_machine(request: S3Response, bucket_name: str | None, key_name: str | None) -> None:
    """Refuse what a machine writes, but for objects of buckets whose policies let its role in."""
    bucket = request.backend.buckets.get(bucket_name or "")
    of_node = role_of_node(request.current_account, access_key(request.headers.get("Authorization", "")) or "")
    if not bucket or not key_name or not of_node:
        raise BucketAccessDeniedError(bucket=bucket_name or "")
    request._authenticate_and_authorize_action(_WritingByMachine, f"arn:aws:s3:::{bucket_name}/{key_name}")
    gate.note_machines(bucket)


def _key(request: S3Response, bucket_name: str, key_name: str) -> str | None:
    """Return the customer's key that encrypts an object, or will; None: none does.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-encryption.html
    """
    bucket = request.backend.buckets.get(bucket_name)
    if bucket is None or request.method == "HEAD":
        return None
    if request.method == "GET":
        stored = request.backend.get_object(bucket_name, key_name)
        named = stored.kms_key_id if stored else None
    else:
        default = (bucket.encryption or {}).get("Rule", {}).get("ApplyServerSideEncryptionByDefault", {})
        named = request.headers.get("x-amz-server-side-encryption-aws-kms-key-id") or default.get("KMSMasterKeyID")
    if not named:
        return None
    account, region = request.current_account, request.region
    return key_arn(account, region, named) or f"arn:aws:kms:{region}:{account}:key/{named.rpartition('/')[2]}"
