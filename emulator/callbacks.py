"""Callback URLs, to which functions and nodes send what an operation of CloudFormation waits for."""

from __future__ import annotations

import json
import threading
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

PATH = "/emulator/callbacks/"
"""Where the server takes messages: an HTTP PUT or POST to this path, followed by the key of the callback."""


class Callbacks:
    """Callbacks by key. One that was opened takes messages until the reset, whether or not an operation waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[str, SimpleQueue[dict[str, Any] | None]] = {}

    def open(self, name: str = "") -> str:
        """Open a callback and return its key, which ends with the name; nobody guesses the rest."""
        key = f"{uuid4().hex}/{name}" if name else uuid4().hex
        with self._lock:
            self._queues[key] = SimpleQueue()
        return key

    def knows(self, key: str) -> bool:
        """Tell whether there is a callback."""
        with self._lock:
            return key in self._queues

    def send(self, key: str, message: bytes) -> None:
        """Send a message to a callback. What is no JSON object arrives as an empty one.

        Raises:
            LookupError: There is no such callback.
        """
        self._queue(key).put(_parsed(message))

    def wait(self, key: str, timeout: float) -> dict[str, Any] | None:
        """Wait for the next message and return it; None if none comes within the time in seconds."""
        try:
            return self._queue(key).get(timeout=max(timeout, 0))
        except Empty:
            return None

    def reset(self) -> None:
        """Remove all callbacks; what waits continues without a message."""
        with self._lock:
            queues, self._queues = self._queues, {}
        for queue in queues.values():
            queue.put(None)

    def _queue(self, key: str) -> SimpleQueue[dict[str, Any] | None]:
        with self._lock:
            if key not in self._queues:
                raise LookupError(f"no callback {key}")
            return self._queues[key]


def callback_url(endpoint: str, key: str) -> str:
    """Return the URL of a callback."""
    return f"{endpoint}{PATH}{key}"


def callback_key(url: str) -> str:
    """Return the key of the callback behind a URL."""
    return url.rpartition(PATH)[2]


def _parsed(message: bytes) -> dict[str, Any]:
    try:
        content = json.loads(message)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
