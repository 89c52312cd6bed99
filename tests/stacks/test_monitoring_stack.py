"""Alarms, who is notified, and what the dashboard draws; the golden templates have the whole of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.estimate import costs
from tests.stacks.deployments import Deployment, Raw, deploy, edited
from tests.stacks.small_app import flat
from tests.stacks.test_composition import use_existing_vpc
from ultracluster.domain import metrics

Synth = Callable[[str], Deployment]
Edited = Callable[[Callable[[Raw], object]], Deployment]

ALARM = "AWS::CloudWatch::Alarm"
DASHBOARD = "AWS::CloudWatch::Dashboard"
SUBSCRIPTION = "AWS::SNS::Subscription"
MAX_METRICS_OF_A_WIDGET, MAX_METRICS_OF_A_DASHBOARD = 500, 2500
MAX_ALARM_DESCRIPTION = 1024


@pytest.fixture
def changed(tmp_path: Path) -> Edited:
    """Return a function that deploys trn1-16 after an edit."""
    return lambda edit: deploy(edited("trn1-16", edit), tmp_path)


def alarms(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """Return the alarms by what follows the name of the stack."""
    found = [item["Properties"] for item in deployment.monitoring.of_type(ALARM).values()]
    prefix = f"{deployment.stack_name('monitoring')}-"
    assert all(alarm["AlarmName"].startswith(prefix) for alarm in found)
    return {alarm["AlarmName"].removeprefix(prefix): alarm for alarm in found}


def widgets(deployment: Deployment) -> list[dict[str, Any]]:
    body = json.loads(flat(deployment.monitoring.properties(DASHBOARD)["DashboardBody"]))
    assert body["periodOverride"] == "inherit"
    return [widget["properties"] for widget in body["widgets"]]


def graphs(deployment: Deployment) -> list[list[list[Any]]]:
    """Return the metrics of each widget: namespace, name, dimensions and, last, how they are drawn."""
    return [widget["metrics"] for widget in widgets(deployment) if "metrics" in widget]


def test_the_settings_choose_when_the_file_system_is_nearly_full_and_whom_alarms_are_sent_to(
    synth: Synth, changed: Edited
) -> None:
    addresses = ["a@example.com", "b@example.com"]

    def edit(raw: Raw) -> None:
        raw["monitoring"].update(file_system_full_percent=60, emails=addresses)
        raw["storage"]["file_system"]["capacity_gib"] = 2400

    deployment = changed(edit)
    alarm = alarms(deployment)["FileSystemNearlyFull"]

    assert alarm["Threshold"] == 2400 * 2**30 * 0.4
    assert "more than 60 % full, of its nominal capacity" in alarm["AlarmDescription"]
    subscriptions = [item["Properties"] for item in deployment.monitoring.of_type(SUBSCRIPTION).values()]
    assert [(each["Protocol"], each["Endpoint"]) for each in subscriptions] == [("email", each) for each in addresses]
    assert synth("trn1-16").monitoring.of_type(SUBSCRIPTION) == {}, "nobody is notified by default"


@pytest.mark.parametrize("dashboard", [True, False])
def test_of_what_there_is_not_there_are_neither_alarms_nor_graphs(dashboard: bool, changed: Edited) -> None:
    def edit(raw: Raw) -> None:
        use_existing_vpc(raw)
        raw["monitoring"].update(node_metrics=False, dashboard=dashboard)

    deployment = changed(edit)

    assert alarms(deployment).keys() == {"FileSystemNearlyFull"}
    assert ("Dashboard" in deployment.monitoring.body["Outputs"]) == dashboard
    assert ("dashboard" in deployment.monitoring.summary()) == dashboard
    if dashboard:
        assert {line[0] for graph in graphs(deployment) for line in graph} == {"AWS/FSx"}
    else:
        assert deployment.monitoring.of_type(DASHBOARD) == {}


@pytest.mark.parametrize(
    "edit",
    [
        lambda raw: raw["storage"]["file_system"].update(throughput_mbps_per_tib=500),
        lambda raw: raw["network"].update(public_subnet_cidr="10.0.1.0/24"),
    ],
    ids=["file system", "public subnet"],
)
def test_what_is_replaced_changes_the_template_so_that_its_id_is_read_again(
    edit: Callable[[Raw], object], synth: Synth, changed: Edited
) -> None:
    assert changed(edit).monitoring.body != synth("trn1-16").monitoring.body


def test_the_estimate_counts_the_alarms(deployment: Deployment) -> None:
    [estimated] = [
        each.units.at_max_count for each in costs.parts(deployment.settings) if each.name.startswith("alarms of nodes")
    ]

    assert estimated == len(alarms(deployment))


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
