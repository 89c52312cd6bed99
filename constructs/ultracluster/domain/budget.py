"""A guard on the money."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field

from ultracluster.domain import prices
from ultracluster.domain.monitoring import EmailAddress
from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import FEW, FROM_MINUTES, MANY, Entries, Items, OptionalTime, default
from ultracluster.domain.violations import Violation, below, is_token

_NONE: Mapping[str, Decimal] = MappingProxyType({})
_NOTIFICATIONS = "AWS::Budgets::Budget.NotificationsWithSubscribers"
_PRICES = "https://aws.amazon.com/ec2/pricing/on-demand/"
_PARTITIONS = "https://slurm.schedmd.com/scontrol.html"
_ALARM = "AWS::CloudWatch::Alarm.Threshold"
_MAX_EMAILS, _MAX_NOTIFICATIONS = 10, 5
"""Of a notification, and of a budget
(https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-budgets-budget.html)."""

Percent = Annotated[int, Field(ge=1, le=1000)]
Dollars = Annotated[float, Field(ge=0, le=1_000_000_000)]


class BudgetSpec(Spec):
    """A monthly limit, told by AWS Budgets, and guards on what runs now, because billing data is a day late."""

    monthly_usd: Annotated[
        float,
        Field(gt=0, le=1_000_000_000),
        Setting(Change.AT_ONCE, "AWS::Budgets::Budget.BudgetData.BudgetLimit"),
    ]
    """US dollars a month for everything of the deployment, and the limit of what `action` does."""
    emails: Annotated[Items[EmailAddress] | None, MANY, Setting(Change.AT_ONCE, _NOTIFICATIONS)] = None
    """Addresses that AWS Budgets writes to, at most 10; None: those who get alarms."""
    actual_percent: Annotated[Items[Percent], FEW, Setting(Change.AT_ONCE, _NOTIFICATIONS)] = [50, 80, 100]
    """Percent of the limit at which AWS Budgets writes when so much has been billed."""
    forecast_percent: Annotated[Items[Percent], FEW, Setting(Change.AT_ONCE, _NOTIFICATIONS)] = [100]
    """Percent of the limit at which AWS Budgets writes when it expects so much by the end of the month."""
    max_usd_per_hour: Annotated[float | None, Field(gt=0, le=1_000_000_000), Setting(Change.AT_ONCE, _ALARM)] = None
    """An alarm is raised within minutes when running nodes cost so much or more per hour; None: no such alarm."""
    max_idle_minutes: Annotated[OptionalTime, Field(ge=5, le=1440), FROM_MINUTES, Setting(Change.AT_ONCE, _ALARM)] = (
        default(30)
    )
    """An alarm is raised when a node that is not static has been idle for so long after it should have been terminated
    (idle_minutes of Slurm); None: no such alarm."""
    usd_per_hour: Annotated[Entries[str, Dollars], MANY, Setting(Change.AT_ONCE, page=_PRICES)] = {}
    """What an hour of a node costs, by instance type, where that is not the list price: with a discount, as Spot, as a
    Capacity Block (0, for it is prepaid), or in another Region than us-east-1, us-east-2 and us-west-2."""
    action: Annotated[Literal["none", "drain", "stop"], Setting(Change.AT_ONCE, page=_PARTITIONS)] = "none"
    """What the head node does when nodes have cost `monthly_usd` since the month began. drain: no job starts, those
    that run continue; stop: those that run are cancelled, too."""


def known_prices(
    spec: BudgetSpec, region: str, instance_types: Collection[str], stated: Mapping[str, Decimal] = _NONE
) -> dict[str, Decimal]:
    """Return what an hour of instances costs, by type; those whose price is not known are left out.

    Args:
        spec: The budget, whose own prices come first.
        region: Region of the instances.
        instance_types: Their types.
        stated: Prices on demand of types that the table does not have.
    """
    in_table = region in prices.TABLE_REGIONS
    listed = {each: prices.usd_per_hour(each) if in_table else None for each in instance_types}
    listed = {each: stated.get(each) if price is None else price for each, price in listed.items()}
    own = {each: Decimal(str(spec.usd_per_hour[each])) for each in instance_types if each in spec.usd_per_hour}
    return {each: price for each, price in {**listed, **own}.items() if price is not None}


def argument(
    spec: BudgetSpec, region: str, instance_types: Collection[str], stated: Mapping[str, Decimal] = _NONE
) -> str:
    """Return what the head node is told of it, and of the prices of nodes: ``10000.0,drain,trn1.32xlarge=21.5``."""
    known = known_prices(spec, region, instance_types, stated)
    return ",".join([repr(spec.monthly_usd), spec.action, *(f"{each}={price:f}" for each, price in known.items())])


def violations(
    spec: BudgetSpec, region: str, instance_types: Collection[str], stated: Mapping[str, Decimal] = _NONE
) -> Iterator[Violation]:
    """Yield what no budget of nodes of some types can be, with paths relative to ``spec``."""
    yield from below((), _prices(spec, region, instance_types, stated), _percents(spec))


def _prices(
    spec: BudgetSpec, region: str, instance_types: Collection[str], stated: Mapping[str, Decimal]
) -> Iterator[Violation]:
    known = known_prices(spec, region, instance_types, stated)
    for unknown in sorted({*instance_types} - known.keys()):
        allowed = f"a price of {unknown}"
        where = "a Region that is known at deployment alone" if is_token(region) else region
        yield spec.violation("usd_per_hour", allowed, f"there is no list price of it in {where}")
    if known:
        costliest = max(known, key=lambda each: known[each])
        source = "" if costliest in spec.usd_per_hour else f" by the list price of {prices.DATE}"
        reason = f"an hour of one {costliest} costs ${known[costliest]:,.2f}{source}"
        fields = ("monthly_usd", "max_usd_per_hour")
        yield from below((), *(_at_least(spec, field, known[costliest], reason) for field in fields))


def _at_least(spec: BudgetSpec, field: str, price: Decimal, reason: str) -> Iterator[Violation]:
    if (value := getattr(spec, field)) is not None and value < price:
        yield spec.violation(field, f"at least {price:,.2f}", reason)


def _percents(spec: BudgetSpec) -> Iterator[Violation]:
    for field in ("actual_percent", "forecast_percent"):
        percents = getattr(spec, field)
        for index, percent in enumerate(percents):
            if percent in percents[:index]:
                yield Violation((field, index), percent, "each percentage once", "AWS Budgets refuses a second one")
    if (count := len(spec.actual_percent) + len(spec.forecast_percent)) > _MAX_NOTIFICATIONS:
        allowed = f"at most {_MAX_NOTIFICATIONS} percentages with those of forecast_percent"
        yield spec.violation("actual_percent", allowed, f"limit of AWS Budgets, and there are {count}")


def email_violations(spec: BudgetSpec, others: Collection[str]) -> Iterator[Violation]:
    """Yield what is wrong with the addresses, if ``others`` get other alarms."""
    emails = others if spec.emails is None else spec.emails
    if not emails and (spec.actual_percent or spec.forecast_percent):
        allowed = "an address, here or for alarms"
        yield Violation(("emails",), spec.emails, allowed, "nobody would be told")
    if len(emails) > _MAX_EMAILS:
        got = spec.emails if spec.emails is None else len(emails)
        yield Violation(("emails",), got, f"at most {_MAX_EMAILS} addresses", f"limit of AWS, there are {len(emails)}")
    lower = [each.lower() for each in spec.emails or ()]
    for index, email in enumerate(lower):
        if email in lower[:index]:
            yield Violation(("emails", index), email, "each address once", "two subscriptions would be one")


def warnings(
    spec: BudgetSpec,
    region: str,
    nodes: Mapping[str, int],
    alarm_emails: Collection[str],
    *,
    node_metrics: bool,
    stated: Mapping[str, Decimal] = _NONE,
) -> Iterator[Violation]:
    """Tell which alarms are never raised or read, with paths relative to ``spec``.

    Args:
        spec: The budget.
        region: Region of the nodes.
        nodes: Nodes at most, by instance type.
        alarm_emails: Who gets the alarms of CloudWatch.
        node_metrics: Whether the head node tells what runs.
        stated: Prices on demand of types that the table does not have.
    """
    known = known_prices(spec, region, nodes, stated)
    highest = sum(known[each] * nodes[each] for each in known)
    if spec.max_usd_per_hour is not None and spec.max_usd_per_hour > highest and known.keys() == nodes.keys():
        yield spec.violation("max_usd_per_hour", f"at most {highest:,.2f}", "all nodes together cost no more")
    if not node_metrics and spec.max_idle_minutes is not None:
        yield spec.violation(
            "max_idle_minutes", "null", "monitoring.node_metrics is false, so nothing tells what is idle"
        )
    elif not alarm_emails and (spec.max_usd_per_hour is not None or spec.max_idle_minutes is not None):
        field = "max_idle_minutes" if spec.max_usd_per_hour is None else "max_usd_per_hour"
        yield spec.violation(field, "null, or an address in monitoring.emails", "nobody is told of its alarm")
