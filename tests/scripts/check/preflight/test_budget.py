"""The tag of the budget, active and not yet, and the prices by which it counts."""

from __future__ import annotations

import json

import pytest

from scripts.account.deployment import Account
from scripts.check.preflight import budget
from scripts.core.findings import PASS, SKIP, UNKNOWN, WARN
from tests.scripts.check.preflight.accounts import Case, Raw, case
from tests.scripts.refusals import refusal

INACTIVE = {"TagKey": "ultracluster:deployment", "Type": "UserDefined", "Status": "Inactive"}


def with_a_budget(raw: Raw) -> None:
    raw["budget"] = {"monthly_usd": 9000, "emails": ["a@example.com"]}


def with_a_price(raw: Raw) -> None:
    with_a_budget(raw)
    raw["budget"]["usd_per_hour"] = {"trn1.32xlarge": 10.0}


def with_a_described_type(raw: Raw) -> None:
    with_a_budget(raw)
    facts = {"vcpus": 192, "memory_gib": 2048, "usd_per_hour": 40.5}
    raw["cluster"]["queues"][0]["compute_resources"][0].update(instance_type="trn9.48xlarge", type_facts=facts)


def offered(*dollars: str) -> list[str]:
    """Return offers of trn1.32xlarge in the Price List."""
    prices = ({"beginRange": "0", "pricePerUnit": {"USD": each}} for each in dollars)
    return [
        json.dumps(
            {
                "product": {"attributes": {"usagetype": "USW2-BoxUsage:trn1.32xlarge"}},
                "terms": {"OnDemand": {"term": {"priceDimensions": {"dimension": price}}}},
            }
        )
        for price in prices
    ]


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
    case(budget.price_table, SKIP),
    case(budget.price_table, SKIP, edit=with_a_price),
    case(budget.price_table, PASS, "$21.5 of 2026-01-19", edit=with_a_budget, get_products=offered("21.5000000000")),
    case(
        budget.price_table,
        WARN,
        "the Price List has $19.2 an hour, and not $21.5 of 2026-01-19, by which the head node counts",
        "set `budget.usd_per_hour` of trn1.32xlarge to 19.2",
        "--region us-east-1",
        edit=with_a_budget,
        get_products=offered("19.2"),
    ),
    case(budget.price_table, SKIP, "no single price", edit=with_a_budget, get_products=offered("1", "2")),
    case(budget.price_table, SKIP, "no single price", edit=with_a_budget),
    case(budget.price_table, SKIP, "not compared with $40.5 of the settings", edit=with_a_described_type),
    case(budget.price_table, UNKNOWN, edit=with_a_budget, get_products=refusal("AccessDeniedException")),
]


@pytest.mark.parametrize("each", CASES)
def test_the_tag_of_the_budget(each: Case, account: Account) -> None:
    each.verify(account)
