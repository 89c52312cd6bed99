"""The stack of alarms and dashboard. It outlives clusters, so that subscribers need not confirm again."""

from typing import Any

import aws_cdk as cdk
from constructs import Construct

from config.sections import MonitoringSettings
from ultracluster.metric_sources import ClusterMetrics, FileSystemMetrics, NatGatewayMetrics
from ultracluster.monitoring import Monitoring


class MonitoringStack(cdk.Stack):
    """Alarms and a dashboard of what the other stacks make.

    Attributes:
        monitoring: Alarms and dashboard.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: MonitoringSettings,
        cluster: ClusterMetrics,
        file_system: FileSystemMetrics,
        nat_gateway: NatGatewayMetrics | None,
        **stack_options: Any,
    ) -> None:
        """Define the stack.

        Args:
            scope: The app.
            construct_id: Name of the stack.
            settings: What to make.
            cluster: The cluster, which may come later and go earlier.
            file_system: What it mounts.
            nat_gateway: None in an existing VPC.
            **stack_options: As of ``cdk.Stack``: env, tags, termination_protection and so on.
        """
        super().__init__(scope, construct_id, **stack_options)
        self.monitoring = Monitoring(
            self,
            "Monitoring",
            cluster=cluster,
            file_system=file_system,
            nat_gateway=nat_gateway,
            file_system_full_percent=settings.file_system_full_percent,
            emails=settings.emails,
            dashboard=settings.dashboard,
        )
        topic_arn, dashboard = self.monitoring.topic.topic_arn, self.monitoring.dashboard_name
        summary = {"topic_arn": topic_arn, "alarm_prefix": f"{self.stack_name}-"}
        cdk.CfnOutput(self, "AlarmTopic", value=topic_arn, description="SNS topic of all alarms")
        if dashboard is not None:
            summary["dashboard"] = dashboard
            console = f"https://{self.region}.console.aws.amazon.com/cloudwatch/home?region={self.region}"
            url = f"{console}#dashboards/dashboard/{dashboard}"
            cdk.CfnOutput(self, "Dashboard", value=url, description="The dashboard")
        cdk.CfnOutput(self, "Summary", value=self.to_json_string(summary), description="For scripts")
