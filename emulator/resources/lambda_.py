"""AWS Lambda: functions, permissions and layers. `emulator.functions` runs what these make."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from emulator.resources.common import as_dictionary, removed_tags, short_name, taken, taken_tags, unless_gone
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError

_CFNRESPONSE = Path(__file__).parents[1] / "cfnresponse.py"
"""What CloudFormation puts beside inline Python code, for custom resources to answer with."""
_FUNCTION_NAME_LENGTH = 64
_LAYER_NAME_LENGTH = 140

_CONFIGURATION: Mapping[str, object] = {
    "DeadLetterConfig": {},
    "Description": "",
    "Environment": {"Variables": {}},
    "EphemeralStorage": {"Size": 512},
    "Handler": "",
    "Layers": [],
    "LoggingConfig": {"LogFormat": "Text"},
    "MemorySize": 128,
    "Role": "",
    "Runtime": "",
    "Timeout": 3,
    "TracingConfig": {"Mode": "PassThrough"},
    "VpcConfig": {"SubnetIds": [], "SecurityGroupIds": []},
}
"""What UpdateFunctionConfiguration changes, with what a function has unless its template says otherwise."""


class Function(Model):
    """AWS::Lambda::Function, with code in S3 or inline."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Make the function."""
        name = properties.pop("FunctionName", short_name(context, _FUNCTION_NAME_LENGTH))
        request = taken(properties, (*_CONFIGURATION, "Architectures", "PackageType"))
        code = _code(properties.pop("Code"), request.get("Runtime", ""))
        made = context.client("lambda").create_function(
            FunctionName=name, Code=code, Tags=taken_tags(properties), **request
        )
        return Physical(name, {"Arn": made["FunctionArn"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Change configuration, code and tags."""
        client = context.client("lambda")
        if configuration := {
            key: properties.get(key, _CONFIGURATION[key]) for key in changed.intersection(_CONFIGURATION)
        }:
            client.update_function_configuration(FunctionName=physical.ref, **configuration)
        if changed & {"Code", "Architectures"}:
            request = taken(properties, ("Architectures",))
            code = _code(properties["Code"], properties.get("Runtime", ""))
            client.update_function_code(FunctionName=physical.ref, **code, **request)
        if "Tags" in changed:
            arn = physical.attributes["Arn"]
            if gone := removed_tags(context, properties):
                client.untag_resource(Resource=arn, TagKeys=gone)
            if properties.get("Tags"):
                client.tag_resource(Resource=arn, Tags=as_dictionary(properties["Tags"]))
        changed -= {*_CONFIGURATION, "Code", "Architectures", "Tags"}
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the function."""
        with unless_gone("ResourceNotFoundException"):
            context.client("lambda").delete_function(FunctionName=physical.ref)


class Permission(Model):
    """AWS::Lambda::Permission; every change of it is a replacement."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Let somebody invoke the function."""
        keys = ("Action", "EventSourceToken", "FunctionName", "FunctionUrlAuthType", "Principal", "PrincipalOrgID")
        request = taken(properties, (*keys, "SourceAccount", "SourceArn"))
        context.client("lambda").add_permission(StatementId=context.name, **request)
        return Physical(context.name, {"Id": context.name})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Remove the permission."""
        with unless_gone("ResourceNotFoundException"):
            context.client("lambda").remove_permission(
                FunctionName=properties["FunctionName"], StatementId=physical.ref
            )


class LayerVersion(Model):
    """AWS::Lambda::LayerVersion; every change of it is a replacement."""

    def create(self, context: Context, properties: Properties) -> Physical:
        """Publish the layer."""
        keys = ("CompatibleArchitectures", "CompatibleRuntimes", "Content", "Description", "LicenseInfo")
        name = properties.pop("LayerName", short_name(context, _LAYER_NAME_LENGTH))
        made = context.client("lambda").publish_layer_version(LayerName=name, **taken(properties, keys))
        return Physical(made["LayerVersionArn"], {"LayerVersionArn": made["LayerVersionArn"]})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Delete the version."""
        layer, _, version = physical.ref.rpartition(":")
        with unless_gone("ResourceNotFoundException"):
            context.client("lambda").delete_layer_version(LayerName=layer, VersionNumber=int(version))


def _code(code: Properties, runtime: str) -> Properties:
    """Turn the Code of a template into the API's: inline source becomes an archive of the one file that it is.

    Raises:
        ResourceError: The runtime takes no inline code (CloudFormation, AWS::Lambda::Function Code).
    """
    if "ZipFile" not in code:
        return code
    suffixes = {"nodejs": "js", "python": "py"}
    family = next((family for family in suffixes if runtime.startswith(family)), None)
    if family is None:
        raise ResourceError(f"ZipFile can only be used when Runtime is set to either of nodejs, python: {runtime}")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"index.{suffixes[family]}", code["ZipFile"])
        if family == "python":
            file.write(_CFNRESPONSE, "cfnresponse.py")
    return {"ZipFile": archive.getvalue()}


MODELS: Mapping[str, Model] = {
    "AWS::Lambda::Function": Function(),
    "AWS::Lambda::LayerVersion": LayerVersion(),
    "AWS::Lambda::Permission": Permission(),
}
