"""CDK's names of the periods for which CloudWatch keeps logs."""

from collections.abc import Mapping

from aws_cdk import aws_logs as logs

from ultracluster.domain.types import retention_periods

RETENTION: Mapping[int, logs.RetentionDays] = retention_periods(logs.RetentionDays)
"""By days."""
