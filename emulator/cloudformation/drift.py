"""Drift of stacks: what the APIs say exists, beside what the template asked for.

Only types of `_READERS` are looked at, and of them only what its functions return; AWS compares many more. As on AWS,
what the template does not say is not compared, and a type that is not looked at is not in the answer.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-drift.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from emulator.cloudformation.stacks import Stack, StackResource


def detect(stack: Stack, client: Callable[[str], Any]) -> list[dict[str, Any]]:
    """Return the drift of each resource that can be looked at, as DescribeStackResourceDrifts gives it."""
    resources = [each for each in stack.resources.values() if each.type in _READERS and each.physical_id]
    return [_drift(stack, each, client) for each in resources]


def _drift(stack: Stack, resource: StackResource, client: Callable[[str], Any]) -> dict[str, Any]:
    service, read = _READERS[resource.type]
    actual = read(client(service), resource.physical_id)
    differences = [
        difference
        for name, value in (actual or {}).items()
        if name in resource.properties
        for difference in _differences(f"/{name}", resource.properties[name], value)
    ]
    return {
        "StackId": stack.id,
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id,
        "ResourceType": resource.type,
        "StackResourceDriftStatus": "DELETED" if actual is None else "MODIFIED" if differences else "IN_SYNC",
        "PropertyDifferences": differences,
        "Timestamp": datetime.now(UTC),
    }


def _differences(path: str, expected: Any, actual: Any) -> Iterator[dict[str, str]]:
    """Yield what differs; the order of a list says nothing."""
    if not isinstance(expected, list):
        if str(expected).lower() != str(actual).lower():  # CloudFormation takes strings for numbers and Booleans
            yield _difference("NOT_EQUAL", path, expected, actual)
        return
    wanted, existing = [{_key(each): each for each in items} for items in (expected, actual)]
    for key in wanted.keys() - existing.keys():
        yield _difference("REMOVE", f"{path}/{expected.index(wanted[key])}", wanted[key], None)
    for key in existing.keys() - wanted.keys():
        yield _difference("ADD", f"{path}/{actual.index(existing[key])}", None, existing[key])


def _difference(kind: str, path: str, expected: Any, actual: Any) -> dict[str, str]:
    texts = [value if isinstance(value, str) else json.dumps(value) for value in (expected, actual)]
    return {"PropertyPath": path, "DifferenceType": kind, "ExpectedValue": texts[0], "ActualValue": texts[1]}


def _key(item: Mapping[str, Any]) -> str:
    return json.dumps({name: str(value) for name, value in item.items() if name != "Description"}, sort_keys=True)


def _subnet(ec2: Any, name: str) -> dict[str, Any] | None:
    subnets = ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": [name]}])["Subnets"]
    keys = ("Tags", "MapPublicIpOnLaunch")
    return {key: subnets[0].get(key, []) for key in keys} if subnets else None


def _security_group(ec2: Any, name: str) -> dict[str, Any] | None:
    filters = [{"Name": "group-id", "Values": [name]}]
    groups = ec2.describe_security_groups(Filters=filters)["SecurityGroups"]
    if not groups:
        return None
    rules = ec2.describe_security_group_rules(Filters=filters)["SecurityGroupRules"]
    return {
        "Tags": groups[0].get("Tags", []),
        "SecurityGroupIngress": [_rule(each) for each in rules if not each["IsEgress"]],
        "SecurityGroupEgress": [_rule(each) for each in rules if each["IsEgress"]],
    }


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule with an address range as a template has it; of any other one, only that it is there."""
    ports = {key: rule[key] for key in ("FromPort", "ToPort") if rule.get(key, -1) != -1}
    peer = {"CidrIp": rule["CidrIpv4"]} if rule.get("CidrIpv4") else {}
    return {"IpProtocol": rule["IpProtocol"], **ports, **peer}


def _log_group(logs: Any, name: str) -> dict[str, Any] | None:
    groups = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    retentions = [each.get("retentionInDays") for each in groups if each["logGroupName"] == name]
    return {"RetentionInDays": retentions[0]} if retentions else None


_READERS: Mapping[str, tuple[str, Callable[[Any, str], dict[str, Any] | None]]] = {
    "AWS::EC2::SecurityGroup": ("ec2", _security_group),
    "AWS::EC2::Subnet": ("ec2", _subnet),
    "AWS::Logs::LogGroup": ("logs", _log_group),
}
"""By type: the service to ask, and what gives the properties that exist; None: the resource does not exist."""
