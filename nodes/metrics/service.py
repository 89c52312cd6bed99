"""The clock of the service."""

from __future__ import annotations

import signal
import threading
import time
import zlib
from collections.abc import Callable

PERIOD = 60.0
"""Seconds between two reports."""


def next_turn(now: float, node: str) -> float:
    """Return when a node reports next, after ``now``, in seconds since 1970.

    Each node has its own moment of the minute, by its name: thousands of nodes that start together do not call
    CloudWatch together.
    """
    moment = zlib.crc32(node.encode()) / 2**32 * PERIOD
    return now + PERIOD - (now - moment) % PERIOD


def run(node: str, report: Callable[[float], object]) -> None:
    """Report at each turn of the node until SIGTERM comes."""
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    turn = next_turn(time.time(), node)
    while not stopping.wait(max(0.0, turn - time.time())):
        report(turn)
        turn = next_turn(max(turn, time.time()), node)
