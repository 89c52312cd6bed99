"""Letters that somebody waits for: what functions and nodes send to the URLs that CloudFormation gives them."""

from __future__ import annotations

import json
import threading
from queue import Empty, SimpleQueue
from typing import Any
from uuid import uuid4

PATH = "/emulator/mail/"
"""Where the server takes letters: an HTTP PUT or POST to this path, followed by the key of the box."""


class Mailbox:
    """Boxes by key. One that was opened takes letters until the mailbox is reset, whether or not anybody waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boxes: dict[str, SimpleQueue[dict[str, Any] | None]] = {}

    def open(self) -> str:
        """Open a box and return its key."""
        key = uuid4().hex
        with self._lock:
            self._boxes[key] = SimpleQueue()
        return key

    def post(self, key: str, letter: bytes | dict[str, Any]) -> None:
        """Put a letter into a box. What is no JSON object arrives as an empty one, which no reader understands.

        Raises:
            LookupError: There is no such box.
        """
        content = _parsed(letter) if isinstance(letter, bytes) else letter
        self._box(key).put(content)

    def take(self, key: str, timeout: float) -> dict[str, Any] | None:
        """Return the next letter, waiting for it; None if none comes within the time in seconds."""
        try:
            return self._box(key).get(timeout=max(timeout, 0))
        except Empty:
            return None

    def reset(self) -> None:
        """Remove all boxes; whoever waits goes away without a letter."""
        with self._lock:
            boxes, self._boxes = self._boxes, {}
        for box in boxes.values():
            box.put(None)

    def _box(self, key: str) -> SimpleQueue[dict[str, Any] | None]:
        with self._lock:
            if key not in self._boxes:
                raise LookupError(f"no mailbox {key}")
            return self._boxes[key]


def mail_url(endpoint: str, key: str) -> str:
    """Return the URL at which a box takes letters."""
    return f"{endpoint}{PATH}{key}"


def mail_key(url: str) -> str:
    """Return the key of the box behind a URL."""
    return url.rpartition(PATH)[2]


def _parsed(letter: bytes) -> dict[str, Any]:
    try:
        content = json.loads(letter)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
