"""What AWS's resource schemas say: which types and attributes exist, which properties are valid, what replaces.

The schemas are those that cfn-lint ships; nothing is downloaded. Their format is described at
https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from jsonschema import Draft7Validator  # type: ignore[import-untyped]

_REGION = "us-east-1"
"""Where every type exists, which is what questions without a region are about."""

_ALSO_CREATE_ONLY: Mapping[str, frozenset[str]] = {
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-eip.html
    "AWS::EC2::EIP": frozenset({"Domain"}),
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-fsx-filesystem.html and
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-fsx-filesystem-lustreconfiguration.html
    "AWS::FSx::FileSystem": frozenset(
        {
            "FileSystemTypeVersion",
            "LustreConfiguration/CopyTagsToBackups",
            "LustreConfiguration/DeploymentType",
            "LustreConfiguration/DriveCacheType",
            "LustreConfiguration/ExportPath",
            "LustreConfiguration/ImportPath",
            "LustreConfiguration/ImportedFileChunkSize",
            "LustreConfiguration/PerUnitStorageThroughput",
        }
    ),
}
"""Properties with "Update requires: Replacement" in the documentation that the schema does not have as create-only."""

_UPDATED_IN_PLACE: Mapping[str, frozenset[str]] = {
    # Only an update policy AutoScalingReplacingUpdate replaces the group.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
    "AWS::AutoScaling::AutoScalingGroup": frozenset(
        {"LaunchConfigurationName", "LaunchTemplate", "MixedInstancesPolicy", "PlacementGroup", "VPCZoneIdentifier"}
    ),
    # With a root volume on EBS the instance is stopped and started instead.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-instance.html
    "AWS::EC2::Instance": frozenset({"EbsOptimized", "InstanceType", "SecurityGroupIds", "UserData"}),
}
"""Properties that are create-only under a condition which does not hold here; every other such condition does."""

_TYPE_NAMES = {
    "array": "JSONArray",
    "boolean": "Boolean",
    "integer": "Integer",
    "number": "Number",
    "object": "JSONObject",
    "string": "String",
}


class SchemaError(ValueError):
    """Properties do not fit their schema; the message is CloudFormation's."""


def known(resource_type: str) -> bool:
    """Return whether CloudFormation has the type, in any region."""
    return _is_custom(resource_type) or _definition(resource_type, _REGION) is not None


def check(resource_type: str, region: str, properties: Mapping[str, Any], logical_id: str) -> None:
    """Check properties against the schema of their type.

    Raises:
        SchemaError: They do not fit, in CloudFormation's words, or the type does not exist in the region.
    """
    if _is_custom(resource_type):
        return
    definition = _definition(resource_type, region)
    if definition is None:
        raise SchemaError(f"Template format error: Unrecognized resource types: [{resource_type}]")
    errors = _errors(definition.schema, coerced(resource_type, properties))
    if errors and "handlers" not in definition.schema:
        raise SchemaError(_message_of_old_type(errors[0]))
    if errors:
        listed = ", ".join(dict.fromkeys(_message(error) for error in errors))
        raise SchemaError(f"Properties validation failed for resource {logical_id} with message: [{listed}]")


def coerced(resource_type: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the properties whose scalars have the schema's types, such as 16 for "16"."""
    schema = _schema(resource_type)
    copy: dict[str, Any] = _coerced(dict(properties), schema, schema)
    return copy


def needs_replacement(resource_type: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Return the properties that differ and cannot be changed in an existing resource, as `Name` or `Name/Member`."""
    schema = _schema(resource_type)
    pointers = [*schema.get("createOnlyProperties", []), *schema.get("conditionalCreateOnlyProperties", [])]
    create_only = {pointer.removeprefix("/properties/") for pointer in pointers}
    create_only |= _ALSO_CREATE_ONLY.get(resource_type, frozenset())
    create_only -= _UPDATED_IN_PLACE.get(resource_type, frozenset())
    return {path for path in create_only if list(_at(old, path)) != list(_at(new, path))}


def with_tags(resource_type: str, properties: Mapping[str, Any], tags: Mapping[str, str]) -> dict[str, Any]:
    """Return properties with a stack's tags among the resource's; where both have a key, the resource's counts.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-resource-tags.html
    """
    schema = _schema(resource_type)
    tags_schema = _dereferenced(schema.get("properties", {}).get("Tags", {}), schema)
    if not tags or not tags_schema:
        return dict(properties)
    own = properties.get("Tags") or {}
    if tags_schema.get("type") == "object":
        return {**properties, "Tags": {**tags, **own}}
    item = _dereferenced(tags_schema["items"], schema)
    # An Auto Scaling group passes the stack's tags on to its instances.
    further = {"PropagateAtLaunch": True} if "PropagateAtLaunch" in item["properties"] else {}
    taken = {tag["Key"] for tag in own}
    inherited = [{"Key": key, "Value": value, **further} for key, value in tags.items() if key not in taken]
    return {**properties, "Tags": [*inherited, *own]}


def _is_custom(resource_type: str) -> bool:
    return resource_type == "AWS::CloudFormation::CustomResource" or resource_type.startswith("Custom::")


@cache
def _definition(resource_type: str, region: str) -> Any:
    """Return cfn-lint's Schema of a type, or None if the region does not have it."""
    # cfn-lint takes 0.4 s to import, which a server without stacks need not spend.
    from cfnlint.schema import ResourceNotFoundError  # type: ignore[import-untyped] # noqa: PLC0415
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # type: ignore[import-untyped] # noqa: PLC0415

    try:
        return PROVIDER_SCHEMA_MANAGER.get_resource_schema(region, resource_type)
    except ResourceNotFoundError:
        return None


def _schema(resource_type: str) -> Mapping[str, Any]:
    """Return the schema of a type; of a custom or an unknown one, an empty one."""
    definition = None if _is_custom(resource_type) else _definition(resource_type, _REGION)
    return definition.schema if definition else {}


def _errors(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> list[Any]:
    """Return what cfn-lint finds wrong by the keywords of JSON Schema, by path; it has keywords of its own besides."""
    from cfnlint.jsonschema import StandardValidator  # type: ignore[import-untyped] # noqa: PLC0415

    errors = [each for each in StandardValidator(schema).iter_errors(properties) if each.validator in _KEYWORDS]
    return sorted(errors, key=lambda error: [str(part) for part in error.absolute_path])


def _coerced(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    schema = _dereferenced(schema, root)
    if isinstance(value, dict):
        members = schema.get("properties", {})
        others = [*schema.get("patternProperties", {}).values(), {}]
        return {key: _coerced(each, members.get(key, others[0]), root) for key, each in value.items()}
    if isinstance(value, list):
        items = schema.get("items", {})
        return [_coerced(each, items, root) for each in value] if isinstance(items, dict) else value
    return _coerced_scalar(value, schema.get("type"))


def _dereferenced(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema


def _coerced_scalar(value: Any, wanted: Any) -> Any:
    match wanted, value:
        case "string", bool() | int() | float():
            return json.dumps(value)
        case "boolean", "true" | "false":
            return value == "true"
        case "integer" | "number", str():
            return _coerced_number(value, int if wanted == "integer" else float)
    return value


def _coerced_number(value: str, kind: Callable[[str], float]) -> float | str:
    try:
        return kind(value)
    except ValueError:
        return value


def _at(value: Any, path: str) -> Iterator[Any]:
    """Yield what stands at a path; `*` is every item of a list."""
    name, _, rest = path.partition("/")
    if name == "*":
        members = value if isinstance(value, list) else []
    else:
        members = [value[name]] if isinstance(value, dict) and name in value else []
    for each in members:
        if rest:
            yield from _at(each, rest)
        else:
            yield each


def _message(error: Any) -> str:
    """Word an error as CloudFormation does, with a pointer to where it is."""
    where = "/".join(["#", *(str(part) for part in _path(error))])
    return f"{where}: {_problem(error)}"


def _path(error: Any) -> list[str | int]:
    """Return where the object or the value is; cfn-lint's path of an extraneous key ends with the key."""
    path = list(error.absolute_path)
    return path[:-1] if error.validator == "additionalProperties" else path


def _key(error: Any) -> str:
    """Return the key that is extraneous or missing."""
    return str(error.path[-1]) if error.validator == "additionalProperties" else str(error.message.split("'")[1])


def _problem(error: Any) -> str:
    word = _PROBLEMS.get(error.validator)
    return word(error) if word else f"failed validation constraint for keyword [{error.validator}]"


def _message_of_old_type(error: Any) -> str:
    """Word an error as CloudFormation does for types that are older than its registry, which have no handlers."""
    path = [part for part in _path(error) if isinstance(part, str)]
    match error.validator:
        case "additionalProperties":
            return f"Encountered unsupported property {_key(error)}"
        case "required":
            return f"Property {_key(error)} cannot be empty."
        case "type" if path:
            return f"Value of property {path[-1]} must be of type {_old_type_name(error.validator_value)}"
    return f"Value of property {'/'.join(path)}: {_problem(error)}"


def _type_name(wanted: Any) -> str:
    return "|".join(_TYPE_NAMES[each] for each in ([wanted] if isinstance(wanted, str) else wanted))


def _type_name_of(value: Any) -> str:
    for kind, name in ((bool, "Boolean"), (int, "Integer"), (float, "Number"), (str, "String"), (list, "JSONArray")):
        if isinstance(value, kind):
            return name
    return "JSONObject"


def _old_type_name(wanted: Any) -> str:
    return {"array": "List", "object": "Object"}.get(wanted, _type_name(wanted))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


_KEYWORDS = frozenset(Draft7Validator.VALIDATORS) - {"format"}
"""Those of JSON Schema itself; formats are left to the services."""

_PROBLEMS: Mapping[str, Callable[[Any], str]] = {
    "additionalProperties": lambda error: f"extraneous key [{_key(error)}] is not permitted",
    "anyOf": lambda error: f"#: no subschema matched out of the total {len(error.validator_value)} subschemas",
    "enum": lambda error: f"{_text(error.instance)} is not a valid enum value",
    "maxItems": lambda error: f"expected maximum item count: {error.validator_value}, found: {len(error.instance)}",
    "maxLength": lambda error: f"expected maxLength: {error.validator_value}, actual: {len(error.instance)}",
    "maximum": lambda error: f"{_text(error.instance)} is not less or equal to {error.validator_value}",
    "minItems": lambda error: f"expected minimum item count: {error.validator_value}, found: {len(error.instance)}",
    "minLength": lambda error: f"expected minLength: {error.validator_value}, actual: {len(error.instance)}",
    "minimum": lambda error: f"{_text(error.instance)} is not greater or equal to {error.validator_value}",
    "required": lambda error: f"required key [{_key(error)}] not found",
    "type": lambda error: f"expected type: {_type_name(error.validator_value)}, found: {_type_name_of(error.instance)}",
    "uniqueItems": lambda _: "array items are not unique",
}
"""What CloudFormation says of a value that a keyword of the schema rejects."""
