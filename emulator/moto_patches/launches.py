"""Launches of EC2 instances: as their launch template says, and only where EC2 would launch them."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from moto.core.responses import ActionResult
from moto.ec2.exceptions import DryRunClientError, EC2ClientError
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import Instance, InstanceBackend, Reservation
from moto.ec2.models.launch_templates import LaunchTemplateVersion
from moto.ec2.utils import parse_user_data

from emulator.faults import FAULTS_IN_FORCE
from emulator.moto_patches.instances import Instances
from emulator.moto_patches.lives import Lives, LivingInstance
from emulator.moto_patches.networks import Networks
from emulator.moto_patches.reservations import Reservations

_ADDRESSLESS = "efa-only"


_DEFAULTS: Final = {"InstanceType": "m1.small"}
"""https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html"""


class Launches(Instances, Lives, Reservations, Networks):
    """EC2 with launch templates that hold everything that a launch takes, and instances with several network cards."""

    def create_launch_template_version(self) -> ActionResult:
        data = self.params["LaunchTemplateData"]
        if "UserData" in data:
            data["UserData"] = parse_user_data(data["UserData"])
        return super().create_launch_template_version()

    def run_instances(self) -> ActionResult:
        launched = self._launch()
        for instance in cast(Reservation, launched.result).instances:
            cast(LivingInstance, instance).announce()
        return launched

    def _launch(self, override: Mapping[str, Any] | None = None) -> ActionResult:
        """Launch as many instances as there are between MinCount and MaxCount, and announce none of them.

        Args:
            override: What a fleet puts in place of the launch template's: instance type, subnet.
        """
        self.params = {**_DEFAULTS, **self._from_template(), **self.params, **_overriding(override or {})}
        interfaces = self._interfaces((override or {}).get("SubnetId"))
        self._check_launch(interfaces)
        if self._get_param("DryRun"):
            raise DryRunClientError
        instance_type, least = self._get_param("InstanceType"), self._get_int_param("MinCount", 1)
        target = self._get_param("CapacityReservationSpecification.CapacityReservationTarget", {})
        reservation_id = self._reserved(target, instance_type, least)
        count = self._most(interfaces, reservation_id)
        count = FAULTS_IN_FORCE.take_capacity(instance_type, least, count)
        if not count:
            raise EC2ClientError("InsufficientInstanceCapacity", shortage(instance_type))
        self.params["MinCount"] = count  # moto launches the least that is asked for
        if self._get_param("NetworkInterfaces"):
            # moto knows an instance's interfaces by device index: numbers stand in for their places meanwhile.
            self.params["NetworkInterfaces"] = [
                {**interface, "DeviceIndex": number} for number, interface in enumerate(interfaces)
            ]
        mappings = self._get_param("BlockDeviceMappings", [])
        self.params["BlockDeviceMappings"] = _volumes(self.ec2_backend, self._get_param("ImageId"), mappings)
        launched = super().run_instances()
        instances = cast(Reservation, launched.result).instances
        _give_profile(self.ec2_backend, instances[1:], self._get_param("IamInstanceProfile"))  # moto does for the first
        for instance in instances:
            instance.placement.group_name = self._get_param("Placement.GroupName", "")
            cast(LivingInstance, instance).capacity_reservation_id = reservation_id
            if self._get_param("InstanceMarketOptions.MarketType") == "capacity-block":
                instance.lifecycle = "capacity-block"
            if self._get_param("NetworkInterfaces"):
                _place(instance, interfaces)
            else:
                instance.nics[0].delete_on_termination = True  # EC2 made it for the instance
            instance.security_groups = list(instance.nics[0].group_set)
        return launched

    def _most(self, interfaces: Sequence[Mapping[str, Any]], reservation_id: str | None) -> int:
        """Return how many instances of those asked for the reservation and the subnets have room for."""
        most = self._get_int_param("MaxCount", 1)
        if reservation_id:
            most = min(most, self._described(self._reservation(reservation_id))["AvailableInstanceCount"])
        for subnet_id, needed in Counter(each["SubnetId"] for each in _addressed(interfaces)).items():
            most = min(most, self.ec2_backend.get_subnet(subnet_id).available_ip_address_count // needed)
        return int(most)

    def _from_template(self) -> dict[str, Any]:
        """Return the parameters that the launch template gives, with the request's tags among its own.

        The user data is left to moto, which takes it from there.
        """
        named = self._get_param("LaunchTemplate")
        if not named:
            return {}
        data = dict(self.ec2_backend._get_template_from_args(named).data)
        data.pop("UserData", None)
        own = self.params.pop("TagSpecifications", [])
        return {**data, "TagSpecifications": [*data.get("TagSpecifications", []), *own]}

    def _interfaces(self, subnet: str | None) -> list[dict[str, Any]]:
        """Return the interfaces of each instance, each with its subnet, which may be overridden, and groups."""
        request = self._get_param("NetworkInterfaces")
        if not request:
            subnet_id = self._get_param("SubnetId")
            groups = self._get_param("SecurityGroupIds", [])
            return [{"DeviceIndex": 0, "SubnetId": subnet_id, "Groups": groups}] if subnet_id else []
        interfaces = []
        for interface in request:
            if "NetworkInterfaceId" in interface:
                existing = self.ec2_backend.get_network_interface(interface["NetworkInterfaceId"])
                if existing.instance:
                    raise EC2ClientError("InvalidNetworkInterface.InUse", f"Interface: [{existing.id}] in use. ")
                interfaces.append({**interface, "SubnetId": existing.subnet.id})
            else:
                chosen = {"SubnetId": subnet} if subnet else {}
                interfaces.append({"DeleteOnTermination": True, **interface, **chosen})
        return interfaces

    def _check_launch(self, interfaces: Sequence[Mapping[str, Any]]) -> None:
        """Refuse what EC2 refuses of a launch, with its error codes (EC2 API Reference, "Error codes")."""
        ec2 = self.ec2_backend
        if not self._get_param("ImageId"):
            raise EC2ClientError("MissingParameter", "The request must contain the parameter ImageId")
        ec2.describe_images(ami_ids=[self._get_param("ImageId")])
        instance_type = self._get_param("InstanceType")
        if instance_type not in INSTANCE_TYPES:
            raise EC2ClientError("InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType.")
        if key_name := self._get_param("KeyName"):
            ec2.describe_key_pairs(key_names=[key_name])
        if (group := self._get_param("Placement.GroupName")) and group not in self._placement_groups:
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{group}' is unknown.")
        target = "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"
        if reservation_id := self._get_param(target):
            self._reservation(reservation_id)
        offered = ec2.describe_instance_type_offerings("availability-zone", {"instance-type": [instance_type]})
        zones = {offer["Location"] for offer in offered}
        addressed = _addressed(interfaces)
        for interface in interfaces:
            subnet = ec2.get_subnet(interface["SubnetId"])
            if subnet.availability_zone not in zones:
                raise EC2ClientError(
                    "Unsupported",
                    f"Your requested instance type ({instance_type}) is not supported in your requested Availability "
                    f"Zone ({subnet.availability_zone}).",
                )
            self._check_groups(interface.get("Groups", []), subnet)
            if len(addressed) * self._get_int_param("MinCount", 1) > subnet.available_ip_address_count:
                raise EC2ClientError(
                    "InsufficientFreeAddressesInSubnet", f"Not enough free addresses in subnet '{subnet.id}'."
                )


def complete_launches_of_groups() -> None:
    """Let Auto Scaling groups launch with the interfaces and volumes of their launch templates.

    Their launches do not come as requests of RunInstances. moto takes no interfaces from the template, cannot take
    instance store, leaves interfaces behind, and has all such instances believe that they are in us-east-1.
    """
    launch = InstanceBackend.run_instances

    def run_instances(backend: Any, image_id: str, *arguments: Any, **options: Any) -> Reservation:
        profile = None
        is_requested = "nics" in options  # by RunInstances or CreateFleet, which announce it when it is complete
        if options.get("launch_template") and not is_requested:
            data = backend._get_template_from_args(options["launch_template"]).data
            options["region_name"] = backend.region_name
            options["nics"] = [
                {**interface, "SubnetId": options["subnet_id"], "DeleteOnTermination": True}
                for interface in data.get("NetworkInterfaces", [{"DeviceIndex": 0}])
            ]
            mappings = data.get("BlockDeviceMappings", [])
            options["block_device_mappings"] = _volumes(backend, image_id, mappings)
            profile = data.get("IamInstanceProfile")
        reservation = launch(backend, image_id, *arguments, **options)
        if not is_requested:
            _give_profile(backend, reservation.instances, profile)
            for instance in reservation.instances:
                cast(LivingInstance, instance).announce()
        return reservation

    InstanceBackend.run_instances = run_instances  # type: ignore[assignment]
    find = InstanceBackend._get_template_from_args

    def get_template_from_args(backend: Any, named: Mapping[str, Any]) -> LaunchTemplateVersion:
        _check_named(backend, named)
        return find(backend, dict(named))

    InstanceBackend._get_template_from_args = get_template_from_args  # type: ignore[assignment,method-assign]


def _check_named(ec2: Any, template: Mapping[str, Any]) -> None:
    """Refuse a launch template that is not named, or is not there; moto does for names and versions that are not.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html#CommonErrors has the codes.
    """
    template_id, version = template.get("LaunchTemplateId"), str(template.get("Version", "1"))
    if not (template_id or template.get("LaunchTemplateName")):
        message = "Either the launch template ID or the launch template name must be specified."
        raise EC2ClientError("MissingParameter", message)
    if template_id and template_id not in ec2.launch_templates:
        message = f"The specified launch template, with template ID {template_id}, does not exist."
        raise EC2ClientError("InvalidLaunchTemplateId.NotFound", message)
    if not version.isdecimal() and version.lower() not in ("$latest", "$default"):
        message = "Invalid launch template version: either '$Default', '$Latest', or a numeric version are allowed."
        raise EC2ClientError("InvalidParameterValue", message)


def _give_profile(ec2: Any, instances: Sequence[Instance], profile: Mapping[str, str] | None) -> None:
    for instance in instances if profile else ():
        ec2.associate_iam_instance_profile(
            instance.id,
            iam_instance_profile_name=(profile or {}).get("Name"),
            iam_instance_profile_arn=(profile or {}).get("Arn"),
        )


def _overriding(override: Mapping[str, Any]) -> dict[str, Any]:
    return {"InstanceType": override["InstanceType"]} if "InstanceType" in override else {}


def shortage(instance_type: str) -> str:
    """Return what EC2 says when it does not have enough instances of a type."""
    return (
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested. Our "
        "system will be working on provisioning additional capacity."
    )


def _addressed(interfaces: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the interfaces that need an address of their own: all but those that speak EFA only."""
    return [each for each in interfaces if each.get("InterfaceType") != _ADDRESSLESS]


def _volumes(ec2: Any, image_id: str, mappings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the EBS volumes of an instance: those of its image, as the mappings of the launch change them.

    Instance store has no volume, and moto cannot take it.
    """
    image = ec2.describe_images(ami_ids=[image_id])[0]
    gone_with_it = {"DeleteOnTermination": True}
    volumes = {mapping["DeviceName"]: {**gone_with_it, **mapping["Ebs"]} for mapping in image.block_device_mappings}
    for mapping in mappings:
        if "Ebs" in mapping:
            device = mapping["DeviceName"]
            volumes[device] = {**volumes.get(device, gone_with_it), **mapping["Ebs"]}
    return [{"DeviceName": device, "Ebs": volume} for device, volume in volumes.items()]


def _place(instance: Instance, interfaces: Sequence[Mapping[str, Any]]) -> None:
    """Give the interfaces of a new instance the places and the kinds that were asked for."""
    for number, wanted in enumerate(interfaces):
        interface = instance.nics[number]
        interface.device_index = int(wanted["DeviceIndex"])
        interface.interface_type = wanted.get("InterfaceType", "interface")
        if interface.interface_type == _ADDRESSLESS:
            interface.private_ip_address = None
            interface.private_ip_addresses = []
    # An interface that was there before gets a public address from its subnet, too, when an instance starts with it.
    first = instance.nics[0]
    if "NetworkInterfaceId" in interfaces[0] and first.subnet.map_public_ip_on_launch and not first.public_ip:
        first.public_ip_auto_assign = True
        first.check_auto_public_ip()
