"""A check without its permissions is UNKNOWN, and the policy that is printed has all that checks need.

That a check calls nothing else is asserted of each case.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from config.settings import Settings
from emulator.aws import EmulatedAws
from scripts.account.deployment import Account, Deployment
from scripts.check.preflight.catalog import CATALOG, policy
from scripts.check.preflight.check import Check
from scripts.check.preflight.cluster import parallelcluster
from scripts.check.preflight.runner import run
from scripts.core.findings import PASS, SKIP, UNKNOWN, CheckStatus
from tests.scripts.check.preflight.accounts import Case, Raw, everything, new_network
from tests.scripts.check.preflight.test_accounting import accounting, existing
from tests.scripts.check.preflight.test_budget import with_a_budget
from tests.scripts.check.preflight.test_data import database
from tests.scripts.check.preflight.test_homes import homes, made, openzfs, openzfs_made
from tests.scripts.check.preflight.test_images import own_image
from tests.scripts.check.preflight.test_network import hidden_head_node, spread
from tests.scripts.check.preflight.test_quotas import SPOT, STANDARD_SPOT, block, ultracluster
from tests.scripts.check.preflight.test_roles import with_roles
from tests.scripts.check.preflight.test_zones import with_endpoints
from tests.scripts.refusals import refusal

FREE = "sts:GetCallerIdentity"
"""Nobody can be denied it: https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html."""
CALLING = [
    each for each in CATALOG if {one.action for one in each.permissions} - {FREE} and each is not parallelcluster
]
SETTINGS: list[tuple[Callable[[], Raw], Callable[[Raw], object]]] = [
    (everything, bool),
    (everything, own_image),
    (everything, database),
    (new_network, accounting),
    (new_network, existing),
    (new_network, homes),
    (new_network, made),
    (new_network, openzfs),
    (new_network, openzfs_made),
    (everything, with_a_budget),
    (everything, hidden_head_node),
    (everything, spread),
    (everything, block(instance_type="trn2.48xlarge")),
    (new_network, with_endpoints("ssm")),
    (new_network, with_roles),
    (new_network, SPOT),
    (new_network, STANDARD_SPOT),
    (ultracluster, bool),
]
"""For each check, some have what it checks."""


@pytest.mark.parametrize("each", CALLING, ids=lambda each: each.id)
def test_without_its_permissions_a_check_is_unknown(each: Check, account: Account) -> None:
    denied = {"": refusal("UnauthorizedOperation")}
    cases = [Case(each, UNKNOWN, edit=edit, base=base, answers=denied) for base, edit in SETTINGS]
    results = [finding for case in cases for finding in case.findings(account)]
    assert {finding.status for finding in results} <= {UNKNOWN, SKIP, PASS}
    unknown = [finding for finding in results if finding.status is UNKNOWN]
    assert unknown
    assert all(finding.hint for finding in unknown)


@pytest.mark.slow
@pytest.mark.parametrize("base", [everything, new_network])
def test_the_printed_policy_is_enough(
    base: Callable[[], Raw], ready_aws: EmulatedAws, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [each for each in CATALOG if each is not parallelcluster]
    settings = Settings.model_validate(base())

    def statuses() -> dict[str, CheckStatus]:
        return {one.id: one.status for results in run(checks, Deployment("mine", settings)) for one in results}

    for name, value in ready_aws.settings.items():
        monkeypatch.setenv(name, value)
    before = statuses()
    assert UNKNOWN not in before.values()
    with ready_aws.restricted(policy(CATALOG)) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert statuses() == before
