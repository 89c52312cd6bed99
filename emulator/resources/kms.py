"""AWS Key Management Service: keys and aliases."""

from __future__ import annotations

import json
from collections.abc import Mapping

from emulator.resources.api import Api
from emulator.resources.common import unless_gone
from emulator.resources.model import Context, Model, Physical, Properties

_DELETION_DELAY_DAYS = 30
"""How long a key waits for its deletion unless the template has PendingWindowInDays (KMS API, ScheduleKeyDeletion)."""


def _create_key(context: Context, request: Properties) -> Properties:
    if "KeyPolicy" in request:
        request["Policy"] = json.dumps(request.pop("KeyPolicy"))
    return dict(context.client("kms").create_key(**request))


def _change_key(context: Context, physical: Physical, properties: Properties, changed: set[str]) -> None:
    kms = context.client("kms")
    kms.update_key_description(KeyId=physical.ref, Description=properties.get("Description", ""))
    if "KeyPolicy" in changed:
        policy = properties.get("KeyPolicy") or _default_policy(context)
        kms.put_key_policy(KeyId=physical.ref, PolicyName="default", Policy=json.dumps(policy))


def _default_policy(context: Context) -> Properties:
    """Return the policy of a key that is given none.

    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-default.html
    """
    principal = {"AWS": f"arn:{context.partition}:iam::{context.account}:root"}
    statement = {"Sid": "Enable IAM User Permissions", "Effect": "Allow", "Principal": principal}
    statement |= {"Action": "kms:*", "Resource": "*"}
    return {"Version": "2012-10-17", "Id": "key-default-1", "Statement": [statement]}


def _set_rotation(context: Context, key: Physical, _: Properties, properties: Properties) -> None:
    kms = context.client("kms")
    rotated = properties.get("EnableKeyRotation", False)
    (kms.enable_key_rotation if rotated else kms.disable_key_rotation)(KeyId=key.ref)
    (kms.enable_key if properties.get("Enabled", True) else kms.disable_key)(KeyId=key.ref)


def _delete_key(context: Context, physical: Physical, properties: Properties) -> None:
    """Schedule the deletion: KMS deletes no key at once."""
    days = properties.get("PendingWindowInDays", _DELETION_DELAY_DAYS)
    with unless_gone("KMSInvalidStateException"):
        context.client("kms").schedule_key_deletion(KeyId=physical.ref, PendingWindowInDays=days)


MODELS: Mapping[str, Model] = {
    "AWS::KMS::Alias": Api("kms", "alias", "AliasName"),
    "AWS::KMS::Key": Api(
        "kms",
        "key",
        attributes={"Arn": "Arn"},
        creation=_create_key,
        later=("EnableKeyRotation", "Enabled", "PendingWindowInDays"),
        configuration=_set_rotation,
        modification=_change_key,
        deletion=_delete_key,
        mutable=("Description", "EnableKeyRotation", "Enabled", "KeyPolicy", "PendingWindowInDays", "Tags"),
    ),
}
