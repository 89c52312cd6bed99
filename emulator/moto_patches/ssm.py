"""AWS Systems Manager: public parameters."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from typing import Any, cast

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends

from emulator.moto_patches.commands import Commands
from emulator.moto_patches.instances import RegisteredAmi

_PUBLIC = "/aws/service/"
_IMAGES = f"{_PUBLIC}ami-amazon-linux-latest/"
_ROOT_DEVICE = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}


class Ssm(Commands):
    """Parameter Store whose public parameters name images that exist, and are not listed among the account's own."""

    def get_parameter(self) -> ActionResult:
        answer = super().get_parameter()
        self._publish([cast(dict[str, Any], answer.result)["Parameter"]])
        return answer

    def get_parameters(self) -> ActionResult:
        answer = super().get_parameters()
        self._publish(cast(dict[str, Any], answer.result)["Parameters"])
        return answer

    def describe_parameters(self) -> ActionResult:
        answer = super().describe_parameters()
        result = cast(dict[str, Any], answer.result)
        own = [each for each in result["Parameters"] if not each["Name"].startswith(_PUBLIC)]
        return ActionResult({**result, "Parameters": own})

    def _publish(self, parameters: list[dict[str, Any]]) -> None:
        """Make the images that the parameters name, unless they exist."""
        ec2 = ec2_backends[self.current_account][self.region]
        for parameter in parameters:
            image_id = parameter["Value"]
            if parameter["Name"].startswith(_IMAGES) and image_id not in ec2.amis:
                ec2.amis[image_id] = RegisteredAmi(
                    ec2,
                    image_id,
                    name=parameter["Name"].removeprefix(_IMAGES),
                    architecture="arm64" if "arm64" in parameter["Name"] else "x86_64",
                    root_device_name=_ROOT_DEVICE["DeviceName"],
                    root_device_type="ebs",
                    virtualization_type="hvm",
                    owner_alias="amazon",
                    tags={},
                    devices=[_ROOT_DEVICE],
                )
