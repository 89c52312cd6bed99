"""EC2's security groups."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models.security_groups import SecurityGroupRule
from moto.ec2.responses import EC2Response


class Rule(SecurityGroupRule):
    """A rule whose description is not part of what it is: moto takes rules between groups for different ones then."""

    def __eq__(self, other: SecurityGroupRule) -> bool:  # type: ignore[override]
        return _identity(self) == _identity(other)

    def __hash__(self) -> int:
        return hash(_identity(self))


class SecurityGroups(EC2Response):
    """EC2 that deletes no security group in use, and adds no rule without a peer."""

    def authorize_security_group_ingress(self) -> ActionResult:
        self._check_rules()
        return super().authorize_security_group_ingress()

    def authorize_security_group_egress(self) -> ActionResult:
        self._check_rules()
        return super().authorize_security_group_egress()

    def delete_security_group(self) -> ActionResult:
        group_id = self._get_param("GroupId")
        group = self.ec2_backend.get_security_group_from_id(group_id)
        if group:
            if group.is_default:
                raise EC2ClientError(
                    "CannotDelete", f'the specified group: "{group_id}" name: "default" cannot be deleted by a user'
                )
            of_interfaces = (each for interface in self.ec2_backend.enis.values() for each in interface.group_set)
            others = (each for each in self.ec2_backend.groups[group.vpc_id].values() if each is not group)
            of_rules = (rule.source_group for other in others for rule in (*other.ingress_rules, *other.egress_rules))
            if group in of_interfaces or group_id in (each.get("GroupId") for each in of_rules):
                raise DependencyViolationError(f"resource {group_id} has a dependent object")
        return super().delete_security_group()

    def _check_rules(self) -> None:
        """Refuse rules without a peer: https://github.com/awsdocs/aws-cloudformation-user-guide/pull/217."""
        for rule in self._get_param("IpPermissions", []):
            if not any(rule.get(each) for each in ("IpRanges", "Ipv6Ranges", "PrefixListIds", "UserIdGroupPairs")):
                raise EC2ClientError(
                    "MissingParameter",
                    "The request must contain exactly one of: cidrIp, cidrIpv6, prefixListId, or referencedGroupId",
                )


def _identity(rule: SecurityGroupRule) -> tuple[Any, ...]:
    peers = (rule.cidr_ipv4, rule.cidr_ipv6, rule.source_group.get("GroupId"), rule.prefix_list_id)
    return rule.ip_protocol, rule.from_port, rule.to_port, *peers
