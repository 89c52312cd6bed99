"""Clones of a running server: forks, with a port of their own and all that the account holds.

A fork keeps the thread that forks and no other. So it is the main thread, which does nothing else, and at that moment
nothing may be in progress in another: no request, no operation of CloudFormation, no function, no node.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Condition, Lock, Thread
from typing import Protocol

_PATIENCE = 30.0
"""Seconds that a clone waits for what is in progress."""


class Process(Protocol):
    """What a clone is made of: `emulator.server.Emulator`."""

    def pause(self, seconds: float) -> None:
        """Stop all that runs by itself, and wait for what is in progress.

        Raises:
            ValueError: Something is, after so many seconds.
        """

    def resume(self) -> None:
        """Let everything continue that `pause` stopped."""

    def serve(self) -> int:
        """Serve on a free port, and return it."""


class Requests:
    """Those that are being served.

    Attributes:
        of_others: How many were served that nodes did not make.
    """

    def __init__(self) -> None:
        self.of_others = 0
        self._number = 0
        self._changed = Condition()

    @contextmanager
    def served(self, *, of_node: bool = False) -> Iterator[None]:
        """Count one until the block ends."""
        with self._changed:
            self._number += 1
        try:
            yield
        finally:
            with self._changed:
                self._number -= 1
                self.of_others += not of_node
                self._changed.notify_all()

    @contextmanager
    def none(self, seconds: float) -> Iterator[None]:
        """Wait until there is none, and let none start in the block.

        Raises:
            ValueError: There is one, after so many seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._number == 0, seconds):
                raise ValueError("cannot clone an account that serves other requests")
            yield


@dataclass(frozen=True)
class _Child:
    pid: int
    life: int
    """The end of a pipe that nobody else holds: the child ends when it is closed."""


@dataclass
class _State:
    """What belongs to one process; a fork gets its own."""

    requests: Requests = field(default_factory=Requests)
    turn: Lock = field(default_factory=Lock)
    orders: SimpleQueue[SimpleQueue[int] | None] = field(default_factory=SimpleQueue)
    children: dict[int, _Child] = field(default_factory=dict)


class Clones:
    """The clones of this process."""

    def __init__(self) -> None:
        self._own = _State()

    @property
    def requests(self) -> Requests:
        """Return the requests that a clone waits for."""
        return self._own.requests

    def make(self, process: Process) -> int:
        """Clone this process, asked by a thread that serves, and return the clone's port.

        Raises:
            ValueError: Something is in progress.
        """
        own = self._own
        with own.turn:
            try:
                process.pause(_PATIENCE)
                with own.requests.none(_PATIENCE):
                    answer: SimpleQueue[int] = SimpleQueue()
                    own.orders.put(answer)
                    return answer.get()
            finally:
                process.resume()

    def end(self, port: int) -> None:
        """End a clone of this process, and wait until it is gone.

        Raises:
            ValueError: There is none at this port.
        """
        child = self._own.children.pop(port, None)
        if child is None:
            raise ValueError(f"no clone at port {port}")
        os.close(child.life)
        os.waitpid(child.pid, 0)

    def run(self, process: Process, life: int) -> None:
        """Fork whenever a clone is ordered, until the file `life` ends. A clone, too, returns when its life ends."""
        self._watch(life)
        while (answer := self._own.orders.get()) is not None:
            life_end, life = os.pipe()
            port_end, port_start = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(life)
                os.close(port_end)
                self._become_clone(process, life_end, port_start)
                continue
            os.close(life_end)
            os.close(port_start)
            with os.fdopen(port_end) as file:
                port = int(file.read())
            self._own.children[port] = _Child(pid, life)
            answer.put(port)
        for port in list(self._own.children):
            self.end(port)

    def _become_clone(self, process: Process, life: int, port: int) -> None:
        for child in self._own.children.values():
            os.close(child.life)
        self._own = _State()
        _drop_sockets()
        self._watch(life)
        number = process.serve()
        process.resume()
        with os.fdopen(port, "w") as file:
            file.write(str(number))

    def _watch(self, life: int) -> None:
        """Have `run` return when a file ends."""
        orders = self._own.orders

        def watch() -> None:
            while os.read(life, 1):
                pass
            orders.put(None)

        Thread(target=watch, daemon=True).start()


def _drop_sockets() -> None:
    """Let go of the connections of the process that this one was forked from; their objects keep their numbers."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in [int(each) for each in os.listdir("/dev/fd")]:  # noqa: PTH208 - names, no paths
        with suppress(OSError):  # the listing's own is closed by now
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.dup2(nothing, number, inheritable=False)
    os.close(nothing)
