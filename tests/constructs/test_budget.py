"""A budget of AWS Budgets, and alarms on what nodes cost, in any CDK app."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match, Template

import ultracluster as uc

TAGS = {"team": "vision"}


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(builtin_cloud_formation_validation=False, analytics_reporting=False)
    return cdk.Stack(app, "Training", env=cdk.Environment(region="us-west-2"))


def told(stack: cdk.Stack) -> set[str]:
    [budget] = Template.from_stack(stack).find_resources("AWS::Budgets::Budget").values()
    notifications = budget["Properties"]["NotificationsWithSubscribers"]
    return {each["Address"] for one in notifications for each in one["Subscribers"]}


@pytest.mark.parametrize(
    ("arguments", "addresses"),
    [
        ({}, {"budget@example.com"}),
        ({"emails": ["me@example.com", "you@example.com"]}, {"me@example.com", "you@example.com"}),
    ],
)
def test_the_addresses_are_those_given_or_those_of_the_budget(
    stack: cdk.Stack, arguments: dict[str, Any], addresses: set[str]
) -> None:
    spec = uc.BudgetSpec(monthly_usd=100.0, emails=["budget@example.com"])
    uc.MonthlyBudget(stack, "Budget", budget=spec, tags=TAGS, **arguments)
    assert told(stack) == addresses


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [
        ({}, "emails: got None; allowed: an address, here or in the budget"),
        ({"emails": []}, "emails: got []; allowed: an address, here or in the budget"),
        ({"emails": ["nobody"]}, "emails[0]: got 'nobody'; allowed: an email address"),
        ({"emails": ["a@example.com", "A@example.com"]}, "emails[1]: got 'a@example.com'; allowed: each address once"),
        ({"emails": [f"a{number}@example.com" for number in range(11)]}, "allowed: at most 10 addresses"),
        ({"emails": ["a@example.com"], "tags": {}}, "tags: got {}; allowed: one tag or more"),
    ],
)
def test_what_would_tell_nobody_or_count_nothing_is_refused(
    stack: cdk.Stack, arguments: dict[str, Any], refused: str
) -> None:
    with pytest.raises(uc.InvalidArguments) as error:
        uc.MonthlyBudget(stack, "Budget", budget=uc.BudgetSpec(monthly_usd=100.0), **{"tags": TAGS, **arguments})
    assert refused in str(error.value)


def test_alarms_that_can_never_be_raised_are_told(stack: cdk.Stack) -> None:
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    nodes = uc.ComputeResource(name="c7i", instance_type="c7i.large", max_count=2)
    cluster = uc.ParallelCluster(stack, "Cluster", vpc=vpc, queues=[uc.Queue(name="cpu", compute_resources=[nodes])])
    uc.ClusterMonitoring(stack, "Monitoring", cluster=cluster)
    said = Match.string_like_regexp("there are no alarms: give a file_system")
    Annotations.from_stack(stack).has_warning("/Training/Monitoring", said)
