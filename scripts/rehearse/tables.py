"""What a deployment consists of, as tables for people. Everything in them comes from AWS's APIs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from config.settings import Settings
from emulator.aws import EmulatedAws
from scripts import screen


def tables(aws: EmulatedAws, settings: Settings) -> Iterator[Table]:
    """Describe the deployment of settings: stacks, launch templates, outputs."""
    cloudformation = aws.client("cloudformation", settings.region)
    stacks = sorted(cloudformation.describe_stacks()["Stacks"], key=lambda stack: stack["CreationTime"])
    yield _stacks(cloudformation, stacks)
    yield _launch_templates(aws.client("ec2", settings.region), settings.cluster_spec.name)
    yield _outputs(stacks)


def _stacks(cloudformation: Any, stacks: list[dict[str, Any]]) -> Table:
    table = screen.table("stack", "status", ">resources", "inside")
    names = {stack["StackId"]: stack["StackName"] for stack in stacks}
    for stack in stacks:
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack["StackId"])
        count = sum(len(page["StackResourceSummaries"]) for page in pages)
        table.add_row(stack["StackName"], stack["StackStatus"], str(count), names.get(stack.get("ParentId"), ""))
    return table


def _launch_templates(ec2: Any, cluster_name: str) -> Table:
    table = screen.table("launch template", "type", "interfaces", "subnet, placement group, image")
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        name = template["LaunchTemplateName"]
        if not name.startswith(f"{cluster_name}-"):
            continue
        versions = ec2.describe_launch_template_versions(LaunchTemplateName=name, Versions=["$Latest"])
        data = versions["LaunchTemplateVersions"][0]["LaunchTemplateData"]
        interfaces = data.get("NetworkInterfaces", [])
        kinds = [each.get("InterfaceType", "interface") for each in interfaces]
        details = [
            *sorted({each["SubnetId"] for each in interfaces if "SubnetId" in each}),
            data.get("Placement", {}).get("GroupName", ""),
            data.get("ImageId", ""),
        ]
        table.add_row(
            name,
            data.get("InstanceType", ""),
            ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds), reverse=True)),
            "\n".join(filter(None, details)),
        )
    return table


def _outputs(stacks: list[dict[str, Any]]) -> Table:
    table = screen.table("stack", "output", "value")
    for stack in stacks:
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
        if "Summary" not in outputs:  # not of this app
            continue
        for key, value in outputs.items():
            if key != "Summary" and not key.startswith(("ExportsOutput", "PublishOutput")):
                table.add_row(stack["StackName"], key, value)
    return table
