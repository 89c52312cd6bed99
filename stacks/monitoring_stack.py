"""The stack of alarms and dashboard. It outlives clusters, so that subscribers need not confirm again."""

import aws_cdk as cdk
from constructs import Construct

from config.settings import Settings
from stacks.deployment_stack import DeploymentStack
from stacks.network_stack import Network
from ultracluster.budget import MonthlyBudget
from ultracluster.domain import names
from ultracluster.lustre import LustreFileSystem
from ultracluster.monitoring import ClusterMonitoring
from ultracluster.parallel_cluster import ParallelCluster

_ADVICE = {
    "NodesDrained": "`./ultracluster status` has them, too.",
    "HeadNodeSilent": "The output Connect of the cluster's stack opens a shell, LogGroupPrefix names the log groups.",
    "BudgetSpent": "The limit is `budget.monthly_usd`. Who used the nodes: `./ultracluster costs`. To continue until "
    "the month ends: `./ultracluster fleet start`.",
    "SpendingRate": "The limit is `budget.max_usd_per_hour`. To end nodes: `./ultracluster fleet stop`.",
    "FileSystemNearlyFull": "The capacity is `storage.file_system.capacity_gib`.",
    "NatPortsExhausted": "The addresses are `network.nat_addresses`.",
}
"""What alarms say of commands and settings, which not every user of the library has."""


class MonitoringStack(DeploymentStack):
    """Alarms and a dashboard of what the other stacks make."""

    def __init__(self, scope: Construct, settings: Settings, network: Network, file_system: LustreFileSystem) -> None:
        super().__init__(scope, settings, "monitoring", tags=settings.all_tags)
        spec, monitoring = settings.cluster_spec, settings.monitoring
        self.monitoring = ClusterMonitoring(
            self,
            "Monitoring",
            # By its name, not by the construct: the stack of the cluster comes and goes.
            cluster=ParallelCluster.from_cluster_attributes(self, "Cluster", cluster_name=spec.name),
            queues=[queue.name for queue in spec.queues],
            node_metrics=monitoring.node_metrics,
            file_system=file_system,
            # Another file system has another name and so makes another template, so that its id is read again.
            file_system_name=file_system.shared_storage_name(settings.storage.file_system.mount_dir),
            file_system_full_percent=monitoring.file_system_full_percent,
            network=network.made,
            emails=monitoring.emails,
            dashboard=monitoring.dashboard,
            budget=settings.budget if monitoring.node_metrics else None,
            idle_minutes=spec.slurm.idle_minutes,
            advice=_ADVICE,
        )
        if settings.budget is not None:
            tags = {names.DEPLOYMENT_TAG: settings.name}
            MonthlyBudget(self, "Budget", budget=settings.budget, emails=settings.emails_of_budget, tags=tags)
        topic_arn, dashboard = self.monitoring.topic.topic_arn, self.monitoring.dashboard_name
        cdk.CfnOutput(self, "AlarmTopic", value=topic_arn, description="SNS topic of all alarms")
        if dashboard is not None:
            console = f"https://{self.region}.console.aws.amazon.com/cloudwatch/home?region={self.region}"
            url = f"{console}#dashboards/dashboard/{dashboard}"
            cdk.CfnOutput(self, "Dashboard", value=url, description="The dashboard")
