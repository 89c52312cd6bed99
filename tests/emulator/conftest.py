"""The tests here call the emulated AWS by a short name."""

import time
from collections.abc import Callable

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.account import Account


@pytest.fixture
def aws(rehearsed_aws: EmulatedAws) -> EmulatedAws:
    return rehearsed_aws


@pytest.fixture(scope="module")
def account(rehearsal_server: EmulatedAws) -> Account:
    """An account for all tests of a module, empty at its begin."""
    rehearsal_server.reset()
    return Account(rehearsal_server)


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    """Return a function that waits until something is so, half a minute at most."""

    def wait(is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not is_so():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.2)

    return wait
