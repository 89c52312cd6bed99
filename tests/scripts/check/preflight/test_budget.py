"""The tag of the budget: active, and not yet."""

from __future__ import annotations

import pytest

from scripts.account.deployment import Account
from scripts.check.preflight import budget
from scripts.core.findings import PASS, SKIP, UNKNOWN, WARN
from tests.scripts.check.preflight.accounts import Case, Raw, case
from tests.scripts.refusals import refusal

INACTIVE = {"TagKey": "ultracluster:deployment", "Type": "UserDefined", "Status": "Inactive"}


def with_a_budget(raw: Raw) -> None:
    raw["budget"] = {"monthly_usd": 9000, "emails": ["a@example.com"]}


CASES = [
    case(budget.cost_allocation_tag, SKIP),
    case(budget.cost_allocation_tag, PASS, "is active", edit=with_a_budget),
    case(
        budget.cost_allocation_tag,
        WARN,
        "ultracluster:deployment is not active",
        "TagKey=ultracluster:deployment,Status=Active",
        edit=with_a_budget,
        list_cost_allocation_tags={"CostAllocationTags": [INACTIVE]},
    ),
    case(
        budget.cost_allocation_tag,
        UNKNOWN,
        edit=with_a_budget,
        list_cost_allocation_tags=refusal("AccessDeniedException"),  # as an account of an organization gets it
    ),
]


@pytest.mark.parametrize("each", CASES)
def test_the_tag_of_the_budget(each: Case, account: Account) -> None:
    each.verify(account)
