"""Where the metrics of an UltraCluster come from: cluster, file system, NAT gateway."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from ultracluster.domain import metrics


@dataclass(frozen=True)
class ClusterMetrics:
    """A cluster by ParallelCluster's name, and its queues; whether its nodes send metrics."""

    name: str
    queues: Sequence[str]
    node_metrics: bool

    def metric(
        self, name: str, statistic: str, *, queue: str | None = None, minutes: int = 1, label: str | None = None
    ) -> cloudwatch.Metric:
        """Return a metric of a queue, or what the head node says of the whole cluster."""
        dimensions = {"Cluster": self.name} | ({"Queue": queue} if queue else {})
        return _metric(metrics.NAMESPACE, dimensions, name, statistic, minutes=minutes, label=label)


@dataclass(frozen=True)
class FileSystemMetrics:
    """An FSx for Lustre file system; another one has another name."""

    file_system_id: str
    name: str
    capacity_gib: int

    def metric(self, name: str, statistic: str, *, label: str | None = None) -> cloudwatch.Metric:
        """Return one of FSx's metrics.

        Each minute has a value of each storage target: their Sum, over no more than that minute, is the file system's,
        the Minimum that of one target (https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html).
        """
        return _metric("AWS/FSx", {"FileSystemId": self.file_system_id}, name, statistic, label=label)


@dataclass(frozen=True)
class NatGatewayMetrics:
    """A NAT gateway, and the block of its subnet."""

    nat_gateway_id: str
    subnet_cidr: str

    def metric(self, name: str, statistic: str, *, minutes: int = 1, label: str | None = None) -> cloudwatch.Metric:
        """Return one of https://docs.aws.amazon.com/vpc/latest/userguide/metrics-dimensions-nat-gateway.html."""
        return _metric(
            "AWS/NATGateway", {"NatGatewayId": self.nat_gateway_id}, name, statistic, minutes=minutes, label=label
        )


def _metric(
    namespace: str, dimensions: dict[str, str], name: str, statistic: str, *, minutes: int = 1, label: str | None = None
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dimensions,
        statistic=statistic,
        period=Duration.minutes(minutes),
        label=label,
    )
