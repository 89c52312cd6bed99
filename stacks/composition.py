"""The only place where stacks are put together; the app and the tests share it."""

import aws_cdk as cdk
from constructs import Construct

from config.settings import Settings
from stacks.cluster_stack import ClusterStack
from stacks.monitoring_stack import MonitoringStack
from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from stacks.team_stack import TeamStack


def compose(app: Construct, settings: Settings) -> None:
    """Add the stacks of a deployment to an app, or to a stage of a pipeline; their names are the same in both."""
    network = NetworkStack(app, settings).network
    file_system = StorageStack(app, settings, network).file_system
    team = TeamStack(app, settings, network) if "team" in settings.parts else None
    cluster = ClusterStack(app, settings, network, file_system, team)
    MonitoringStack(app, settings, network, file_system)
    for warning in settings.warnings:
        cdk.Annotations.of(cluster).add_warning_v2("ultracluster:settings", warning)
