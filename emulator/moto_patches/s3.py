"""Amazon S3."""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult, S3IAMRequest
from moto.s3.models import FakeBucket
from moto.s3.responses import S3Response


class Bucket(FakeBucket):
    """A bucket whose policy does not lock everybody out.

    moto takes a condition that it cannot judge for met and a principal that it does not know for anybody, so that the
    usual "deny unless TLS" denies everything. Statements with a condition, and denials, are passed over here; the
    rehearsal judges no permissions.
    """

    def get_permission(self, action: str, resource: str) -> Any:
        """Return what the policy says of an action."""
        if self.policy is None:
            return PermissionResult.NEUTRAL
        policy = json.loads(self.policy)
        listed = policy["Statement"] if isinstance(policy["Statement"], list) else [policy["Statement"]]
        judged = [each for each in listed if "Condition" not in each and each["Effect"] == "Allow"]
        return IAMPolicy(json.dumps({**policy, "Statement": judged})).is_action_permitted(action, resource)


class _Decryption(S3IAMRequest):
    """What S3 asks KMS for on behalf of whoever reads an object."""

    def __init__(self, **request: Any) -> None:
        super().__init__(**request)
        self._action = "kms:Decrypt"

    def check_action_permitted(self, resource: str) -> None:
        """Judge the caller's own policies alone, as if the key's policy left it to them."""
        context = {"kms:ViaService": f"s3.{self._region}.amazonaws.com"}
        policies = map(IAMPolicy, self._access_key.collect_policies())
        results = [each.is_action_permitted(self._action, resource, None, context) for each in policies]
        if PermissionResult.DENIED in results or PermissionResult.PERMITTED not in results:
            self._raise_access_denied()


def judge_signed_requests() -> None:
    """Let IAM judge signed requests only, and whoever reads an object also by the customer's key that encrypts it.

    What is public moto finds out by itself, but only after IAM.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html,
    https://repost.aws/knowledge-center/decrypt-kms-encrypted-objects-s3
    """
    authorize = S3Response._authenticate_and_authorize_s3_action

    def authorize_signed(request: S3Response, bucket_name: str | None = None, key_name: str | None = None) -> None:
        if "Authorization" not in request.headers:
            return
        authorize(request, bucket_name, key_name)
        if request.method == "GET" and bucket_name and key_name:
            stored = request.backend.get_object(bucket_name, key_name)
            if stored is not None and stored.kms_key_id:
                key_id = stored.kms_key_id.rpartition("/")[2]
                key = f"arn:aws:kms:{request.region}:{request.current_account}:key/{key_id}"
                request._authenticate_and_authorize_action(_Decryption, key)

    S3Response._authenticate_and_authorize_s3_action = authorize_signed  # type: ignore[assignment,method-assign]
