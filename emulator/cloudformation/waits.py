"""Wait conditions: a stack waits until something outside of it reports success to a URL.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-waitcondition.html
"""

# ruff: noqa: D102 - a method does what Model says
from __future__ import annotations

import json
import time

from emulator.callbacks import Callbacks, callback_key, callback_url
from emulator.clients import Endpoint
from emulator.clock import Clock
from emulator.resources.model import Context, Model, Physical, Properties, ResourceError

LONGEST = 43200
"""Seconds that a wait condition may wait at most, and waits unless told otherwise."""


class WaitConditionHandle(Model):
    """A URL for signals. Ref gives the URL, which on AWS is a presigned one of S3 that has the logical id, too."""

    def __init__(self, callbacks: Callbacks, endpoint: Endpoint) -> None:
        self._callbacks = callbacks
        self._endpoint = endpoint

    def create(self, context: Context, properties: Properties) -> Physical:
        del properties
        return Physical(callback_url(self._endpoint.url, self._callbacks.open(context.logical_id)))

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Leave the box: a presigned URL of AWS outlives its handle, too."""


class WaitCondition(Model):
    """Waits for signals. Those with the same UniqueId count once. `Data` has what they say.

    Ref has the name of the handle, not its own: LocalStack's test_waitcondition recorded it.
    """

    def __init__(self, callbacks: Callbacks, clock: Clock) -> None:
        self._callbacks = callbacks
        self._clock = clock

    def create(self, context: Context, properties: Properties) -> Physical:
        """Wait until enough signals have come.

        Raises:
            ResourceError: One of them reports a failure or is invalid, or the time is over.
        """
        if "Handle" not in properties:
            raise ResourceError("Property Handle cannot be empty.")
        key = callback_key(properties["Handle"])
        if not self._callbacks.knows(key):
            raise ResourceError(f"WaitConditionHandle {properties['Handle']} does not exist")
        timeout = str(properties.get("Timeout", LONGEST))
        if not timeout.isdecimal() or int(timeout) > LONGEST:
            raise ResourceError(f"Value of property Timeout must be a number of seconds up to {LONGEST}: got {timeout}")
        expected = int(properties.get("Count", 1))
        deadline = time.monotonic() + self._clock.limit(float(timeout))
        received: dict[str, str] = {}
        while len(received) < expected:
            signal = self._callbacks.wait(key, deadline - time.monotonic())
            if signal is None:
                raise ResourceError(
                    f"WaitCondition timed out. Received {len(received)} conditions when expecting {expected}"
                )
            if signal.get("Status") not in ("SUCCESS", "FAILURE") or not signal.get("UniqueId"):
                raise ResourceError("Unparsable WaitCondition data")
            if signal["Status"] == "FAILURE":
                reason, unique_id = signal.get("Reason", ""), signal["UniqueId"]
                raise ResourceError(f"WaitCondition received failed message: '{reason}' for uniqueId: {unique_id}")
            received[signal["UniqueId"]] = signal.get("Data", "")
        handle = key.partition("/")[2] or context.logical_id
        return Physical(f"{context.stack_id}/{handle}", {"Data": json.dumps(received)})

    def delete(self, context: Context, physical: Physical, properties: Properties) -> None:
        """Nothing is left of one."""
