"""Where the metrics of an UltraCluster come from: cluster, file system, NAT gateway."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from ultracluster.domain import metrics


@dataclass(frozen=True)
class ClusterMetrics:
    """A cluster whose nodes may send metrics (``ultracluster.domain.metrics``).

    Attributes:
        name: ParallelCluster's name of it.
        queues: Names of its queues.
        node_metrics: Whether its nodes send any.
    """

    name: str
    queues: Sequence[str]
    node_metrics: bool

    def metric(
        self, name: str, statistic: str, *, queue: str | None = None, minutes: int = 1, label: str | None = None
    ) -> cloudwatch.Metric:
        """Return a metric of a queue, or what the head node says of the whole cluster."""
        return cloudwatch.Metric(
            namespace=metrics.NAMESPACE,
            metric_name=name,
            dimensions_map={"Cluster": self.name} | ({"Queue": queue} if queue else {}),
            statistic=statistic,
            period=Duration.minutes(minutes),
            label=label,
        )


@dataclass(frozen=True)
class FileSystemMetrics:
    """An FSx for Lustre file system.

    Attributes:
        file_system_id: ``fs-...``, or a token.
        name: Another file system has another name.
        capacity_gib: Its storage.
    """

    file_system_id: str
    name: str
    capacity_gib: int

    def metric(self, name: str, statistic: str, *, label: str | None = None) -> cloudwatch.Metric:
        """Return one of FSx's metrics.

        Each minute has a value of each storage target: their Sum, over no more than that minute, is the file system's,
        the Minimum that of one target (https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html).
        """
        return cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name=name,
            dimensions_map={"FileSystemId": self.file_system_id},
            statistic=statistic,
            period=Duration.minutes(1),
            label=label,
        )


@dataclass(frozen=True)
class NatGatewayMetrics:
    """A NAT gateway.

    Attributes:
        nat_gateway_id: ``nat-...``, or a token.
        subnet_cidr: The block of its subnet.
    """

    nat_gateway_id: str
    subnet_cidr: str

    def metric(self, name: str, statistic: str, *, minutes: int = 1, label: str | None = None) -> cloudwatch.Metric:
        """Return one of https://docs.aws.amazon.com/vpc/latest/userguide/metrics-dimensions-nat-gateway.html."""
        return cloudwatch.Metric(
            namespace="AWS/NATGateway",
            metric_name=name,
            dimensions_map={"NatGatewayId": self.nat_gateway_id},
            statistic=statistic,
            period=Duration.minutes(minutes),
            label=label,
        )
