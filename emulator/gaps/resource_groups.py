"""Resource groups."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json

from moto.resourcegroups.exceptions import NotFoundException
from moto.resourcegroups.models import ResourceGroupsBackend, resourcegroups_backends
from moto.resourcegroups.responses import ResourceGroupsResponse


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
        return _members(self.resourcegroups_backend)


def members(account: str, region: str, group_arn: str) -> list[str]:
    """Return the ARNs of what is in a group."""
    return _members(resourcegroups_backends[account][region]).get(group_arn.rpartition("/")[2], [])


def _members(backend: ResourceGroupsBackend) -> dict[str, list[str]]:
    found: dict[str, list[str]] = vars(backend).setdefault("members", {})
    return found
