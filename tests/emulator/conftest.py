"""An account for the tests of a module."""

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.account import Account


@pytest.fixture(scope="module")
def account(rehearsal_server: EmulatedAws) -> Account:
    """An account for all tests of a module, empty when it starts."""
    rehearsal_server.reset()
    return Account(rehearsal_server)
