"""What is watched, who is told, and what the dashboard draws."""

import json
import re
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
TOPIC = "AWS::SNS::Topic"
MAX_METRICS_OF_A_WIDGET, MAX_METRICS_OF_A_DASHBOARD = 500, 2500
MAX_ALARM_DESCRIPTION = 1024
FILE_SYSTEM, NAT_GATEWAY = "trn1-16-storage|PublishOutputRefLustre", "trn1-16-network|ExportsOutputRefNetwork"
CLUSTER = {"Cluster": "trn1-16"}
QUEUE = {**CLUSTER, "Queue": "trn1"}
MISSING = "TreatMissingData"

ALARMS: dict[str, tuple[str, dict[str, str], str, int, int, str, float, str]] = {
    "UncorrectableErrors-trn1": ("UncorrectableErrors", QUEUE, "Sum", 300, 1, ">=", 1, "notBreaching"),
    "NodesHeldIdle": ("HeldIdleSeconds", CLUSTER, "Maximum", 300, 1, ">=", 3600, "notBreaching"),
    "NodesDrained": ("NodesDrainedByHealth", CLUSTER, "Maximum", 300, 1, ">=", 1, "ignore"),
    "QueuesProtected": ("QueuesProtected", CLUSTER, "Maximum", 300, 1, ">=", 1, "ignore"),
    "HeadNodeSilent": ("QueuesProtected", CLUSTER, "SampleCount", 300, 1, "<", 1, "missing"),
    "FileSystemNearlyFull": (
        *("FreeDataStorageCapacity", {"FileSystemId": FILE_SYSTEM}, "Sum"),
        *(60, 5, "<", 4800 * 2**30 * 0.15, "ignore"),
    ),
    "NatPortsExhausted": (
        *("ErrorPortAllocation", {"NatGatewayId": NAT_GATEWAY}, "Sum"),
        *(300, 1, ">=", 1, "notBreaching"),
    ),
}
"""By name: metric, dimensions (references as they begin), statistic, seconds, periods in a row, threshold, missing."""
KEYWORDS = {"SELECT", "AVG", "SUM", "FROM", "SCHEMA", "WHERE", "GROUP", "BY", "ORDER", "ASC", "DESC", "LIMIT"}
"""What queries of Metrics Insights may have outside of quotes."""
OPERATORS = {"GreaterThanOrEqualToThreshold": ">=", "LessThanThreshold": "<"}


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


def lines(widget: dict[str, Any]) -> list[list[Any]]:
    """Return the metrics of a widget: namespace, name, dimensions and, last, how they are drawn."""
    return list(widget.get("metrics", []))


def graphs(deployment: Deployment) -> list[list[Any]]:
    return [line for widget in widgets(deployment) for line in lines(widget)]


def use_queues(number: int) -> Callable[[Raw], object]:
    def edit(raw: Raw) -> None:
        [queue] = raw["cluster"]["queues"]
        raw["cluster"]["queues"] = [{**queue, "name": f"queue-{each}"} for each in range(number)]

    return edit


# --- alarms ---


def test_everything_that_somebody_must_look_at_has_an_alarm(synth: Synth) -> None:
    assert alarms(synth("trn1-16")).keys() == ALARMS.keys()


@pytest.mark.parametrize("name", ALARMS)
def test_an_alarm_is_raised_when_it_should_be(name: str, synth: Synth) -> None:
    alarm = alarms(synth("trn1-16"))[name]
    metric, dimensions, *expected = ALARMS[name]

    assert (alarm["MetricName"], alarm["Statistic"]) == (metric, expected.pop(0))
    found = {each["Name"]: flat(each["Value"]) for each in alarm["Dimensions"]}
    assert found.keys() == dimensions.keys()
    assert all(found[key].startswith(value) for key, value in dimensions.items())
    operator = OPERATORS[alarm["ComparisonOperator"]]
    assert [alarm["Period"], alarm["EvaluationPeriods"], operator, alarm["Threshold"], alarm[MISSING]] == expected
    assert "DatapointsToAlarm" not in alarm


def test_alarms_of_nodes_are_on_what_nodes_send(synth: Synth) -> None:
    ours = {alarm["MetricName"] for alarm in alarms(synth("trn1-16")).values() if alarm["Namespace"] == "UltraCluster"}

    assert metrics.NAMESPACE == "UltraCluster"
    assert ours == {metrics.UNCORRECTABLE_ERRORS, metrics.HELD_IDLE, metrics.NODES_DRAINED, metrics.QUEUES_PROTECTED}


def test_each_alarm_tells_the_topic_and_says_what_to_do(deployment: Deployment) -> None:
    topic, _ = deployment.monitoring.one(TOPIC)

    for alarm in alarms(deployment).values():
        assert alarm["AlarmActions"] == [{"Ref": topic}]
        assert "`" in alarm["AlarmDescription"]
        assert len(alarm["AlarmDescription"]) <= MAX_ALARM_DESCRIPTION


def test_silence_is_told_once_there_was_a_word_and_of_the_head_node_alone(synth: Synth) -> None:
    deployment = synth("trn1-16")
    topic, _ = deployment.monitoring.one(TOPIC)
    told = {
        name: alarm["InsufficientDataActions"]
        for name, alarm in alarms(deployment).items()
        if "InsufficientDataActions" in alarm
    }

    assert told == {"HeadNodeSilent": [{"Ref": topic}]}


def test_each_queue_has_an_alarm_of_its_own_on_uncorrectable_errors(synth: Synth) -> None:
    found = alarms(synth("two-queues"))

    for queue in ("trn1-a", "trn1-b"):
        alarm = found[f"UncorrectableErrors-{queue}"]
        assert {"Name": "Queue", "Value": queue} in alarm["Dimensions"]
        assert f"--partition={queue}`" in alarm["AlarmDescription"]


def test_the_file_system_is_nearly_full_where_the_settings_say_so(changed: Edited) -> None:
    def edit(raw: Raw) -> None:
        raw["monitoring"]["file_system_full_percent"] = 60
        raw["storage"]["file_system"]["capacity_gib"] = 2400

    alarm = alarms(changed(edit))["FileSystemNearlyFull"]

    assert alarm["Threshold"] == 2400 * 2**30 * 0.4
    assert "more than 60 % full, of its nominal capacity" in alarm["AlarmDescription"]


def test_nodes_that_send_no_metrics_have_neither_alarms_nor_graphs(changed: Edited) -> None:
    deployment = changed(lambda raw: raw["monitoring"].update(node_metrics=False))

    assert alarms(deployment).keys() == {"FileSystemNearlyFull", "NatPortsExhausted"}
    assert metrics.NAMESPACE not in json.dumps(graphs(deployment))


def test_a_nat_gateway_of_somebody_else_is_not_watched(changed: Edited) -> None:
    deployment = changed(use_existing_vpc)

    assert alarms(deployment).keys() == ALARMS.keys() - {"NatPortsExhausted"}
    assert "NATGateway" not in json.dumps(graphs(deployment))


def use_another_file_system(raw: Raw) -> None:
    raw["storage"]["file_system"]["throughput_mbps_per_tib"] = 500


def use_another_public_subnet(raw: Raw) -> None:
    raw["network"]["public_subnet_cidr"] = "10.0.1.0/24"


@pytest.mark.parametrize("edit", [use_another_file_system, use_another_public_subnet])
def test_what_is_replaced_changes_the_template_so_that_its_id_is_read_anew(
    edit: Callable[[Raw], object], synth: Synth, changed: Edited
) -> None:
    assert changed(edit).monitoring.body != synth("trn1-16").monitoring.body


def test_the_plan_counts_the_alarms(deployment: Deployment) -> None:
    [planned] = [each.at_max for each in costs.parts(deployment.settings) if each.name.startswith("alarms of nodes")]

    assert planned == len(alarms(deployment))


# --- who is told ---


def test_nobody_is_told_unless_the_settings_name_somebody(synth: Synth, changed: Edited) -> None:
    assert synth("trn1-16").monitoring.of_type(SUBSCRIPTION) == {}
    addresses = ["a@example.com", "b@example.com"]

    deployment = changed(lambda raw: raw["monitoring"].update(emails=addresses))

    topic, _ = deployment.monitoring.one(TOPIC)
    found = [item["Properties"] for item in deployment.monitoring.of_type(SUBSCRIPTION).values()]
    assert found == [{"Endpoint": address, "Protocol": "email", "TopicArn": {"Ref": topic}} for address in addresses]


def test_notifications_are_encrypted_with_a_key_that_our_alarms_may_use(synth: Synth) -> None:
    monitoring = synth("trn1-16").monitoring
    key, definition = monitoring.one("AWS::KMS::Key")
    _, of_cloud_watch = definition["Properties"]["KeyPolicy"]["Statement"]

    assert monitoring.properties(TOPIC)["KmsMasterKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    assert of_cloud_watch["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert of_cloud_watch["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
    assert_only_our_alarms(of_cloud_watch["Condition"])


def test_our_alarms_may_publish_and_nothing_without_tls(synth: Synth) -> None:
    policy = synth("trn1-16").monitoring.properties("AWS::SNS::TopicPolicy")["PolicyDocument"]
    denied, allowed = policy["Statement"]

    assert (denied["Effect"], denied["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert (allowed["Effect"], allowed["Action"]) == ("Allow", "sns:Publish")
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert_only_our_alarms(allowed["Condition"])


def assert_only_our_alarms(condition: dict[str, Any]) -> None:
    arns = "arn:aws:cloudwatch:us-west-2:AWS::AccountId:alarm:trn1-16-monitoring-*"
    assert condition["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert {key: flat(value) for key, value in condition["ArnLike"].items()} == {"aws:SourceArn": arns}


# --- the dashboard ---


def test_the_dashboard_shows_all_alarms_first(synth: Synth) -> None:
    first, *others = widgets(synth("trn1-16"))

    assert len(first["alarms"]) == len(ALARMS)
    assert all("metrics" in widget for widget in others)


def test_the_dashboard_draws_all_that_nodes_send_for_each_queue(synth: Synth) -> None:
    drawn = {tuple(line[:6]) for line in graphs(synth("two-queues")) if line[0] == "UltraCluster"}

    assert drawn == {
        ("UltraCluster", name, "Cluster", "two-queues", "Queue", queue)
        for name in (*metrics.OF_COMPUTE_NODES, *metrics.OF_HEAD_NODE)
        for queue in ("trn1-a", "trn1-b")
    }


def test_sums_are_of_one_minute_each_in_which_every_node_and_storage_target_reports_once(synth: Synth) -> None:
    assert {line[-1]["period"] for line in graphs(synth("trn1-16"))} == {60}


def test_the_dashboard_draws_file_system_and_nat_gateway(synth: Synth) -> None:
    drawn = {(line[1], line[-1].get("stat")) for line in graphs(synth("trn1-16")) if str(line[0]).startswith("AWS/")}

    assert drawn == {
        ("FreeDataStorageCapacity", "Sum"),
        ("FreeDataStorageCapacity", "Minimum"),
        ("DataReadBytes", "Sum"),
        ("DataWriteBytes", "Sum"),
        ("ActiveConnectionCount", "Maximum"),
        ("ErrorPortAllocation", "Sum"),
        ("BytesInFromDestination", "Sum"),
        ("BytesOutToDestination", "Sum"),
    }


def test_the_worst_ten_nodes_are_asked_for_whatever_their_number(synth: Synth) -> None:
    queries = {line[0]["expression"] for line in graphs(synth("ultracluster")) if isinstance(line[0], dict)}

    source = (
        'FROM SCHEMA("UltraCluster", "Cluster", "Node", "Queue") '
        """WHERE "Cluster" = 'ultracluster' GROUP BY "Queue", "Node\""""
    )
    assert queries == {
        f'SELECT SUM("UncorrectableErrors") {source} ORDER BY SUM() DESC LIMIT 10',
        f'SELECT SUM("EfaRetransmittedBytes") {source} ORDER BY SUM() DESC LIMIT 10',
        f'SELECT AVG("NeuronCoreUtilization") {source} ORDER BY AVG() ASC LIMIT 10',
    }


def test_each_name_of_a_query_is_in_quotes_because_cluster_is_a_keyword(synth: Synth) -> None:
    for query in (line[0]["expression"] for line in graphs(synth("trn1-16")) if isinstance(line[0], dict)):
        bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", query)
        assert set(re.findall(r"[A-Za-z]+", bare)) <= KEYWORDS
        for name in ("UltraCluster", "Cluster", "Node", "Queue"):
            assert f'"{name}"' in query


def test_fifty_queues_stay_within_what_cloud_watch_draws(changed: Edited) -> None:
    found = [len(lines(widget)) for widget in widgets(changed(use_queues(50)))]

    assert max(found) <= MAX_METRICS_OF_A_WIDGET
    assert sum(found) <= MAX_METRICS_OF_A_DASHBOARD


def test_dashboards_of_one_name_in_two_regions_are_two(synth: Synth, changed: Edited) -> None:
    moved = changed(lambda raw: raw.update(region="us-east-2", zone_id="use2-az3"))
    names = [each.monitoring.properties(DASHBOARD)["DashboardName"] for each in (synth("trn1-16"), moved)]

    assert names == ["trn1-16-monitoring-us-west-2", "trn1-16-monitoring-us-east-2"]


def test_the_dashboard_can_be_left_out(changed: Edited) -> None:
    deployment = changed(lambda raw: raw["monitoring"].update(dashboard=False))

    assert deployment.monitoring.of_type(DASHBOARD) == {}
    assert "Dashboard" not in deployment.monitoring.body["Outputs"]
    assert "dashboard" not in deployment.monitoring.summary()
    assert alarms(deployment).keys() == ALARMS.keys()
