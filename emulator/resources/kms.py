"""AWS Key Management Service: keys and aliases."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.resources.common import removed_tags, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties

_DELETION_DELAY_DAYS = 30
"""How long a key waits for its deletion unless the template has PendingWindowInDays (KMS API, ScheduleKeyDeletion)."""


class Key(Model):
    """AWS::KMS::Key."""

    mutable = ("Description", "EnableKeyRotation", "KeyPolicy", "PendingWindowInDays", "Tags")
    properties = mutable

    def create(self, context: Context, properties: Properties) -> Physical:
        kms = context.client("kms")
        request = taken(properties, ("Description",))
        if "KeyPolicy" in properties:
            request["Policy"] = json.dumps(properties["KeyPolicy"])
        key = kms.create_key(**request, Tags=_tags(properties))["KeyMetadata"]
        self._set_rotation(kms, key["KeyId"], properties)
        return Physical(key["KeyId"], {"Arn": key["Arn"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        kms = context.client("kms")
        kms.update_key_description(KeyId=physical.ref, Description=properties.get("Description", ""))
        if "KeyPolicy" in changed:
            document = json.dumps(properties["KeyPolicy"])
            kms.put_key_policy(KeyId=physical.ref, PolicyName="default", Policy=document)
        self._set_rotation(kms, physical.ref, properties)
        kms.untag_resource(KeyId=physical.ref, TagKeys=removed_tags(context, properties))
        kms.tag_resource(KeyId=physical.ref, Tags=_tags(properties))
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Schedule the deletion: KMS deletes no key at once."""
        days = properties.get("PendingWindowInDays", _DELETION_DELAY_DAYS)
        with unless_gone("KMSInvalidStateException"):
            context.client("kms").schedule_key_deletion(KeyId=physical.ref, PendingWindowInDays=days)

    def _set_rotation(self, kms: Any, key_id: str, properties: Mapping[str, Any]) -> None:
        rotated = properties.get("EnableKeyRotation", False)
        (kms.enable_key_rotation if rotated else kms.disable_key_rotation)(KeyId=key_id)


class Alias(Model):
    """AWS::KMS::Alias."""

    def create(self, context: Context, properties: Properties) -> Physical:
        context.client("kms").create_alias(**properties)
        return Physical(properties["AliasName"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("kms").delete_alias(AliasName=physical.ref)


def _tags(properties: Properties) -> list[dict[str, str]]:
    return [{"TagKey": tag["Key"], "TagValue": tag["Value"]} for tag in properties.get("Tags", [])]


MODELS: Mapping[str, Model] = {"AWS::KMS::Alias": Alias(), "AWS::KMS::Key": Key()}
