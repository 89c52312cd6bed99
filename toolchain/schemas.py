"""What AWS's resource schemas say: which types and attributes exist, which properties are valid, what replaces.

The schemas are those that cfn-lint ships; nothing is downloaded. Their format is described at
https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-fsx-filesystem-openzfsconfiguration.html
    "AWS::FSx::FileSystem": frozenset(
        {
            "FileSystemTypeVersion",
            "LustreConfiguration/CopyTagsToBackups",
            "LustreConfiguration/DeploymentType",
            "LustreConfiguration/DriveCacheType",
            "LustreConfiguration/ExportPath",
            "LustreConfiguration/ImportPath",
            "LustreConfiguration/ImportedFileChunkSize",
            # FSx has changed it in place since 2023 (https://github.com/hashicorp/terraform-provider-aws/issues/34862),
            # and the page says "No interruption"; the record of the CDK command line says that it replaces. What loses
            # data if it is true counts.
            "LustreConfiguration/PerUnitStorageThroughput",
            "OpenZFSConfiguration/DeploymentType",
            "OpenZFSConfiguration/PreferredSubnetId",
            "OpenZFSConfiguration/RootVolumeConfiguration",
        }
    ),
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbinstance.html
    "AWS::RDS::DBInstance": frozenset({"Port"}),
}
"""Properties that replace by the documentation, or by the CDK's record of it, and are not create-only in the schema."""

_UPDATED_IN_PLACE: Mapping[str, frozenset[str]] = {
    # Only an update policy AutoScalingReplacingUpdate replaces the group.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
    "AWS::AutoScaling::AutoScalingGroup": frozenset(
        {"LaunchConfigurationName", "LaunchTemplate", "MixedInstancesPolicy", "PlacementGroup", "VPCZoneIdentifier"}
    ),
    # With a root volume on EBS the instance is stopped and started instead.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-instance.html
    "AWS::EC2::Instance": frozenset({"EbsOptimized", "InstanceType", "SecurityGroupIds", "UserData"}),
    # They replace only an instance of a cluster, or a read replica.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbinstance.html
    "AWS::RDS::DBInstance": frozenset(
        {
            "AutoMinorVersionUpgrade",
            "BackupRetentionPeriod",
            "DBParameterGroupName",
            "MultiAZ",
            "PreferredMaintenanceWindow",
        }
    ),
}
"""Properties that are create-only under a condition which does not hold here; every other such condition does."""

_KEYWORDS = frozenset(Draft7Validator.VALIDATORS) - {"format"}
"""Keywords of JSON Schema itself, to which cfn-lint adds its own; formats are left to the services."""


class SchemaError(ValueError):
    """Properties do not fit their schema."""


def known(resource_type: str) -> bool:
    """Return whether CloudFormation has the type, in any region."""
    return _is_custom(resource_type) or _definition(resource_type, _REGION) is not None


def check(resource_type: str, region: str, properties: Mapping[str, Any], logical_id: str) -> None:
    """Check properties against the schema of their type.

    Raises:
        SchemaError: They do not fit, or the type does not exist in the region.
    """
    if _is_custom(resource_type):
        return
    definition = _definition(resource_type, region)
    if definition is None:
        raise SchemaError(f"Template format error: Unrecognized resource types: [{resource_type}]")
    if errors := _errors(definition.schema, coerced(resource_type, properties)):
        listed = ", ".join(errors)
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
    if resource_type == "AWS::SSM::Document" and new.get("UpdateMethod") == "NewVersion":
        create_only -= {"Attachments", "Content", "DocumentFormat", "Requires", "TargetType", "VersionName"}
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


def _errors(schema: Mapping[str, Any], properties: Mapping[str, Any]) -> list[str]:
    """Return what cfn-lint finds wrong by the keywords of JSON Schema, each with its path and once."""
    from cfnlint.jsonschema import StandardValidator  # type: ignore[import-untyped] # noqa: PLC0415

    errors = (each for each in StandardValidator(schema).iter_errors(properties) if each.validator in _KEYWORDS)
    return sorted({f"{'/'.join(['#', *map(str, each.absolute_path)])}: {each.message}" for each in errors})


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
            with suppress(ValueError):
                return int(value) if wanted == "integer" else float(value)
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
