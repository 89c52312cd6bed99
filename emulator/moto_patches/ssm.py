"""AWS Systems Manager: what a parameter may be, and the public ones."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from typing import Any, cast

from moto.core.exceptions import JsonRESTError
from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends

from emulator.moto_patches.commands import Commands
from emulator.moto_patches.instances import RegisteredAmi

_PUBLIC = "/aws/service/"
_IMAGES = f"{_PUBLIC}ami-amazon-linux-latest/"
_ROOT_DEVICE = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}

_LARGEST = 4096
"""Bytes of a value of the standard tier.

https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html
"""


class Ssm(Commands):
    """Parameter Store that looks at values.

    Its public parameters name images that exist, and are not listed among the account's own.
    """

    def put_parameter(self) -> ActionResult:
        self._check_value()
        return super().put_parameter()

    def _check_value(self) -> None:
        """Refuse a value that is too long for the standard tier.

        Message: https://github.com/github-aws-runners/terraform-aws-github-runner/issues/3815.
        """
        value, tier = (self._get_param(each, "") for each in ("Value", "Tier"))
        if tier in ("", "Standard") and len(value.encode()) > _LARGEST:
            raise JsonRESTError(
                "ValidationException",
                f"Standard tier parameters support a maximum parameter value of {_LARGEST} characters. To create a "
                "larger parameter value, upgrade the parameter to use the advanced-parameter tier. For more "
                "information, see https://docs.aws.amazon.com/systems-manager/latest/userguide/"
                "parameter-store-advanced-parameters.html",
            )

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
