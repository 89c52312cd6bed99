"""What moto lacks where functions run: Lambda's Invoke without Docker, and EventBridge's schedules."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json
import re
from typing import Any, ClassVar
from urllib.parse import unquote

import moto.awslambda.models
import moto.awslambda.urls
import moto.events.urls
from moto.awslambda.exceptions import LambdaClientError
from moto.awslambda.responses import LambdaResponse
from moto.core.common_types import TYPE_RESPONSE
from moto.events.exceptions import ResourceNotFoundException
from moto.events.responses import EventsHandler
from moto.s3.models import FakeKey

from emulator import gate
from emulator.functions import FunctionError, Functions
from emulator.resources.model import NOT_EMULATED
from toolchain.values import UnsupportedError

_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")
_SECONDS = {"minute": 60, "hour": 3600, "day": 86400}


def fill(functions: Functions) -> None:
    """Register what is below with moto; call it before the server starts."""
    Lambda.functions = functions
    Events.functions = functions
    moto.awslambda.urls.url_paths = dict.fromkeys(moto.awslambda.urls.url_paths, Lambda.dispatch)
    moto.events.urls.url_paths = dict.fromkeys(moto.events.urls.url_paths, Events.dispatch)
    content = moto.awslambda.models._s3_content

    def trusted_content(key: FakeKey) -> tuple[bytes, int, str, str]:
        if gate.machines_write(key.bucket_name or ""):
            reason = NOT_EMULATED.format(gate.CODE_OF_MACHINES.format(key.bucket_name))
            raise LambdaClientError("InvalidParameterValueException", reason)
        return content(key)

    moto.awslambda.models._s3_content = trusted_content


class Lambda(LambdaResponse):
    """Lambda whose functions run as `emulator.functions` says."""

    functions: ClassVar[Functions]

    def invoke(self) -> tuple[int, dict[str, str], str | bytes]:
        name = unquote(self.path.rpartition("/invocations")[0].rpartition("/functions/")[2])
        arn = self.backend.get_function(name, self._get_param("Qualifier")).function_arn
        event = json.loads(self.body or "{}")
        headers = {"content-type": "application/json", "X-Amz-Executed-Version": "$LATEST"}
        try:
            match self.headers.get("X-Amz-Invocation-Type", "RequestResponse"):
                case "Event":
                    self.functions.send(arn, event)
                    return 202, {}, ""
                case "DryRun":
                    return 204, {}, ""
            return 200, headers, json.dumps(self.functions.invoke(arn, event))
        except FunctionError as error:
            return 200, {**headers, "X-Amz-Function-Error": "Unhandled"}, json.dumps(error.payload)
        except UnsupportedError as error:
            raise LambdaClientError("InvalidRuntimeException", NOT_EMULATED.format(error)) from None

    def delete_function(self) -> TYPE_RESPONSE:
        name = unquote(self.path.rpartition("/")[2])
        arn = self.backend.get_function(name).function_arn
        answer = super().delete_function()
        self.functions.discard(arn)
        return answer


class Events(EventsHandler):
    """EventBridge whose rules with `rate(...)` send the constant input of their targets to functions."""

    functions: ClassVar[Functions]

    def put_targets(self) -> Any:
        answer = super().put_targets()
        name, bus = self._get_param("Rule"), self._get_param("EventBusName")
        rate = _RATE.fullmatch(self.events_backend.describe_rule(name, bus).scheduled_expression or "")
        if rate:
            for target in self._get_param("Targets"):
                if ":lambda:" in target["Arn"]:
                    self._repeat(name, bus, target, int(rate[1]) * _SECONDS[rate[2]])
        return answer

    def _repeat(self, rule: str, bus: str | None, target: dict[str, Any], seconds: int) -> None:
        backend = self.events_backend

        def is_wanted() -> bool:
            try:
                return target in backend.describe_rule(rule, bus).targets
            except ResourceNotFoundException:
                return False

        self.functions.repeat(target["Arn"], json.loads(target["Input"]), seconds, is_wanted)
