"""boto3 clients of the emulated AWS, inside its own process."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any, Final

import boto3

from emulator.calls import OWN_KEY

SERVICE: Final = "ServiceName"
"""Where the metadata of a client's answers say what error messages call its service."""


@dataclass
class Endpoint:
    """Where this process serves. A clone gets another URL than the process that it was forked from."""

    url: str = ""


class Clients:
    """Clients by service and region, each made once; calling it gives one."""

    def __init__(self, endpoint: Endpoint, key: str = OWN_KEY) -> None:
        self._endpoint = endpoint
        self._session = boto3.Session(key, "testing")
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


def _name_service(model: Any, parsed: dict[str, Any], **_: object) -> None:
    parsed["ResponseMetadata"][SERVICE] = str(model.service_model.service_id).title()
