"""What Amazon EC2 launches, and where: instances, launch templates, interfaces and placement groups."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from emulator.resources.api import EC2
from emulator.resources.common import renamed
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError


def _launch(context: Context, request: Properties) -> Properties:
    """Launch an instance by a launch template; it runs at once."""
    specifications = request.get("TagSpecifications", [])
    if request.pop("PropagateTagsToVolumeOnCreation", False):
        specifications += [{**each, "ResourceType": "volume"} for each in specifications]
    request["LaunchTemplate"] = template_version(request.get("LaunchTemplate", {}))
    _check_template(context, request["LaunchTemplate"])
    return dict(context.client("ec2").run_instances(MinCount=1, MaxCount=1, **request))


def _check_template(context: Context, version: Mapping[str, str]) -> None:
    """Check that there is a version of a launch template, whose number may be text.

    Raises:
        UnsupportedError: No template is named; instances are made by one here.
        ResourceError: There is no such version.
    """
    if not {"LaunchTemplateId", "LaunchTemplateName"} & version.keys():
        raise UnsupportedError("AWS::EC2::Instance without LaunchTemplate")
    which = {f"{name}s": [value] for name, value in version.items() if name != "Version"}
    templates = context.client("ec2").describe_launch_templates(**which)["LaunchTemplates"]
    wanted = version.get("Version", "$Default")
    known = {
        "$Default",
        "$Latest",
        *(str(number + 1) for each in templates for number in range(each["LatestVersionNumber"])),
    }
    if not templates or wanted not in known:
        named = next(iter(which.values()))[0]
        raise ResourceError(f"Could not find launch template version {wanted} of LaunchTemplate {named}")


def _add_version(context: Context, physical: Physical, properties: Properties, _: set[str]) -> dict[str, str]:
    """Make a new version of a launch template; the default stays the first."""
    made = context.client("ec2").create_launch_template_version(
        LaunchTemplateId=physical.ref, LaunchTemplateData=_template_data(properties["LaunchTemplateData"])
    )["LaunchTemplateVersion"]
    return {"LatestVersionNumber": str(made["VersionNumber"])}


def _create_template(context: Context, request: Properties) -> Properties:
    request["LaunchTemplateData"] = _template_data(request["LaunchTemplateData"])
    return {**context.client("ec2").create_launch_template(**request), "LatestVersionNumber": "1"}


def _check_source(context: Context, interface: Physical, _: Properties, properties: Properties) -> None:
    context.client("ec2").modify_network_interface_attribute(
        NetworkInterfaceId=interface.ref, SourceDestCheck={"Value": properties.get("SourceDestCheck", True)}
    )


def _interface(properties: Properties) -> Properties:
    """Return the parameters of an interface; EC2's words are those of its code InvalidParameterValue."""
    addresses = [each.get("PrivateIpAddress") for each in properties.get("PrivateIpAddresses", [])]
    for address in (properties.get("PrivateIpAddress"), *addresses):
        try:
            ip_address(address or "0.0.0.0")  # noqa: S104 - no address is bound
        except ValueError:
            message = f"Value ({address}) for parameter PrivateIpAddress is invalid. Invalid IPv4 address."
            raise ResourceError(message) from None
    return renamed(properties, GroupSet="Groups")


def template_version(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return a version of a launch template as the API takes it, its number as a string."""
    return {key: str(value) for key, value in properties.items()}


def _template_data(properties: Properties) -> Properties:
    """Return the data of a launch template as the API takes it; tags that are there twice are the last ones."""
    for each in properties.get("TagSpecifications", []):
        if "ResourceType" not in each or not each.get("Tags"):
            raise ResourceError("TagSpecifications need a ResourceType and at least one of Tags.")
    specifications = [
        {**each, "Tags": list({tag["Key"]: tag for tag in each["Tags"]}.values())}
        for each in properties.get("TagSpecifications", [])
    ]
    return {**properties, **({"TagSpecifications": specifications} if specifications else {})}


MODELS: Mapping[str, Model] = {
    "AWS::EC2::Instance": EC2(
        "instance",
        attributes={"PrivateDnsName": "PrivateDnsName", "PrivateIp": "PrivateIpAddress"},
        creation=_launch,
        deletion=lambda context, instance, _: context.client("ec2").terminate_instances(InstanceIds=[instance.ref]),
        properties=("LaunchTemplate", "PropagateTagsToVolumeOnCreation", "Tags"),
    ),
    "AWS::EC2::LaunchTemplate": EC2(
        "launch_template",
        attributes={"LatestVersionNumber": "LatestVersionNumber"},
        name=("LaunchTemplateName", 128),
        creation=_create_template,
        modification=_add_version,
        mutable=("LaunchTemplateData",),
    ),
    "AWS::EC2::NetworkInterface": EC2(
        "network_interface",
        attributes={"PrimaryPrivateIpAddress": "PrivateIpAddress"},
        parameters=_interface,
        later=("SourceDestCheck",),
        configuration=_check_source,
    ),
    "AWS::EC2::PlacementGroup": EC2(
        "placement_group",
        "GroupName",
        {"GroupName": "GroupName"},
        name=("GroupName", 64),
        mutable=(),
    ),
    "AWS::EC2::Volume": EC2("volume", "VolumeId", {"VolumeId": "VolumeId"}),
}
