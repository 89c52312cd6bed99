"""Who is answered: who has an access key of this emulated AWS, calls it by its own address, and is no web page.

What runs in it runs on this computer, as the user who started it. Nothing else keeps others away from its port: neither
another user of this computer nor a page in a browser, whose requests reach it also by another name (DNS rebinding).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from typing import Final, NamedTuple
from urllib.parse import parse_qs
from wsgiref.types import WSGIEnvironment
from xml.sax.saxutils import escape

from moto.s3.models import FakeBucket, FakeKey, s3_backends

from emulator.aws import ACCOUNT
from emulator.clients import Endpoint
from emulator.keys import KEYS, access_key

_OF_OWNER: Final = ("/emulator/", "/moto-api")
"""Paths of this emulator's and of moto's own controls."""
READING: Final = ("GET", "HEAD")
"""Methods that change nothing."""
_REST_XML: Final = ("cloudfront", "route53")
"""Services of this protocol, but for S3, whose errors have a form of their own."""


_OF_NODES: Final = frozenset(
    {
        "autoscaling", "cloudformation", "cloudwatch", "dynamodb", "ec2", "efs", "elb", "elbv2", "fsx", "kms", "logs",
        "pricing", "route53", "s3", "secretsmanager", "ssm", "sts",
    }
)  # fmt: skip
"""Services that nodes call. What others can be made to run, functions above all, runs on this computer."""
_OF_STACKS: Final = ("Describe", "Get", "List", "Signal")
"""Nor can what nodes ask CloudFormation for make a function."""
_WRITTEN: Final = "machines_write_here"
"""An attribute of a bucket."""
CODE_OF_MACHINES: Final = "functions and templates from {}, into which nodes write: they would run on this computer"
_of_machine: Final = ContextVar("_of_machine", default=False)
"""Whether the request that is served is a machine's."""


class Answer(NamedTuple):
    """An answer of HTTP."""

    status: HTTPStatus
    headers: list[tuple[str, str]]
    body: bytes


class _Form(NamedTuple):
    """How a protocol of AWS refuses: status and code where the key is unknown, missing or expired, and the body."""

    status: HTTPStatus
    unknown: str
    missing: str
    expired: str
    body: str


_JSON: Final = _Form(
    HTTPStatus.BAD_REQUEST,
    "UnrecognizedClientException",
    "MissingAuthenticationTokenException",
    "ExpiredTokenException",
    "json",
)
_REST_JSON: Final = _JSON._replace(status=HTTPStatus.FORBIDDEN)
_XML: Final = "<ErrorResponse><Error><Code>{}</Code><Message>{}</Message></Error></ErrorResponse>"
_QUERY: Final = _Form(HTTPStatus.FORBIDDEN, "InvalidClientTokenId", "MissingAuthenticationToken", "ExpiredToken", _XML)
_EC2: Final = _Form(
    HTTPStatus.UNAUTHORIZED,
    "AuthFailure",
    "AuthFailure",
    "RequestExpired",
    "<Response><Errors><Error><Code>{}</Code><Message>{}</Message></Error></Errors></Response>",
)
_S3: Final = _Form(
    HTTPStatus.FORBIDDEN,
    "InvalidAccessKeyId",
    "AccessDenied",
    "ExpiredToken",
    "<Error><Code>{}</Code><Message>{}</Message></Error>",
)
_DENIED: Final = {_JSON: "AccessDeniedException", _REST_JSON: "AccessDeniedException", _EC2: "UnauthorizedOperation"}
_EXPIRED: Final = "The security token included in the request is expired"
"""EC2 says "Request has expired.", S3 "The provided token has expired."; programs look at the codes.

https://github.com/hellofresh/eks-rolling-update/issues/103, https://github.com/cfn-sphere/cfn-sphere/issues/55
"""
_HINT: Final = "AWS_ACCESS_KEY_ID must be the one that this emulated AWS gives out"


def key_of(environ: WSGIEnvironment) -> str | None:
    """Return the access key of a request; None: it has none.

    https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html: a signed URL has it in the query.
    """
    if authorization := environ.get("HTTP_AUTHORIZATION"):
        return access_key(authorization)
    query = parse_qs(environ["QUERY_STRING"])
    credential = [*query.get("X-Amz-Credential", []), *query.get("AWSAccessKeyId", [])]
    return credential[0].partition("/")[0] if len(credential) == 1 else None


def refusal(environ: WSGIEnvironment, endpoint: Endpoint) -> Answer | None:
    """Return the answer to a request of a web page, or by another address than the endpoint's; None: it is neither."""
    if "HTTP_ORIGIN" in environ:
        return denied(environ, f"Origin: {environ['HTTP_ORIGIN']}: web pages are not answered")
    if (host := environ.get("HTTP_HOST", "")) not in endpoint.hosts:
        return denied(environ, f"Host: {host}; allowed: {', '.join(endpoint.hosts)}")
    return None


def refusal_of_key(environ: WSGIEnvironment) -> Answer | None:
    """Return the answer to a request without a key that allows it; None: it has one."""
    key, form = key_of(environ), _form(environ)
    if key is None:
        return _answer(form.status, form, form.missing, f"Missing Authentication Token: {_HINT}")
    if not KEYS.accept(key):
        return _answer(form.status, form, form.unknown, f"The access key does not exist here: {_HINT}")
    if KEYS.have_expired(key):
        return _answer(form.status, form, form.expired, _EXPIRED)
    if environ["PATH_INFO"].startswith(_OF_OWNER) and not KEYS.are_of_owner(key):
        return denied(environ, "Only the user who started this emulated AWS may use its controls")
    return None


def refusal_of_machine(environ: WSGIEnvironment, service: str) -> Answer | None:
    """Return the answer to a request of a machine that nodes do not make; None: they do.

    Args:
        environ: The request.
        service: moto's name of the service that it is for.
    """
    if service not in _OF_NODES:
        return denied(environ, f"Nodes do not call {service} here")
    return None


@contextmanager
def machine() -> Iterator[None]:
    """Serve a request of a machine."""
    token = _of_machine.set(True)
    try:
        yield
    finally:
        _of_machine.reset(token)


def of_machine() -> bool:
    """Tell whether the request that is served is a machine's."""
    return _of_machine.get()


def note_machines(bucket: FakeBucket) -> None:
    """Note that machines write into a bucket: no function or stack is made of what it has from now on."""
    setattr(bucket, _WRITTEN, True)


def machines_write(bucket_name: str) -> bool:
    """Tell whether machines write into a bucket. What functions and stacks are made of runs on this computer."""
    return getattr(s3_backends[ACCOUNT]["aws"].buckets.get(bucket_name), _WRITTEN, False)


def allows(action: str) -> bool:
    """Tell whether the request that is served may be for an action of CloudFormation, as moto has read it."""
    return not _of_machine.get() or action.startswith(_OF_STACKS)


def denied(environ: WSGIEnvironment, message: str) -> Answer:
    """Return the answer to a request that nobody may make who makes it like this."""
    form = _form(environ)
    return _answer(HTTPStatus.FORBIDDEN, form, _DENIED.get(form, "AccessDenied"), message)


def public_object(environ: WSGIEnvironment) -> Answer | None:
    """Return what anybody may read without a key: an object of S3 with the access control list public-read, or None.

    moto does not see the request: it would also serve another service's, for which this one can be made to look.
    """
    bucket, _, key = environ["PATH_INFO"].encode("latin-1").decode(errors="replace")[1:].partition("/")
    if environ["REQUEST_METHOD"] not in READING or environ["QUERY_STRING"] or "HTTP_AUTHORIZATION" in environ:
        return None
    stored = s3_backends[ACCOUNT]["aws"].buckets.get(bucket)
    found = stored.keys.get(key) if stored else None
    if not isinstance(found, FakeKey) or not found.acl or not found.acl.public_read:
        return None
    content = found.value
    headers = [("Content-Length", str(len(content))), ("ETag", found.etag)]
    return Answer(HTTPStatus.OK, headers, content if environ["REQUEST_METHOD"] == "GET" else b"")


def _form(environ: WSGIEnvironment) -> _Form:
    """Return how the service refuses that a request is for.

    https://docs.aws.amazon.com/awssupport/latest/APIReference/CommonErrors.html,
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
    https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html
    """
    if "HTTP_X_AMZ_TARGET" in environ:
        return _JSON
    scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition(",")[0].split("/")
    service = scope[3] if len(scope) == 5 else "s3"  # noqa: PLR2004 - key/date/region/service/aws4_request
    if service == "ec2":
        return _EC2
    if service in _REST_XML or environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return _QUERY
    return _S3 if service == "s3" else _REST_JSON


def _answer(status: HTTPStatus, form: _Form, code: str, message: str) -> Answer:
    if form.body == "json":
        body = json.dumps({"__type": code, "message": message})
        kind = "application/json"
    else:
        body, kind = form.body.format(code, escape(message)), "text/xml"
    headers = [("Content-Type", kind), ("Content-Length", str(len(body.encode()))), ("X-Amzn-ErrorType", code)]
    return Answer(status, headers, body.encode())
