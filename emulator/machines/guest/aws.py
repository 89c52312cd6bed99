"""Calls of AWS and of the instance metadata service, as nodes make them, without boto3.

The emulated AWS takes the access key and the service from the header of a request and checks no signature: none is
made.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import time
import urllib.parse
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_ATTEMPTS: Final = 5
_METADATA: Final = "169.254.169.254"
_PUBLIC: Final = Path("/run/emulator/public")
"""Environment variables that every user of a machine may read: where AWS is, in which Region."""
_ENDPOINT: Final = "AWS_ENDPOINT_URL"
_ROLE_SECONDS: Final = 3600
"""How long the key of the role is used before it is asked for again; it holds for hours."""
_ROLE: Final = "meta-data/iam/security-credentials/"
_TARGETS: Final = {
    "dynamodb": ("DynamoDB_20120810", "1.0"),
    "logs": ("Logs_20140328", "1.1"),
    "secretsmanager": ("secretsmanager", "1.1"),
}
_VERSIONS: Final = {"cloudformation": "2010-05-15", "ec2": "2016-11-15"}


class AwsError(RuntimeError):
    """A call failed; `code` is AWS's, such as ResourceNotFoundException."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


def call(service: str, action: str, **arguments: object) -> dict[str, Any]:
    """Call an API with a JSON protocol, such as DynamoDB's, and return its answer.

    Raises:
        AwsError: It failed.
    """
    target, version = _TARGETS[service]
    headers = {"X-Amz-Target": f"{target}.{action}", "Content-Type": f"application/x-amz-json-{version}"}
    text = _request(service, "POST", "/", json.dumps(arguments).encode(), headers)
    answer: dict[str, Any] = json.loads(text or "{}")
    return answer


def query(service: str, action: str, **parameters: str) -> ET.Element:
    """Call an API with a query protocol, such as EC2's, and return its answer, without namespaces.

    Raises:
        AwsError: It failed.
    """
    body = urllib.parse.urlencode({"Action": action, "Version": _VERSIONS[service], **parameters}).encode()
    answer = _request(service, "POST", "/", body, {"Content-Type": "application/x-www-form-urlencoded"})
    return ET.fromstring(re.sub(rb' xmlns="[^"]*"', b"", answer))  # noqa: S314 - the emulator's own


def read_object(bucket: str, key: str, version: str = "") -> bytes:
    """Return an object of S3, in one of its versions or the newest.

    Raises:
        AwsError: It failed.
    """
    query = f"?{urllib.parse.urlencode({'versionId': version})}" if version else ""
    return _request("s3", "GET", f"/{bucket}/{urllib.parse.quote(key)}{query}", None, {})


def metadata(path: str) -> str:
    """Return what the instance metadata service says, such as of ``meta-data/instance-id``; empty: nothing.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
    """
    if not _token:
        _token.append(_exchange(_METADATA, "PUT", "/latest/api/token", None, {_TOKEN_SECONDS: "21600"})[1].decode())
    status, body = _exchange(_METADATA, "GET", f"/latest/{path}", None, {"X-aws-ec2-metadata-token": _token[0]})
    return body.decode() if status == http.client.OK else ""


def put(url: str, body: bytes) -> None:
    """Send something to a URL of the emulated AWS."""
    parts = urllib.parse.urlsplit(url)
    _exchange(parts.netloc, "PUT", parts.path, body, {"Content-Type": ""})


_TOKEN_SECONDS: Final = "X-aws-ec2-metadata-token-ttl-seconds"  # noqa: S105 - the name of a header
_token: list[str] = []


def _request(service: str, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> bytes:
    key, region = _of_role()
    scope = f"{key}/20000101/{region}/{service}/aws4_request"
    headers["Authorization"] = f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=0"
    endpoints = _endpoints()
    endpoint = endpoints.get(f"{_ENDPOINT}_{service.upper()}") or endpoints[_ENDPOINT]
    host = urllib.parse.urlsplit(endpoint).netloc
    status, answer = _exchange(host, method, path, body, headers)
    if status >= http.client.BAD_REQUEST:
        raise _error(status, answer)
    return answer


_role: list[tuple[float, str, str]] = []


def _of_role() -> tuple[str, str]:
    """Return an access key of the instance's role, and the Region: what every program of a node has.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-metadata-security-credentials.html
    """
    if not _role or _role[0][0] <= time.monotonic():
        said = metadata(f"{_ROLE}{metadata(_ROLE).strip()}")
        if not said:
            raise AwsError("NoCredentialsError", "Unable to locate credentials")
        region = metadata("meta-data/placement/region")
        _role[:] = [(time.monotonic() + _ROLE_SECONDS, str(json.loads(said)["AccessKeyId"]), region)]
    return _role[0][1:]


def _endpoints() -> Mapping[str, str]:
    """Return where AWS is: what the environment says, before what the machine knows."""
    known = dict(os.environ)
    if _ENDPOINT not in known:  # as in a login shell, or in one that cron starts
        lines = _PUBLIC.read_text(encoding="utf-8").splitlines()
        known = {**dict(line.split("=", 1) for line in lines), **known}
    return known


def _exchange(host: str, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
    """Return status and body of an answer; what answers nothing is asked again, as AWS's libraries do."""
    for pause in (0.1 * 2**number for number in range(_ATTEMPTS)):
        connection = http.client.HTTPConnection(host, timeout=60)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            last: Exception = error
            time.sleep(pause)
        finally:
            connection.close()
    raise AwsError("EndpointConnectionError", f"{host}: {last}")


def _error(status: int, answer: bytes) -> AwsError:
    text = answer.decode(errors="replace")
    if text.lstrip().startswith("{"):
        said = json.loads(text)
        code = str(said.get("__type", status)).rpartition("#")[2]
        return AwsError(code, str(said.get("message") or said.get("Message")))
    found = [re.search(rf"<{name}>(.*?)</{name}>", text, re.DOTALL) for name in ("Code", "Message")]
    code, message = (match[1] if match else str(status) for match in found)
    return AwsError(code, message)
