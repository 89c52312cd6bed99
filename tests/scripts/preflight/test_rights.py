"""What is missing of rights is told, and what is printed is enough. All cases run with the rights of their check."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripts.deployment import Deployment
from scripts.preflight.catalog import CATALOG
from scripts.preflight.check import Check, Status
from scripts.preflight.runner import run
from scripts.preflight.selection import policy
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.conftest import GoodAccount
from tests.scripts.preflight.rights import FREE, actions, allowed
from tests.scripts.preflight.test_cases import CASES

FAULTY = (Status.FAIL, Status.WARN)


def cases_of(each: Check) -> list[Case]:
    return [case for case in CASES if case.check is each]


def first_pass(each: Check) -> Case:
    return next(case for case in cases_of(each) if case.status is Status.PASS)


ASKING = [each for each in CATALOG if actions(each) - {FREE}]


@pytest.mark.parametrize("each", CATALOG, ids=lambda each: each.id)
def test_every_check_has_a_good_and_a_bad_case(each: Check) -> None:
    statuses = {case.status for case in cases_of(each)}
    assert Status.PASS in statuses
    assert statuses & set(FAULTY)


def test_ids_are_unique() -> None:
    ids = [each.id for each in CATALOG]
    assert sorted(set(ids)) == sorted(ids)


@pytest.mark.slow
@pytest.mark.parametrize("each", ASKING, ids=lambda each: each.id)
def test_without_its_rights_a_check_knows_nothing(
    each: Check, good_account: Callable[..., GoodAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = first_pass(each)
    account = good_account(case.environment, case.settings())
    case.spoil(account)
    denied = {"Effect": "Deny", "Action": sorted(actions(each)), "Resource": "*"}
    everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
    with allowed(account, {"Version": "2012-10-17", "Statement": [denied, everything]}, monkeypatch):
        found = account.look(each)
    assert Status.UNKNOWN in {finding.status for finding in found}, found
    assert not {finding.status for finding in found} & set(FAULTY), found
    assert all(finding.hint for finding in found if finding.status is Status.UNKNOWN)


@pytest.mark.parametrize("environment", ["trn1-16", "reserved"])
def test_with_the_printed_policy_everything_is_found_as_with_all_rights(
    environment: str, good_account: Callable[..., GoodAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    account = good_account(environment)

    def statuses() -> dict[str, Status]:
        answers = run(CATALOG, Deployment(environment, account.settings))
        return {result.id: result.finding.status for results in answers for result in results}

    before = statuses()
    with allowed(account, policy(CATALOG), monkeypatch):
        assert statuses() == before
    assert Status.UNKNOWN not in before.values()
