"""Work in threads of the server's process, which a clone of it continues."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Event, Thread

Work = Callable[[Event], bool]
"""Is done when it returns True. It returns False soon after the event is set, and continues when it is called again."""


class Background:
    """Work in threads, which continues in a clone."""

    def __init__(self) -> None:
        self._paused = Event()
        self._threads: dict[Work, Thread] = {}

    def start(self, work: Work) -> None:
        """Start a thread."""
        paused = self._paused

        def run() -> None:
            is_done = True
            try:
                is_done = work(paused)
            finally:
                if is_done and self._threads.get(work) is thread:
                    del self._threads[work]

        thread = self._threads[work] = Thread(target=run, daemon=True)
        thread.start()

    def pause(self, seconds: float) -> None:
        """Wait until no thread runs.

        Raises:
            ValueError: One does, after so many seconds.
        """
        self._paused.set()
        join(self._threads.values(), seconds)

    def resume(self) -> None:
        """Continue what was paused."""
        self._paused.clear()
        for work, thread in list(self._threads.items()):
            if not thread.is_alive():
                self.start(work)

    def reset(self) -> None:
        """Have all work end."""
        self._paused.set()
        self._paused = Event()
        self._threads = {}


def join(threads: Iterable[Thread], seconds: float) -> None:
    """Wait until threads have ended.

    Raises:
        ValueError: One has not, after so many seconds.
    """
    deadline = time.monotonic() + seconds
    for thread in list(threads):
        thread.join(max(deadline - time.monotonic(), 0))
        if thread.is_alive():
            raise ValueError("cannot clone an account in which something is in progress")
