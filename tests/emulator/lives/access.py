"""Who may do what: roles, policies, keys."""

from __future__ import annotations

from typing import Any

from tests.emulator.account import Account, Resource, statement, tags, trust
from tests.emulator.lives.case import EC2_READ, S3_READ, Case, case, part


@case("AWS::IAM::Role")
def _role(account: Account) -> Case:
    iam = account.client("iam")

    def look(role: Resource) -> Any:
        found = iam.get_role(RoleName=role.ref)["Role"]
        attached = iam.list_attached_role_policies(RoleName=role.ref)["AttachedPolicies"]
        return (
            part(found, "Path", "Description", "MaxSessionDuration", "AssumeRolePolicyDocument"),
            [each["PolicyName"] for each in attached],
            iam.list_role_policies(RoleName=role.ref)["PolicyNames"],
            iam.list_role_tags(RoleName=role.ref)["Tags"],
        )

    made = {
        "Path": "/x/",
        "Description": "d",
        "MaxSessionDuration": 7200,
        "AssumeRolePolicyDocument": trust("lambda"),
    }
    changed = {
        "Path": "/x/",
        "Description": "",
        "MaxSessionDuration": 3600,
        "AssumeRolePolicyDocument": trust("ec2"),
    }
    return Case(
        properties={
            **made,
            "ManagedPolicyArns": ["arn:aws:iam::aws:policy/ReadOnlyAccess"],
            "Policies": [{"PolicyName": "one", "PolicyDocument": S3_READ}],
            "Tags": tags(Name="a"),
        },
        look=look,
        made=(made, ["ReadOnlyAccess"], ["one"], tags(Name="a")),
        changes={
            "AssumeRolePolicyDocument": trust("ec2"),
            "Description": None,
            "ManagedPolicyArns": ["arn:aws:iam::aws:policy/PowerUserAccess"],
            "MaxSessionDuration": None,
            "Policies": [{"PolicyName": "two", "PolicyDocument": S3_READ}],
            "Tags": None,
        },
        changed=(changed, ["PowerUserAccess"], ["two"], []),
        attributes={"Arn", "RoleId"},
    )


@case("AWS::IAM::Policy")
def _policy(account: Account) -> Case:
    first, second = account.role().ref, account.role().ref
    iam = account.client("iam")

    def look(_: Resource) -> Any:
        return [
            (role, iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"])
            for role in (first, second)
            for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
        ]

    return Case(
        properties={"PolicyName": "p", "PolicyDocument": S3_READ, "Roles": [first]},
        look=look,
        made=[(first, S3_READ)],
        changes={"PolicyDocument": EC2_READ, "Roles": [second]},
        changed=[(second, EC2_READ)],
        attributes={"Id"},
    )


@case("AWS::KMS::Key")
def _key(account: Account) -> Case:
    kms = account.client("kms")

    def look(key: Resource) -> Any:
        found = kms.describe_key(KeyId=key.ref)["KeyMetadata"]
        if found["KeyState"] == "PendingDeletion":  # KMS deletes no key at once
            return None
        rotated = kms.get_key_rotation_status(KeyId=key.ref)["KeyRotationEnabled"]
        return found["Description"], found["KeyState"], rotated, kms.list_resource_tags(KeyId=key.ref)["Tags"]

    policy = statement(Action="kms:*", Principal="*", Resource="*")
    return Case(
        properties={"Description": "d", "EnableKeyRotation": True, "KeyPolicy": policy, "Tags": tags(Name="a")},
        look=look,
        made=("d", "Enabled", True, [{"TagKey": "Name", "TagValue": "a"}]),
        changes={"Description": None, "EnableKeyRotation": None, "Tags": None},
        changed=("", "Enabled", False, []),
        attributes={"Arn", "KeyId"},
    )
