"""Cost Explorer's tags for cost allocation, all of which are active: nobody pays for an emulated account.

https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_ListCostAllocationTags.html
"""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

from moto.ce.responses import CostExplorerResponse
from moto.core.responses import ActionResult


class CostExplorer(CostExplorerResponse):
    """Cost Explorer with tags for cost allocation."""

    def list_cost_allocation_tags(self) -> ActionResult:
        keys = self._get_param("TagKeys", [])
        tags = [{"TagKey": key, "Type": "UserDefined", "Status": "Active"} for key in keys]
        return ActionResult({"CostAllocationTags": tags})
