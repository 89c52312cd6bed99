"""The account in which stacks are destroyed."""

import pytest

from emulator.aws import EmulatedAws
from tests.scripts.change.destroy.accounts import Account


@pytest.fixture
def account(rehearsed_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch) -> Account:
    return Account(rehearsed_aws, monkeypatch)
