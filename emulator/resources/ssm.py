"""AWS Systems Manager: parameters."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.resources.common import as_list, taken, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties


class Parameter(Model):
    """AWS::SSM::Parameter of type String or StringList; unlike elsewhere, its tags are a dictionary."""

    _KEYS = ("AllowedPattern", "DataType", "Description", "Tier", "Type", "Value")

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the parameter."""
        name = properties.pop("Name", context.name)
        tags = as_list(properties.pop("Tags", {}))
        request = taken(properties, self._KEYS)
        context.client("ssm").put_parameter(Name=name, **request, **({"Tags": tags} if tags else {}))
        return _physical(name, request)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Overwrite the parameter and change its tags."""
        ssm = context.client("ssm")
        tags, old_tags = properties.get("Tags", {}), context.previous.get("Tags", {})
        request = taken(properties, self._KEYS)
        if changed.intersection(self._KEYS):
            ssm.put_parameter(Name=physical.ref, Overwrite=True, **request)
        if "Tags" in changed:
            what = {"ResourceType": "Parameter", "ResourceId": physical.ref}
            if gone := sorted(old_tags.keys() - tags.keys()):
                ssm.remove_tags_from_resource(**what, TagKeys=gone)
            if tags:
                ssm.add_tags_to_resource(**what, Tags=as_list(tags))
        changed -= {*self._KEYS, "Tags"}
        return _physical(physical.ref, request)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the parameter."""
        with unless_gone("ParameterNotFound"):
            context.client("ssm").delete_parameter(Name=physical.ref)


def _physical(name: str, properties: Properties) -> Physical:
    return Physical(name, {"Type": properties["Type"], "Value": properties["Value"]})


MODELS: Mapping[str, Model] = {"AWS::SSM::Parameter": Parameter()}
