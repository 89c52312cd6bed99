"""What moto 5.2.5 lacks and ParallelCluster asks for. Runs inside the server's process.

moto hands each service's requests to one response class; `fill` puts subclasses of some in their place, before
the server starts. A subclass has one method per API action, named in snake_case. What it has to remember it keeps among
the attributes of moto's own backend, so that a reset forgets it.

A resource whose id AWS chooses gets a chosen one from a tag `_custom_id_`, moto's name for this
(moto/utilities/id_generator.py), which its EC2 does not honour. It makes stand-ins for what a user's settings name.
"""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock
from uuid import uuid4

import moto.ec2.urls
import moto.fsx.urls
import moto.resourcegroups.urls
from moto.core.responses import ActionResult, BaseResponse, EmptyResult
from moto.ec2.exceptions import DryRunClientError, EC2ClientError
from moto.ec2.models import ec2_backends, subnets, vpcs
from moto.ec2.models.amis import Ami
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.models.security_groups import SecurityGroup
from moto.ec2.responses import EC2Response
from moto.ec2.utils import random_ami_id
from moto.fsx.exceptions import FileSystemNotFound
from moto.fsx.models import FileSystem
from moto.fsx.responses import FSxResponse
from moto.resourcegroups.exceptions import NotFoundException
from moto.resourcegroups.responses import ResourceGroupsResponse
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID

CAPACITY_BLOCK_TAG = "aws:ec2capacityreservation:capacityReservationType"
OWNER_ALIAS_TAG = "rehearsal:owner-alias"
"""An image with this tag is listed for `Owners=[value]`: the official images belong to `amazon`."""


def fill() -> None:
    """Register what is below with moto; call it before the server starts."""
    services: list[tuple[Any, type[BaseResponse]]] = [
        (moto.ec2.urls, Ec2),
        (moto.fsx.urls, Fsx),
        (moto.resourcegroups.urls, ResourceGroups),
    ]
    for urls, response in services:
        urls.url_paths = dict.fromkeys(urls.url_paths, response.dispatch)
    for action in ("group-resources", "list-group-resources"):
        moto.resourcegroups.urls.url_paths[f"{{0}}/{action}$"] = ResourceGroups.dispatch
    _place_offerings_by_zone_id()


def _place_offerings_by_zone_id() -> None:
    """Tell by zone id which zone offers an instance type.

    moto's lists by zone name were recorded in an account whose names stand for other zones than in moto's zone table.
    """
    zones = [zone for zones in RegionsAndZonesBackend.zones.values() for zone in zones]
    names = {zone.zone_id: zone.name for zone in zones}
    INSTANCE_TYPE_OFFERINGS["availability-zone"] = {
        region: [
            {**offering, "LocationType": "availability-zone", "Location": names[offering["Location"]]}
            for offering in offerings
            if offering["Location"] in names
        ]
        for region, offerings in INSTANCE_TYPE_OFFERINGS["availability-zone-id"].items()
    }


class RegisteredAmi(Ami):
    """An image with the block devices that it was registered with; moto's have a root volume of 15 GiB."""

    def __init__(self, *args: Any, devices: list[dict[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._devices = devices

    @property
    def block_device_mappings(self) -> list[dict[str, Any]]:
        """Return the mappings as DescribeImages lists them."""
        return self._devices


class Ec2(EC2Response):
    """EC2 with placement groups, capacity reservations, image registration, RunInstances dry runs and chosen ids."""

    def create_vpc(self) -> ActionResult:
        with _chosen(vpcs, "random_vpc_id", self._tags("vpc")):
            return super().create_vpc()

    def create_subnet(self) -> ActionResult:
        with _chosen(subnets, "random_subnet_id", self._tags("subnet")):
            return super().create_subnet()

    def register_image(self) -> ActionResult:
        tags = self._tags("image")
        image = RegisteredAmi(
            self.ec2_backend,
            tags.get(TAG_KEY_CUSTOM_ID) or random_ami_id(),
            name=self._get_param("Name"),
            architecture=self._get_param("Architecture", "i386"),
            root_device_name=self._get_param("RootDeviceName"),
            root_device_type="ebs",
            virtualization_type="hvm",
            owner_alias=tags.get(OWNER_ALIAS_TAG),
            tags=tags,
            devices=self._get_param("BlockDeviceMappings", []),
        )
        self.ec2_backend.amis[image.id] = image
        return ActionResult({"ImageId": image.id})

    # Placement groups

    def create_placement_group(self) -> ActionResult:
        name = self._get_param("GroupName")
        if name in self._placement_groups:
            raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The placement group '{name}' already exists.")
        group_id = f"pg-{uuid4().hex[:17]}"
        group = {
            "GroupName": name,
            "GroupId": group_id,
            "GroupArn": f"arn:{self.partition}:ec2:{self.region}:{self.current_account}:placement-group/{name}",
            "Strategy": self._get_param("Strategy", "cluster"),
            "State": "available",
            "Tags": _listed(self._tags("placement-group")),
        }
        self._placement_groups[name] = group
        return ActionResult({"PlacementGroup": group})

    def describe_placement_groups(self) -> ActionResult:
        groups = list(self._placement_groups.values())
        names, ids = self._get_param("GroupNames", []), self._get_param("GroupIds", [])
        for key, wanted in (("GroupName", names), ("GroupId", ids)):
            for value in wanted:
                if not any(group[key] == value for group in groups):
                    raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{value}' is unknown.")
        if names or ids:
            groups = [group for group in groups if group["GroupName"] in names or group["GroupId"] in ids]
        return ActionResult({"PlacementGroups": groups})

    def delete_placement_group(self) -> ActionResult:
        name = self._get_param("GroupName")
        if self._placement_groups.pop(name, None) is None:
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        return EmptyResult()

    # Capacity reservations

    def create_capacity_reservation(self) -> ActionResult:
        tags = self._tags("capacity-reservation")
        reservation_id = tags.get(TAG_KEY_CUSTOM_ID) or f"cr-{uuid4().hex[:17]}"
        zone = self._zone(self._get_param("AvailabilityZoneId"), self._get_param("AvailabilityZone"))
        count = int(self._get_param("InstanceCount"))
        reservation = {
            "CapacityReservationId": reservation_id,
            "OwnerId": self.current_account,
            "CapacityReservationArn": f"arn:{self.partition}:ec2:{self.region}:{self.current_account}"
            f":capacity-reservation/{reservation_id}",
            "AvailabilityZone": zone.name,
            "AvailabilityZoneId": zone.zone_id,
            "InstanceType": self._get_param("InstanceType"),
            "InstancePlatform": self._get_param("InstancePlatform"),
            "Tenancy": "default",
            "TotalInstanceCount": count,
            "AvailableInstanceCount": count,
            "InstanceMatchCriteria": self._get_param("InstanceMatchCriteria", "open"),
            "PlacementGroupArn": self._get_param("PlacementGroupArn"),
            "ReservationType": tags.get(CAPACITY_BLOCK_TAG, "default"),
            "State": "active",
            "Tags": _listed(tags),
        }
        self._reservations[reservation_id] = reservation
        return ActionResult({"CapacityReservation": reservation})

    def describe_capacity_reservations(self) -> ActionResult:
        wanted = self._get_param("CapacityReservationIds", [])
        for reservation_id in wanted:
            self._reservation(reservation_id)
        found = [each for key, each in self._reservations.items() if not wanted or key in wanted]
        return ActionResult({"CapacityReservations": found})

    # Dry runs

    def run_instances(self) -> ActionResult:
        if self._get_param("DryRun"):
            self._check_launch()
            raise DryRunClientError
        return super().run_instances()

    def _check_launch(self) -> None:
        """Refuse what EC2 refuses of a launch, with its error codes (EC2 API Reference, "Error codes")."""
        ec2 = self.ec2_backend
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
        interfaces = self._get_param("NetworkInterfaces", [])
        for interface in interfaces:
            subnet = ec2.get_subnet(interface["SubnetId"])
            offered = ec2.describe_instance_type_offerings("availability-zone", {"instance-type": [instance_type]})
            if subnet.availability_zone not in {offer["Location"] for offer in offered}:
                raise EC2ClientError(
                    "Unsupported",
                    f"Your requested instance type ({instance_type}) is not supported in your requested Availability "
                    f"Zone ({subnet.availability_zone}).",
                )
            for group_id in interface.get("Groups", []):
                if self._security_group(group_id).vpc_id != subnet.vpc_id:
                    raise EC2ClientError(
                        "InvalidParameter",
                        f"Security group {group_id} and subnet {subnet.id} belong to different networks.",
                    )
            # One address per interface; EC2 counts them against the subnet's free ones.
            if len(interfaces) > subnet.available_ip_address_count:
                raise EC2ClientError(
                    "InsufficientFreeAddressesInSubnet", f"Not enough free addresses in subnet '{subnet.id}'."
                )

    # Helpers

    @property
    def _placement_groups(self) -> dict[str, dict[str, Any]]:
        groups: dict[str, dict[str, Any]] = vars(self.ec2_backend).setdefault("placement_groups", {})
        return groups

    @property
    def _reservations(self) -> dict[str, dict[str, Any]]:
        reservations: dict[str, dict[str, Any]] = vars(self.ec2_backend).setdefault("capacity_reservations", {})
        return reservations

    def _reservation(self, reservation_id: str) -> dict[str, Any]:
        if reservation_id not in self._reservations:
            raise EC2ClientError(
                "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation_id}' does not exist"
            )
        return self._reservations[reservation_id]

    def _security_group(self, group_id: str) -> SecurityGroup:
        group = self.ec2_backend.get_security_group_from_id(group_id)
        if group is None:
            raise EC2ClientError("InvalidGroup.NotFound", f"The security group '{group_id}' does not exist")
        found: SecurityGroup = group
        return found

    def _tags(self, resource_type: str) -> dict[str, str]:
        specifications = self._get_param("TagSpecifications", [])
        return {
            tag["Key"]: tag["Value"]
            for specification in specifications
            if specification["ResourceType"] == resource_type
            for tag in specification["Tags"]
        }

    def _zone(self, zone_id: str | None, name: str | None) -> Any:
        for zone in self.ec2_backend.describe_availability_zones():
            if zone_id == zone.zone_id or name == zone.name:
                return zone
        raise EC2ClientError("InvalidParameterValue", f"Invalid availability zone: [{zone_id or name}]")


class Fsx(FSxResponse):
    """FSx whose file systems have a network interface per subnet, a mount name, a VPC and ids of AWS's length."""

    def create_file_system(self) -> str:
        short = json.loads(super().create_file_system())["FileSystem"]["FileSystemId"]
        file_system = self.fsx_backend.file_systems.pop(short)
        file_system.file_system_id = f"fs-{uuid4().hex[:17]}"
        file_system.dns_name = file_system.dns_name.replace(short, file_system.file_system_id)
        file_system.resource_arn = file_system.resource_arn.replace(short, file_system.file_system_id)
        self.fsx_backend.file_systems[file_system.file_system_id] = file_system
        ec2 = self._ec2_backend
        self._interfaces[file_system.file_system_id] = [
            ec2.create_network_interface(
                subnet_id,
                private_ip_address=[],
                group_ids=file_system.security_group_ids,
                description=f"Created By Amazon FSx for {file_system.file_system_id}",
            ).id
            for subnet_id in file_system.subnet_ids
        ]
        return json.dumps({"FileSystem": self._described(file_system)})

    def describe_file_systems(self) -> str:
        for file_system_id in self._body.get("FileSystemIds") or []:
            self._file_system(file_system_id)
        answer = json.loads(super().describe_file_systems())
        answer["FileSystems"] = [
            self._described(self._file_system(each["FileSystemId"])) for each in answer["FileSystems"]
        ]
        return json.dumps(answer)

    def delete_file_system(self) -> str:
        answer = super().delete_file_system()
        for interface_id in self._interfaces.pop(self._body["FileSystemId"]):
            self._ec2_backend.delete_network_interface(interface_id)
        return answer

    def _described(self, file_system: FileSystem) -> dict[str, Any]:
        ec2 = self._ec2_backend
        described: dict[str, Any] = {
            **file_system.to_dict(),
            "OwnerId": self.current_account,
            "Lifecycle": "AVAILABLE",
            "VpcId": ec2.get_subnet(file_system.subnet_ids[0]).vpc_id,
            "NetworkInterfaceIds": self._interfaces[file_system.file_system_id],
        }
        if file_system.file_system_type == "LUSTRE":
            described["LustreConfiguration"] = {
                **(file_system.lustre_configuration or {}),
                "MountName": file_system.file_system_id[-8:],
            }
        return described

    def _file_system(self, file_system_id: str) -> FileSystem:
        if file_system_id not in self.fsx_backend.file_systems:
            raise FileSystemNotFound(file_system_id)
        return self.fsx_backend.file_systems[file_system_id]

    @property
    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.body)
        return body

    @property
    def _ec2_backend(self) -> Any:
        return ec2_backends[self.current_account][self.region]

    @property
    def _interfaces(self) -> dict[str, list[str]]:
        interfaces: dict[str, list[str]] = vars(self.fsx_backend).setdefault("network_interfaces", {})
        return interfaces


class ResourceGroups(ResourceGroupsResponse):
    """Resource groups that know their members, and that are found by ARN too."""

    def group_resources(self) -> str:
        arns = self._get_param("ResourceArns")
        self._members.setdefault(self._name, []).extend(arns)
        return json.dumps({"Succeeded": arns})

    def list_group_resources(self) -> str:  # type: ignore[override]  # moto only has the name
        identifiers = [
            {"ResourceArn": arn, "ResourceType": "AWS::EC2::CapacityReservation"} for arn in self._members[self._name]
        ]
        return json.dumps({"Resources": [{"Identifier": each} for each in identifiers]})

    def get_group_configuration(self) -> str:
        configuration = self.resourcegroups_backend.get_group_configuration(group_name=self._name)
        return json.dumps({"GroupConfiguration": {"Configuration": configuration}})

    @property
    def _name(self) -> str:
        name: str = self._get_param("Group").rpartition("/")[2]
        if name not in self.resourcegroups_backend.groups:
            raise NotFoundException
        return name

    @property
    def _members(self) -> dict[str, list[str]]:
        members: dict[str, list[str]] = vars(self.resourcegroups_backend).setdefault("members", {})
        return members


@contextmanager
def _chosen(module: Any, generator: str, tags: dict[str, str]) -> Iterator[None]:
    """Let moto give the id in the tag `_custom_id_`, if there is one, to the resource that it makes meanwhile."""
    if TAG_KEY_CUSTOM_ID not in tags:
        yield
        return
    with mock.patch.object(module, generator, return_value=tags[TAG_KEY_CUSTOM_ID]):
        yield


def _listed(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items() if key != TAG_KEY_CUSTOM_ID]
