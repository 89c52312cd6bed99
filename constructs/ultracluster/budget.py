"""A budget of AWS Budgets, which tells by mail what has been billed. Billing data is up to a day late."""

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import aws_budgets as budgets
from constructs import Construct

from ultracluster.arguments import construct_name, wrong_types
from ultracluster.domain.budget import BudgetSpec, email_violations
from ultracluster.domain.violations import InvalidArguments, Violation
from ultracluster.signatures import readable


@readable
class MonthlyBudget(Construct):
    """Define a monthly budget of all that has some tags.

    Its payer must activate the tags' keys for cost allocation, or it counts nothing; CloudFormation cannot. It has no
    name of its own: CloudFormation replaces it when who is told of what changes
    (https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-budgets-budget.html).

    Args:
        scope: Usually a stack.
        construct_id: Id in the scope.
        budget: The limit, and at which percentages somebody is told. [change: at once]
        emails: Who is told; at most 10 addresses. Default: those of the budget. [change: at once]
        tags: Tags, one of which what is counted has. [change: at once]

    Raises:
        InvalidArguments: Arguments break rules; all of them are named.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        budget: BudgetSpec,
        tags: Mapping[str, str],
        emails: Sequence[str] | None = None,
    ) -> None:
        name = construct_name(type(self), scope, construct_id)
        if broken := wrong_types(MonthlyBudget.__init__, locals()) or [*_violations(budget, emails, tags)]:
            raise InvalidArguments(name, broken)

        super().__init__(scope, construct_id)
        told = {"ACTUAL": budget.actual_percent, "FORECASTED": budget.forecast_percent}
        budgets.CfnBudget(
            self,
            "Resource",
            budget=budgets.CfnBudget.BudgetDataProperty(
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budgets.CfnBudget.SpendProperty(amount=budget.monthly_usd, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:{key}${value}" for key, value in tags.items()]},
            ),
            notifications_with_subscribers=[
                budgets.CfnBudget.NotificationWithSubscribersProperty(
                    notification=budgets.CfnBudget.NotificationProperty(
                        notification_type=kind,
                        comparison_operator="GREATER_THAN",
                        threshold=percent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[
                        budgets.CfnBudget.SubscriberProperty(address=email, subscription_type="EMAIL")
                        for email in _addresses(budget, emails)
                    ],
                )
                for kind, percents in told.items()
                for percent in percents
            ],
        )


def _addresses(budget: BudgetSpec, emails: Sequence[str] | None) -> list[str]:
    """Return who is told."""
    return list((budget.emails or ()) if emails is None else emails)


def _violations(budget: BudgetSpec, emails: Sequence[str] | None, tags: Mapping[str, str]) -> Iterator[Violation]:
    """Yield what AWS Budgets would refuse, or would make no use of."""
    told = _addresses(budget, emails)
    if not told and (budget.actual_percent or budget.forecast_percent):
        yield Violation(("emails",), emails, "an address, here or in the budget", "nobody would be told")
    if not tags:
        yield Violation(("tags",), dict(tags), "one tag or more", "what has one of them is counted")
    asked, shapes = BudgetSpec.checked({"monthly_usd": budget.monthly_usd, "emails": told})
    yield from shapes
    if asked is not None and told:
        yield from email_violations(asked, told)
