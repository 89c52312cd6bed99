"""EC2's capacity reservations, and the resource groups that hold them."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.responses import EC2Response
from moto.resourcegroups.exceptions import BadRequestException, NotFoundException
from moto.resourcegroups.models import ResourceGroupsBackend, resourcegroups_backends
from moto.resourcegroups.responses import ResourceGroupsResponse
from moto.utilities.id_generator import TAG_KEY_CUSTOM_ID

from emulator.moto_patches.tags import listed, requested_tags


class ResourceGroups(ResourceGroupsResponse):
    """Resource groups that know their members, and that are found by ARN too."""

    def group_resources(self) -> str:
        arns = self._get_param("ResourceArns")
        _members(self.resourcegroups_backend).setdefault(self._name, []).extend(arns)
        return json.dumps({"Succeeded": arns})

    def list_group_resources(self) -> str:  # type: ignore[override]  # moto only has the name
        members = _members(self.resourcegroups_backend)[self._name]
        identifiers = [{"ResourceArn": arn, "ResourceType": "AWS::EC2::CapacityReservation"} for arn in members]
        return json.dumps({"Resources": [{"Identifier": each} for each in identifiers]})

    def get_group_configuration(self) -> str:
        configuration = self.resourcegroups_backend.get_group_configuration(group_name=self._name)
        return json.dumps({"GroupConfiguration": {"Configuration": configuration}})

    @property
    def _name(self) -> str:
        named = self._get_param("Group") or self._get_param("GroupName")
        if not named:
            raise BadRequestException("Group name or ARN must be provided.")
        name: str = named.rpartition("/")[2]
        if name not in self.resourcegroups_backend.groups:
            raise NotFoundException
        return name


def _members(backend: ResourceGroupsBackend) -> dict[str, list[str]]:
    """Return the ARNs of what is in each group, by the group's name."""
    groups: dict[str, list[str]] = vars(backend).setdefault("members", {})
    return groups


_TYPE_TAG = "aws:ec2capacityreservation:capacityReservationType"
_QUANTITY_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
"""Tags of Capacity Blocks. With the first among its tags, a reservation is made as a Capacity Block."""


class Reservations(EC2Response):
    """EC2 with capacity reservations, which start, end, and are used up by launches.

    One that has ended already can be made, as a fake of an old one. A launch that targets one gets no instances
    beyond it; one that targets a group gets those on demand
    (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html).
    """

    def create_capacity_reservation(self) -> ActionResult:
        tags = requested_tags(self, "capacity-reservation")
        reservation_id = tags.get(TAG_KEY_CUSTOM_ID) or f"cr-{uuid4().hex[:17]}"
        zone = self._zone(self._get_param("AvailabilityZoneId"), self._get_param("AvailabilityZone"))
        count = int(self._get_param("InstanceCount"))
        start, end = self._get_param("StartDate"), self._get_param("EndDate")
        if _TYPE_TAG in tags:
            tags[_QUANTITY_TAG] = str(count)
        reservation = {
            "CapacityReservationId": reservation_id,
            "OwnerId": self.current_account,
            "CapacityReservationArn": f"arn:{self.partition}:ec2:{self.region}:{self.current_account}"
            f":capacity-reservation/{reservation_id}",
            "AvailabilityZone": zone.name,
            "AvailabilityZoneId": zone.zone_id,
            "InstanceType": self._get_param("InstanceType"),
            "InstancePlatform": self._get_param("InstancePlatform"),
            "Tenancy": self._get_param("Tenancy", "default"),
            "TotalInstanceCount": count,
            "StartDate": start,
            "CommitmentInfo": {"CommittedInstanceCount": count} if start and _TYPE_TAG not in tags else None,
            "EndDate": end,
            "EndDateType": "limited" if end else "unlimited",
            "InstanceMatchCriteria": self._get_param("InstanceMatchCriteria", "open"),
            "PlacementGroupArn": self._get_param("PlacementGroupArn"),
            "ReservationType": tags.get(_TYPE_TAG, "default"),
            "State": "active",
            "Tags": listed(tags),
        }
        self._reservations[reservation_id] = reservation
        return ActionResult({"CapacityReservation": self._described(reservation)})

    def describe_capacity_reservations(self) -> ActionResult:
        wanted = self._get_param("CapacityReservationIds", [])
        for reservation_id in wanted:
            self._reservation(reservation_id)
        described = [self._described(each) for key, each in self._reservations.items() if not wanted or key in wanted]
        return ActionResult({"CapacityReservations": described})

    # Helpers

    def _reserved(self, target: dict[str, str], instance_type: str, count: int) -> str | None:
        """Return the reservation that a launch with such a target uses, None for on-demand capacity.

        Codes: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html.
        """
        if reservation_id := target.get("CapacityReservationId"):
            reservation = self._described(self._reservation(reservation_id))
            if reservation["State"] == "scheduled":
                raise EC2ClientError(
                    "InvalidCapacityReservationState.PendingActivation", "Your Capacity Block is not active yet."
                )
            if reservation["AvailableInstanceCount"] < count:
                raise EC2ClientError(
                    "ReservationCapacityExceeded",
                    "The targeted Capacity Reservation does not have enough available instance capacity.",
                )
            return reservation_id
        if group_arn := target.get("CapacityReservationResourceGroupArn"):
            members = _members(resourcegroups_backends[self.current_account][self.region])
            for arn in members.get(group_arn.rpartition("/")[2], []):
                reservation = self._described(self._reservation(arn.rpartition("/")[2]))
                if reservation["InstanceType"] == instance_type and reservation["AvailableInstanceCount"] >= count:
                    return str(reservation["CapacityReservationId"])
        return None

    def _described(self, reservation: dict[str, Any]) -> dict[str, Any]:
        """Return a reservation as it is now; one that has not started has no instances, as AWS tells it."""
        now, start, end = utcnow(), reservation["StartDate"], reservation["EndDate"]
        state, total = reservation["State"], reservation["TotalInstanceCount"]
        if state == "active" and end and end <= now:
            state = "expired"
        elif state == "active" and start and start > now:
            state, total = "scheduled", 0
        free = total - self._used(reservation["CapacityReservationId"]) if state == "active" else 0
        return {**reservation, "State": state, "TotalInstanceCount": total, "AvailableInstanceCount": free}

    def _used(self, reservation_id: str) -> int:
        instances = [each for reservation in self.ec2_backend.all_reservations() for each in reservation.instances]
        return sum(
            vars(each).get("capacity_reservation_id") == reservation_id and each.state in ("pending", "running")
            for each in instances
        )

    def _reservation(self, reservation_id: str) -> dict[str, Any]:
        if reservation_id not in self._reservations:
            raise EC2ClientError(
                "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{reservation_id}' does not exist"
            )
        return self._reservations[reservation_id]

    @property
    def _reservations(self) -> dict[str, dict[str, Any]]:
        reservations: dict[str, dict[str, Any]] = vars(self.ec2_backend).setdefault("capacity_reservations", {})
        return reservations

    def _zone(self, zone_id: str | None, name: str | None) -> Any:
        for zone in self.ec2_backend.describe_availability_zones():
            if zone_id == zone.zone_id or name == zone.name:
                return zone
        raise EC2ClientError("InvalidParameterValue", f"Invalid availability zone: [{zone_id or name}]")
