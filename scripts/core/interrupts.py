"""SIGINT, SIGTERM, SIGHUP and closed pipes: programs clean up what they started, and others end their work.

A stop is a stop. While a command runs, its signals are heard by one handler (`listening`), which remembers the first
and raises `KeyboardInterrupt`, so that waits and questions end at once. Even if that exception is lost, nothing is
changed afterwards: each step that changes something passes through `changing` or `run`, which raise it again. It can be
lost: an exception in the `close` of an `io.IOBase` that is being freed, as every answer of urllib3 is, goes nowhere
(https://github.com/python/cpython/blob/3.11/Modules/_io/iobase.c, iobase_finalize).

A call that changes something is not cut off in its middle, but by a second signal: its answer says what there is now.

A signal that was ignored at the start, as SIGHUP is under nohup, stays ignored. SIGKILL, which nothing can handle, also
ends the program that runs (`ending_together`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import IO

SECONDS_FOR_OUTPUT = 5.0
"""How long output is read after a program has ended: one that it started may keep its pipes open for ever."""
Handler = Callable[[int, FrameType | None], object] | signal.Handlers
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_READING = ("AssumeRole", "Describe", "Filter", "Get", "Head", "List", "Simulate")
"""How names of AWS's operations start that change nothing."""
_WATCHER = "import os, sys; sys.stdin.read(); os.kill(int(sys.argv[1]), 9)"
"""Kills a process once its standard input is closed, by the kernel if the process at the other end was killed."""
_AWAITED = b"\nStopping once AWS has answered the call in progress; the same again stops now.\n"


class Terminated(KeyboardInterrupt):
    """SIGTERM or a closed terminal; programs clean up as after Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


@dataclass
class _Heard:
    """What was heard since a command started."""

    number: int | None = None
    """The first signal."""
    calls: int = 0
    """Calls in progress that change something."""
    promises: int = 0
    """Blocks of `uninterrupted` in progress."""
    is_unsaid: bool = False
    """Whether something was changed just now, and the caller has not recorded it yet, or said so."""
    is_pending: bool = False
    """Whether the first signal is still to be raised."""


_commands: list[_Heard] = []
"""The command that listens, last; none: signals are Python's. A list, because a handler gets no argument."""


@contextmanager
def listening() -> Iterator[None]:
    """Let signals stop what is done meanwhile, and let nothing be changed after the first."""
    _commands.append(_Heard())
    try:
        if current_thread() is main_thread():
            with handled(dict.fromkeys(_SIGNALS, _hear)):
                yield
        else:
            yield
    finally:
        _commands.pop()


def stopped() -> int | None:
    """Return the first signal since the command started; None: there was none."""
    heard = _current()
    return heard.number if heard else None


def check() -> None:
    """Raise KeyboardInterrupt if a signal has stopped this command, except in `uninterrupted`."""
    heard = _current()
    if heard is None:
        return
    if current_thread() is main_thread():
        heard.is_unsaid = False
    if heard.number and not heard.promises:
        heard.is_pending = False
        raise _interruption(heard.number)


@contextmanager
def changing(operation: str = "") -> Iterator[None]:
    """Do what changes something, whole: not after a signal, and one that comes meanwhile waits for its end.

    It waits until the caller has recorded the answer, too: until the next call, wait, question or program.

    Args:
        operation: AWS's name of the operation; one that only reads is let through. Empty: something that changes.
    """
    heard, only_reads = _current(), operation.startswith(_READING)
    is_main = current_thread() is main_thread()
    if heard is None or not is_main or only_reads:  # no other thread hears signals
        if (is_main and heard and heard.is_pending) or not (only_reads or (heard and heard.calls)):
            check()  # but for threads of a change in progress, such as an upload
        if heard and is_main:
            heard.is_unsaid = False
        yield
        return
    check()
    heard.calls += 1
    try:
        yield
    finally:
        heard.is_unsaid = True
        heard.calls -= 1


def _hear(number: int, _: FrameType | None) -> None:
    """Remember a signal, and raise it, unless it must wait."""
    heard, is_first = _current(), _remember(number)
    if heard:
        heard.is_pending = is_first and bool(heard.promises or heard.calls or heard.is_unsaid)
    if heard and heard.promises:
        return
    if heard and heard.is_pending:
        if heard.calls:
            with suppress(OSError):
                os.write(2, _AWAITED)  # a handler must not use what it may have interrupted, such as sys.stderr
        return
    raise _interruption(number)


def _remember(number: int, _: FrameType | None = None) -> bool:
    """Remember a signal, and return whether it was the first."""
    heard = _current()
    if heard is None or heard.number:
        return False
    heard.number = number
    return True


def _current() -> _Heard | None:
    return _commands[-1] if _commands else None


def _interruption(number: int) -> KeyboardInterrupt:
    return KeyboardInterrupt() if number == signal.SIGINT else Terminated(number)


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
    """Do what was promised for the case of a stop, such as to cancel a command: after a signal, and despite others."""
    heard = _current()
    if heard is None or current_thread() is not main_thread():
        yield
        return
    heard.promises += 1
    try:
        yield
    finally:
        heard.promises -= 1


def run(
    words: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None, output: IO[str] | None = None
) -> int:
    """Run another program to its end, and return its exit code, as a shell does also where a signal ended it.

    Ctrl-C is left to it: a terminal sends that to both, and ending first would leave it alone. It is remembered, so
    that nothing is changed after the program's end. A reader of its output that has gone does not end it in the middle
    of its work: the rest is discarded.

    Args:
        words: The program and its arguments.
        directory: Where it runs.
        environment: Its environment; None: that of this process.
        output: Where its standard output goes; None: to this program's.

    Raises:
        KeyboardInterrupt: A signal came before: it is not started.
    """
    check()
    sinks = (output or sys.stdout, sys.stderr)
    out, err = (sink.fileno() if sink.isatty() else subprocess.PIPE for sink in sinks)
    with handled({signal.SIGINT: _remember}):  # unlike SIG_IGN, a handler is not passed on to the program
        process = subprocess.Popen(
            words, cwd=directory, env=environment, stdout=out, stderr=err, text=True, errors="replace"
        )

        def terminate(number: int, _: FrameType | None) -> None:
            _remember(number)
            process.terminate()

        with handled({signal.SIGTERM: terminate, signal.SIGHUP: terminate}), ending_together(process):
            sources = zip((process.stdout, process.stderr), sinks, strict=True)
            readers = [Thread(target=_forward, args=each, daemon=True) for each in sources if each[0]]
            for reader in readers:
                reader.start()
            code = process.wait()
            for reader in readers:
                reader.join(SECONDS_FOR_OUTPUT)
    return 128 - code if code < 0 else code


@contextmanager
def ending_together(process: subprocess.Popen[str]) -> Iterator[None]:
    """Let a program that was just started be killed as soon as this one is.

    Linux alone has a call for that (man 2 PR_SET_PDEATHSIG), which goes by threads. So another program waits for this
    one's end, in a session of its own: Ctrl-C is not for it.
    """
    words = [sys.executable, "-I", "-S", "-c", _WATCHER, str(process.pid)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    ) as watcher:
        try:
            yield
        finally:
            watcher.kill()


def _forward(source: IO[str], sink: IO[str]) -> None:
    with source:
        with suppress(OSError, ValueError):  # its reader has gone, its disk is full, its encoding lacks a character
            for line in source:
                sink.write(line)
                sink.flush()
        for _ in source:  # the program continues only while its output is read
            pass
