"""The only place where stacks are put together; the app and the tests share it."""

from typing import Any

import aws_cdk as cdk
from constructs import Construct

from config.settings import Settings
from stacks.cluster_stack import ClusterStack
from stacks.monitoring_stack import MonitoringStack
from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from ultracluster.domain.lustre import shared_storage_name
from ultracluster.metric_sources import ClusterMetrics, FileSystemMetrics, NatGatewayMetrics


def compose(app: Construct, settings: Settings) -> None:
    """Add the stacks of a deployment to an app, or to a stage of a pipeline; their names are the same in both."""

    def options(part: str) -> dict[str, Any]:
        return {
            "stack_name": settings.stack_name(part),
            "env": cdk.Environment(account=settings.account, region=settings.region),
            "termination_protection": part in settings.termination_protection,
            "description": f"Trn1 UltraCluster {settings.name}: {part}",
            "synthesizer": cdk.DefaultStackSynthesizer(qualifier=settings.bootstrap.qualifier),
        }

    network = NetworkStack(
        app,
        settings.stack_name("network"),
        settings=settings.network,
        zone_id=settings.zone_id,
        tags=settings.tags,
        **options("network"),
    )
    storage = StorageStack(
        app,
        settings.stack_name("storage"),
        settings=settings.storage,
        network=network.network,
        vpc_cidr=settings.network.cidr,
        deployment=settings.name,
        snapshots=settings.cluster.head_node.snapshots,
        tags=settings.tags,
        **options("storage"),
    )
    file_system, spec = settings.storage.file_system, settings.cluster_spec
    storage_name = shared_storage_name(
        file_system, stack_name=storage.stack_name, subnet=settings.network.placement(settings.zone_id)
    )
    cluster = ClusterStack(
        app,
        settings.stack_name("cluster"),
        deployment=settings.name,
        spec=spec,
        network=network.network,
        file_system=storage.file_system,
        shared_storage_name=storage_name,
        mount_dir=file_system.mount_dir,
        node_metrics=settings.monitoring.node_metrics,
        assets_key_arn=settings.bootstrap.kms_key_arn,
        **options("cluster"),
    )
    nat_gateway_id = network.network.nat_gateway_id
    MonitoringStack(
        app,
        settings.stack_name("monitoring"),
        settings=settings.monitoring,
        cluster=ClusterMetrics(spec.name, [queue.name for queue in spec.queues], settings.monitoring.node_metrics),
        file_system=FileSystemMetrics(storage.file_system.file_system_id, storage_name, file_system.capacity_gib),
        nat_gateway=(
            None if nat_gateway_id is None else NatGatewayMetrics(nat_gateway_id, settings.network.public_subnet_cidr)
        ),
        tags=settings.tags,
        **options("monitoring"),
    )
    for warning in settings.warnings:
        cdk.Annotations.of(cluster).add_warning_v2("ultracluster:settings", warning)
