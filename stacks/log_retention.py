"""CloudWatch's retention periods, from days as settings have them to CDK's names."""

from aws_cdk.aws_logs import RetentionDays

from ultracluster.domain.cluster import LOG_RETENTION_DAYS

RETENTIONS = dict(zip(LOG_RETENTION_DAYS, RetentionDays, strict=False))
"""CDK's names are in the order of the periods; the last one, INFINITE, has no days."""
