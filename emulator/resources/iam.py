"""AWS Identity and Access Management: roles, policies and instance profiles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from emulator.resources.common import removed_tags, short_name, taken, undone_on_failure, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties

_ROLE_NAME_LENGTH = 64
_POLICY_NAME_LENGTH = 128

_PRINCIPALS = {"Groups": "group", "Roles": "role", "Users": "user"}
"""Who a policy is for: property of a policy, and what the API's actions call it."""


class Role(Model):
    """AWS::IAM::Role."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the role with its policies."""
        iam = context.client("iam")
        request = taken(properties, ("Description", "MaxSessionDuration", "Path", "PermissionsBoundary", "Tags"))
        role = iam.create_role(
            RoleName=properties.pop("RoleName", short_name(context, _ROLE_NAME_LENGTH)),
            AssumeRolePolicyDocument=json.dumps(properties.pop("AssumeRolePolicyDocument")),
            **request,
        )["Role"]
        policies = taken(properties, ("ManagedPolicyArns", "Policies"))
        physical = Physical(role["RoleName"], {"Arn": role["Arn"], "RoleId": role["RoleId"]})
        with undone_on_failure(lambda: self.delete(context, physical, policies)):
            self._change_policies(iam, physical.ref, {}, policies)
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change everything but name and path."""
        iam = context.client("iam")
        name = physical.ref
        if "AssumeRolePolicyDocument" in changed:
            document = json.dumps(properties["AssumeRolePolicyDocument"])
            iam.update_assume_role_policy(RoleName=name, PolicyDocument=document)
        if changed & {"Description", "MaxSessionDuration"}:
            iam.update_role(
                RoleName=name,
                Description=properties.get("Description", ""),
                MaxSessionDuration=properties.get("MaxSessionDuration", 3600),
            )
        if "PermissionsBoundary" in changed:
            if "PermissionsBoundary" in properties:
                boundary = properties["PermissionsBoundary"]
                iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=boundary)
            else:
                iam.delete_role_permissions_boundary(RoleName=name)
        self._change_policies(iam, name, context.previous, properties)
        if "Tags" in changed:
            if gone := removed_tags(context, properties):
                iam.untag_role(RoleName=name, TagKeys=gone)
            iam.tag_role(RoleName=name, Tags=properties.get("Tags", []))
        changed -= {
            "AssumeRolePolicyDocument",
            "Description",
            "ManagedPolicyArns",
            "MaxSessionDuration",
            "PermissionsBoundary",
            "Policies",
            "Tags",
        }
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the role and its own policies; one that somebody else gave to it makes IAM refuse."""
        iam = context.client("iam")
        with unless_gone("NoSuchEntity"):
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
    """AWS::IAM::Policy: an inline policy of roles, users and groups."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Write the policy to everybody whom it is for."""
        request = taken(properties, ("PolicyName", "PolicyDocument", *_PRINCIPALS))
        physical = Physical(context.name, {"Id": context.name})
        with undone_on_failure(lambda: self.delete(context, physical, request)):
            self._put(context, request)
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Write the policy again, and take it from those whom it is not for any more."""
        self._put(context, properties)
        if "PolicyName" in changed:
            self.delete(context, physical, dict(context.previous))
        else:
            gone = {
                kind: list(_only_in(context.previous.get(kind, []), properties.get(kind, []))) for kind in _PRINCIPALS
            }
            self.delete(context, physical, {"PolicyName": properties["PolicyName"], **gone})
        changed -= {"PolicyName", "PolicyDocument", *_PRINCIPALS}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Take the policy from everybody."""
        iam = context.client("iam")
        for kind, principal in _PRINCIPALS.items():
            for name in properties.get(kind, []):
                with unless_gone("NoSuchEntity"):
                    action = getattr(iam, f"delete_{principal}_policy")
                    action(**{f"{principal.capitalize()}Name": name}, PolicyName=properties["PolicyName"])

    def _put(self, context: Context, properties: Mapping[str, Any]) -> None:
        iam = context.client("iam")
        document = json.dumps(properties["PolicyDocument"])
        for kind, principal in _PRINCIPALS.items():
            for name in properties.get(kind, []):
                action = getattr(iam, f"put_{principal}_policy")
                action(
                    **{f"{principal.capitalize()}Name": name},
                    PolicyName=properties["PolicyName"],
                    PolicyDocument=document,
                )


class ManagedPolicy(Model):
    """AWS::IAM::ManagedPolicy."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the policy and attach it."""
        iam = context.client("iam")
        arn = iam.create_policy(
            PolicyName=properties.pop("ManagedPolicyName", short_name(context, _POLICY_NAME_LENGTH)),
            PolicyDocument=json.dumps(properties.pop("PolicyDocument")),
            **taken(properties, ("Description", "Path")),
        )["Policy"]["Arn"]
        principals = taken(properties, _PRINCIPALS)
        with undone_on_failure(lambda: self.delete(context, Physical(arn), principals)):
            self._attach(iam, arn, {}, principals)
        return self._physical(iam, arn)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the document, as a new default version, and whom the policy is attached to."""
        iam = context.client("iam")
        if "PolicyDocument" in changed:
            document = json.dumps(properties["PolicyDocument"])
            old = iam.get_policy(PolicyArn=physical.ref)["Policy"]["DefaultVersionId"]
            iam.create_policy_version(PolicyArn=physical.ref, PolicyDocument=document, SetAsDefault=True)
            iam.delete_policy_version(PolicyArn=physical.ref, VersionId=old)
        self._attach(iam, physical.ref, context.previous, properties)
        changed -= {"PolicyDocument", *_PRINCIPALS}
        return self._physical(iam, physical.ref)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Detach the policy from those in its template, and delete it."""
        iam = context.client("iam")
        with unless_gone("NoSuchEntity"):
            self._attach(iam, physical.ref, properties, {})
            iam.delete_policy(PolicyArn=physical.ref)

    def _attach(self, iam: Any, arn: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        for kind, principal in _PRINCIPALS.items():
            old_names, new_names = (each.get(kind, []) for each in (old, new))
            for name in _only_in(old_names, new_names):
                with unless_gone("NoSuchEntity"):
                    action = getattr(iam, f"detach_{principal}_policy")
                    action(**{f"{principal.capitalize()}Name": name}, PolicyArn=arn)
            for name in _only_in(new_names, old_names):
                action = getattr(iam, f"attach_{principal}_policy")
                action(**{f"{principal.capitalize()}Name": name}, PolicyArn=arn)

    def _physical(self, iam: Any, arn: str) -> Physical:
        policy = iam.get_policy(PolicyArn=arn)["Policy"]
        attributes = {
            "PolicyArn": arn,
            **{key: policy[key] for key in ("AttachmentCount", "DefaultVersionId", "IsAttachable", "PolicyId")},
            "CreateDate": policy["CreateDate"].isoformat(),
            "PermissionsBoundaryUsageCount": policy.get("PermissionsBoundaryUsageCount", 0),
            "UpdateDate": policy["UpdateDate"].isoformat(),
        }
        return Physical(arn, attributes)


class InstanceProfile(Model):
    """AWS::IAM::InstanceProfile."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the profile with its role."""
        iam = context.client("iam")
        name = properties.pop("InstanceProfileName", short_name(context, _POLICY_NAME_LENGTH))
        request = taken(properties, ("Path",))
        arn = iam.create_instance_profile(InstanceProfileName=name, **request)["InstanceProfile"]["Arn"]
        roles = taken(properties, ("Roles",))
        physical = Physical(name, {"Arn": arn})
        with undone_on_failure(lambda: self.delete(context, physical, roles)):
            self._change_roles(iam, name, [], roles.get("Roles", []))
        return physical

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the role."""
        self._change_roles(
            context.client("iam"), physical.ref, context.previous.get("Roles", []), properties.get("Roles", [])
        )
        changed.discard("Roles")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the profile; the role stays."""
        iam = context.client("iam")
        with unless_gone("NoSuchEntity"):
            self._change_roles(iam, physical.ref, properties.get("Roles", []), [])
            iam.delete_instance_profile(InstanceProfileName=physical.ref)

    def _change_roles(self, iam: Any, name: str, old: list[str], new: list[str]) -> None:
        for role in _only_in(old, new):
            with unless_gone("NoSuchEntity"):
                iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
        for role in _only_in(new, old):
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)


def _only_in(names: Iterable[str], others: Iterable[str]) -> list[str]:
    return [name for name in names if name not in set(others)]


MODELS: Mapping[str, Model] = {
    "AWS::IAM::InstanceProfile": InstanceProfile(),
    "AWS::IAM::ManagedPolicy": ManagedPolicy(),
    "AWS::IAM::Policy": Policy(),
    "AWS::IAM::Role": Role(),
}
