"""Which calls of APIs were made, and by whom: tests count those of programs."""

from __future__ import annotations

from threading import Lock

from emulator.keys import KEYS, access_key


class Calls:
    """The calls since they were last taken."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: list[str] = []

    def note(self, authorization: str, call: str) -> None:
        """Keep a call, such as ``ec2:DescribeInstances``, unless it is the emulator's own."""
        key = access_key(authorization)
        if key not in (None, KEYS.own) and not KEYS.are_of_node(key):
            with self._lock:
                self._made.append(call)

    def take(self) -> list[str]:
        """Return the calls since the last time, in their order."""
        with self._lock:
            taken, self._made = self._made, []
            return taken


CALLS = Calls()
"""Those of the server's process: moto's response classes are made per request and have nowhere to be told."""
