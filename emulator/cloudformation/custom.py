"""Custom resources that a Lambda function provides.

The protocol: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref.html
"""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
import time
from typing import Any
from uuid import uuid4

from moto.awslambda.exceptions import UnknownFunctionException

from emulator.callbacks import Callbacks, callback_url
from emulator.clients import Endpoint
from emulator.functions import Functions
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError
from toolchain.cluster import as_strings
from toolchain.values import UnsupportedError

LONGEST = 3600
"""Seconds that CloudFormation waits for a response, unless ServiceTimeout says less."""

LARGEST = 4096
"""Bytes that a response may have."""

_INTERVAL = 0.2


class CustomResource(Model):
    """AWS::CloudFormation::CustomResource and every `Custom::` type. Ref gives what the function calls the resource."""

    mutable = None

    def __init__(self, functions: Functions, callbacks: Callbacks, endpoint: Endpoint) -> None:
        self._functions = functions
        self._callbacks = callbacks
        self._endpoint = endpoint

    def create(self, context: Context, properties: Properties) -> Physical:
        """Send a Create request, and wait for the response.

        Raises:
            ResourceError: The function reports a failure or does not answer. A roll-back has to delete the resource
                all the same, as CloudFormation does, which then sends a Delete request.
        """
        request = {"RequestType": "Create", "ResourceProperties": as_strings(properties)}
        return self._request(context, request, properties)

    def update(self, context: Context, physical: Physical, properties: Properties, changed: set[str]) -> Physical:
        """Send an Update request. If the function names the resource differently, the old one has to be deleted."""
        request = {
            "RequestType": "Update",
            "PhysicalResourceId": physical.ref,
            "ResourceProperties": as_strings(properties),
            "OldResourceProperties": as_strings(context.previous),
        }
        return self._request(context, request, properties)

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        request = {
            "RequestType": "Delete",
            "PhysicalResourceId": physical.ref,
            "ResourceProperties": as_strings(properties),
        }
        self._request(context, request, properties)

    def _request(self, context: Context, request: dict[str, Any], properties: Properties) -> Physical:
        """Send a request to the function that the properties name."""
        token = str(properties["ServiceToken"])
        if ":lambda:" not in token:
            raise UnsupportedError(f"ServiceToken {token}; only Lambda functions provide custom resources here")
        timeout = int(properties.get("ServiceTimeout", LONGEST))
        request_id, key = str(uuid4()), self._callbacks.open()
        common = {
            "ResponseURL": callback_url(self._endpoint.url, key),
            "StackId": context.stack_id,
            "RequestId": request_id,
            "ResourceType": context.resource_type,
            "LogicalResourceId": context.logical_id,
            "ServiceToken": token,
        }
        try:
            self._functions.send(token, {**common, **request})
        except UnknownFunctionException:
            raise ResourceError(f"Function not found: {token}") from None
        response = self._response(token, key, timeout) or {}
        if reason := _failure(response, request_id):
            named = response.get("PhysicalResourceId") or context.name
            raise ResourceError(reason, Physical(named) if request["RequestType"] == "Create" else None)
        return Physical(response["PhysicalResourceId"], response.get("Data") or {})

    def _response(self, token: str, key: str, timeout: float) -> dict[str, Any] | None:
        """Wait until the function responds, its time is over, or nothing will make it respond any more.

        CloudFormation does not notice the last, and waits on.
        """
        deadline = time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            is_running = self._functions.is_at_work(token)
            response = self._callbacks.wait(key, min(left, _INTERVAL) if is_running else 0)
            if response is not None:
                self._functions.settle(token)
            if response is not None or not is_running:
                return response
        return None


def _failure(response: dict[str, Any], request_id: str) -> str:
    """Return why a response is no success, in CloudFormation's words; empty if it is one."""
    if not response:
        return (
            "CloudFormation did not receive a response from your Custom Resource. Please check your logs for requestId "
            f"[{request_id}]. If you are using the Python cfn-response module, you may need to update your Lambda "
            "function code so that CloudFormation can attach the updated version."
        )
    if len(json.dumps(response)) > LARGEST:
        return "Response object is too long."
    match response.get("Status"):
        case "SUCCESS":
            return "" if response.get("PhysicalResourceId") else "Invalid PhysicalResourceId"
        case "FAILED":
            said = response.get("Reason")
            return (
                f"Received response status [FAILED] from custom resource. Message returned: {said} "
                f"(RequestId: {request_id})"
            )
    return "Invalid response status received from custom resource"
