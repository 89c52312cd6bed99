"""AWS Lambda: functions and layers. `emulator.functions` runs what these make."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from emulator.resources.api import Api
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.values import UnsupportedError

_CFNRESPONSE = Path(__file__).parents[1] / "cfnresponse.py"
"""What CloudFormation puts beside inline Python code, for custom resources to answer with."""

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


def _change_function(context: Context, physical: Physical, properties: Properties, changed: set[str]) -> None:
    client = context.client("lambda")
    configuration = {key: properties.get(key, _CONFIGURATION[key]) for key in changed.intersection(_CONFIGURATION)}
    if configuration:
        client.update_function_configuration(FunctionName=physical.ref, **configuration)
    if "Code" in changed:
        client.update_function_code(FunctionName=physical.ref, **_code(properties["Code"]))


def _delete_layer(context: Context, physical: Physical, _: Properties) -> None:
    layer, version = physical.ref.rsplit(":", 1)
    context.client("lambda").delete_layer_version(LayerName=layer, VersionNumber=int(version))


def _code(code: Properties) -> Properties:
    """Turn the Code of a template into the API's: inline Python becomes an archive of the one file that it is."""
    if not code:
        raise ResourceError("Please provide a source for function code.")
    if "ZipFile" not in code:
        return code
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("index.py", code["ZipFile"])
        file.write(_CFNRESPONSE, "cfnresponse.py")
    return {"ZipFile": archive.getvalue()}


def _function(properties: Properties) -> Properties:
    network = properties.get("VpcConfig", {})
    if bool(network.get("SubnetIds")) != bool(network.get("SecurityGroupIds")):
        raise ResourceError("SubnetIds and SecurityIds must coexist or be both empty list. (VpcConfig)")
    if network and not network.get("SubnetIds"):
        raise UnsupportedError("AWS::Lambda::Function: VpcConfig without SubnetIds")
    return {**properties, "Code": _code(properties["Code"])}


MODELS: Mapping[str, Model] = {
    "AWS::Lambda::Function": Api(
        "lambda",
        "function",
        "FunctionName",
        {"Arn": "FunctionArn"},
        name=("FunctionName", 64),
        parameters=_function,
        modification=_change_function,
        tagged="Arn",
        mutable=("Code", "Tags", *_CONFIGURATION),
    ),
    "AWS::Lambda::LayerVersion": Api(  # every change is a replacement
        "lambda",
        "layer_version",
        "LayerVersionArn",
        {"LayerVersionArn": "LayerVersionArn"},
        name=("LayerName", 140),
        creation="publish_layer_version",
        deletion=_delete_layer,
    ),
}
