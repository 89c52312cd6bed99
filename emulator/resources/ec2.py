"""Amazon EC2: placement groups."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import tag_specifications, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


class PlacementGroup(Model):
    """AWS::EC2::PlacementGroup; every change of it is a replacement."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the group under a name of CloudFormation's."""
        request = taken(properties, ("Strategy", "PartitionCount", "SpreadLevel"))
        tags = tag_specifications(properties, "placement-group")
        context.client("ec2").create_placement_group(GroupName=context.name, **request, **tags)
        return Physical(context.name, {"GroupName": context.name})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the group."""
        with unless_gone("InvalidPlacementGroup.Unknown"):
            context.client("ec2").delete_placement_group(GroupName=physical.ref)


MODELS: Mapping[str, Model] = {"AWS::EC2::PlacementGroup": PlacementGroup()}
