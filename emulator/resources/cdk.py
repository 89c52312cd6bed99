"""What the CDK adds to templates. Its functions are for Node, which does not run here: models do what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.common import look_for_provider, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties
from emulator.resources.security_groups import DEFAULT_EGRESS, EGRESS, INGRESS, Direction

_AUTO_DELETE_TAG = {"Key": "aws-cdk:auto-delete-objects", "Value": "true"}


class Metadata(Model):
    """AWS::CDK::Metadata: nothing but a list of the constructs in use."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make nothing."""
        properties.pop("Analytics")
        return Physical(context.name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change nothing."""
        changed.discard("Analytics")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete nothing."""


class AutoDeleteObjects(Model):
    """Custom::S3AutoDeleteObjects: what CDK's Node function does, which is not run here.

    Before its bucket is deleted it empties it, if the bucket still has CDK's tag.
    """

    def create(self, context: Context, properties: Properties) -> Physical:
        """Do nothing but look for the function and the bucket."""
        look_for_provider(context, properties)
        bucket = properties.pop("BucketName")
        context.client("s3").head_bucket(Bucket=bucket)
        return Physical(bucket)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Stand for another bucket; CloudFormation then deletes this resource of the old one, which empties that."""
        changed -= {"ServiceToken", "BucketName"}
        return Physical(properties["BucketName"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete every version of every object."""
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

    def create(self, context: Context, properties: Properties) -> Physical:
        """Remove the rules; those that are gone already are no error."""
        look_for_provider(context, properties)
        self._restrict(context, taken(properties, ("DefaultSecurityGroupId", "Account")))
        return Physical(context.name)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Restore the rules of one group and remove those of another."""
        if "DefaultSecurityGroupId" in changed:
            self._restore(context, context.previous)
            self._restrict(context, properties)
        changed -= {"ServiceToken", "DefaultSecurityGroupId", "Account"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Restore the rules."""
        self._restore(context, properties)

    def _restrict(self, context: Context, properties: Mapping[str, Any]) -> None:
        group_id = properties["DefaultSecurityGroupId"]
        for direction, rule in self._rules(properties):
            with unless_gone("InvalidPermission.NotFound"):
                direction.revoke(context.client("ec2"), group_id, [rule])

    def _restore(self, context: Context, properties: Mapping[str, Any]) -> None:
        for direction, rule in self._rules(properties):
            direction.authorize(context.client("ec2"), properties["DefaultSecurityGroupId"], rule)

    def _rules(self, properties: Mapping[str, Any]) -> list[tuple[Direction, dict[str, Any]]]:
        among_members = {"IpProtocol": "-1", "SourceSecurityGroupId": properties["DefaultSecurityGroupId"]}
        return [(INGRESS, among_members), (EGRESS, DEFAULT_EGRESS)]


MODELS: Mapping[str, Model] = {
    "AWS::CDK::Metadata": Metadata(),
    "Custom::S3AutoDeleteObjects": AutoDeleteObjects(),
    "Custom::VpcRestrictDefaultSG": RestrictedDefaultGroup(),
}
