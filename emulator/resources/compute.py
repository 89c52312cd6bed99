"""What Amazon EC2 launches, and where: instances, launch templates, interfaces and placement groups."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.common import Ec2Model, short_name, tag_specifications, taken, without
from emulator.resources.model import Context, Model, Physical, Properties

_TEMPLATE_NAME_LENGTH = 128


class Instance(Ec2Model):
    """AWS::EC2::Instance, by a launch template. Creation waits until it runs."""

    properties = ("LaunchTemplate", "PropagateTagsToVolumeOnCreation", "Tags")

    def create(self, context: Context, properties: Properties) -> Physical:
        request = tag_specifications(properties, "instance")
        if request and properties.get("PropagateTagsToVolumeOnCreation"):
            request["TagSpecifications"].append({"ResourceType": "volume", "Tags": properties["Tags"]})
        launched = context.client("ec2").run_instances(
            MinCount=1, MaxCount=1, LaunchTemplate=template_version(properties["LaunchTemplate"]), **request
        )["Instances"][0]
        attributes = {"PrivateDnsName": launched["PrivateDnsName"], "PrivateIp": launched["PrivateIpAddress"]}
        return Physical(launched["InstanceId"], attributes)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("ec2").terminate_instances(InstanceIds=[physical.ref])


class LaunchTemplate(Ec2Model):
    """AWS::EC2::LaunchTemplate. Each change of what it holds is a new version; the default stays the first."""

    noun = "launch_template"
    mutable = ("LaunchTemplateData",)

    def create(self, context: Context, properties: Properties) -> Physical:
        request = {
            "LaunchTemplateName": short_name(context, _TEMPLATE_NAME_LENGTH),
            **properties,
            "LaunchTemplateData": _template_data(properties["LaunchTemplateData"]),
        }
        return Physical(self._make(context, request)["LaunchTemplateId"], {"LatestVersionNumber": "1"})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        made = context.client("ec2").create_launch_template_version(
            LaunchTemplateId=physical.ref, LaunchTemplateData=_template_data(properties["LaunchTemplateData"])
        )["LaunchTemplateVersion"]
        return Physical(physical.ref, {"LatestVersionNumber": str(made["VersionNumber"])})


class NetworkInterface(Ec2Model):
    """AWS::EC2::NetworkInterface."""

    noun = "network_interface"
    properties = ("Description", "GroupSet", "SourceDestCheck", "SubnetId", "Tags")

    def create(self, context: Context, properties: Properties) -> Physical:
        request = without(properties, "GroupSet", "SourceDestCheck")
        made = self._make(context, {**request, "Groups": properties["GroupSet"]})
        interface_id = made["NetworkInterfaceId"]
        context.client("ec2").modify_network_interface_attribute(
            NetworkInterfaceId=interface_id, SourceDestCheck={"Value": properties.get("SourceDestCheck", True)}
        )
        return Physical(interface_id, {"PrimaryPrivateIpAddress": made["PrivateIpAddress"]})


class PlacementGroup(Ec2Model):
    """AWS::EC2::PlacementGroup; every change of it is a replacement."""

    properties = ("Strategy", "Tags")
    mutable = ()

    def create(self, context: Context, properties: Properties) -> Physical:
        tags = tag_specifications(properties, "placement-group")
        context.client("ec2").create_placement_group(GroupName=context.name, **taken(properties, ("Strategy",)), **tags)
        return Physical(context.name, {"GroupName": context.name})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("ec2").delete_placement_group(GroupName=physical.ref)


def template_version(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return a version of a launch template as the API takes it, its number as a string."""
    return {key: str(value) for key, value in properties.items()}


def _template_data(properties: Properties) -> Properties:
    """Return the data of a launch template as the API takes it; tags that are there twice are the last ones."""
    specifications = [
        {**each, "Tags": list({tag["Key"]: tag for tag in each["Tags"]}.values())}
        for each in properties.get("TagSpecifications", [])
    ]
    return {**properties, **({"TagSpecifications": specifications} if specifications else {})}


MODELS: Mapping[str, Model] = {
    "AWS::EC2::Instance": Instance(),
    "AWS::EC2::LaunchTemplate": LaunchTemplate(),
    "AWS::EC2::NetworkInterface": NetworkInterface(),
    "AWS::EC2::PlacementGroup": PlacementGroup(),
}
