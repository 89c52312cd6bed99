"""A deployment that exists, for the tests of what is done with one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from config.settings import Settings, load
from emulator.aws import EmulatedAws
from scripts.command import CONFIG
from tests.scripts.account import Operated


@pytest.fixture(scope="session")
def operated_account(boto3_data: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operated]:
    """One deployment of config/trn1-16.yaml for all tests of a worker."""
    with EmulatedAws() as aws:
        yield Operated(aws, load(CONFIG / "trn1-16.yaml"), tmp_path_factory.mktemp("operated"))


@pytest.fixture
def operated(operated_account: Operated, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operated]:
    """The deployment, with this process's credentials for it. What a test adds to it is taken away afterwards."""
    operated_account.act_as(operated_account.environment, monkeypatch)
    yield operated_account
    operated_account.clean_up()


@pytest.fixture
def deploy_operated(
    boto3_data: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Operated]]:
    """Make deployments that a test may change and end, each in an account of its own; this takes half a minute each."""
    with ExitStack() as servers:

        def deploy(settings: Settings | None = None) -> Operated:
            aws = servers.enter_context(EmulatedAws())
            made = Operated(aws, settings or load(CONFIG / "trn1-16.yaml"), tmp_path_factory.mktemp("operated"))
            made.act_as(made.environment, monkeypatch)
            return made

        yield deploy
