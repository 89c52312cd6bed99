"""AWS Identity and Access Management: roles, policies and instance profiles."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from emulator.resources.common import removed_tags, short_name, taken, undone_on_failure, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties

_ROLE_NAME_LENGTH = 64
_POLICY_NAME_LENGTH = 128


class Role(Model):
    """AWS::IAM::Role."""

    mutable = ("AssumeRolePolicyDocument", "ManagedPolicyArns", "Policies", "Tags")
    properties = ("Path", "PermissionsBoundary", "RoleName", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        iam = context.client("iam")
        role = iam.create_role(
            RoleName=properties.get("RoleName", short_name(context, _ROLE_NAME_LENGTH)),
            AssumeRolePolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"]),
            **taken(properties, ("Path", "PermissionsBoundary", "Tags")),
        )["Role"]
        physical = Physical(role["RoleName"], {"Arn": role["Arn"]})
        with undone_on_failure(lambda: self.delete(context, physical, properties)):
            self._change_policies(iam, physical.ref, {}, properties)
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        iam, name = context.client("iam"), physical.ref
        document = json.dumps(properties["AssumeRolePolicyDocument"])
        iam.update_assume_role_policy(RoleName=name, PolicyDocument=document)
        self._change_policies(iam, name, context.previous, properties)
        if gone := removed_tags(context, properties):
            iam.untag_role(RoleName=name, TagKeys=gone)
        iam.tag_role(RoleName=name, Tags=properties.get("Tags", []))
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the role and its own policies; one that somebody else gave to it makes IAM refuse."""
        iam = context.client("iam")
        self._change_policies(iam, physical.ref, properties, {})
        iam.delete_role(RoleName=physical.ref)

    def _change_policies(self, iam: Any, name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        old_arns, new_arns = (each.get("ManagedPolicyArns", []) for each in (old, new))
        for arn in _only_in(old_arns, new_arns):
            with unless_gone("NoSuchEntity"):
                iam.detach_role_policy(RoleName=name, PolicyArn=arn)
        for arn in _only_in(new_arns, old_arns):
            iam.attach_role_policy(RoleName=name, PolicyArn=arn)
        old_documents, new_documents = (
            {policy["PolicyName"]: policy["PolicyDocument"] for policy in each.get("Policies", [])}
            for each in (old, new)
        )
        for policy_name in _only_in(old_documents, new_documents):
            with unless_gone("NoSuchEntity"):
                iam.delete_role_policy(RoleName=name, PolicyName=policy_name)
        for policy_name, document in new_documents.items():
            if document != old_documents.get(policy_name):
                iam.put_role_policy(RoleName=name, PolicyName=policy_name, PolicyDocument=json.dumps(document))


class Policy(Model):
    """AWS::IAM::Policy: an inline policy of roles."""

    properties = mutable = ("PolicyDocument", "PolicyName", "Roles")

    def create(self, context: Context, properties: Properties) -> Physical:
        physical = Physical(context.name)
        with undone_on_failure(lambda: self.delete(context, physical, properties)):
            self._put(context, properties)
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Write the policy again, and take it from those whom it is not for any more."""
        self._put(context, properties)
        previous = dict(context.previous)
        if previous["PolicyName"] == properties["PolicyName"]:
            previous["Roles"] = _only_in(previous["Roles"], properties["Roles"])
        self.delete(context, physical, previous)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        for role in properties["Roles"]:
            with unless_gone("NoSuchEntity"):
                context.client("iam").delete_role_policy(RoleName=role, PolicyName=properties["PolicyName"])

    def _put(self, context: Context, properties: Mapping[str, Any]) -> None:
        document = json.dumps(properties["PolicyDocument"])
        for role in properties["Roles"]:
            context.client("iam").put_role_policy(
                RoleName=role, PolicyName=properties["PolicyName"], PolicyDocument=document
            )


class ManagedPolicy(Model):
    """AWS::IAM::ManagedPolicy, attached to nothing by itself."""

    properties = ("Description", "ManagedPolicyName", "Path", "PolicyDocument")
    mutable = ("PolicyDocument",)

    def create(self, context: Context, properties: Properties) -> Physical:
        made = context.client("iam").create_policy(
            PolicyName=properties.get("ManagedPolicyName", short_name(context, _POLICY_NAME_LENGTH)),
            PolicyDocument=json.dumps(properties["PolicyDocument"]),
            **taken(properties, ("Description", "Path")),
        )
        return Physical(made["Policy"]["Arn"])

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        iam = context.client("iam")
        document = json.dumps(properties["PolicyDocument"])
        old = iam.get_policy(PolicyArn=physical.ref)["Policy"]["DefaultVersionId"]
        iam.create_policy_version(PolicyArn=physical.ref, PolicyDocument=document, SetAsDefault=True)
        iam.delete_policy_version(PolicyArn=physical.ref, VersionId=old)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the policy; IAM refuses one that is attached."""
        context.client("iam").delete_policy(PolicyArn=physical.ref)


class InstanceProfile(Model):
    """AWS::IAM::InstanceProfile."""

    properties = ("InstanceProfileName", "Path", "Roles")

    def create(self, context: Context, properties: Properties) -> Physical:
        iam = context.client("iam")
        name = properties.get("InstanceProfileName", short_name(context, _POLICY_NAME_LENGTH))
        iam.create_instance_profile(InstanceProfileName=name, **taken(properties, ("Path",)))
        with undone_on_failure(lambda: iam.delete_instance_profile(InstanceProfileName=name)):
            for role in properties["Roles"]:
                iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return Physical(name)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the profile; the role stays."""
        iam = context.client("iam")
        for role in properties["Roles"]:
            with unless_gone("NoSuchEntity"):
                iam.remove_role_from_instance_profile(InstanceProfileName=physical.ref, RoleName=role)
        iam.delete_instance_profile(InstanceProfileName=physical.ref)


def _only_in(names: Iterable[str], others: Iterable[str]) -> list[str]:
    return [name for name in names if name not in set(others)]


MODELS: Mapping[str, Model] = {
    "AWS::IAM::InstanceProfile": InstanceProfile(),
    "AWS::IAM::ManagedPolicy": ManagedPolicy(),
    "AWS::IAM::Policy": Policy(),
    "AWS::IAM::Role": Role(),
}
