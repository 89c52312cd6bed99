"""AWS Lambda: functions and layers. `emulator.functions` runs what these make."""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from emulator.resources.common import as_dictionary, retag, short_name, taken
from emulator.resources.model import Context, Model, Physical, Properties

_CFNRESPONSE = Path(__file__).parents[1] / "cfnresponse.py"
"""What CloudFormation puts beside inline Python code, for custom resources to answer with."""
_FUNCTION_NAME_LENGTH = 64
_LAYER_NAME_LENGTH = 140

_CONFIGURATION: Mapping[str, object] = {
    "Description": "",
    "Environment": {"Variables": {}},
    "Handler": "",
    "Layers": [],
    "MemorySize": 128,
    "Role": "",
    "Runtime": "",
    "Timeout": 3,
    "TracingConfig": {"Mode": "PassThrough"},
}
"""What UpdateFunctionConfiguration changes, with what a function has unless its template says otherwise."""


class Function(Model):
    """AWS::Lambda::Function, with code in S3 or inline."""

    mutable = ("Code", "Tags", *_CONFIGURATION)
    properties = ("FunctionName", *mutable)

    def create(self, context: Context, properties: Properties) -> Physical:
        name = properties.get("FunctionName", short_name(context, _FUNCTION_NAME_LENGTH))
        made = context.client("lambda").create_function(
            FunctionName=name,
            Code=_code(properties),
            Tags=as_dictionary(properties.get("Tags", [])),
            **taken(properties, _CONFIGURATION),
        )
        return Physical(name, {"Arn": made["FunctionArn"]})

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        client = context.client("lambda")
        configuration = {key: properties.get(key, _CONFIGURATION[key]) for key in changed.intersection(_CONFIGURATION)}
        if configuration:
            client.update_function_configuration(FunctionName=physical.ref, **configuration)
        if "Code" in changed:
            client.update_function_code(FunctionName=physical.ref, **_code(properties))
        retag(context, "lambda", physical.attributes["Arn"], properties, changed)
        return physical

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        context.client("lambda").delete_function(FunctionName=physical.ref)


class LayerVersion(Model):
    """AWS::Lambda::LayerVersion; every change of it is a replacement."""

    def create(self, context: Context, properties: Properties) -> Physical:
        request = {"LayerName": short_name(context, _LAYER_NAME_LENGTH), **properties}
        return Physical(context.client("lambda").publish_layer_version(**request)["LayerVersionArn"])

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        layer, _, version = physical.ref.rpartition(":")
        context.client("lambda").delete_layer_version(LayerName=layer, VersionNumber=int(version))


def _code(properties: Properties) -> Properties:
    """Turn the Code of a template into the API's: inline Python becomes an archive of the one file that it is."""
    code: Properties = properties["Code"]
    if "ZipFile" not in code:
        return code
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", code["ZipFile"])
        file.write(_CFNRESPONSE, "cfnresponse.py")
    return {"ZipFile": archive.getvalue()}


MODELS: Mapping[str, Model] = {
    "AWS::Lambda::Function": Function(),
    "AWS::Lambda::LayerVersion": LayerVersion(),
}
