"""Clones of an account: what changes in one is not seen in the other, and none outlives who asked for it."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.stacks import Stacks, parameter

_OWNER = """
import signal
from emulator.aws import EmulatedAws
aws = EmulatedAws()
clone = aws.clone()
print(aws.endpoint, clone.endpoint, clone.clone().endpoint, flush=True)
signal.pause()
"""


def test_neither_sees_what_the_other_changes(aws: EmulatedAws) -> None:
    original = Stacks(aws)
    original.create("s", {"A": parameter("before", Name="a")})
    with aws.clone() as clone:
        copy = Stacks(clone)
        assert copy.values() == {"a": "before"}
        original.update("s", {"A": parameter("after", Name="a")})
        copy.delete("s")
        copy.create("t", {"B": parameter("own", Name="b")})
        assert original.values() == {"a": "after"}
        assert copy.values() == {"b": "own"}
    assert original.values() == {"a": "after"}


def test_a_clone_can_be_cloned_and_reset(aws: EmulatedAws) -> None:
    Stacks(aws).create("s", {"A": parameter("v", Name="a")})
    with aws.clone() as clone, clone.clone() as second:
        clone.reset()
        assert Stacks(clone).values() == {}
        assert Stacks(second).values() == Stacks(aws).values() == {"a": "v"}


@pytest.mark.slow
def test_clones_end_with_the_process_that_asked_for_them(wait_for: Callable[[Callable[[], bool]], None]) -> None:
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    ports = [int(endpoint.rpartition(":")[2]) for endpoint in owner.stdout.readline().split()]
    assert len(ports) == 3
    assert all(map(_is_served, ports))
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    wait_for(lambda: not any(map(_is_served, ports)))


def _is_served(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
