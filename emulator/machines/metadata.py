"""The instance metadata service of one EC2 instance, version 2 only: each request needs a token.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html,
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-metadata.html (the categories)
"""

from __future__ import annotations

import base64
import json
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import Instance
from werkzeug.serving import WSGIRequestHandler, make_server

from emulator.aws import ACCOUNT, SECRET
from emulator.keys import KEYS
from emulator.moto_patches.groups import is_held

_LONGEST_TTL: Final = 21_600
_ROOT: Final = "/latest"
_HELD_TTL: Final = timedelta(hours=6)
"""How long credentials are said to hold. They do as long as the server runs."""


class Metadata:
    """What one instance is told about itself, as a WSGI application.

    What is not known here is "404 Not Found", as what is not set on AWS: only what EC2 knows of an instance that
    ParallelCluster launches is answered.
    """

    def __init__(self, region: str, instance_id: str) -> None:
        """Take the instance; it need not exist before the first request.

        Args:
            region: Its AWS Region.
            instance_id: Its id.
        """
        self._region = region
        self._instance_id = instance_id
        self._tokens: dict[str, float] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        status, headers, body = self._answer(environ)
        length = ("Content-Length", str(len(body)))
        start_response(f"{status.value} {status.phrase}", [("Content-Type", "text/plain"), length, *headers])
        return [body]

    def _answer(self, environ: WSGIEnvironment) -> tuple[HTTPStatus, list[tuple[str, str]], bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if method == "PUT" and path == f"{_ROOT}/api/token":
            return self._give_token(environ)
        if method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, [("Allow", "GET, HEAD")], b""
        if self._tokens.get(environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN", ""), 0) <= time.monotonic():
            return HTTPStatus.UNAUTHORIZED, [], b""
        content = self._content(path)
        if content is None:
            return HTTPStatus.NOT_FOUND, [], b""
        return HTTPStatus.OK, [], content

    def _give_token(self, environ: WSGIEnvironment) -> tuple[HTTPStatus, list[tuple[str, str]], bytes]:
        ttl = environ.get("HTTP_X_AWS_EC2_METADATA_TOKEN_TTL_SECONDS", "")
        if "HTTP_X_FORWARDED_FOR" in environ:
            return HTTPStatus.FORBIDDEN, [], b""
        if not ttl.isdecimal() or not 1 <= int(ttl) <= _LONGEST_TTL:
            return HTTPStatus.BAD_REQUEST, [], b""
        token = secrets.token_urlsafe(40)
        self._tokens[token] = time.monotonic() + int(ttl)
        return HTTPStatus.OK, [("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", ttl)], token.encode()

    def _content(self, path: str) -> bytes | None:
        """Return what is at a path: a value, or the names under it; those that have names under them end in a slash."""
        values = _values(ec2_backends[ACCOUNT][self._region].get_instance(self._instance_id))
        path = path.removesuffix("/")
        if path in values:
            return values[path]
        inside = [each.removeprefix(f"{path}/") for each in values if each.startswith(f"{path}/")]
        names = {
            name + ("/" if rest or slash else "") for name, slash, rest in (each.partition("/") for each in inside)
        }
        return "\n".join(sorted(names)).encode() if names else None


def serve(listener: socket.socket, region: str, instance_id: str) -> socketserver.BaseServer:
    """Serve the metadata of an instance on a listening socket until the server is shut down; each request in a thread.

    Args:
        listener: A TCP socket that listens; the caller closes it, when it likes.
        region: The instance's AWS Region.
        instance_id: Its id.
    """
    application = Metadata(region, instance_id)
    server = make_server("127.0.0.1", 0, application, threaded=True, fd=listener.fileno(), request_handler=_Quiet)
    threading.Thread(target=server.serve_forever, name=f"metadata of {instance_id}", daemon=True).start()
    return server


class _Quiet(WSGIRequestHandler):
    def log(self, *_: Any) -> None:
        """Write no line for a request."""


def _values(instance: Instance) -> Mapping[str, bytes]:
    """Return all that can be asked for, by path."""
    texts = {
        **{f"meta-data/{key}": value for key, value in _metadata(instance).items()},
        "dynamic/instance-identity/document": json.dumps(_identity(instance), indent=2),
    }
    values = {f"{_ROOT}/{key}": str(value).encode() for key, value in texts.items() if value is not None}
    if instance.user_data:
        values[f"{_ROOT}/user-data"] = base64.b64decode(str(instance.user_data))
    return values


def _metadata(instance: Instance) -> dict[str, Any]:
    groups = list(instance.security_groups)
    values: dict[str, Any] = {
        "ami-id": instance.image_id,
        "ami-launch-index": instance.ami_launch_index,
        "autoscaling/target-lifecycle-state": _target(instance),
        "hostname": instance.private_dns_name,
        "instance-action": "none",
        "instance-id": instance.id,
        "instance-life-cycle": instance.lifecycle or "on-demand",
        "instance-type": instance.instance_type,
        "local-hostname": instance.private_dns_name,
        "local-ipv4": instance.private_ip,
        "mac": instance.nics[0].mac_address,
        "placement/availability-zone": instance.availability_zone,
        "placement/availability-zone-id": instance.nics[0].subnet.availability_zone_id,
        "placement/group-name": instance.placement.group_name or None,
        "placement/region": instance.region_name,
        "public-hostname": instance.public_dns_name,
        "public-ipv4": instance.public_ip,
        "reservation-id": _reservation_id(instance),
        "security-groups": "\n".join(group.name for group in groups),
        "services/domain": "amazonaws.com",
        "services/partition": "aws",
    }
    for number, interface in instance.nics.items():
        own = {
            "device-number": interface.device_index,
            "interface-id": interface.id,
            "local-hostname": instance.private_dns_name if number == 0 else None,
            "local-ipv4s": interface.private_ip_address,
            "mac": interface.mac_address,
            "network-card": vars(interface).get("network_card_index", 0),
            "owner-id": ACCOUNT,
            "security-group-ids": "\n".join(group.id for group in interface.group_set),
            "subnet-id": interface.subnet.id,
            "subnet-ipv4-cidr-block": interface.subnet.cidr_block,
            "vpc-id": interface.subnet.vpc_id,
            "vpc-ipv4-cidr-block": instance.ec2_backend.get_vpc(interface.subnet.vpc_id).cidr_block,
        }
        values.update({f"network/interfaces/macs/{interface.mac_address}/{key}": each for key, each in own.items()})
    return {**values, **_role(instance)}


def _target(instance: Instance) -> str | None:
    """Return the state that Auto Scaling leads the instance to; None: it is of no group."""
    if not hasattr(instance, "autoscaling_group"):
        return None
    return "Terminated" if is_held(instance.ec2_backend, instance.id) else "InService"


def _role(instance: Instance) -> dict[str, str]:
    """Return what is known of the instance's role: nothing without an instance profile."""
    association = instance.ec2_backend.iam_instance_profile_associations.get(instance.id)
    if association is None:
        return {}
    profile, now = association.iam_instance_profile, datetime.now(UTC)
    updated = {"Code": "Success", "LastUpdated": _text(now)}
    info = {**updated, "InstanceProfileArn": profile.arn, "InstanceProfileId": profile.id}
    credentials = {
        **updated,
        "Type": "AWS-HMAC",
        "AccessKeyId": KEYS.of_instance(instance.id),
        "SecretAccessKey": SECRET,
        "Token": SECRET,
        "Expiration": _text(now + _HELD_TTL),
    }
    return {
        "iam/info": json.dumps(info, indent=2),
        **{f"iam/security-credentials/{role.name}": json.dumps(credentials, indent=2) for role in profile.roles},
    }


def _identity(instance: Instance) -> dict[str, Any]:
    """Return the instance identity document.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/retrieve-iid.html
    """
    return {
        "accountId": ACCOUNT,
        "architecture": instance.architecture,
        "availabilityZone": instance.availability_zone,
        "billingProducts": None,
        "devpayProductCodes": None,
        "imageId": instance.image_id,
        "instanceId": instance.id,
        "instanceType": instance.instance_type,
        "kernelId": None,
        "marketplaceProductCodes": None,
        "pendingTime": _text(instance.launch_time),
        "privateIp": instance.private_ip,
        "ramdiskId": None,
        "region": instance.region_name,
        "version": "2017-09-30",
    }


def _reservation_id(instance: Instance) -> str | None:
    reservations = instance.ec2_backend.all_reservations()
    return next((each.id for each in reservations if instance in each.instances), None)


def _text(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
