"""EC2 fleets of type `instant`: launches by a list of choices, all at once, as ParallelCluster makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instances import Reservation

from emulator.faults import FAULTS_IN_FORCE
from emulator.moto_patches.launches import Launches, shortage
from emulator.moto_patches.lives import LivingInstance


@dataclass(frozen=True)
class _Launched:
    """What one choice of a fleet gave: instances of one type, in one subnet."""

    choice: Mapping[str, Any]
    reservation: Reservation

    @property
    def instances(self) -> list[LivingInstance]:
        return cast(list[LivingInstance], self.reservation.instances)

    def described(self) -> dict[str, Any]:
        first = self.instances[0]
        return {**self.choice, "InstanceIds": [each.id for each in self.instances], "InstanceType": first.instance_type}


class Fleets(Launches):
    """EC2 with fleets of type `instant`; all by launch templates and without weights, and no fleet is kept.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html,
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instant-fleet.html
    """

    def create_fleet(self) -> ActionResult:
        """Launch as many as there are, of one choice after the other; below the minimum, none."""
        if self._get_param("Type") != "instant":
            return super().create_fleet()
        request, target = self.params, self._get_param("TargetCapacitySpecification")
        is_spot = target.get("DefaultTargetCapacityType") == "spot"
        lifecycle = "spot" if is_spot else "on-demand"
        options = self._get_param("SpotOptions" if is_spot else "OnDemandOptions", {})
        tags = [each for each in self._get_param("TagSpecifications", []) if each["ResourceType"] != "fleet"]
        missing = int(target["TotalTargetCapacity"])
        launched: list[_Launched] = []
        errors: list[dict[str, Any]] = []
        for template, override in _choices(request["LaunchTemplateConfigs"], options):
            chosen = {"LaunchTemplateSpecification": template, "Overrides": override}
            choice = {"LaunchTemplateAndOverrides": chosen, "Lifecycle": lifecycle}
            self.params = {"LaunchTemplate": template, "MinCount": 1, "MaxCount": missing, "TagSpecifications": tags}
            try:
                launched.append(_Launched(choice, cast(Reservation, self._launch(override).result)))
            except EC2ClientError as error:
                errors.append({**choice, "ErrorCode": error.code, "ErrorMessage": error.message})
                continue
            missing -= len(launched[-1].instances)
            if not missing:
                break
            errors.append(_shortage(launched[-1]))
        self.params = request
        if sum(len(each.instances) for each in launched) < int(options.get("MinTargetCapacity", 0)):
            for each in launched:
                self._undo(each)
            launched = []
        fleet_id = f"fleet-{uuid4()}"
        for instance in (instance for each in launched for instance in each.instances):
            instance.lifecycle = "spot" if is_spot else instance.lifecycle
            instance.add_tags({"aws:ec2:fleet-id": fleet_id})
            instance.announce()
        return ActionResult(
            {"FleetId": fleet_id, "Instances": [each.described() for each in launched], "Errors": errors}
        )

    def _undo(self, launched: _Launched) -> None:
        for instance in launched.instances:
            FAULTS_IN_FORCE.give_back(instance.instance_type, 1)
            instance.terminate()
        del self.ec2_backend.reservations[launched.reservation.id]


def _shortage(launched: _Launched) -> dict[str, Any]:
    """Return the error of a choice that gave fewer instances than were missing."""
    message = shortage(launched.instances[0].instance_type)
    return {**launched.choice, "ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": message}


def _choices(
    configs: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return the launch templates of a fleet, each with one of its overrides, in the order in which they are tried."""
    choices = [
        (config["LaunchTemplateSpecification"], override)
        for config in configs
        for override in config.get("Overrides") or [{}]
    ]
    if "prioritized" in options.get("AllocationStrategy", ""):
        choices.sort(key=lambda choice: float(choice[1].get("Priority", "inf")))
    return choices
