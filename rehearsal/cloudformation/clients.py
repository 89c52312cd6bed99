"""boto3 clients of the emulated AWS, inside its own process."""

from __future__ import annotations

from threading import Lock
from typing import Any

import boto3

from rehearsal.resources.model import UnsupportedError


class Clients:
    """Clients by service and region, each made once; calling it gives one."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._session = boto3.Session("testing", "testing")
        self._lock = Lock()
        self._made: dict[tuple[str, str], Any] = {}

    def __call__(self, service: str, region: str) -> Any:
        """Return the client of a service in a region."""
        with self._lock:  # a session is not safe for use by several threads
            if (service, region) not in self._made:
                self._made[service, region] = self._session.client(service, region, endpoint_url=self._endpoint)
            return self._made[service, region]

    def partition(self, region: str) -> str:
        """Return the partition that a region belongs to.

        Raises:
            UnsupportedError: boto3 does not know the region.
        """
        for partition in self._session.get_available_partitions():
            if region in self._session.get_available_regions("ec2", partition):
                return str(partition)
        raise UnsupportedError(f"region {region}")

    def service_of(self, operation: str) -> str:
        """Return what error messages call the service that has an operation, of those that have a client."""
        with self._lock:
            models = [client.meta.service_model for client in self._made.values()]
        names = (str(model.service_id).title() for model in models if operation in model.operation_names)
        return next(names, "AWS")
