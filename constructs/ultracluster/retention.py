"""CDK's names of the periods for which CloudWatch keeps logs."""

from typing import overload

from aws_cdk import aws_logs as logs

from ultracluster.domain.types import LOG_RETENTION_DAYS

_RETENTIONS = dict(zip(LOG_RETENTION_DAYS, logs.RetentionDays, strict=False))
"""They are in that order; the last, INFINITE, has no days."""


@overload
def retention(days: int) -> logs.RetentionDays: ...


@overload
def retention(days: None) -> None: ...


def retention(days: int | None) -> logs.RetentionDays | None:
    """Return the period of so many days; None: no logs are kept."""
    return None if days is None else _RETENTIONS[days]
