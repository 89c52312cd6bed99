"""boto3 clients of the emulated AWS, inside its own process, and what its parts log with them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import boto3
from botocore.exceptions import ClientError

from emulator.aws import SECRET
from emulator.keys import KEYS

SERVICE: Final = "ServiceName"
"""Where the metadata of a client's answers say what error messages call its service."""


@dataclass
class Endpoint:
    """Where this process serves. A clone gets another URL than the process that it was forked from."""

    url: str = ""

    @property
    def hosts(self) -> tuple[str, str]:
        """Return what a request to it may call it."""
        host = self.url.rpartition("/")[2]
        return host, host.replace("127.0.0.1", "localhost")


class Clients:
    """Clients by service and region, each made once; calling it gives one."""

    def __init__(self, endpoint: Endpoint, key: str = KEYS.own) -> None:
        self._endpoint = endpoint
        self._session = boto3.Session(key, SECRET)
        self._lock = Lock()
        self._made: dict[tuple[str, str, str], Any] = {}

    def __call__(self, service: str, region: str) -> Any:
        """Return the client of a service in a region."""
        url = self._endpoint.url
        with self._lock:  # a session is not safe for use by several threads
            if (service, region, url) not in self._made:
                client = self._session.client(service, region, endpoint_url=url)
                client.meta.events.register("after-call", _name_service)
                self._made[service, region, url] = client
            return self._made[service, region, url]

    def partition(self, region: str) -> str:
        """Return the partition that a region belongs to."""
        return str(self._session.get_partition_for_region(region))


def write_log(logs: Any, group: str, stream: str, *messages: str) -> None:
    """Write events of this moment into a log stream; group and stream are made when they are missing, as AWS does.

    Whether they exist is decided by the error's code, not by the client's own exception class: botocore makes that at
    first use, and two threads that come at once get two.
    """
    for create, name in ((logs.create_log_group, {}), (logs.create_log_stream, {"logStreamName": stream})):
        try:
            create(logGroupName=group, **name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceAlreadyExistsException":
                raise
    now = time.time_ns() // 1_000_000
    events = [{"timestamp": now, "message": message} for message in messages]
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=events)


def _name_service(model: Any, parsed: dict[str, Any], **_: object) -> None:
    parsed["ResponseMetadata"][SERVICE] = str(model.service_model.service_id).title()
