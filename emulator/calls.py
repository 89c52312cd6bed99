"""Which calls of APIs were made, and by whom: tests count those of programs."""

from __future__ import annotations

import re
from threading import Lock

OWN_KEY = "testing"
"""Access key of the emulator's own calls, and of those that prepare an account: they are not counted."""

NODE_KEY = "node"
"""Access key of what nodes do by themselves: not counted, and allowed whatever the user of an account may do."""

_KEY = re.compile(r"Credential=([^/]+)/")


def access_key(authorization: str) -> str | None:
    """Return the access key in a request's header; None: it is not signed."""
    match = _KEY.search(authorization)
    return match[1] if match else None


class Calls:
    """The calls since they were last taken."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: list[str] = []

    def note(self, authorization: str, call: str) -> None:
        """Keep a call, such as ``ec2:DescribeInstances``, unless it is the emulator's own."""
        if access_key(authorization) not in (None, OWN_KEY, NODE_KEY):
            with self._lock:
                self._made.append(call)

    def take(self) -> list[str]:
        """Return the calls since the last time, in their order."""
        with self._lock:
            taken, self._made = self._made, []
            return taken


CALLS = Calls()
"""Those of the server's process: moto's response classes are made per request and have nowhere to be told."""
