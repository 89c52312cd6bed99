"""One emulated account for all checks, which only read it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from config.settings import Settings
from emulator.aws import EmulatedAws
from scripts.account.deployment import Account
from scripts.emulated import accounts
from tests.scripts.check.preflight.accounts import REGION, everything


@pytest.fixture(scope="session")
def ready_aws(boto3_data: None) -> Iterator[EmulatedAws]:
    """An account that has what the settings of `everything` name. No test changes it."""
    settings = Settings.model_validate(everything())
    with EmulatedAws() as aws:
        accounts.create_prerequisites(aws, settings)
        accounts.bootstrap(aws, settings)
        yield aws


@pytest.fixture(scope="session")
def cached_account(ready_aws: EmulatedAws) -> Account:
    """Its answers, each asked for once in a run."""
    return Account(REGION)


@pytest.fixture
def account(ready_aws: EmulatedAws, cached_account: Account, monkeypatch: pytest.MonkeyPatch) -> Account:
    """The same; this process's credentials are for it."""
    for name, value in ready_aws.settings.items():
        monkeypatch.setenv(name, value)
    return cached_account
