"""The tag by which AWS Budgets counts."""

from __future__ import annotations

import shlex

from scripts.account.deployment import Deployment
from scripts.check.preflight.check import check
from scripts.core.findings import PASS, WARN, Finding
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


CHECKS = (cost_allocation_tag,)
