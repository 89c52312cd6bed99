"""SIGINT, SIGTERM and SIGHUP: programs clean up what they started.

A signal that was ignored at the start, as SIGHUP is under nohup, stays ignored.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | signal.Handlers


@contextmanager
def handled(handlers: Mapping[signal.Signals, Handler]) -> Iterator[None]:
    """Handle signals differently for a while."""
    before = {number: signal.getsignal(number) for number in handlers}
    try:
        for number, handler in handlers.items():
            if before[number] is not signal.SIG_IGN:
                signal.signal(number, handler)
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignore these signals for a while."""
    with handled(dict.fromkeys((signal.SIGHUP, signal.SIGINT, signal.SIGTERM), signal.SIG_IGN)):
        yield
