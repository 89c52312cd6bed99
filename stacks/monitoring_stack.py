"""The stack of alarms and dashboard. It outlives clusters, so that subscribers need not confirm again."""

import aws_cdk as cdk
from constructs import Construct

from config.settings import Settings
from stacks.deployment_stack import DeploymentStack
from ultracluster.domain.cluster_configuration import LustreMount
from ultracluster.metric_sources import ClusterMetrics, FileSystemMetrics, NatGatewayMetrics
from ultracluster.monitoring import Monitoring
from ultracluster.network import Network


class MonitoringStack(DeploymentStack):
    """Alarms and a dashboard of what the other stacks make."""

    def __init__(self, scope: Construct, settings: Settings, network: Network, mount: LustreMount) -> None:
        super().__init__(scope, settings, "monitoring", tags=settings.tags)
        spec, monitoring, nat_gateway = settings.cluster_spec, settings.monitoring, None
        if network.nat_gateway_id is not None:
            nat_gateway = NatGatewayMetrics(network.nat_gateway_id, settings.network.public_subnet_cidr)
        self.monitoring = Monitoring(
            self,
            "Monitoring",
            cluster=ClusterMetrics(spec.name, [queue.name for queue in spec.queues], monitoring.node_metrics),
            file_system=FileSystemMetrics(mount.file_system_id, mount.name, settings.storage.file_system.capacity_gib),
            nat_gateway=nat_gateway,
            file_system_full_percent=monitoring.file_system_full_percent,
            emails=monitoring.emails,
            dashboard=monitoring.dashboard,
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
