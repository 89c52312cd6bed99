"""Amazon RDS and AWS Secrets Manager."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Final

from emulator.resources.common import removed_tags, short_name, taken, undone_on_failure, without
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError

_LOOK_SECONDS: Final = 0.2
_NAME_LIMIT: Final = 63
_OF_CLOUDFORMATION: Final = ("ApplyImmediately", "DeleteAutomatedBackups")
"""Properties of an instance that say how it is changed and deleted."""


class DbInstance(Model):
    """AWS::RDS::DBInstance, outside of clusters."""

    mutable = (
        "AllocatedStorage", "AllowMajorVersionUpgrade", "AutoMinorVersionUpgrade", "BackupRetentionPeriod",
        "CACertificateIdentifier", "CopyTagsToSnapshot", "DBInstanceClass", "DBParameterGroupName",
        "DeletionProtection",
        "EnableIAMDatabaseAuthentication", "EnablePerformanceInsights", "EngineVersion", "Iops", "MasterUserPassword",
        "MaxAllocatedStorage", "MonitoringInterval", "MonitoringRoleArn", "MultiAZ", "PreferredBackupWindow",
        "PreferredMaintenanceWindow", "StorageThroughput", "StorageType", "Tags", "VPCSecurityGroups",
        *_OF_CLOUDFORMATION,
    )  # fmt: skip

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the instance, and wait until it is available."""
        rds = context.client("rds")
        name = properties.get("DBInstanceIdentifier", short_name(context, _NAME_LIMIT)).lower()
        request = {**_as_parameters(without(properties, "ApplyImmediately")), "DBInstanceIdentifier": name}
        rds.create_db_instance(**without(request, "DeleteAutomatedBackups"))
        described = _awaited(rds, name)
        attributes = {
            "DBInstanceArn": described["DBInstanceArn"],
            "DbiResourceId": described["DbiResourceId"],
            "Endpoint.Address": described["Endpoint"]["Address"],
            "Endpoint.Port": str(described["Endpoint"]["Port"]),
        }
        return Physical(name, attributes)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        rds = context.client("rds")
        _retag(context, physical.attributes["DBInstanceArn"], properties, changed)
        request = _as_parameters(taken(properties, changed.difference(("Tags", *_OF_CLOUDFORMATION))))
        if request:
            at_once = properties.get("ApplyImmediately", True)
            rds.modify_db_instance(DBInstanceIdentifier=physical.ref, ApplyImmediately=at_once, **request)
            _awaited(rds, physical.ref)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the instance; RDS refuses one with DeletionProtection."""
        context.client("rds").delete_db_instance(
            DBInstanceIdentifier=physical.ref,
            DeleteAutomatedBackups=properties.get("DeleteAutomatedBackups", True),
            **(
                {"FinalDBSnapshotIdentifier": _snapshot_name(context)}
                if context.keeps_snapshot
                else {"SkipFinalSnapshot": True}
            ),
        )


class DbSubnetGroup(Model):
    """AWS::RDS::DBSubnetGroup."""

    mutable = ("DBSubnetGroupDescription", "SubnetIds", "Tags")

    def create(self, context: Context, properties: Properties) -> Physical:
        request = {"DBSubnetGroupName": context.name, **properties}
        request["DBSubnetGroupName"] = request["DBSubnetGroupName"].lower()
        made = context.client("rds").create_db_subnet_group(**request)["DBSubnetGroup"]
        return Physical(made["DBSubnetGroupName"], {"DBSubnetGroupArn": made["DBSubnetGroupArn"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        _retag(context, physical.attributes["DBSubnetGroupArn"], properties, changed)
        if changed - {"Tags"}:
            request = taken(properties, ("DBSubnetGroupDescription", "SubnetIds"))
            context.client("rds").modify_db_subnet_group(DBSubnetGroupName=physical.ref, **request)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("rds").delete_db_subnet_group(DBSubnetGroupName=physical.ref)


class DbParameterGroup(Model):
    """AWS::RDS::DBParameterGroup."""

    mutable = ("Parameters", "Tags")
    properties = ("DBParameterGroupName", "Description", "Family", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        rds = context.client("rds")
        made = rds.create_db_parameter_group(
            DBParameterGroupName=properties.get("DBParameterGroupName", context.name).lower(),
            DBParameterGroupFamily=properties["Family"],
            **taken(properties, ("Description", "Tags")),
        )["DBParameterGroup"]
        name = made["DBParameterGroupName"]
        with undone_on_failure(lambda: rds.delete_db_parameter_group(DBParameterGroupName=name)):
            self._set(rds, name, properties.get("Parameters", {}))
        return Physical(name, {"DBParameterGroupArn": made["DBParameterGroupArn"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        rds = context.client("rds")
        _retag(context, physical.attributes["DBParameterGroupArn"], properties, changed)
        new, old = properties.get("Parameters", {}), context.previous.get("Parameters", {})
        if gone := [{"ParameterName": name} for name in sorted(old.keys() - new.keys())]:
            rds.reset_db_parameter_group(DBParameterGroupName=physical.ref, Parameters=gone)
        self._set(rds, physical.ref, new)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("rds").delete_db_parameter_group(DBParameterGroupName=physical.ref)

    def _set(self, rds: Any, name: str, parameters: Mapping[str, Any]) -> None:
        values = [
            {"ParameterName": key, "ParameterValue": str(value), "ApplyMethod": "pending-reboot"}
            for key, value in parameters.items()
        ]
        if values:
            rds.modify_db_parameter_group(DBParameterGroupName=name, Parameters=values)


class Secret(Model):
    """AWS::SecretsManager::Secret, in one Region."""

    _UPDATABLE = ("Description", "GenerateSecretString", "KmsKeyId", "SecretString")
    mutable = ("Tags", *_UPDATABLE)
    properties = ("Name", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        client = context.client("secretsmanager")
        request = {"Name": context.name, **without(properties, "GenerateSecretString"), **_value(client, properties)}
        arn = client.create_secret(**request)["ARN"]
        return Physical(arn, {"Id": arn})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        client = context.client("secretsmanager")
        request = taken(properties, changed.intersection(("Description", "KmsKeyId")))
        if changed.intersection(("GenerateSecretString", "SecretString")):
            request |= _value(client, properties)
        if request:
            client.update_secret(SecretId=physical.ref, **request)
        if "Tags" in changed:
            if gone := removed_tags(context, properties):
                client.untag_resource(SecretId=physical.ref, TagKeys=gone)
            client.tag_resource(SecretId=physical.ref, Tags=properties.get("Tags", []))
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the secret at once (aws-cloudformation/cloudformation-coverage-roadmap, issue 1999)."""
        client = context.client("secretsmanager")
        client.describe_secret(SecretId=physical.ref)  # DeleteSecret without recovery accepts one that is gone
        client.delete_secret(SecretId=physical.ref, ForceDeleteWithoutRecovery=True)


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
    """Return properties of an instance as parameters of RDS."""
    parameters = without(properties, "VPCSecurityGroups")
    if "VPCSecurityGroups" in properties:
        parameters["VpcSecurityGroupIds"] = properties["VPCSecurityGroups"]
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


def _retag(context: Context, arn: str, properties: Properties, changed: set[str]) -> None:
    if "Tags" not in changed:
        return
    rds = context.client("rds")
    if gone := removed_tags(context, properties):
        rds.remove_tags_from_resource(ResourceName=arn, TagKeys=gone)
    if properties.get("Tags"):
        rds.add_tags_to_resource(ResourceName=arn, Tags=properties["Tags"])


MODELS: Mapping[str, Model] = {
    "AWS::RDS::DBInstance": DbInstance(),
    "AWS::RDS::DBParameterGroup": DbParameterGroup(),
    "AWS::RDS::DBSubnetGroup": DbSubnetGroup(),
    "AWS::SecretsManager::Secret": Secret(),
}
