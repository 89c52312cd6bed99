"""With the rights that it names, every check passes in a good account, and says what is wrong with a spoilt one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripts.preflight.check import Status
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.cases_access import CASES as ACCESS
from tests.scripts.preflight.cases_capacity import CASES as CAPACITY
from tests.scripts.preflight.cases_cluster import CASES as CLUSTER
from tests.scripts.preflight.cases_data import CASES as DATA
from tests.scripts.preflight.cases_images import CASES as IMAGES
from tests.scripts.preflight.cases_names import CASES as NAMES
from tests.scripts.preflight.cases_network import CASES as NETWORK
from tests.scripts.preflight.cases_quotas import CASES as QUOTAS
from tests.scripts.preflight.cases_tools import CASES as TOOLS
from tests.scripts.preflight.cases_zones import CASES as ZONES
from tests.scripts.preflight.conftest import GoodAccount
from tests.scripts.preflight.rights import only_what_it_names

CASES: tuple[Case, ...] = (*ACCESS, *CAPACITY, *CLUSTER, *DATA, *IMAGES, *NAMES, *NETWORK, *QUOTAS, *TOOLS, *ZONES)
ORDER = (Status.SKIP, Status.PASS, Status.UNKNOWN, Status.WARN, Status.FAIL)


@pytest.mark.parametrize("case", [pytest.param(each, id=each.id, marks=each.marks) for each in CASES])
def test_case(case: Case, good_account: Callable[..., GoodAccount], monkeypatch: pytest.MonkeyPatch) -> None:
    account = good_account(case.environment, case.settings())
    case.patch(monkeypatch)
    case.spoil(account)
    with only_what_it_names(case.check, account, monkeypatch):
        for name, value in case.environment_variables.items():
            monkeypatch.setenv(name, value)
        found = account.look(case.check)
    worst = max(found, key=lambda finding: ORDER.index(finding.status))
    assert worst.status is case.status, found
    told = "\n".join(f"{each.sentence}\n{each.hint}\n{each.command}" for each in found if each.status is worst.status)
    for text in case.says:
        assert text in told
    if worst.status in (Status.FAIL, Status.WARN):
        assert worst.hint, worst
