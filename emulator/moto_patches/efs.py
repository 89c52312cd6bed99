"""Amazon EFS: file systems and access points with chosen ids."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from typing import Any

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.efs.exceptions import EFSError
from moto.efs.responses import EFSResponse
from moto.moto_api._internal import mock_random

from emulator.moto_patches.tags import chosen_id


class Efs(EFSResponse):
    """EFS whose file systems take an id: that of the tag, without `fs-`."""

    def create_file_system(self) -> Any:
        zone = self._get_param("AvailabilityZoneName")
        if zone and zone not in {each.name for each in RegionsAndZonesBackend.zones[self.region]}:
            message = "The requested Amazon EFS functionality is not available in the specified Availability Zone."
            raise EFSError("UnsupportedAvailabilityZone", message)
        tags = {each["Key"]: each["Value"].removeprefix("fs-") for each in self._get_param("Tags") or []}
        with chosen_id(mock_random, "get_random_hex", tags):
            return super().create_file_system()

    def create_access_point(self) -> Any:
        tags = {each["Key"]: each["Value"].removeprefix("fsap-") for each in self._get_param("Tags") or []}
        with chosen_id(mock_random, "get_random_hex", tags):
            return super().create_access_point()
