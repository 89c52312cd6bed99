"""AWS Key Management Service: keys and aliases."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from emulator.resources.common import as_dictionary, taken, taken_tags, undone_on_failure, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties

_DELETION_DELAY_DAYS = 30
"""How long a key waits for its deletion unless the template has PendingWindowInDays (KMS API, ScheduleKeyDeletion)."""


class Key(Model):
    """AWS::KMS::Key."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the key."""
        kms = context.client("kms")
        properties.pop("PendingWindowInDays", None)  # it says when the key is deleted
        request = taken(properties, ("Description", "KeySpec", "KeyUsage", "MultiRegion", "Origin"))
        if "KeyPolicy" in properties:
            request["Policy"] = json.dumps(properties.pop("KeyPolicy"))
        tags = [{"TagKey": key, "TagValue": value} for key, value in taken_tags(properties).items()]
        key = kms.create_key(**request, Tags=tags)["KeyMetadata"]
        physical = Physical(key["KeyId"], {"Arn": key["Arn"], "KeyId": key["KeyId"]})
        states = taken(properties, ("Enabled", "EnableKeyRotation"))
        with undone_on_failure(lambda: self.delete(context, physical, {})):
            self._set_state(kms, physical.ref, states)
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change description, policy, rotation, state and tags."""
        kms = context.client("kms")
        if "Description" in changed:
            kms.update_key_description(KeyId=physical.ref, Description=properties.get("Description", ""))
        if "KeyPolicy" in changed:
            document = json.dumps(properties["KeyPolicy"])
            kms.put_key_policy(KeyId=physical.ref, PolicyName="default", Policy=document)
        if changed & {"Enabled", "EnableKeyRotation"}:
            self._set_state(kms, physical.ref, properties)
        if "Tags" in changed:
            old, new = (as_dictionary(each.get("Tags", [])) for each in (context.previous, properties))
            kms.untag_resource(KeyId=physical.ref, TagKeys=sorted(old.keys() - new.keys()))
            tags = [{"TagKey": key, "TagValue": value} for key, value in new.items()]
            kms.tag_resource(KeyId=physical.ref, Tags=tags)
        changed -= {"Description", "KeyPolicy", "Enabled", "EnableKeyRotation", "PendingWindowInDays", "Tags"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Schedule the deletion: KMS deletes no key at once."""
        days = properties.get("PendingWindowInDays", _DELETION_DELAY_DAYS)
        with unless_gone("NotFoundException", "KMSInvalidStateException"):
            context.client("kms").schedule_key_deletion(KeyId=physical.ref, PendingWindowInDays=days)

    def _set_state(self, kms: Any, key_id: str, properties: Mapping[str, Any]) -> None:
        (kms.enable_key if properties.get("Enabled", True) else kms.disable_key)(KeyId=key_id)
        rotated = properties.get("EnableKeyRotation", False)
        (kms.enable_key_rotation if rotated else kms.disable_key_rotation)(KeyId=key_id)


class Alias(Model):
    """AWS::KMS::Alias."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the alias."""
        name = properties.pop("AliasName")
        context.client("kms").create_alias(AliasName=name, TargetKeyId=properties.pop("TargetKeyId"))
        return Physical(name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Let the alias stand for another key."""
        if "TargetKeyId" in changed:
            context.client("kms").update_alias(AliasName=physical.ref, TargetKeyId=properties["TargetKeyId"])
            changed.remove("TargetKeyId")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the alias."""
        with unless_gone("NotFoundException"):
            context.client("kms").delete_alias(AliasName=physical.ref)


MODELS: Mapping[str, Model] = {"AWS::KMS::Alias": Alias(), "AWS::KMS::Key": Key()}
