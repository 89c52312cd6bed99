"""Drift of stacks: what the APIs say exists, beside what the template asked for.

Only types of `_READERS` are looked at, and of them only what its functions return; AWS compares many more. As on AWS,
what the template does not say is not compared, and a type that is not looked at is not in the answer.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from emulator.cloudformation.stacks import Stack, StackResource

_PEERS: Mapping[str, str] = {"CidrIpv4": "CidrIp", "CidrIpv6": "CidrIpv6"}
"""What a rule of a security group is called in the API's answer, and in a template."""


@dataclass(frozen=True)
class Difference:
    """A property that is not as the template has it.

    Attributes:
        path: Its place, such as ``/RetentionInDays``.
        expected: What the template says; None: nothing of this item.
        actual: What there is; None: nothing.
        type: ``ADD``, ``REMOVE`` or ``NOT_EQUAL``.
    """

    path: str
    expected: Any
    actual: Any
    type: str


@dataclass(frozen=True)
class ResourceDrift:
    """What was found of a resource: ``IN_SYNC``, ``MODIFIED`` or ``DELETED``, when, and what differs."""

    resource: StackResource
    status: str
    differences: tuple[Difference, ...] = ()
    time: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True)
class Detection:
    """One look at a stack.

    Attributes:
        stack: The stack.
        drifts: What was found of each resource that can be looked at.
        id: Its id.
        time: When it was.
    """

    stack: Stack
    drifts: tuple[ResourceDrift, ...]
    id: str = field(default_factory=lambda: str(uuid4()))
    time: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def drifted(self) -> int:
        """How many resources are not as the template has them."""
        return sum(each.status != "IN_SYNC" for each in self.drifts)


def detect(stack: Stack, client: Callable[[str], Any]) -> Detection:
    """Look at the resources of a stack.

    Args:
        stack: The stack.
        client: Gives a boto3 client of a service in the stack's Region.
    """
    looked_at = [each for each in stack.resources.values() if each.type in _READERS and each.physical_id]
    return Detection(stack, tuple(_drift(each, client) for each in looked_at))


def _drift(resource: StackResource, client: Callable[[str], Any]) -> ResourceDrift:
    service, read = _READERS[resource.type]
    actual = read(client(service), resource.physical_id)
    if actual is None:
        return ResourceDrift(resource, "DELETED")
    differences = tuple(
        difference
        for name, value in actual.items()
        if name in resource.properties
        for difference in _differences(f"/{name}", resource.properties[name], value)
    )
    return ResourceDrift(resource, "MODIFIED" if differences else "IN_SYNC", differences)


def _differences(path: str, expected: Any, actual: Any) -> Iterator[Difference]:
    """Yield what differs; the order of a list says nothing."""
    if not isinstance(expected, list):
        if str(expected).lower() != str(actual).lower():  # CloudFormation takes strings for numbers and Booleans
            yield Difference(path, expected, actual, "NOT_EQUAL")
        return
    wanted, found = [{_key(each): each for each in items} for items in (expected, actual)]
    for key in wanted.keys() - found.keys():
        yield Difference(f"{path}/{expected.index(wanted[key])}", wanted[key], None, "REMOVE")
    for key in found.keys() - wanted.keys():
        yield Difference(f"{path}/{actual.index(found[key])}", None, found[key], "ADD")


def _key(item: Mapping[str, Any]) -> str:
    return json.dumps({name: str(value) for name, value in item.items() if name != "Description"}, sort_keys=True)


def _vpc(ec2: Any, name: str) -> dict[str, Any] | None:
    found = ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [name]}])["Vpcs"]
    return {"Tags": found[0].get("Tags", [])} if found else None


def _subnet(ec2: Any, name: str) -> dict[str, Any] | None:
    found = ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": [name]}])["Subnets"]
    keys = ("Tags", "MapPublicIpOnLaunch")
    return {key: found[0].get(key, []) for key in keys} if found else None


def _security_group(ec2: Any, name: str) -> dict[str, Any] | None:
    filters = [{"Name": "group-id", "Values": [name]}]
    found = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    if not found:
        return None
    rules = ec2.describe_security_group_rules(Filters=filters)["SecurityGroupRules"]
    return {
        "Tags": found[0].get("Tags", []),
        "SecurityGroupIngress": [_rule(each) for each in rules if not each["IsEgress"]],
        "SecurityGroupEgress": [_rule(each) for each in rules if each["IsEgress"]],
    }


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule with an address range as a template has it; of any other one, only that it is there."""
    ports = {key: rule[key] for key in ("FromPort", "ToPort") if rule.get(key, -1) != -1}
    peer = {_PEERS[key]: rule[key] for key in _PEERS if rule.get(key)}
    return {"IpProtocol": rule["IpProtocol"], **ports, **peer}


def _log_group(logs: Any, name: str) -> dict[str, Any] | None:
    groups = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    found = [each for each in groups if each["logGroupName"] == name]
    return {"RetentionInDays": found[0].get("retentionInDays")} if found else None


def _alarm(cloudwatch: Any, name: str) -> dict[str, Any] | None:
    found = cloudwatch.describe_alarms(AlarmNames=[name])["MetricAlarms"]
    return {key: found[0].get(key) for key in ("ActionsEnabled", "ComparisonOperator")} if found else None


_READERS: Mapping[str, tuple[str, Callable[[Any, str], dict[str, Any] | None]]] = {
    "AWS::CloudWatch::Alarm": ("cloudwatch", _alarm),
    "AWS::EC2::SecurityGroup": ("ec2", _security_group),
    "AWS::EC2::Subnet": ("ec2", _subnet),
    "AWS::EC2::VPC": ("ec2", _vpc),
    "AWS::Logs::LogGroup": ("logs", _log_group),
}
"""By type: the service to ask, and what gives the properties that exist; None: the resource does not exist."""
