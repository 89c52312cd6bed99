"""What a launch of EC2 instances takes: images and placement groups; and which zone offers an instance type."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.amis import Ami
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, InstanceTypeOfferingBackend
from moto.ec2.responses import EC2Response
from moto.ec2.utils import random_ami_id, simple_aws_filter_to_re
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID

from emulator.moto_patches.tags import listed, requested_tags

OWNER_ALIAS_TAG = "emulator:owner-alias"
"""An image with this tag is listed for `Owners=[value]`: the official images belong to `amazon`."""


class RegisteredAmi(Ami):
    """An image with the block devices that it was registered with; moto's have a root volume of 15 GiB."""

    def __init__(self, *args: Any, devices: list[dict[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._devices = devices

    @property
    def block_device_mappings(self) -> list[dict[str, Any]]:
        """Return the mappings as DescribeImages lists them."""
        return self._devices


class Instances(EC2Response):
    """EC2 with image registration and placement groups."""

    def register_image(self) -> ActionResult:
        tags = requested_tags(self, "image")
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
            "Tags": listed(requested_tags(self, "placement-group")),
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
        instances = [each for reservation in self.ec2_backend.all_reservations() for each in reservation.instances]
        if any(each.placement.group_name == name and each.state != "terminated" for each in instances):
            raise EC2ClientError(
                "InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted."
            )
        if self._placement_groups.pop(name, None) is None:
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
        return EmptyResult()

    # Helpers

    @property
    def _placement_groups(self) -> dict[str, dict[str, Any]]:
        groups: dict[str, dict[str, Any]] = vars(self.ec2_backend).setdefault("placement_groups", {})
        return groups


_OFFERING_FILTERS = {"instance-type": "InstanceType", "location": "Location"}


def filter_offerings_by_wildcards() -> None:
    """Let filters of DescribeInstanceTypeOfferings have wildcards, such as `hpc*`, as all of EC2's have.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
    """

    def matches_filters(_: Any, offering: dict[str, Any], filters: dict[str, list[str]], __: str) -> bool:
        for name in filters:
            if name not in _OFFERING_FILTERS:
                raise EC2ClientError("InvalidParameterValue", f"The filter '{name}' is invalid")
        return all(
            any(re.match(simple_aws_filter_to_re(each), offering[_OFFERING_FILTERS[name]]) for each in values)
            for name, values in filters.items()
        )

    InstanceTypeOfferingBackend.matches_filters = matches_filters  # type: ignore[assignment,method-assign]


def place_offerings_by_zone_id() -> None:
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
