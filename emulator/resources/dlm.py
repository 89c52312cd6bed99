"""Amazon Data Lifecycle Manager: policies of snapshots."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import removed_tags, taken, taken_tags, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


class LifecyclePolicy(Model):
    """AWS::DLM::LifecyclePolicy, a custom one."""

    _UPDATABLE = ("Description", "ExecutionRoleArn", "PolicyDetails", "State")

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the policy."""
        dlm = context.client("dlm")
        policy = dlm.create_lifecycle_policy(Tags=taken_tags(properties), **taken(properties, self._UPDATABLE))
        arn = dlm.get_lifecycle_policy(PolicyId=policy["PolicyId"])["Policy"]["PolicyArn"]
        return Physical(policy["PolicyId"], {"Arn": arn, "Id": policy["PolicyId"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the policy and its tags."""
        dlm = context.client("dlm")
        if "Tags" in changed:
            if gone := removed_tags(context, properties):
                dlm.untag_resource(ResourceArn=physical.attributes["Arn"], TagKeys=gone)
            if tags := taken_tags(properties):
                dlm.tag_resource(ResourceArn=physical.attributes["Arn"], Tags=tags)
        if request := taken(properties, changed.intersection(self._UPDATABLE)):
            dlm.update_lifecycle_policy(PolicyId=physical.ref, **request)
        changed -= {*self._UPDATABLE, "Tags"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the policy."""
        with unless_gone("ResourceNotFoundException"):
            context.client("dlm").delete_lifecycle_policy(PolicyId=physical.ref)


MODELS: Mapping[str, Model] = {"AWS::DLM::LifecyclePolicy": LifecyclePolicy()}
