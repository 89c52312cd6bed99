"""What a deployment consists of, as tables for people. Everything in them comes from AWS's APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from config.settings import Settings
from emulator.aws import EmulatedAws


def tables(aws: EmulatedAws, settings: Settings) -> Iterator[Table]:
    """Describe the deployment of settings: stacks, network, file system, cluster, launch templates, outputs."""
    region = settings.region
    stacks = aws.client("cloudformation", region).describe_stacks()["Stacks"]
    summaries = {stack["StackName"]: _outputs(stack) for stack in stacks if "Summary" in _outputs(stack)}
    cluster = json.loads(summaries[settings.stack_name("cluster")]["Summary"])
    ec2 = aws.client("ec2", region)
    yield _stacks(aws.client("cloudformation", region), stacks)
    yield _network(ec2, cluster["vpc_id"])
    yield _file_system(aws.client("fsx", region), cluster["file_system_id"])
    yield _instances(ec2, cluster["cluster_name"])
    yield _launch_templates(ec2, cluster["cluster_name"])
    yield _outputs_of(summaries)


def _stacks(cloudformation: Any, stacks: list[dict[str, Any]]) -> Table:
    table = _table("Stacks", "stack", "status", "resources", "inside")
    names = {stack["StackId"]: stack["StackName"] for stack in stacks}
    for stack in sorted(stacks, key=lambda stack: stack["CreationTime"]):
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack["StackId"])
        count = sum(len(page["StackResourceSummaries"]) for page in pages)
        table.add_row(stack["StackName"], stack["StackStatus"], str(count), names.get(stack.get("ParentId"), ""))
    return table


def _network(ec2: Any, vpc_id: str) -> Table:
    inside = [{"Name": "vpc-id", "Values": [vpc_id]}]
    table = _table("Network", "what", "id", "where", "details")
    [vpc] = ec2.describe_vpcs(VpcIds=[vpc_id])["Vpcs"]
    table.add_row("VPC", vpc_id, "", vpc["CidrBlock"])
    for subnet in ec2.describe_subnets(Filters=inside)["Subnets"]:
        kind = "public" if subnet["MapPublicIpOnLaunch"] else "private"
        details = f"{subnet['CidrBlock']}, {subnet['AvailableIpAddressCount']} addresses free"
        table.add_row(f"{kind} subnet", subnet["SubnetId"], subnet["AvailabilityZoneId"], details)
    for gateway in ec2.describe_nat_gateways(Filters=inside)["NatGateways"]:
        addresses = ", ".join(address["PublicIp"] for address in gateway["NatGatewayAddresses"])
        table.add_row("NAT gateway", gateway["NatGatewayId"], gateway["SubnetId"], f"{addresses}, {gateway['State']}")
    for endpoint in ec2.describe_vpc_endpoints(Filters=inside)["VpcEndpoints"]:
        details = f"{endpoint['VpcEndpointType']} to {endpoint['ServiceName']}"
        table.add_row("endpoint", endpoint["VpcEndpointId"], "", details)
    return table


def _file_system(fsx: Any, file_system_id: str) -> Table:
    [found] = fsx.describe_file_systems(FileSystemIds=[file_system_id])["FileSystems"]
    lustre = found["LustreConfiguration"]
    table = _table("File system", "id", "type", "capacity", "throughput per TiB", "mount name", "state")
    throughput = lustre.get("PerUnitStorageThroughput")
    table.add_row(
        file_system_id,
        f"Lustre {found['FileSystemTypeVersion']}, {lustre['DeploymentType']}",
        f"{found['StorageCapacity']:,} GiB",
        f"{throughput} MB/s" if throughput else "",
        lustre["MountName"],
        found["Lifecycle"],
    )
    return table


def _instances(ec2: Any, cluster_name: str) -> Table:
    table = _table("Nodes that run", "node", "id", "type", "address", "state")
    mine = [{"Name": "tag:parallelcluster:cluster-name", "Values": [cluster_name]}]
    for reservation in ec2.describe_instances(Filters=mine)["Reservations"]:
        for instance in reservation["Instances"]:
            tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
            table.add_row(
                tags["parallelcluster:node-type"],
                instance["InstanceId"],
                instance["InstanceType"],
                instance["PrivateIpAddress"],
                instance["State"]["Name"],
            )
    return table


def _launch_templates(ec2: Any, cluster_name: str) -> Table:
    table = _table("Launch templates", "name", "type", "interfaces", "where, and from what")
    for template in ec2.describe_launch_templates()["LaunchTemplates"]:
        if not template["LaunchTemplateName"].startswith(f"{cluster_name}-"):
            continue
        [version] = ec2.describe_launch_template_versions(
            LaunchTemplateId=template["LaunchTemplateId"], Versions=["$Latest"]
        )["LaunchTemplateVersions"]
        data = version["LaunchTemplateData"]
        interfaces = data.get("NetworkInterfaces", [])
        where = [
            *sorted({each["SubnetId"] for each in interfaces if "SubnetId" in each}),
            data.get("Placement", {}).get("GroupName", ""),
            data.get("ImageId", ""),
        ]
        table.add_row(
            template["LaunchTemplateName"],
            data.get("InstanceType", ""),
            _interfaces(interfaces),
            "\n".join(filter(None, where)),
        )
    return table


def _interfaces(interfaces: list[dict[str, Any]]) -> str:
    kinds = [each.get("InterfaceType", "interface") for each in interfaces]
    return ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds), reverse=True))


def _outputs_of(stacks: dict[str, dict[str, str]]) -> Table:
    table = _table("Outputs", "stack", "output", "value")
    for name, outputs in stacks.items():
        for key, value in outputs.items():
            if key != "Summary" and not key.startswith(("ExportsOutput", "PublishOutput")):
                table.add_row(name, key, value)
    return table


def _outputs(stack: dict[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
