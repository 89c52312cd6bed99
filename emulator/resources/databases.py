"""Amazon RDS and AWS Secrets Manager."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from emulator.resources.api import Api
from emulator.resources.common import renamed, taken, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError

_LOOK_SECONDS: Final = 0.2
_OF_CLOUDFORMATION: Final = ("ApplyImmediately", "DeleteAutomatedBackups")
"""Properties of an instance that say how it is changed and deleted."""

_CHANGEABLE: Final = (
    "AllocatedStorage", "AllowMajorVersionUpgrade", "AutoMinorVersionUpgrade", "BackupRetentionPeriod",
    "CACertificateIdentifier", "CopyTagsToSnapshot", "DBInstanceClass", "DBParameterGroupName", "DeletionProtection",
    "EnableIAMDatabaseAuthentication", "EnablePerformanceInsights", "EngineVersion", "Iops", "MasterUserPassword",
    "MaxAllocatedStorage", "MonitoringInterval", "MonitoringRoleArn", "MultiAZ", "PreferredBackupWindow",
    "PreferredMaintenanceWindow", "StorageThroughput", "StorageType", "Tags", "VPCSecurityGroups",
    *_OF_CLOUDFORMATION,
)  # fmt: skip


def _create_instance(context: Context, request: Properties) -> Properties:
    """Make a database instance outside of clusters, and wait until it is available."""
    rds, name = context.client("rds"), request["DBInstanceIdentifier"].lower()
    rds.create_db_instance(**{**request, "DBInstanceIdentifier": name})
    described = _awaited(rds, name)
    endpoint = described["Endpoint"]
    return {**described, "Endpoint.Address": endpoint["Address"], "Endpoint.Port": str(endpoint["Port"])}


def _change_instance(context: Context, instance: Physical, properties: Properties, changed: set[str]) -> None:
    rds = context.client("rds")
    request = _as_parameters(taken(properties, changed.difference(("Tags", *_OF_CLOUDFORMATION))))
    if request:
        at_once = properties.get("ApplyImmediately", True)
        rds.modify_db_instance(DBInstanceIdentifier=instance.ref, ApplyImmediately=at_once, **request)
        _awaited(rds, instance.ref)


def _delete_instance(context: Context, instance: Physical, properties: Properties) -> None:
    """Delete the instance; RDS refuses one with DeletionProtection."""
    snapshot = {"FinalDBSnapshotIdentifier": _snapshot_name(context)}
    context.client("rds").delete_db_instance(
        DBInstanceIdentifier=instance.ref,
        DeleteAutomatedBackups=properties.get("DeleteAutomatedBackups", True),
        **(snapshot if context.keeps_snapshot else {"SkipFinalSnapshot": True}),
    )


def _change_subnet_group(context: Context, group: Physical, properties: Properties, changed: set[str]) -> None:
    if changed - {"Tags"}:
        request = taken(properties, ("DBSubnetGroupDescription", "SubnetIds"))
        context.client("rds").modify_db_subnet_group(DBSubnetGroupName=group.ref, **request)


def _set_parameters(context: Context, group: Physical, previous: Properties, properties: Properties) -> None:
    rds = context.client("rds")
    old, new = (each.get("Parameters", {}) for each in (previous, properties))
    if gone := [{"ParameterName": name} for name in sorted(old.keys() - new.keys())]:
        rds.reset_db_parameter_group(DBParameterGroupName=group.ref, Parameters=gone)
    values = [
        {"ParameterName": key, "ParameterValue": str(value), "ApplyMethod": "pending-reboot"}
        for key, value in new.items()
    ]
    if values:
        rds.modify_db_parameter_group(DBParameterGroupName=group.ref, Parameters=values)


def _create_secret(context: Context, request: Properties) -> Properties:
    client = context.client("secretsmanager")
    return dict(client.create_secret(**{**without(request, "GenerateSecretString"), **_value(client, request)}))


def _change_secret(context: Context, secret: Physical, properties: Properties, changed: set[str]) -> None:
    client = context.client("secretsmanager")
    request = taken(properties, changed.intersection(("Description", "KmsKeyId")))
    if changed.intersection(("GenerateSecretString", "SecretString")):
        request |= _value(client, properties)
    if request:
        client.update_secret(SecretId=secret.ref, **request)


def _delete_secret(context: Context, secret: Physical, _: Properties) -> None:
    """Delete the secret at once (aws-cloudformation/cloudformation-coverage-roadmap, issue 1999)."""
    client = context.client("secretsmanager")
    client.describe_secret(SecretId=secret.ref)  # DeleteSecret without recovery accepts one that is gone
    client.delete_secret(SecretId=secret.ref, ForceDeleteWithoutRecovery=True)


def _value(client: Any, properties: Properties) -> dict[str, str]:
    """Return the value of a secret: the one that is given, a generated one, or none.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-secretsmanager-secret-generatesecretstring.html
    """
    options = properties.get("GenerateSecretString")
    if options is None:
        return taken(properties, ("SecretString",))
    if "SecretString" in properties:
        raise ResourceError("You can't specify both SecretString and GenerateSecretString.")
    key, template = options.get("GenerateStringKey"), options.get("SecretStringTemplate")
    if (key is None) != (template is None):
        raise ResourceError("You must specify both GenerateStringKey and SecretStringTemplate, or neither of them.")
    request = without(options, "GenerateStringKey", "SecretStringTemplate")
    password = client.get_random_password(**request)["RandomPassword"]
    return {"SecretString": json.dumps({**json.loads(template), key: password}) if template else password}


def _as_parameters(properties: Properties) -> Properties:
    """Return properties of an instance as parameters of RDS.

    Raises:
        UnsupportedError: RDS is to keep the password, which it does not here.
    """
    if properties.get("ManageMasterUserPassword"):
        raise UnsupportedError("AWS::RDS::DBInstance: properties ManageMasterUserPassword")
    parameters = renamed(properties, VPCSecurityGroups="VpcSecurityGroupIds")
    numbers: Properties = {name: int(parameters[name]) for name in ("AllocatedStorage", "Port") if name in parameters}
    return {**parameters, **numbers}


def _awaited(rds: Any, name: str) -> dict[str, Any]:
    """Return what RDS says of an instance, once it neither starts nor changes."""
    while True:
        described: dict[str, Any] = rds.describe_db_instances(DBInstanceIdentifier=name)["DBInstances"][0]
        status = described["DBInstanceStatus"]
        if status == "failed":
            raise ResourceError(f"DB instance {name} is in state failed.", Physical(name))
        if status not in ("creating", "modifying", "rebooting", "starting"):
            return described
        time.sleep(_LOOK_SECONDS)


def _snapshot_name(context: Context) -> str:
    """Return the name of a final snapshot, such as Stack-snapshot-Database-1a2b3c."""
    stack = context.stack_id.split("/")[1]
    return f"{stack}-snapshot-{context.logical_id}-{context.name.rpartition('-')[2]}".lower()


def _subnet_group(properties: Properties) -> Properties:
    return {**properties, "DBSubnetGroupName": properties["DBSubnetGroupName"].lower()}


def _parameter_group(properties: Properties) -> Properties:
    name = properties["DBParameterGroupName"].lower()
    return renamed({**properties, "DBParameterGroupName": name}, Family="DBParameterGroupFamily")


MODELS: Mapping[str, Model] = {
    "AWS::RDS::DBInstance": Api(
        "rds",
        "db_instance",
        "DBInstanceIdentifier",
        {each: each for each in ("DBInstanceArn", "DbiResourceId", "Endpoint.Address", "Endpoint.Port")},
        name=("DBInstanceIdentifier", 63),
        parameters=_as_parameters,
        later=_OF_CLOUDFORMATION,
        creation=_create_instance,
        modification=_change_instance,
        deletion=_delete_instance,
        tagged="DBInstanceArn",
        mutable=_CHANGEABLE,
    ),
    "AWS::RDS::DBParameterGroup": Api(
        "rds",
        "db_parameter_group",
        "DBParameterGroupName",
        {"DBParameterGroupArn": "DBParameterGroupArn"},
        name=("DBParameterGroupName", 64),
        parameters=_parameter_group,
        later=("Parameters",),
        configuration=_set_parameters,
        tagged="DBParameterGroupArn",
        mutable=("Parameters", "Tags"),
    ),
    "AWS::RDS::DBSubnetGroup": Api(
        "rds",
        "db_subnet_group",
        "DBSubnetGroupName",
        {"DBSubnetGroupArn": "DBSubnetGroupArn"},
        name=("DBSubnetGroupName", 64),
        parameters=_subnet_group,
        modification=_change_subnet_group,
        tagged="DBSubnetGroupArn",
        mutable=("DBSubnetGroupDescription", "SubnetIds", "Tags"),
    ),
    "AWS::SecretsManager::Secret": Api(
        "secretsmanager",
        "secret",
        "ARN",
        {"Id": "ARN"},
        id="SecretId",
        name=("Name", 64),
        creation=_create_secret,
        modification=_change_secret,
        deletion=_delete_secret,
        mutable=("Description", "GenerateSecretString", "KmsKeyId", "SecretString", "Tags"),
    ),
}
