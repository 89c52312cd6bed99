"""What watches a cluster: alarms and a dashboard that outlive it."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.types import MANY, TOKENS, Items, text
from ultracluster.domain.violations import Violation

_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_EMAIL = rf"^[A-Za-z0-9_%+-]+(\.[A-Za-z0-9_%+-]+)*@({_LABEL}\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$"
"""An address of letters without accents, digits, dots and ``_%+-``, without a name or brackets around it."""

EmailAddress = Annotated[str, text(_EMAIL, "an email address such as ops@example.com", max_length=254), TOKENS]


class ClusterMonitoringSpec(Spec):
    """Alarms and a dashboard of nodes, file system and NAT gateway, which outlive the cluster."""

    emails: Annotated[Items[EmailAddress], MANY, Setting(Change.AT_ONCE, "AWS::SNS::Subscription.Endpoint")] = []
    """Addresses that alarms are sent to, such as me@example.com. Each gets a mail first, with a link to confirm."""
    node_metrics: Annotated[
        bool,
        Setting(
            Change.DRAINS, page="https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/publishingMetrics.html"
        ),
    ] = True
    """Whether nodes send the counters of Neuron devices and EFA to CloudWatch once a minute, for about $3 per node and
    month."""
    dashboard: Annotated[bool, Setting(Change.AT_ONCE, "AWS::CloudWatch::Dashboard.DashboardBody")] = True
    """CloudWatch dashboard of nodes, file system and NAT gateway."""
    file_system_full_percent: Annotated[
        int, Field(ge=50, le=99), Setting(Change.AT_ONCE, "AWS::CloudWatch::Alarm.Threshold")
    ] = 85
    """The alarm of a nearly full file system is raised from there on; percent of its nominal capacity, capacity_gib."""


def violations(spec: ClusterMonitoringSpec) -> Iterator[Violation]:
    """Yield what would not be told of twice, with paths relative to ``spec``."""
    emails = [email.lower() for email in spec.emails]
    for index, email in enumerate(spec.emails):
        if email.lower() in emails[:index]:
            yield Violation(("emails", index), email, "each address once", "two subscriptions would be one")
