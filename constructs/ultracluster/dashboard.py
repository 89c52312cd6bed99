"""A CloudWatch dashboard of an UltraCluster.

Graphs have a line or two per queue, however many nodes there are: CloudWatch draws 500 metrics in a widget and 2,500
on a dashboard at most (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html). The
worst nodes are found by Metrics Insights, which reads 10,000 metrics at most
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-limits.html).

Graphs are written as CloudWatch reads them, and given to the CDK as one text: 50 queues have 600 lines, and each as a
``cloudwatch.Metric`` would be a call into the jsii kernel
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html).
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aws_cdk import Aws, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ultracluster.domain import metrics
from ultracluster.lustre import ILustreFileSystem
from ultracluster.metric import FSX, NAT_GATEWAY
from ultracluster.network import IUltraClusterNetwork

_ROW = 24
_HEIGHT = 6
_WORST = 10
_MINUTE = 60

Graph = tuple[str, Sequence[list[Any]]]
"""Title and lines of a graph."""


class Dashboard(Construct):
    """Define the dashboard, alarms on top. Its graphs are by the minute, which CloudWatch keeps for 15 days."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        prefix: str,
        alarms: Sequence[cloudwatch.IAlarm],
        rows: Sequence[Sequence[Graph]],
    ) -> None:
        super().__init__(scope, construct_id)
        body = {"periodOverride": "inherit", "widgets": list(_widgets([alarm.alarm_arn for alarm in alarms], rows))}
        dashboard = cloudwatch.CfnDashboard(
            Construct(self, "Resource"),  # where ``cloudwatch.Dashboard`` has it: its place makes the logical id
            "Resource",
            # One name is one dashboard in all Regions of an account.
            dashboard_name=f"{prefix}-{Stack.of(self).region}",
            dashboard_body=json.dumps(body, separators=(",", ":"), ensure_ascii=False),
        )
        self.name = dashboard.ref


def rows_of_nodes(cluster_name: str, queues: Sequence[str]) -> list[list[Graph]]:
    """Return the graphs of what nodes send."""

    def graph(title: str, *lines: tuple[str, str, str]) -> Graph:
        """Draw for each queue the metrics that are given by name, statistic and what to call them."""
        drawn = [
            _line(
                metrics.NAMESPACE,
                name,
                {"Cluster": cluster_name, "Queue": queue},
                statistic=statistic,
                label=f"{queue} {called}".strip(),
            )
            for name, statistic, called in lines
            for queue in queues
        ]
        return title, drawn

    return [
        [
            graph("Nodes that report", (metrics.NODES_REPORTING, "Sum", "")),
            graph(
                "NeuronCore utilization of nodes in use, %",
                (metrics.CORE_UTILIZATION, "Average", "mean"),
                (metrics.CORE_UTILIZATION, "Minimum", "lowest node"),
            ),
            graph(
                "Device memory of nodes in use, bytes per node",
                (metrics.DEVICE_MEMORY, "Average", "mean"),
                (metrics.DEVICE_MEMORY, "Maximum", "highest node"),
            ),
        ],
        [
            graph(
                "Errors of Neuron devices",
                (metrics.UNCORRECTABLE_ERRORS, "Sum", "uncorrectable"),
                (metrics.EXECUTION_ERRORS, "Sum", "executions"),
            ),
            graph(
                "Nodes drained, queues closed",
                (metrics.NODES_DRAINED, "Maximum", "drained"),
                (metrics.NODES_DRAINED_BY_HEALTH, "Maximum", "by health checks"),
                (metrics.QUEUES_PROTECTED, "Maximum", "closed"),
            ),
            _worst(cluster_name, "Nodes with most uncorrectable errors", metrics.UNCORRECTABLE_ERRORS, "SUM", "DESC"),
        ],
        [
            graph(
                "EFA, bytes per minute",
                (metrics.EFA_RECEIVED, "Sum", "received"),
                (metrics.EFA_SENT, "Sum", "sent"),
            ),
            graph("EFA, bytes sent again per minute", (metrics.EFA_RETRANSMITTED, "Sum", "")),
            _worst(cluster_name, "Nodes that send most again", metrics.EFA_RETRANSMITTED, "SUM", "DESC"),
        ],
        [
            graph("Nodes that run", (metrics.NODES_RUNNING, "Maximum", ""), (metrics.NODES_IDLE, "Maximum", "idle")),
            _worst(cluster_name, "Nodes in use, lowest utilization", metrics.CORE_UTILIZATION, "AVG", "ASC"),
        ],
    ]


def row_of_file_system(file_system: ILustreFileSystem) -> list[Graph]:
    """Return the graphs of a file system."""

    def line(name: str, label: str, *, statistic: str = "Sum") -> list[Any]:
        return _line(FSX, name, {"FileSystemId": file_system.file_system_id}, statistic=statistic, label=label)

    free = "FreeDataStorageCapacity"
    return [
        ("File system, free bytes", [line(free, "all")]),
        ("File system, free bytes of the fullest storage target", [line(free, "fullest", statistic="Minimum")]),
        ("File system, bytes per minute", [line("DataReadBytes", "read"), line("DataWriteBytes", "write")]),
    ]


def row_of_nat_gateway(network: IUltraClusterNetwork) -> list[Graph]:
    """Return the graphs of a network's NAT gateway."""

    def line(name: str, label: str | None = None, *, statistic: str = "Sum") -> list[Any]:
        return _line(NAT_GATEWAY, name, {"NatGatewayId": network.nat_gateway_id}, statistic=statistic, label=label)

    return [
        ("NAT gateway, connections", [line("ActiveConnectionCount", "open", statistic="Maximum")]),
        ("NAT gateway, connections without a port", [line("ErrorPortAllocation")]),
        (
            "NAT gateway, bytes per minute",
            [line("BytesInFromDestination", "in"), line("BytesOutToDestination", "out")],
        ),
    ]


def _line(
    namespace: str, metric: str, dimensions: Mapping[str, str], *, statistic: str, label: str | None
) -> list[Any]:
    drawn: dict[str, Any] = {} if label is None else {"label": label}
    drawn["period"] = _MINUTE
    if statistic != "Average":  # CloudWatch's default
        drawn["stat"] = statistic
    return [namespace, metric, *(part for dimension in dimensions.items() for part in dimension), drawn]


def _worst(cluster_name: str, title: str, metric: str, function: str, order: str) -> Graph:
    # All names in double quotes: CLUSTER is a keyword, in any case of its letters
    # (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-reserved-keywords.html).
    query = (
        f'SELECT {function}("{metric}") FROM SCHEMA("{metrics.NAMESPACE}", "Cluster", "Node", "Queue") '  # noqa: S608 no SQL
        f"""WHERE "Cluster" = '{cluster_name}' GROUP BY "Queue", "Node" ORDER BY {function}() {order} LIMIT {_WORST}"""
    )
    return title, [[{"expression": query, "period": _MINUTE}]]


def _widgets(alarm_arns: Sequence[str], rows: Sequence[Sequence[Graph]]) -> Iterator[dict[str, Any]]:
    """Yield the widgets row by row; the graphs of a row share its width."""
    height = 3
    properties: dict[str, Any] = {"title": "Alarms", "alarms": list(alarm_arns)}
    yield {"type": "alarm", "width": _ROW, "height": height, "x": 0, "y": 0, "properties": properties}
    region = Aws.REGION
    for number, row in enumerate(rows):
        width = _ROW // len(row)
        for column, (title, lines) in enumerate(row):
            properties = {"view": "timeSeries", "title": title, "region": region, "metrics": lines}
            properties["yAxis"] = {"left": {"min": 0}}
            place = {"x": column * width, "y": height + number * _HEIGHT}
            yield {"type": "metric", "width": width, "height": _HEIGHT, **place, "properties": properties}
