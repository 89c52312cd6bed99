"""A CloudWatch dashboard of an UltraCluster.

Graphs have a line or two per queue, however many nodes there are: CloudWatch draws 500 metrics in a widget and 2,500
on a dashboard at most (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_limits.html). The
worst nodes are found by Metrics Insights, which reads 10,000 metrics at most
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-limits.html).
"""

from collections.abc import Sequence

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ultracluster.cluster_base import IParallelCluster
from ultracluster.domain import metrics
from ultracluster.lustre import ILustreFileSystem
from ultracluster.network import UltraClusterNetwork

_ROW = 24
_HEIGHT = 6
_WORST = 10


class Dashboard(Construct):
    """Define the dashboard, alarms on top. Its graphs are by the minute, which CloudWatch keeps for 15 days."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        prefix: str,
        alarms: Sequence[cloudwatch.IAlarm],
        rows: Sequence[list[cloudwatch.IWidget]],
    ) -> None:
        super().__init__(scope, construct_id)
        status = cloudwatch.AlarmStatusWidget(title="Alarms", alarms=alarms, width=_ROW, height=3)
        dashboard = cloudwatch.Dashboard(
            self,
            "Resource",
            # One name is one dashboard in all Regions of an account.
            dashboard_name=f"{prefix}-{Stack.of(self).region}",
            period_override=cloudwatch.PeriodOverride.INHERIT,
            widgets=[[status], *rows],
        )
        self.name = dashboard.dashboard_name


def rows_of_nodes(
    cluster: IParallelCluster, cluster_name: str, queues: Sequence[str]
) -> list[list[cloudwatch.IWidget]]:
    """Return the graphs of what nodes send."""

    def graph(title: str, *lines: tuple[str, str, str]) -> cloudwatch.GraphWidget:
        """Draw for each queue the metrics that are given by name, statistic and what to call them."""
        drawn = [
            cluster.metric(name, statistic=statistic, queue=queue, label=f"{queue} {called}".strip())
            for name, statistic, called in lines
            for queue in queues
        ]
        return _graph(title, drawn)

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
        [_worst(cluster_name, "Nodes in use, lowest utilization", metrics.CORE_UTILIZATION, "AVG", "ASC", width=_ROW)],
    ]


def row_of_file_system(file_system: ILustreFileSystem) -> list[cloudwatch.IWidget]:
    """Return the graphs of a file system."""
    return [
        _graph("File system, free bytes", [file_system.metric("FreeDataStorageCapacity", label="all")]),
        _graph(
            "File system, free bytes of the fullest storage target",
            [file_system.metric("FreeDataStorageCapacity", statistic="Minimum", label="fullest")],
        ),
        _graph(
            "File system, bytes per minute",
            [file_system.metric(f"Data{way}Bytes", label=way.lower()) for way in ("Read", "Write")],
        ),
    ]


def row_of_nat_gateway(network: UltraClusterNetwork) -> list[cloudwatch.IWidget]:
    """Return the graphs of a network's NAT gateway."""
    line = network.metric_nat_gateway
    return [
        _graph("NAT gateway, connections", [line("ActiveConnectionCount", statistic="Maximum", label="open")]),
        _graph("NAT gateway, connections without a port", [line("ErrorPortAllocation")]),
        _graph(
            "NAT gateway, bytes per minute",
            [line("BytesInFromDestination", label="in"), line("BytesOutToDestination", label="out")],
        ),
    ]


def _graph(title: str, drawn: Sequence[cloudwatch.IMetric], *, width: int = _ROW // 3) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(
        title=title, left=drawn, left_y_axis=cloudwatch.YAxisProps(min=0), width=width, height=_HEIGHT
    )


def _worst(
    cluster_name: str, title: str, metric: str, function: str, order: str, *, width: int = _ROW // 3
) -> cloudwatch.GraphWidget:
    # All names in double quotes: CLUSTER is a keyword, in any case of its letters
    # (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-metrics-insights-reserved-keywords.html).
    query = (
        f'SELECT {function}("{metric}") FROM SCHEMA("{metrics.NAMESPACE}", "Cluster", "Node", "Queue") '  # noqa: S608 no SQL
        f"""WHERE "Cluster" = '{cluster_name}' GROUP BY "Queue", "Node" ORDER BY {function}() {order} LIMIT {_WORST}"""
    )
    worst = cloudwatch.MathExpression(expression=query, using_metrics={}, label="", period=Duration.minutes(1))
    return _graph(title, [worst], width=width)
