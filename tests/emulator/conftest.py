"""Accounts, and stacks in them."""

import pytest

from emulator.aws import EmulatedAws
from tests.emulator.account import Account
from tests.emulator.stacks import Stacks


@pytest.fixture(scope="module")
def account(rehearsal_server: EmulatedAws) -> Account:
    """An account for all tests of a module, empty when it starts."""
    rehearsal_server.reset()
    return Account(rehearsal_server)


@pytest.fixture
def stacks(aws: EmulatedAws) -> Stacks:
    return Stacks(aws)
