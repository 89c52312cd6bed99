"""Security groups and their rules."""

from __future__ import annotations

from typing import Any

from emulator.aws import ACCOUNT
from tests.emulator.account import Account, Resource
from tests.emulator.lives.case import Case, case


def _rules(account: Account, group_id: str) -> list[tuple[Any, ...]]:
    found = account.client("ec2").describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group_id]}])
    return sorted(
        (
            each["IsEgress"],
            each["IpProtocol"],
            each["FromPort"],
            each.get("CidrIpv4") or each["ReferencedGroupInfo"]["GroupId"],
            each.get("Description"),
        )
        for each in found["SecurityGroupRules"]
    )


@case("AWS::EC2::SecurityGroup")
def _security_group(account: Account) -> Case:
    def look(group: Resource) -> Any:
        account.client("ec2").describe_security_groups(GroupIds=[group.ref])
        return _rules(account, group.ref)

    def rule(port: int, description: str) -> dict[str, Any]:
        return {
            "CidrIp": "10.0.0.0/16",
            "Description": description,
            "FromPort": port,
            "IpProtocol": "tcp",
            "ToPort": port,
        }

    return Case(
        properties={
            "GroupDescription": "x",
            "VpcId": account.vpc().ref,
            "SecurityGroupIngress": [rule(1, "one"), rule(2, "two")],
            # As EC2's own rule for a new group, which CloudFormation takes away before it adds this one.
            "SecurityGroupEgress": [{"CidrIp": "0.0.0.0/0", "IpProtocol": "-1"}],
        },
        look=look,
        made=[
            (False, "tcp", 1, "10.0.0.0/16", "one"),
            (False, "tcp", 2, "10.0.0.0/16", "two"),
            (True, "-1", -1, "0.0.0.0/0", None),
        ],
        changes={"SecurityGroupIngress": [rule(1, "uno")], "SecurityGroupEgress": [rule(3, "three")]},
        changed=[(False, "tcp", 1, "10.0.0.0/16", "uno"), (True, "tcp", 3, "10.0.0.0/16", "three")],
        attributes={"GroupId", "Id", "VpcId"},
    )


@case("AWS::EC2::SecurityGroupIngress")
def _ingress(account: Account) -> Case:
    group = account.create("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId=account.vpc().ref)
    egress = (True, "-1", -1, "0.0.0.0/0", None)

    def look(_: Resource) -> Any:
        return [rule for rule in _rules(account, group.ref) if rule != egress]

    return Case(
        properties={
            "GroupId": group.ref,
            "IpProtocol": "-1",
            "SourceSecurityGroupId": group.ref,
            "Description": "members",
        },
        look=look,
        made=[(False, "-1", -1, group.ref, "members")],
        changes={"Description": "among members"},
        changed=[(False, "-1", -1, group.ref, "among members")],
        attributes={"Id"},
    )


@case("AWS::EC2::SecurityGroupEgress")
def _egress(account: Account) -> Case:
    group = account.create("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId=account.vpc().ref)

    def look(_: Resource) -> Any:
        return [rule for rule in _rules(account, group.ref) if rule[1] == "tcp"]

    return Case(
        properties={"GroupId": group.ref, "IpProtocol": "tcp", "FromPort": 1, "ToPort": 2, "CidrIp": "10.0.0.0/8"},
        look=look,
        made=[(True, "tcp", 1, "10.0.0.0/8", None)],
        changes={"Description": "out"},
        changed=[(True, "tcp", 1, "10.0.0.0/8", "out")],
        attributes={"Id"},
    )


@case("Custom::VpcRestrictDefaultSG")
def _restricted_default_group(account: Account) -> Case:
    group_id = account.vpc()["DefaultSecurityGroup"]
    open_rules = [(False, "-1", -1, group_id, None), (True, "-1", -1, "0.0.0.0/0", None)]

    def look(_: Resource) -> Any:
        rules = _rules(account, group_id)
        return [] if rules == open_rules else ["restricted", *rules]

    return Case(
        properties={
            "ServiceToken": account.function()["Arn"],
            "DefaultSecurityGroupId": group_id,
            "Account": ACCOUNT,
        },
        look=look,
        made=["restricted"],
        changes={},
        changed=["restricted"],
        attributes=set(),
    )
