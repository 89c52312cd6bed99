"""Requests that lack what their action needs, or have it in another form: refused before anybody reads them.

AWS's libraries send none, unless they are told not to look (`parameter_validation`); other programs do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from botocore.model import ListShape, MapShape, OperationNotFoundError, Shape, StructureShape
from moto.core.common_types import TYPE_RESPONSE
from moto.core.exceptions import InvalidToken, ServiceException
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.request import Request, determine_request_protocol
from moto.core.responses import ActionResult, BaseResponse
from moto.core.utils import get_service_model

_OWN_FORMS: Final = "rest-xml"
"""S3 and Route 53 refuse in words of their own, and moto does so for them."""
_UNREADABLE: Final[Mapping[str, tuple[str, str]]] = {
    "ec2": ("InvalidParameterValue", "Invalid value of a parameter"),
    "query": ("MalformedInput", "Invalid value of a parameter"),
}
"""Code and message for what cannot be read, by protocol; all others have a SerializationException without a message."""


class MalformedError(ServiceException):
    """A request does not have what its action needs; moto looks for an error's service in the name of its module."""


def refuse_malformed_requests() -> None:
    """Let every action of every service refuse what its model does not allow."""
    BaseResponse.parse_parameters = _read(BaseResponse.parse_parameters)  # type: ignore[assignment,method-assign]
    BaseResponse.call_action = _checked(BaseResponse.call_action)  # type: ignore[assignment,method-assign]


def _read(parse: Callable[[BaseResponse, Request], None]) -> Callable[[BaseResponse, Request], None]:
    """Return what reads parameters, or leaves them for `_refusal`, which cannot read them either."""

    def parse_parameters(self: BaseResponse, request: Request) -> None:
        try:
            parse(self, request)
        except Exception:
            self.params = {}

    return parse_parameters


def _checked(call: Callable[[BaseResponse], TYPE_RESPONSE]) -> Callable[[BaseResponse], TYPE_RESPONSE]:
    def call_action(self: BaseResponse) -> TYPE_RESPONSE:
        refusal = _refusal(self)
        if refusal:
            return self.serialized(ActionResult(refusal))
        try:
            return call(self)
        except InvalidToken as error:  # moto's paginator talks JSON to everybody
            return self.serialized(ActionResult(MalformedError(error.error_type, error.message)))

    return call_action


def _refusal(response: BaseResponse) -> MalformedError | None:
    request, service = response.normalized_request, get_service_model(response.boto3_service_name)
    protocol = determine_request_protocol(service, request.content_type)
    try:
        operation = service.operation_model(response._get_action())
    except OperationNotFoundError:  # what is not emulated is refused by name
        return None
    if protocol == _OWN_FORMS or protocol not in PROTOCOL_PARSERS or operation.input_shape is None:
        return None
    try:
        parsed = PROTOCOL_PARSERS[protocol](operation).parse(
            {
                "method": request.method,
                "values": request.values,
                "headers": request.headers,
                "body": request.data,
                "url_path": request.path,
                "url_params": response.uri_match,
            }
        )
        is_json = protocol.endswith("json")
        said = (
            json.loads(request.data or "{}")
            if is_json and not operation.input_shape.serialization.get("payload")
            else parsed
        )
        missing = list(missing_members(operation.input_shape, said, is_json=is_json and said is not parsed))
    except Exception:
        return MalformedError(*_UNREADABLE.get(protocol, ("SerializationException", "")))
    if not missing:
        return None
    if protocol == "ec2":
        return MalformedError("MissingParameter", f"The request must contain the parameter {missing[0]}")
    # As public logs quote it, of CloudFormation and of services that talk JSON.
    each = [f"Value null at '{name[0].lower()}{name[1:]}' failed to satisfy constraint: Member must not be null"
            for name in missing]  # fmt: skip
    detected = f"{len(each)} validation error{'s' if len(each) > 1 else ''} detected"
    code = "ValidationError" if protocol == "query" else "ValidationException"
    return MalformedError(code, f"{detected}: {'; '.join(each)}")


def missing_members(shape: Shape, value: Any, path: str = "", *, is_json: bool = False) -> Iterator[str]:
    """Yield what a request lacks, by its path; what is in its address and its headers is not looked at.

    Args:
        shape: What it has to be.
        value: What it is, as moto has read it, or as JSON.
        path: Where it is.
        is_json: Whether members have the names that they have in JSON.

    Raises:
        TypeError: A value has another form than the model says.
    """
    match shape:
        case StructureShape():
            _expect(value, Mapping)
            for name, member in shape.members.items():
                each = f"{path}.{name}" if path else name
                if member.serialization.get("location") or shape.is_document_type:
                    continue
                found = value.get(member.serialization.get("name", name) if is_json else name)
                if found is not None:
                    yield from missing_members(member, found, each, is_json=is_json)
                elif name in shape.required_members:
                    yield each
        case ListShape():
            _expect(value, list)
            for number, each in enumerate(value, 1):
                yield from missing_members(shape.member, each, f"{path}.{number}.member", is_json=is_json)
        case MapShape():
            _expect(value, Mapping)
            for key, each in value.items():
                yield from missing_members(shape.value, each, f"{path}.{key}.member", is_json=is_json)
        case _ if shape.type_name in ("integer", "long", "float", "double"):
            _expect(value, int | float)
        case _:
            if isinstance(value, Mapping | list):
                raise TypeError(path)


def _expect(value: Any, kind: Any) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"got {value!r}; allowed: {kind}")
