"""EC2 fleets of type `instant`: launches by a list of choices, all at once, as ParallelCluster makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast
from uuid import uuid4

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.instances import Reservation

from emulator.faults import FAULTS_IN_FORCE
from emulator.moto_patches.launches import Launches, shortage
from emulator.moto_patches.lives import LivingInstance
from emulator.resources.model import NOT_EMULATED

_FLEET: Final = "aws:ec2:fleet-id"
"""The tag of an instance with the id of its fleet."""


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
        launched: list[_Launched] = []
        errors: list[dict[str, Any]] = []
        for lifecycle, number in capacities(self._get_param("TargetCapacitySpecification")):
            filled, refused = self._fill(lifecycle, number)
            launched += filled
            errors += refused
        fleet_id = f"fleet-{uuid4()}"
        for each in launched:
            for instance in each.instances:
                instance.lifecycle = "spot" if each.choice["Lifecycle"] == "spot" else instance.lifecycle
                instance.add_tags({_FLEET: fleet_id})
                instance.announce()
        return ActionResult(
            {"FleetId": fleet_id, "Instances": [each.described() for each in launched], "Errors": errors}
        )

    def delete_fleets(self) -> ActionResult:
        """Terminate the instances of instant fleets, which have no other end; others are moto's.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DeleteFleets.html
        """
        ids, kept = self._get_param("FleetIds", []), self.ec2_backend.fleets
        if any(each in kept for each in ids):
            return super().delete_fleets()
        deleted, unknown = [], []
        for fleet_id in ids:
            tags = self.ec2_backend.describe_tags({"key": [_FLEET], "value": [fleet_id]})
            if tags:
                self.ec2_backend.terminate_instances([each["resource_id"] for each in tags])
                states = {"CurrentFleetState": "deleted_terminating", "PreviousFleetState": "active"}
                deleted.append({"FleetId": fleet_id, **states})
            else:
                error = {"Code": "fleetIdDoesNotExist", "Message": f"The fleet ID '{fleet_id}' does not exist"}
                unknown.append({"FleetId": fleet_id, "Error": error})
        return ActionResult({"SuccessfulFleetDeletions": deleted, "UnsuccessfulFleetDeletions": unknown})

    def _fill(self, lifecycle: str, number: int) -> tuple[list[_Launched], list[dict[str, Any]]]:
        """Launch so many instances of one lifecycle, and return them with what was refused; too few are none."""
        request = self.params
        options = self._get_param("SpotOptions" if lifecycle == "spot" else "OnDemandOptions", {})
        tags = [each for each in self._get_param("TagSpecifications", []) if each["ResourceType"] != "fleet"]
        missing = number
        launched: list[_Launched] = []
        errors: list[dict[str, Any]] = []
        for template, override in _choices(request["LaunchTemplateConfigs"], options):
            chosen = {"LaunchTemplateSpecification": template, "Overrides": override}
            choice = {"LaunchTemplateAndOverrides": chosen, "Lifecycle": lifecycle}
            self.params = {"LaunchTemplate": template, "MinCount": 1, "MaxCount": missing, "TagSpecifications": tags}
            try:
                reservation = cast(Reservation, self._launch(override).result)
                # The answer has the number of $Latest or $Default (test_version_resolves_to_actual_version_number).
                version = self.ec2_backend._get_template_from_args(template).number
                chosen["LaunchTemplateSpecification"] = {**template, "Version": str(version)}
                launched.append(_Launched(choice, reservation))
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
        return launched, errors

    def _undo(self, launched: _Launched) -> None:
        for instance in launched.instances:
            FAULTS_IN_FORCE.give_back(instance.instance_type, 1)
            instance.terminate()
        del self.ec2_backend.reservations[launched.reservation.id]


def capacities(target: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return how many instances of which lifecycle a fleet wants: what is told of one, and the rest of the default's.

    moto's test_create_instant_fleet_target_capacity_combinations, which passed on AWS, has the combinations. The words
    of the refusal are made up.

    Raises:
        EC2ClientError: There is no such capacity.
    """
    told = {
        lifecycle: int(target[name])
        for lifecycle, name in (("on-demand", "OnDemandTargetCapacity"), ("spot", "SpotTargetCapacity"))
        if target.get(name) is not None
    }
    default = target.get("DefaultTargetCapacityType", "on-demand")
    rest = int(target["TotalTargetCapacity"]) - sum(told.values())
    if default not in ("on-demand", "spot"):
        raise EC2ClientError("InvalidParameterValue", NOT_EMULATED.format(f"DefaultTargetCapacityType {default}"))
    if min(rest, *told.values(), 0) < 0:
        parts = ", ".join(f"{lifecycle} {number}" for lifecycle, number in told.items())
        message = f"Capacities must add up and cannot be negative: got {target['TotalTargetCapacity']} in all, {parts}"
        raise EC2ClientError("InvalidTargetCapacitySpecification", message)
    wanted = {**told, default: told.get(default, 0) + rest}
    return [(lifecycle, number) for lifecycle, number in wanted.items() if number]


def _shortage(launched: _Launched) -> dict[str, Any]:
    """Return the error of a choice that gave fewer instances than were missing."""
    message = shortage(launched.instances[0].instance_type)
    return {**launched.choice, "ErrorCode": "InsufficientInstanceCapacity", "ErrorMessage": message}


def _choices(
    configs: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return the launch templates of a fleet, each with one of its overrides, in the order in which they are tried."""
    if not all("LaunchTemplateSpecification" in config for config in configs):
        raise EC2ClientError("MissingParameter", "The request must contain the parameter LaunchTemplateSpecification")
    choices = [
        (config["LaunchTemplateSpecification"], override)
        for config in configs
        for override in config.get("Overrides") or [{}]
    ]
    if "prioritized" in options.get("AllocationStrategy", ""):
        choices.sort(key=lambda choice: float(choice[1].get("Priority", "inf")))
    return choices
