"""Security groups and their rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from emulator.resources.common import (
    Ec2Model,
    tag_specifications,
    taken,
    undone_on_failure,
    unless_gone,
)
from emulator.resources.model import Context, Model, Physical, Properties
from toolchain.values import UnsupportedError

DEFAULT_EGRESS = {"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}
"""The rule that EC2 gives to each new group; CloudFormation removes it once a template has rules of its own."""

_PEERS = {
    "CidrIp": ("IpRanges", "CidrIp"),
    "CidrIpv6": ("Ipv6Ranges", "CidrIpv6"),
    "SourceSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "DestinationSecurityGroupId": ("UserIdGroupPairs", "GroupId"),
    "SourcePrefixListId": ("PrefixListIds", "PrefixListId"),
    "DestinationPrefixListId": ("PrefixListIds", "PrefixListId"),
}
"""The other side of a rule: property in a template, list of an IpPermission in the API, and member of its items."""


class SecurityGroup(Ec2Model):
    """AWS::EC2::SecurityGroup."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the group and its rules."""
        ec2 = context.client("ec2")
        request = {"GroupName": context.name, **taken(properties, ("GroupName", "VpcId"))}
        description = properties.pop("GroupDescription")
        tags = tag_specifications(properties, "security-group")
        group_id = ec2.create_security_group(Description=description, **request, **tags)["GroupId"]
        with undone_on_failure(lambda: ec2.delete_security_group(GroupId=group_id)):
            for direction in DIRECTIONS:
                direction.change(ec2, group_id, {}, taken(properties, (direction.rules_property,)))
        vpc_id = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]["VpcId"]
        return Physical(group_id, {"GroupId": group_id, "Id": group_id, "VpcId": vpc_id})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change the rules that the group itself declares, and its tags."""
        for direction in DIRECTIONS:
            if direction.rules_property in changed:
                direction.change(context.client("ec2"), physical.ref, context.previous, properties)
                changed.remove(direction.rules_property)
        return super().update(context, physical, properties, changed)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the group."""
        with unless_gone("InvalidGroup.NotFound"):
            context.client("ec2").delete_security_group(GroupId=physical.ref)


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
        for found in ec2.describe_security_group_rules(Filters=filters)["SecurityGroupRules"]:
            if found["IsEgress"] and found["IpProtocol"] == "-1" and found.get("CidrIpv4") == "0.0.0.0/0":
                return str(found["SecurityGroupRuleId"])
        return None

    def revoke(self, ec2: Any, group_id: str, rules: list[dict[str, Any]]) -> None:
        """Remove rules."""
        action = getattr(ec2, f"revoke_security_group_{self._name}")
        action(GroupId=group_id, IpPermissions=[permission(rule) for rule in rules])

    def revoke_by_id(self, ec2: Any, group_id: str, rule_id: str) -> None:
        """Remove a rule by its id; one that is gone already is no error."""
        action = getattr(ec2, f"revoke_security_group_{self._name}")
        with unless_gone("InvalidSecurityGroupRuleId.NotFound", "InvalidPermission.NotFound", "InvalidGroup.NotFound"):
            action(GroupId=group_id, SecurityGroupRuleIds=[rule_id])

    def describe(self, ec2: Any, group_id: str, description: dict[str, str]) -> None:
        """Describe a rule again."""
        action = getattr(ec2, f"update_security_group_rule_descriptions_{self._name}")
        action(GroupId=group_id, SecurityGroupRuleDescriptions=[description])

    def change(self, ec2: Any, group_id: str, previous: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        """Revoke the group's own rules that are not to be any more, and add the new ones."""
        old = previous.get(self.rules_property) or self._implied
        new = properties.get(self.rules_property) or self._implied
        if gone := [rule for rule in old if rule not in new]:
            self.revoke(ec2, group_id, gone)
        for rule in new:
            if rule not in old:
                self.authorize(ec2, group_id, rule)


INGRESS: Final = Direction("ingress", [])
EGRESS: Final = Direction("egress", [DEFAULT_EGRESS])
DIRECTIONS: Final = (INGRESS, EGRESS)


class SecurityGroupRule(Model):
    """AWS::EC2::SecurityGroupIngress and AWS::EC2::SecurityGroupEgress."""

    def __init__(self, direction: Direction) -> None:
        self._direction = direction

    def create(self, context: Context, properties: Properties) -> Physical:
        """Add the rule to the group."""
        ec2, group_id = context.client("ec2"), properties.pop("GroupId")
        rule_id = self._direction.adopt(ec2, group_id, properties)
        if rule_id is None:
            rule_id = self._direction.authorize(ec2, group_id, properties)
        properties.clear()  # permission() refuses what it does not know
        return Physical(rule_id, {"Id": rule_id})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Describe the rule again."""
        if "Description" in changed:
            description = {"SecurityGroupRuleId": physical.ref, "Description": properties.get("Description", "")}
            self._direction.describe(context.client("ec2"), properties["GroupId"], description)
            changed.remove("Description")
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Remove the rule."""
        self._direction.revoke_by_id(context.client("ec2"), properties["GroupId"], physical.ref)


def permission(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a rule's properties into the API's IpPermission.

    Raises:
        UnsupportedError: The rule has a property that is unknown here.
    """
    remaining = dict(rule)
    request = taken(remaining, ("IpProtocol", "FromPort", "ToPort"))
    description = taken(remaining, ("Description",))
    for name, (peers, member) in _PEERS.items():
        if name in remaining:
            request[peers] = [{member: remaining.pop(name), **description}]
    if remaining:
        raise UnsupportedError(f"security group rule: properties {', '.join(sorted(remaining))}")
    return request


MODELS: Mapping[str, Model] = {
    "AWS::EC2::SecurityGroup": SecurityGroup(),
    "AWS::EC2::SecurityGroupEgress": SecurityGroupRule(EGRESS),
    "AWS::EC2::SecurityGroupIngress": SecurityGroupRule(INGRESS),
}
