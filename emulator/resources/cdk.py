"""What the CDK adds to templates. Its functions are for Node, which does not run here: models do what they do."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.common import unless_gone
from emulator.resources.model import Context, Model, Physical, Properties
from emulator.resources.security_groups import DEFAULT_EGRESS, EGRESS, INGRESS, Direction, permission

_AUTO_DELETE_TAG = {"Key": "aws-cdk:auto-delete-objects", "Value": "true"}


class AutoDeleteObjects(Model):
    """Custom::S3AutoDeleteObjects: what CDK's Node function does, which is not run here.

    Before its bucket is deleted it empties it, if the bucket still has CDK's tag.
    """

    properties = ("BucketName", "ServiceToken")

    def create(self, context: Context, properties: Properties) -> Physical:
        context.client("lambda").get_function(FunctionName=properties["ServiceToken"])
        context.client("s3").head_bucket(Bucket=properties["BucketName"])
        return Physical(properties["BucketName"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        s3 = context.client("s3")
        with unless_gone("NoSuchBucket", "NoSuchTagSet"):
            if _AUTO_DELETE_TAG not in s3.get_bucket_tagging(Bucket=physical.ref)["TagSet"]:
                return
            for page in s3.get_paginator("list_object_versions").paginate(Bucket=physical.ref):
                objects = [
                    {"Key": each["Key"], "VersionId": each["VersionId"]}
                    for each in (*page.get("Versions", []), *page.get("DeleteMarkers", []))
                ]
                if objects:
                    s3.delete_objects(Bucket=physical.ref, Delete={"Objects": objects})


class RestrictedDefaultGroup(Model):
    """Custom::VpcRestrictDefaultSG: what CDK's Node function does, which is not run here.

    It removes the rules that EC2 gives to the default group of each VPC, and restores them when it is deleted.
    """

    properties = ("Account", "DefaultSecurityGroupId", "ServiceToken")

    mutable = None

    def create(self, context: Context, properties: Properties) -> Physical:
        context.client("lambda").get_function(FunctionName=properties["ServiceToken"])
        self._restrict(context, properties)
        return Physical(context.name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        self.delete(context, physical, dict(context.previous))
        self._restrict(context, properties)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        for direction, rule in self._rules(properties):
            direction.authorize(context.client("ec2"), properties["DefaultSecurityGroupId"], rule)

    def _restrict(self, context: Context, properties: Mapping[str, Any]) -> None:
        """Remove the rules; those that are gone already are no error."""
        for direction, rule in self._rules(properties):
            with unless_gone("InvalidPermission.NotFound"):
                group_id = properties["DefaultSecurityGroupId"]
                direction.revoke(context.client("ec2"), group_id, IpPermissions=[permission(rule)])

    def _rules(self, properties: Mapping[str, Any]) -> list[tuple[Direction, dict[str, Any]]]:
        among_members = {"IpProtocol": "-1", "SourceSecurityGroupId": properties["DefaultSecurityGroupId"]}
        return [(INGRESS, among_members), (EGRESS, DEFAULT_EGRESS)]


class Metadata(Model):
    """AWS::CDK::Metadata: which constructs an app has. AWS makes nothing of it, nor does this."""

    properties = ("Analytics",)
    mutable = properties

    def create(self, context: Context, properties: Properties) -> Physical:
        return Physical(context.name)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Nothing is left of one."""


MODELS: Mapping[str, Model] = {
    "AWS::CDK::Metadata": Metadata(),
    "Custom::S3AutoDeleteObjects": AutoDeleteObjects(),
    "Custom::VpcRestrictDefaultSG": RestrictedDefaultGroup(),
}
