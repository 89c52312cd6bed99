"""Alarms, who is notified, and what the dashboard draws; the golden templates have the whole of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.check.estimate import costs
from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.small_app import flat
from ultracluster.domain import metrics

Synth = Callable[[str], Deployment]
Edited = Callable[[Callable[[Raw], object]], Deployment]

ALARM = "AWS::CloudWatch::Alarm"
DASHBOARD = "AWS::CloudWatch::Dashboard"
MAX_METRICS_OF_A_WIDGET, MAX_METRICS_OF_A_DASHBOARD = 500, 2500
MAX_ALARM_DESCRIPTION = 1024


@pytest.fixture
def changed(tmp_path: Path) -> Edited:
    """Return a function that deploys trn1-16 after an edit."""
    return lambda edit: deploy(edited("trn1-16", edit), tmp_path)


def alarms(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """Return the alarms by what follows the name of the stack."""
    properties = [item["Properties"] for item in deployment.monitoring.of_type(ALARM).values()]
    prefix = f"{deployment.stack_name('monitoring')}-"
    assert all(alarm["AlarmName"].startswith(prefix) for alarm in properties)
    return {alarm["AlarmName"].removeprefix(prefix): alarm for alarm in properties}


def widgets(deployment: Deployment) -> list[dict[str, Any]]:
    body = json.loads(flat(deployment.monitoring.properties(DASHBOARD)["DashboardBody"]))
    assert body["periodOverride"] == "inherit"
    return [widget["properties"] for widget in body["widgets"]]


def graphs(deployment: Deployment) -> list[list[list[Any]]]:
    """Return the metrics of each widget: namespace, name, dimensions and, last, how they are drawn."""
    return [widget["metrics"] for widget in widgets(deployment) if "metrics" in widget]


def test_what_is_replaced_changes_the_template_so_that_its_id_is_read_again(synth: Synth, changed: Edited) -> None:
    def edit(raw: Raw) -> None:
        raw["storage"]["file_system"].update(throughput_mbps_per_tib=500)
        raw["network"].update(public_subnet_cidr="10.0.1.0/24")

    before, after = alarms(synth("trn1-16")), alarms(changed(edit))

    assert {name for name in before if before[name] != after[name]} == {"FileSystemNearlyFull", "NatPortsExhausted"}


def test_the_estimate_counts_the_alarms(deployment: Deployment) -> None:
    [estimated] = [
        each.units.at_max_count for each in costs.parts(deployment.settings) if each.name.startswith("alarms of nodes")
    ]

    assert estimated == len(alarms(deployment))


def with_a_budget(raw: Raw) -> None:
    raw["budget"] = {"monthly_usd": 9000.5, "emails": ["a@x.org", "b@x.org"], "max_usd_per_hour": 300, "action": "stop"}


def test_a_budget_tells_by_mail_what_everything_with_the_deployments_tag_cost(changed: Edited) -> None:
    deployment = changed(with_a_budget)
    budget = deployment.monitoring.properties("AWS::Budgets::Budget")

    assert budget["Budget"] == {
        **{"BudgetType": "COST", "TimeUnit": "MONTHLY", "BudgetLimit": {"Amount": 9000.5, "Unit": "USD"}},
        "CostFilters": {"TagKeyValue": ["user:ultracluster:deployment$trn1-16"]},
    }, "without a name: it is replaced when notifications change"
    told = budget["NotificationsWithSubscribers"]
    assert [(each["Notification"]["NotificationType"], each["Notification"]["Threshold"]) for each in told] == [
        *(("ACTUAL", percent) for percent in (50, 80, 100)),
        ("FORECASTED", 100),
    ]
    assert {tuple(each["Address"] for each in one["Subscribers"]) for one in told} == {("a@x.org", "b@x.org")}
    tag = {"ultracluster:deployment": "trn1-16"}
    for part in ("network", "storage", "monitoring"):
        assert deployment.stack_properties(part)["tags"].items() >= tag.items()
    assert {"Key": "ultracluster:deployment", "Value": "trn1-16"} in deployment.configuration["Tags"]


def test_alarms_of_a_budget_do_not_take_silence_for_zero_and_the_estimate_counts_them(changed: Edited) -> None:
    deployment = changed(with_a_budget)
    guards = {
        name: (alarm["MetricName"], alarm["Threshold"], alarm["TreatMissingData"])
        for name, alarm in alarms(deployment).items()
        if name in ("BudgetSpent", "SpendingRate", "NodesIdle")
    }
    assert guards == {
        "BudgetSpent": (metrics.USD_THIS_MONTH, 9000.5, "ignore"),
        "SpendingRate": (metrics.USD_PER_HOUR, 300, "ignore"),
        "NodesIdle": (metrics.NODE_IDLE, (10 + 30) * 60, "ignore"),
    }
    test_the_estimate_counts_the_alarms(deployment)
    budget = "budget=9000.5,stop,trn1.32xlarge=21.5"
    assert budget in deployment.configuration["HeadNode"]["CustomActions"]["OnNodeUpdated"]["Args"]


def test_nodes_that_slurm_never_terminates_raise_no_alarm_of_idle_ones(changed: Edited) -> None:
    def edit(raw: Raw) -> None:
        with_a_budget(raw)
        raw["budget"]["max_usd_per_hour"] = None
        raw["cluster"]["slurm"]["idle_minutes"] = -1

    deployment = changed(edit)
    assert alarms(deployment).keys().isdisjoint({"SpendingRate", "NodesIdle"})
    test_the_estimate_counts_the_alarms(deployment)


def test_the_dashboard_draws_all_that_nodes_send_for_each_queue(synth: Synth) -> None:
    drawn = {tuple(line[:6]) for graph in graphs(synth("two-queues")) for line in graph if line[0] == "UltraCluster"}

    assert drawn == {
        ("UltraCluster", name, "Cluster", "two-queues", "Queue", queue)
        for name in (*metrics.OF_COMPUTE_NODES, *metrics.OF_HEAD_NODE)
        for queue in ("trn1-a", "trn1-b")
    }


def test_fifty_queues_stay_within_what_cloud_watch_takes(changed: Edited) -> None:
    def edit(raw: Raw) -> None:
        [queue] = raw["cluster"]["queues"]
        raw["cluster"]["queues"] = [{**queue, "name": f"queue-{each}"} for each in range(50)]

    deployment = changed(edit)
    drawn = [len(graph) for graph in graphs(deployment)]

    assert max(drawn) <= MAX_METRICS_OF_A_WIDGET
    assert sum(drawn) <= MAX_METRICS_OF_A_DASHBOARD
    assert max(len(alarm["AlarmDescription"]) for alarm in alarms(deployment).values()) <= MAX_ALARM_DESCRIPTION
