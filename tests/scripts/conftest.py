"""A deployment that exists, for the tests of what commands do with one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.command_line import Call, Printed, ultracluster
from tests.deployed import DeployedAccount
from tests.scripts.operated import Operated, OperatedClone

_DEPLOYMENTS = {"operated", "operated_account"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that work with a deployment as slow."""
    for item in items:
        if isinstance(item, pytest.Function) and _DEPLOYMENTS & {*item.fixturenames}:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run a command, and return its exit code and what it printed."""
    return lambda *words: Printed(ultracluster(*words), *capsys.readouterr())


@pytest.fixture(scope="session")
def operated_account(deployed: Callable[[str], DeployedAccount]) -> Iterator[Operated]:
    """One deployment of config/trn1-16.yaml, to be read."""
    account = deployed("trn1-16")
    with account.clone() as aws:
        yield OperatedClone(aws, account.synthesized)


@pytest.fixture
def operated(deployed: Callable[[str], DeployedAccount], monkeypatch: pytest.MonkeyPatch) -> Iterator[Operated]:
    """A deployment of config/trn1-16.yaml for one test, with this process's credentials for it."""
    account = deployed("trn1-16")
    with account.clone() as aws:
        clone = OperatedClone(aws, account.synthesized)
        clone.act_as(clone.environment, monkeypatch)
        yield clone
