"""A guard on the money."""

from typing import Annotated

from pydantic import Field

from ultracluster.domain.spec import Change, Setting, Spec

_BUDGETS = "https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html"


class BudgetSpec(Spec):
    """A monthly limit, told by AWS Budgets, and alarms on what runs now, because billing data is a day late."""

    monthly_usd: Annotated[
        float, Field(gt=0), Setting(Change.AT_ONCE, "AWS::Budgets::Budget.BudgetLimit", page=_BUDGETS)
    ]
    """US dollars a month for everything of the deployment."""
    emails: Annotated[list[str], Setting(Change.AT_ONCE, page=_BUDGETS)] = []
    """Who is told by AWS Budgets; null: those of `monitoring.emails`."""
