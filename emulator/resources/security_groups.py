"""Security groups and their rules."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from emulator.resources.api import EC2
from emulator.resources.common import renamed, taken, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError

DEFAULT_EGRESS = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
"""The rule that EC2 gives to each new group; CloudFormation removes it once a template has rules of its own."""

_PEERS = {
    "CidrIp": ("IpRanges", "CidrIp"),
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
}
"""The other side of a rule: property in a template, list of an IpPermission in the API, and member of its items."""

_RULE = ("Description", "FromPort", "IpProtocol", "ToPort", *_PEERS)


class Direction:
    """Ingress or egress: the EC2 actions for it, and the rules that a group has without any in its template."""

    def __init__(self, name: str, implied: list[dict[str, Any]]) -> None:
        self.rules_property: Final = f"SecurityGroup{name.capitalize()}"
        self._name = name
        self._implied = implied

    def authorize(self, ec2: Any, group_id: str, rule: Mapping[str, Any]) -> str:
        """Add a rule and return its id."""
        action = getattr(ec2, f"authorize_security_group_{self._name}")
        rule_id: str = action(GroupId=group_id, IpPermissions=[permission(rule)])["SecurityGroupRules"][0][
            "SecurityGroupRuleId"
        ]
        return rule_id

    def adopt(self, ec2: Any, group_id: str, rule: Mapping[str, Any]) -> str | None:
        """Return the id of the rule that EC2 gave to the group, if it is this one: CloudFormation takes it over."""
        if not any(implied.items() <= rule.items() for implied in self._implied):
            return None
        filters = [{"Name": "group-id", "Values": [group_id]}]
        for existing in ec2.describe_security_group_rules(Filters=filters)["SecurityGroupRules"]:
            if existing["IsEgress"] and existing["IpProtocol"] == "-1" and existing.get("CidrIpv4") == "0.0.0.0/0":
                return str(existing["SecurityGroupRuleId"])
        return None

    def revoke(self, ec2: Any, group_id: str, **rules: Any) -> None:
        """Remove rules, given as IpPermissions or SecurityGroupRuleIds."""
        getattr(ec2, f"revoke_security_group_{self._name}")(GroupId=group_id, **rules)

    def change(self, ec2: Any, group_id: str, previous: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        """Revoke the group's own rules that are not to be any more, and add the new ones."""
        old = previous.get(self.rules_property) or self._implied
        new = properties.get(self.rules_property) or self._implied
        if gone := [rule for rule in old if rule not in new]:
            self.revoke(ec2, group_id, IpPermissions=[permission(rule) for rule in gone])
        for rule in new:
            if rule not in old:
                self.authorize(ec2, group_id, rule)


INGRESS: Final = Direction("ingress", [])
EGRESS: Final = Direction("egress", [DEFAULT_EGRESS])
_RULES: Final = (INGRESS.rules_property, EGRESS.rules_property)


def _set_rules(context: Context, group: Physical, old: Properties, new: Properties) -> None:
    for direction in (INGRESS, EGRESS):
        direction.change(context.client("ec2"), group.ref, old, new)


class SecurityGroupRule(Model):
    """AWS::EC2::SecurityGroupIngress and AWS::EC2::SecurityGroupEgress."""

    properties = ("GroupId", *_RULE)

    def __init__(self, direction: Direction) -> None:
        self._direction = direction

    def create(self, context: Context, properties: Properties) -> Physical:
        ec2, group_id, rule = context.client("ec2"), properties["GroupId"], without(properties, "GroupId")
        return Physical(self._direction.adopt(ec2, group_id, rule) or self._direction.authorize(ec2, group_id, rule))

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        self._direction.revoke(context.client("ec2"), properties["GroupId"], SecurityGroupRuleIds=[physical.ref])


def permission(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a rule's properties into the API's IpPermission.

    Raises:
        UnsupportedError: The rule has a property that is unknown here.
        ResourceError: It has no other side, or two, in the words of failed stacks that people report.
    """
    if unknown := rule.keys() - set(_RULE):
        raise UnsupportedError(f"security group rule: properties {', '.join(sorted(unknown))}")
    request = taken(rule, ("IpProtocol", "FromPort", "ToPort"))
    for name, (peers, member) in _PEERS.items():
        if name in rule:
            request[peers] = [{member: rule[name], **taken(rule, ("Description",))}]
    if len(_PEERS.keys() & rule.keys()) != 1:
        message = "Exactly one of CidrIp, CidrIpv6, DestinationSecurityGroupId, and DestinationPrefixListId"
        raise ResourceError(f"{message} must be specified and not empty")
    return request


def rule_of(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule with an address range as a template has it; of any other one, only that it is there."""
    ports = {key: described[key] for key in ("FromPort", "ToPort") if described.get(key, -1) != -1}
    peer = {"CidrIp": described["CidrIpv4"]} if described.get("CidrIpv4") else {}
    return {"IpProtocol": described["IpProtocol"], **ports, **peer}


MODELS: Mapping[str, Model] = {
    "AWS::EC2::SecurityGroup": EC2(
        "security_group",
        "GroupId",
        {"GroupId": "GroupId"},
        name=("GroupName", 64),
        parameters=lambda given: renamed(given, GroupDescription="Description"),
        later=_RULES,
        configuration=_set_rules,
        mutable=("Tags", *_RULES),
    ),
    "AWS::EC2::SecurityGroupEgress": SecurityGroupRule(EGRESS),
    "AWS::EC2::SecurityGroupIngress": SecurityGroupRule(INGRESS),
}
