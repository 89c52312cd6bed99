"""What goes wrong in EC2 on demand (`emulator.faults`)."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from typing import Any

from moto.core.common_types import TYPE_RESPONSE
from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import InstanceTypeOfferingBackend

from emulator.faults import FAULTS_IN_FORCE
from emulator.moto_patches.fleets import Fleets
from emulator.moto_patches.groups import end_what_is_due
from emulator.moto_patches.lives import shutting_down


class Ec2(Fleets):
    """EC2, which refuses what a fault in force makes it refuse. Codes and words are EC2's own.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
    """

    def call_action(self) -> TYPE_RESPONSE:
        if FAULTS_IN_FORCE.throttles(f"ec2:{self._get_action()}", self.headers.get("Authorization", "")):
            return self.serialized(ActionResult(EC2ClientError("RequestLimitExceeded", "Request limit exceeded.")))
        if "stopping" not in FAULTS_IN_FORCE:
            held = shutting_down(self.ec2_backend)
            for instance in held:
                instance._state.name, instance._state.code = "terminated", 48
            held.clear()
        end_what_is_due(self.ec2_backend)
        return super().call_action()

    def allocate_address(self) -> ActionResult:
        if "quota" in FAULTS_IN_FORCE:
            raise EC2ClientError("AddressLimitExceeded", "The maximum number of addresses has been reached.")
        return super().allocate_address()

    def delete_placement_group(self) -> ActionResult:
        if "stopping" in FAULTS_IN_FORCE:
            name = self._get_param("GroupName")
            message = f"The placement group '{name}' is in use and may not be deleted."
            raise EC2ClientError("InvalidPlacementGroup.InUse", message)
        return super().delete_placement_group()


def withhold_offerings() -> None:
    """Let no zone offer what a fault keeps it from offering, whoever asks: a user, or a launch."""
    matches = InstanceTypeOfferingBackend.matches_filters
    zone_ids = {zone.name: zone.zone_id for zones in RegionsAndZonesBackend.zones.values() for zone in zones}

    def matches_filters(backend: Any, offering: dict[str, Any], *arguments: Any) -> bool:
        zone_id = zone_ids.get(offering["Location"], offering["Location"])
        return FAULTS_IN_FORCE.offers(zone_id, offering["InstanceType"]) and matches(backend, offering, *arguments)

    InstanceTypeOfferingBackend.matches_filters = matches_filters  # type: ignore[assignment,method-assign]
