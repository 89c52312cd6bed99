"""Every check passes in a good account, and says what is wrong with a spoilt one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripts.checks.check import Status
from tests.preflight.cases import Case
from tests.preflight.conftest import GoodAccount

CASES: tuple[Case, ...] = ()
ORDER = (Status.SKIP, Status.PASS, Status.UNKNOWN, Status.WARN, Status.FAIL)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case: Case, good_account: Callable[..., GoodAccount], monkeypatch: pytest.MonkeyPatch) -> None:
    account = good_account(case.environment, case.settings())
    for name, value in case.environment_variables.items():
        monkeypatch.setenv(name, value)
    case.spoil(account)
    found = account.look(case.check)
    worst = max(found, key=lambda finding: ORDER.index(finding.status))
    assert worst.status is case.status, found
    for text in case.says:
        assert text in f"{worst.sentence}\n{worst.hint}\n{worst.command}"
    if worst.status in (Status.FAIL, Status.WARN):
        assert worst.hint, worst
