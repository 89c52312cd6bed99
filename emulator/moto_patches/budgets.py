"""AWS Budgets: budgets that can be changed. Nothing is spent, and nobody is notified."""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import json

from moto.budgets.models import Budget
from moto.budgets.responses import BudgetsResponse


class Budgets(BudgetsResponse):
    """Budgets with UpdateBudget, which keeps the notifications."""

    def update_budget(self) -> str:
        account, new = self._get_param("AccountId"), self._get_param("NewBudget")
        self.backend.describe_budget(account, new["BudgetName"])
        budget = Budget(new, [])
        budget.notifications = self.backend.budgets[account][new["BudgetName"]].notifications
        self.backend.budgets[account][new["BudgetName"]] = budget
        return json.dumps({})
