"""Stacks of small templates. Parameters of Systems Manager are quick, and take part in all that stacks do."""

import json
import time
from typing import Any

from botocore.exceptions import ClientError

from emulator.aws import EmulatedAws

TRUST = {"Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}
"""A trust policy that IAM accepts."""

REGION = "us-east-1"


def parameter(value: Any = "v", **attributes: Any) -> dict[str, Any]:
    """Define a parameter of Systems Manager; its type cannot be changed in place, its value can."""
    name = attributes.pop("Name", None)
    properties = {"Type": "String", "Value": value, **({"Name": name} if name else {})}
    return {"Type": "AWS::SSM::Parameter", "Properties": properties, **attributes}


def export(value: Any, name: str) -> dict[str, Any]:
    return {"Value": value, "Export": {"Name": name}}


class Stacks:
    """CloudFormation as a caller uses it, for one region.

    Attributes:
        waits: Whether a creation, an update or a deletion returns when it has ended, and not before.
    """

    def __init__(self, aws: EmulatedAws, region: str = REGION, *, waits: bool = True) -> None:
        self.client = aws.client("cloudformation", region)
        self.ssm = aws.client("ssm", region)
        self.waits = waits

    def create(self, name: str, resources: dict[str, Any], *, template: Any = None, **arguments: Any) -> str:
        body = json.dumps({"Resources": resources, **(template or {})})
        stack_id: str = self.client.create_stack(StackName=name, TemplateBody=body, **arguments)["StackId"]
        self.follow(stack_id)
        return stack_id

    def update(self, name: str, resources: dict[str, Any], *, template: Any = None, **arguments: Any) -> None:
        body = json.dumps({"Resources": resources, **(template or {})})
        self.follow(self.client.update_stack(StackName=name, TemplateBody=body, **arguments)["StackId"])

    def change_set(self, name: str, resources: dict[str, Any], *, template: Any = None, **arguments: Any) -> Any:
        body = json.dumps({"Resources": resources, **(template or {})})
        made = self.client.create_change_set(StackName=name, ChangeSetName="c", TemplateBody=body, **arguments)
        return self.client.describe_change_set(ChangeSetName=made["Id"])

    def delete(self, name: str, **arguments: Any) -> None:
        ids = [each["StackId"] for each in self.client.list_stacks()["StackSummaries"] if each["StackName"] == name]
        self.client.delete_stack(StackName=name, **arguments)
        for stack_id in ids:
            self.follow(stack_id)

    def follow(self, stack_id: str) -> None:
        """Wait until no operation on a stack is in progress; the longer it takes, the rarer it is asked."""
        pause = 0.05
        while self.waits and self.status(stack_id).endswith("_IN_PROGRESS"):
            time.sleep(pause)
            pause = min(pause * 1.2, 0.5)

    def describe(self, name: str) -> Any:
        return self.client.describe_stacks(StackName=name)["Stacks"][0]

    def status(self, name: str) -> str:
        status: str = self.describe(name)["StackStatus"]
        return status

    def output(self, name: str, key: str) -> str:
        outputs: dict[str, str] = {each["OutputKey"]: each["OutputValue"] for each in self.describe(name)["Outputs"]}
        return outputs[key]

    def resources(self, name: str) -> dict[str, str]:
        resources = self.client.describe_stack_resources(StackName=name)["StackResources"]
        return {each["LogicalResourceId"]: each.get("PhysicalResourceId", "") for each in resources}

    def events(self, name: str) -> list[tuple[str, str, str]]:
        """Return logical id, status and reason of all events, oldest first."""
        pages = self.client.get_paginator("describe_stack_events").paginate(StackName=name)
        events = [event for page in pages for event in page["StackEvents"]]
        return [
            (event["LogicalResourceId"], event["ResourceStatus"], event.get("ResourceStatusReason", ""))
            for event in reversed(events)
        ]

    def reasons(self, name: str, status: str) -> list[str]:
        return [reason for _, each, reason in self.events(name) if each == status]

    def values(self) -> dict[str, str]:
        """Return the parameters that exist, with their values."""
        names = [each["Name"] for each in self.ssm.describe_parameters()["Parameters"]]
        return {name: self.ssm.get_parameter(Name=name)["Parameter"]["Value"] for name in names}


def code_and_message(error: ClientError) -> tuple[str, str]:
    return error.response["Error"]["Code"], error.response["Error"]["Message"]
