"""The tag by which AWS Budgets counts, and the prices by which the head node does."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from scripts.account.deployment import Deployment
from scripts.check.estimate.prices import API_REGION, request, single_price
from scripts.check.estimate.products import instance
from scripts.check.preflight.check import check
from scripts.core.findings import PASS, SKIP, WARN, Finding
from ultracluster.domain import prices
from ultracluster.domain.budget import known_prices
from ultracluster.domain.names import DEPLOYMENT_TAG


@check("cost-allocation-tag", "Tag of the budget, activated by the payer", calls=("ce:ListCostAllocationTags",))
def cost_allocation_tag(deployment: Deployment) -> Finding | None:
    """The budget would count nothing, and tell nobody."""
    if deployment.settings.budget is None:
        return None
    command = shlex.join(["aws", "ce", "list-cost-allocation-tags", "--tag-keys", DEPLOYMENT_TAG])
    listed = deployment.account.ask("ce", "list_cost_allocation_tags", TagKeys=[DEPLOYMENT_TAG])["CostAllocationTags"]
    if any(each["Status"] == "Active" for each in listed):
        return Finding(PASS, f"{DEPLOYMENT_TAG} is active", command=command)
    status = f"TagKey={DEPLOYMENT_TAG},Status=Active"
    fix = shlex.join(["aws", "ce", "update-cost-allocation-tags-status", "--cost-allocation-tags-status", status])
    hint = f"up to a day after the first deployment AWS lists the key; then, in the payer's account: {fix}"
    return Finding(WARN, f"{DEPLOYMENT_TAG} is not active, so the budget stays at $0", hint, command)


@check("price-table", "Prices by which the budget counts", calls=("pricing:GetProducts",))
def price_table(deployment: Deployment) -> Iterator[Finding]:
    """The head node would count with old prices, and close queues too late or too early.

    The table is a part of this project, and does not change by itself; `budget.usd_per_hour` goes before it.
    https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
    """
    settings = deployment.settings
    if settings.budget is None:
        return
    types, stated = settings.cluster.instance_types, settings.cluster.stated_prices
    by_type = known_prices(settings.budget, settings.region, types, stated)
    for name in sorted({*types} - settings.budget.usd_per_hour.keys()):
        product, counted = instance(name), by_type[name]
        search = request(settings.region, product.service, product.filters.items())
        offers = deployment.account.list("pricing", "get_products", region=API_REGION, **search)
        listed = single_price(offers, product)
        origin = "the settings" if name in stated else prices.DATE
        table = f"${counted:f} of {origin}, by which the head node counts"
        if listed is None:
            finding = Finding(SKIP, f"the Price List has no single price; it is not compared with {table}")
        elif listed == counted:
            finding = Finding(PASS, f"the Price List has {table}")
        else:
            hint = f"set `budget.usd_per_hour` of {name} to {listed:f} in {deployment.file}"
            finding = Finding(WARN, f"the Price List has ${listed:f} an hour, and not {table}", hint)
        filters = [f"Type={each['Type']},Field={each['Field']},Value={each['Value']}" for each in search["Filters"]]
        words = ("pricing", "get-products", "--region", API_REGION, "--service-code", product.service, "--filters")
        yield finding.of(name, shlex.join(["aws", *words, *filters]))


CHECKS = (cost_allocation_tag, price_table)
