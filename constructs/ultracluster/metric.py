"""How the constructs make metrics."""

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ultracluster.arguments import wrong_types
from ultracluster.domain.violations import InvalidArguments

FSX, NAT_GATEWAY = "AWS/FSx", "AWS/NATGateway"
"""Namespaces of AWS's own metrics."""
_MINUTE = Duration.minutes(1)


def metric_of(
    of: Construct,
    namespace: str,
    dimensions: Mapping[str, str],
    metric_name: str,
    *,
    statistic: str,
    period: Duration | None,
    label: str | None,
) -> cloudwatch.Metric:
    """Return a metric of a construct, in whose account and Region it is; without a period it is by the minute.

    Raises:
        InvalidArguments: Arguments are of other types, which the CDK would tell where a dashboard or an alarm has it.
    """
    if broken := wrong_types(metric_of, locals()):
        raise InvalidArguments(f"a metric of {of.node.path}", broken)
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=metric_name,
        dimensions_map=dimensions,
        statistic=statistic,
        period=period or _MINUTE,
        label=label,
    ).attach_to(of)
