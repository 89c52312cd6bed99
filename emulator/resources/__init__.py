"""Resource types of CloudFormation: create, update and delete them over boto3 from a template's own properties.

A property that model and API do not know is an error, and so is a type without a model: nothing passes in silence.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import ClientError, ParamValidationError

from emulator.resources import (
    cdk,
    compute,
    databases,
    file_systems,
    iam,
    kms,
    lambda_,
    login_nodes,
    monitoring,
    s3,
    security_groups,
    small_services,
    vpc,
)
from emulator.resources.api import Api
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from emulator.resources.s3 import make_bucket
from toolchain.values import UnsupportedError

__all__ = [
    "MODELS",
    "Context",
    "Model",
    "Physical",
    "Properties",
    "ResourceError",
    "attributes_of",
    "create",
    "delete",
    "find",
    "make_bucket",
    "update",
]

_MODULES: Sequence[Any] = (
    cdk, compute, databases, file_systems, iam, kms, lambda_, login_nodes, monitoring, s3, security_groups,
    small_services, vpc,
)  # fmt: skip
MODELS: Mapping[str, Model] = {name: model for module in _MODULES for name, model in module.MODELS.items()}

_NOT_THERE = re.compile("NotFound|NoSuch|NotAttached|Unknown$")
"""Error codes for what does not exist."""


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


def attributes_of(resource_type: str) -> Collection[str]:
    """Return the attributes that resources of a type may have; some have not all of them."""
    model = MODELS.get(resource_type)
    return model.attributes if isinstance(model, Api) else ()


def create(
    resource_type: str, context: Context, properties: Mapping[str, Any], models: Mapping[str, Model] = MODELS
) -> Physical:
    """Make a resource.

    Raises:
        UnsupportedError: The type or one of the properties is unknown here.
        ResourceError: It could not be made; the message is the reason.
        botocore.exceptions.ClientError: AWS would refuse it.
    """
    model = find(resource_type, models)
    _check_names(f"{resource_type}: properties", properties, model.properties)
    with _checked(resource_type):
        return model.create(context, dict(properties))


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
    model = find(resource_type, models)
    previous = context.previous
    changed = {key for key in properties.keys() | previous.keys() if properties.get(key) != previous.get(key)}
    _check_names(f"{resource_type}: update of properties", changed, model.mutable)
    with _checked(resource_type):
        return model.update(context, physical, dict(properties), changed)


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
    try:
        find(resource_type, models).delete(context, physical, dict(properties))
    except ClientError as error:
        if not _NOT_THERE.search(error.response["Error"]["Code"]):
            raise


def _check_names(what: str, names: Collection[str], known: Collection[str] | None) -> None:
    if known is not None and (unknown := set(names).difference(known)):
        raise UnsupportedError(f"{what} {', '.join(sorted(unknown))}")


@contextmanager
def _checked(resource_type: str) -> Iterator[None]:
    """Refuse by name what botocore finds wrong with the parameters: AWS has it, the model here does not.

    The properties are as AWS's schema wants them, so what is unknown or missing is so in the API's own words.
    """
    try:
        yield
    except ParamValidationError as error:
        complaint = str(error).partition("\n")[2].replace("\n", "; ")
        raise UnsupportedError(f"{resource_type}: {complaint}") from None
