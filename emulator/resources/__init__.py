"""Resource types of CloudFormation: create, update and delete them over boto3 from a template's own properties.

A model takes the properties that it knows out of a dictionary and calls the API with them; what is left over is a
property that it does not know, and an error. So is a type without a model: nothing passes in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from botocore.exceptions import ParamValidationError

from emulator.resources import (
    cdk,
    cloudwatch,
    compute,
    dlm,
    dynamodb,
    ecr,
    file_systems,
    iam,
    kms,
    lambda_,
    login_nodes,
    logs,
    route53,
    s3,
    security_groups,
    sns,
    ssm,
    vpc,
)
from emulator.resources.common import check_tags
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from emulator.resources.s3 import make_bucket
from toolchain.values import UnsupportedError

__all__ = [
    "COMPANIONS",
    "MODELS",
    "Context",
    "Model",
    "Physical",
    "Properties",
    "ResourceError",
    "create",
    "delete",
    "find",
    "make_bucket",
    "update",
]

MODELS: Mapping[str, Model] = {
    **cdk.MODELS,
    **cloudwatch.MODELS,
    **compute.MODELS,
    **dlm.MODELS,
    **dynamodb.MODELS,
    **ecr.MODELS,
    **file_systems.MODELS,
    **iam.MODELS,
    **kms.MODELS,
    **lambda_.MODELS,
    **login_nodes.MODELS,
    **logs.MODELS,
    **route53.MODELS,
    **s3.MODELS,
    **security_groups.MODELS,
    **sns.MODELS,
    **ssm.MODELS,
    **vpc.MODELS,
}

COMPANIONS: Mapping[str, str] = {
    "AWS::EC2::Route": "RouteTableId",
    "AWS::EC2::SecurityGroupEgress": "GroupId",
    "AWS::EC2::SecurityGroupIngress": "GroupId",
    "AWS::EC2::SubnetRouteTableAssociation": "SubnetId",
    "AWS::EC2::VPCGatewayAttachment": "VpcId",
}
"""Types that nothing refers to, but that change what the resource in the named property does."""


def find(resource_type: str, models: Mapping[str, Model] = MODELS) -> Model:
    """Return the model of a type; a `Custom::` type without one of its own is a custom resource like any other.

    Raises:
        UnsupportedError: There is none.
    """
    if resource_type in models:
        return models[resource_type]
    general = "AWS::CloudFormation::CustomResource"
    if resource_type.startswith("Custom::") and general in models:
        return models[general]
    raise UnsupportedError(f"resource type {resource_type}")


def create(
    resource_type: str, context: Context, properties: Mapping[str, Any], models: Mapping[str, Model] = MODELS
) -> Physical:
    """Make a resource.

    Raises:
        UnsupportedError: The type or one of the properties is unknown here; nothing remains of the resource.
        ResourceError: It could not be made; the message is the reason.
        botocore.exceptions.ClientError: AWS would refuse it.
    """
    model = find(resource_type, models)
    _check_tags(resource_type, properties)
    remaining = deepcopy(dict(properties))
    with _checked():
        made = model.create(context, remaining)
    if remaining:
        model.delete(context, made, deepcopy(dict(properties)))
        raise UnsupportedError(f"{resource_type}: properties {', '.join(sorted(remaining))}")
    return made


def update(
    resource_type: str,
    context: Context,
    physical: Physical,
    properties: Mapping[str, Any],
    models: Mapping[str, Model] = MODELS,
) -> Physical:
    """Change a resource in place from `context.previous` to these properties.

    Raises:
        UnsupportedError: A property that changed cannot be changed in place here.
        ResourceError: It could not be changed; the message is the reason.
        botocore.exceptions.ClientError: AWS would refuse it.
    """
    _check_tags(resource_type, properties)
    previous = context.previous
    changed = {key for key in properties.keys() | previous.keys() if properties.get(key) != previous.get(key)}
    with _checked():
        updated = find(resource_type, models).update(context, physical, deepcopy(dict(properties)), changed)
    if changed:
        raise UnsupportedError(f"{resource_type}: update of properties {', '.join(sorted(changed))}")
    return updated


def delete(
    resource_type: str,
    context: Context,
    physical: Physical,
    properties: Mapping[str, Any],
    models: Mapping[str, Model] = MODELS,
) -> None:
    """Delete a resource; one that is gone already is no error.

    Raises:
        ResourceError: It could not be deleted; the message is the reason.
        botocore.exceptions.ClientError: AWS would refuse it.
    """
    find(resource_type, models).delete(context, physical, deepcopy(dict(properties)))


def _check_tags(resource_type: str, properties: Mapping[str, Any]) -> None:
    """Check the tags of a type of AWS; a custom resource may call anything Tags."""
    if resource_type.startswith("AWS::") and resource_type != "AWS::CloudFormation::CustomResource":
        check_tags(properties.get("Tags", []))


@contextmanager
def _checked() -> Iterator[None]:
    """Report what botocore itself finds wrong with the parameters, unknown members among them, as the reason."""
    try:
        yield
    except ParamValidationError as error:
        raise ResourceError(str(error)) from None
