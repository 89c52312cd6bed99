"""CDK's names of the periods for which CloudWatch keeps logs."""

from collections.abc import Mapping

from aws_cdk import aws_logs as logs

from ultracluster.domain.types import LOG_RETENTION_DAYS

RETENTION: Mapping[int, logs.RetentionDays] = dict(zip(LOG_RETENTION_DAYS, logs.RetentionDays, strict=False))
"""By days; for 0 there is none."""
