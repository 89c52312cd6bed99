"""SIGINT, SIGTERM, SIGHUP and closed pipes: programs clean up what they started, and others end their work.

A signal that was ignored at the start, as SIGHUP is under nohup, stays ignored.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import IO

SECONDS_FOR_OUTPUT = 5.0
"""How long output is read after a program has ended: one that it started may keep its pipes open for ever."""
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


def run(
    words: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None, output: IO[str] | None = None
) -> int:
    """Run another program to its end, and return its exit code, as a shell does also where a signal ended it.

    Ctrl-C is left to it: a terminal sends that to both, and ending first would leave it alone. A reader of its output
    that has gone does not end it in the middle of its work: the rest is discarded.

    Args:
        words: The program and its arguments.
        directory: Where it runs.
        environment: Its environment; None: that of this process.
        output: Where its standard output goes; None: to this program's.
    """
    sinks = (output or sys.stdout, sys.stderr)
    out, err = (sink.fileno() if sink.isatty() else subprocess.PIPE for sink in sinks)
    with handled({signal.SIGINT: lambda *_: None}):  # unlike SIG_IGN, a handler is not passed on to the program
        process = subprocess.Popen(
            words, cwd=directory, env=environment, stdout=out, stderr=err, text=True, errors="replace"
        )

        def terminate(*_: object) -> None:
            process.terminate()

        with handled({signal.SIGTERM: terminate, signal.SIGHUP: terminate}):
            sources = zip((process.stdout, process.stderr), sinks, strict=True)
            readers = [Thread(target=_forward, args=each, daemon=True) for each in sources if each[0]]
            for reader in readers:
                reader.start()
            code = process.wait()
            for reader in readers:
                reader.join(SECONDS_FOR_OUTPUT)
    return 128 - code if code < 0 else code


def _forward(source: IO[str], sink: IO[str]) -> None:
    with source:
        with suppress(OSError, ValueError):  # its reader has gone, its disk is full, its encoding lacks a character
            for line in source:
                sink.write(line)
                sink.flush()
        for _ in source:  # the program continues only while its output is read
            pass
