"""AWS Identity and Access Management: roles, policies, instance profiles and identity providers."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from emulator.resources.api import Api
from emulator.resources.common import renamed, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


def _role(properties: Properties) -> Properties:
    return {**properties, "AssumeRolePolicyDocument": json.dumps(properties["AssumeRolePolicyDocument"])}


def _set_policies(context: Context, role: Physical, old: Properties, new: Properties) -> None:
    iam, name = context.client("iam"), role.ref
    old_arns, new_arns = (each.get("ManagedPolicyArns", []) for each in (old, new))
    for arn in _only_in(old_arns, new_arns):
        with unless_gone("NoSuchEntity"):
            iam.detach_role_policy(RoleName=name, PolicyArn=arn)
    for arn in _only_in(new_arns, old_arns):
        iam.attach_role_policy(RoleName=name, PolicyArn=arn)
    old_documents, new_documents = (
        {policy["PolicyName"]: policy["PolicyDocument"] for policy in each.get("Policies", [])} for each in (old, new)
    )
    for policy_name in _only_in(old_documents, new_documents):
        with unless_gone("NoSuchEntity"):
            iam.delete_role_policy(RoleName=name, PolicyName=policy_name)
    for policy_name, document in new_documents.items():
        if document != old_documents.get(policy_name):
            iam.put_role_policy(RoleName=name, PolicyName=policy_name, PolicyDocument=json.dumps(document))


def _modify_role(context: Context, role: Physical, properties: Properties, changed: set[str]) -> None:
    """Set trust and boundary of a role."""
    iam = context.client("iam")
    if "AssumeRolePolicyDocument" in changed:
        document = json.dumps(properties["AssumeRolePolicyDocument"])
        iam.update_assume_role_policy(RoleName=role.ref, PolicyDocument=document)
    if "PermissionsBoundary" in changed and "PermissionsBoundary" in properties:
        iam.put_role_permissions_boundary(RoleName=role.ref, PermissionsBoundary=properties["PermissionsBoundary"])
    elif "PermissionsBoundary" in changed:
        iam.delete_role_permissions_boundary(RoleName=role.ref)


def _delete_role(context: Context, role: Physical, properties: Properties) -> None:
    """Delete a role and its own policies; one that somebody else gave to it makes IAM refuse."""
    _set_policies(context, role, properties, {})
    context.client("iam").delete_role(RoleName=role.ref)


def _grant(context: Context, policy: Physical, old: Properties, new: Properties) -> None:
    """Write an inline policy of roles, and take it from roles that the template no longer names."""
    name, document = new["PolicyName"], json.dumps(new["PolicyDocument"])
    for role in new["Roles"]:
        context.client("iam").put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=document)
    if old:
        kept = new["Roles"] if old["PolicyName"] == name else []
        _revoke(context, policy, {**old, "Roles": _only_in(old["Roles"], kept)})


def _revoke(context: Context, _: Physical, properties: Properties) -> None:
    for role in properties["Roles"]:
        with unless_gone("NoSuchEntity"):
            context.client("iam").delete_role_policy(RoleName=role, PolicyName=properties["PolicyName"])


def _create_policy(context: Context, request: Properties) -> Properties:
    request["PolicyDocument"] = json.dumps(request["PolicyDocument"])
    return {"PolicyArn": context.client("iam").create_policy(**request)["Policy"]["Arn"]}


def _replace_document(context: Context, policy: Physical, properties: Properties, _: set[str]) -> None:
    iam = context.client("iam")
    document = json.dumps(properties["PolicyDocument"])
    old = iam.get_policy(PolicyArn=policy.ref)["Policy"]["DefaultVersionId"]
    iam.create_policy_version(PolicyArn=policy.ref, PolicyDocument=document, SetAsDefault=True)
    iam.delete_policy_version(PolicyArn=policy.ref, VersionId=old)


def _add_roles(context: Context, profile: Physical, _: Properties, properties: Properties) -> None:
    for role in properties["Roles"]:
        context.client("iam").add_role_to_instance_profile(InstanceProfileName=profile.ref, RoleName=role)


def _delete_profile(context: Context, profile: Physical, properties: Properties) -> None:
    """Delete an instance profile; its roles stay."""
    iam = context.client("iam")
    for role in properties["Roles"]:
        with unless_gone("NoSuchEntity"):
            iam.remove_role_from_instance_profile(InstanceProfileName=profile.ref, RoleName=role)
    iam.delete_instance_profile(InstanceProfileName=profile.ref)


def _only_in(names: Iterable[str], others: Iterable[str]) -> list[str]:
    return [name for name in names if name not in set(others)]


_POLICY = ("PolicyDocument", "PolicyName", "Roles")

MODELS: Mapping[str, Model] = {
    "AWS::IAM::InstanceProfile": Api(
        "iam",
        "instance_profile",
        "InstanceProfileName",
        name=("InstanceProfileName", 128),
        later=("Roles",),
        configuration=_add_roles,
        deletion=_delete_profile,
    ),
    "AWS::IAM::ManagedPolicy": Api(  # attached to nothing by itself
        "iam",
        "policy",
        "PolicyArn",
        name=("ManagedPolicyName", 128),
        parameters=lambda given: renamed(given, ManagedPolicyName="PolicyName"),
        creation=_create_policy,
        modification=_replace_document,
        mutable=("PolicyDocument",),
    ),
    "AWS::IAM::OIDCProvider": Api(
        "iam",
        "open_id_connect_provider",
        "OpenIDConnectProviderArn",
        {"Arn": "OpenIDConnectProviderArn"},
        parameters=lambda given: renamed(given, ClientIdList="ClientIDList"),
        mutable=("Tags",),
    ),
    "AWS::IAM::Policy": Api(
        "iam",
        "inline_policy",
        creation=lambda context, _: {"InlinePolicyId": context.name},
        configuration=_grant,
        deletion=_revoke,
        properties=_POLICY,
        mutable=_POLICY,
    ),
    "AWS::IAM::Role": Api(
        "iam",
        "role",
        "RoleName",
        {"Arn": "Arn"},
        name=("RoleName", 64),
        parameters=_role,
        later=("ManagedPolicyArns", "Policies"),
        configuration=_set_policies,
        modification=_modify_role,
        deletion=_delete_role,
        mutable=("AssumeRolePolicyDocument", "ManagedPolicyArns", "PermissionsBoundary", "Policies", "Tags"),
    ),
}
