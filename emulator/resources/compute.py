"""What Amazon EC2 launches, and where: instances, launch templates, interfaces, addresses, placement groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.resources.common import Ec2Model, retag_ec2, short_name, tag_specifications, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties

_INSTANCE = (
    "BlockDeviceMappings",
    "CpuOptions",
    "DisableApiTermination",
    "EbsOptimized",
    "ImageId",
    "InstanceInitiatedShutdownBehavior",
    "InstanceType",
    "KeyName",
    "MetadataOptions",
    "NetworkInterfaces",
    "PrivateIpAddress",
    "SecurityGroupIds",
    "SecurityGroups",
    "SubnetId",
    "UserData",
)
_INTERFACE_GROUPS = "GroupSet"
_TEMPLATE_NAME_LENGTH = 128


class Instance(Ec2Model):
    """AWS::EC2::Instance. Creation waits until it runs."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Launch the instance."""
        ec2 = context.client("ec2")
        request = taken(properties, _INSTANCE)
        if "AvailabilityZone" in properties:
            request["Placement"] = {"AvailabilityZone": properties.pop("AvailabilityZone")}
        if "IamInstanceProfile" in properties:
            request["IamInstanceProfile"] = {"Name": properties.pop("IamInstanceProfile")}
        if "LaunchTemplate" in properties:
            template = properties.pop("LaunchTemplate")
            request["LaunchTemplate"] = {**template, "Version": str(template["Version"])}
        if "Monitoring" in properties:
            request["Monitoring"] = {"Enabled": properties.pop("Monitoring")}
        tags = properties.get("Tags", [])
        request |= tag_specifications(properties, "instance")
        if properties.pop("PropagateTagsToVolumeOnCreation", False) and tags:
            request["TagSpecifications"].append({"ResourceType": "volume", "Tags": tags})
        checks = properties.pop("SourceDestCheck", True)
        instance_id = ec2.run_instances(MinCount=1, MaxCount=1, **request)["Instances"][0]["InstanceId"]
        if not checks:
            ec2.modify_instance_attribute(InstanceId=instance_id, SourceDestCheck={"Value": False})
        return _instance(ec2, instance_id)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change tags, and what may change in place while the instance is stopped for it."""
        retag_ec2(context, physical.ref, properties, changed)
        ec2 = context.client("ec2")
        if "SourceDestCheck" in changed:
            checks = properties.get("SourceDestCheck", True)
            ec2.modify_instance_attribute(InstanceId=physical.ref, SourceDestCheck={"Value": checks})
            changed.remove("SourceDestCheck")
        if "InstanceType" in changed:
            ec2.stop_instances(InstanceIds=[physical.ref])
            value = {"Value": properties["InstanceType"]}
            ec2.modify_instance_attribute(InstanceId=physical.ref, InstanceType=value)
            ec2.start_instances(InstanceIds=[physical.ref])
            changed.remove("InstanceType")
        return _instance(ec2, physical.ref)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Terminate the instance."""
        with unless_gone("InvalidInstanceID.NotFound"):
            context.client("ec2").terminate_instances(InstanceIds=[physical.ref])


class LaunchTemplate(Model):
    """AWS::EC2::LaunchTemplate. Each change of what it holds is a new version; the default stays the first."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the template and its first version."""
        made = context.client("ec2").create_launch_template(
            LaunchTemplateName=properties.pop("LaunchTemplateName", short_name(context, _TEMPLATE_NAME_LENGTH)),
            LaunchTemplateData=_template_data(properties.pop("LaunchTemplateData")),
            **taken(properties, ("TagSpecifications", "VersionDescription")),
        )["LaunchTemplate"]
        return _template(made)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Make another version."""
        ec2 = context.client("ec2")
        if changed & {"LaunchTemplateData", "VersionDescription"}:
            ec2.create_launch_template_version(
                LaunchTemplateId=physical.ref,
                LaunchTemplateData=_template_data(properties.pop("LaunchTemplateData")),
                **taken(properties, ("VersionDescription",)),
            )
            changed -= {"LaunchTemplateData", "VersionDescription"}
        return _template(ec2.describe_launch_templates(LaunchTemplateIds=[physical.ref])["LaunchTemplates"][0])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the template with all its versions."""
        with unless_gone("InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateName.NotFoundException"):
            context.client("ec2").delete_launch_template(LaunchTemplateId=physical.ref)


class NetworkInterface(Model):
    """AWS::EC2::NetworkInterface."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the interface."""
        ec2 = context.client("ec2")
        groups = {"Groups": properties.pop(_INTERFACE_GROUPS)} if _INTERFACE_GROUPS in properties else {}
        checks = properties.pop("SourceDestCheck", True)
        keys = ("Description", "InterfaceType", "PrivateIpAddress", "SubnetId")
        tags = tag_specifications(properties, "network-interface")
        made = ec2.create_network_interface(**taken(properties, keys), **groups, **tags)["NetworkInterface"]
        if not checks:
            _set_checks(ec2, made["NetworkInterfaceId"], False)
        return _interface(made)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change description, groups, checks and tags."""
        retag_ec2(context, physical.ref, properties, changed)
        ec2 = context.client("ec2")
        if "Description" in changed:
            description = {"Value": properties.get("Description", "")}
            ec2.modify_network_interface_attribute(NetworkInterfaceId=physical.ref, Description=description)
        if _INTERFACE_GROUPS in changed:
            groups = properties[_INTERFACE_GROUPS]
            ec2.modify_network_interface_attribute(NetworkInterfaceId=physical.ref, Groups=groups)
        if "SourceDestCheck" in changed:
            _set_checks(ec2, physical.ref, properties.get("SourceDestCheck", True))
        changed -= {"Description", _INTERFACE_GROUPS, "SourceDestCheck"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the interface."""
        with unless_gone("InvalidNetworkInterfaceID.NotFound"):
            context.client("ec2").delete_network_interface(NetworkInterfaceId=physical.ref)


class EipAssociation(Model):
    """AWS::EC2::EIPAssociation; every change of it is a replacement."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Give an address to an instance or an interface."""
        keys = ("AllocationId", "InstanceId", "NetworkInterfaceId", "PrivateIpAddress")
        association = context.client("ec2").associate_address(**taken(properties, keys))["AssociationId"]
        return Physical(association, {"Id": association})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Release the address."""
        with unless_gone("InvalidAssociationID.NotFound"):
            context.client("ec2").disassociate_address(AssociationId=physical.ref)


def _instance(ec2: Any, instance_id: str) -> Physical:
    found = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    return Physical(
        instance_id,
        {
            "AvailabilityZone": found["Placement"]["AvailabilityZone"],
            "InstanceId": instance_id,
            "PrivateDnsName": found["PrivateDnsName"],
            "PrivateIp": found["PrivateIpAddress"],
            "PublicDnsName": found.get("PublicDnsName", ""),
            "PublicIp": found.get("PublicIpAddress", ""),
            "VpcId": found["VpcId"],
        },
    )


def _template(described: Mapping[str, Any]) -> Physical:
    template_id = described["LaunchTemplateId"]
    return Physical(
        template_id,
        {
            "DefaultVersionNumber": str(described["DefaultVersionNumber"]),
            "LatestVersionNumber": str(described["LatestVersionNumber"]),
            "LaunchTemplateId": template_id,
        },
    )


def _template_data(properties: Properties) -> Properties:
    """Return the data of a launch template as the API takes it; tags that are there twice are the last ones."""
    specifications = [
        {**each, "Tags": list({tag["Key"]: tag for tag in each["Tags"]}.values())}
        for each in properties.get("TagSpecifications", [])
    ]
    return {**properties, **({"TagSpecifications": specifications} if specifications else {})}


def _interface(described: Mapping[str, Any]) -> Physical:
    interface_id = described["NetworkInterfaceId"]
    return Physical(
        interface_id,
        {
            "Id": interface_id,
            "PrimaryPrivateIpAddress": described["PrivateIpAddress"],
            "SecondaryPrivateIpAddresses": [
                each["PrivateIpAddress"] for each in described["PrivateIpAddresses"] if not each["Primary"]
            ],
            "VpcId": described["VpcId"],
        },
    )


def _set_checks(ec2: Any, interface_id: str, checks: bool) -> None:
    ec2.modify_network_interface_attribute(NetworkInterfaceId=interface_id, SourceDestCheck={"Value": checks})


class PlacementGroup(Model):
    """AWS::EC2::PlacementGroup; every change of it is a replacement."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the group under a name of CloudFormation's."""
        request = taken(properties, ("Strategy", "PartitionCount", "SpreadLevel"))
        tags = tag_specifications(properties, "placement-group")
        context.client("ec2").create_placement_group(GroupName=context.name, **request, **tags)
        return Physical(context.name, {"GroupName": context.name})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the group."""
        with unless_gone("InvalidPlacementGroup.Unknown"):
            context.client("ec2").delete_placement_group(GroupName=physical.ref)


MODELS: Mapping[str, Model] = {
    "AWS::EC2::EIPAssociation": EipAssociation(),
    "AWS::EC2::Instance": Instance(),
    "AWS::EC2::LaunchTemplate": LaunchTemplate(),
    "AWS::EC2::NetworkInterface": NetworkInterface(),
    "AWS::EC2::PlacementGroup": PlacementGroup(),
}
