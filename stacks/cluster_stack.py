"""The stack of the cluster. It can be destroyed and made again without touching network and data."""

from collections.abc import Mapping
from pathlib import Path

import aws_cdk as cdk
from constructs import Construct

from config.settings import Settings
from stacks import node_arguments
from stacks.deployment_stack import DeploymentStack
from ultracluster.domain.cluster import ClusterSpec
from ultracluster.domain.cluster_configuration import LustreMount
from ultracluster.lustre import LustreFileSystem
from ultracluster.network import Network
from ultracluster.node_scripts import NodeScript
from ultracluster.parallel_cluster import ParallelCluster

_NODE_SCRIPTS = Path(__file__).parents[1] / "nodes"
_JOB_SCRIPTS = Path(__file__).parents[1] / "training"


class ClusterStack(DeploymentStack):
    """The cluster of the settings."""

    def __init__(
        self, scope: Construct, settings: Settings, network: Network, file_system: LustreFileSystem, mount: LustreMount
    ) -> None:
        super().__init__(scope, settings, "cluster")  # the cluster has tags, its stack has none: see ParallelCluster
        spec, mount_dir, node_metrics = settings.cluster_spec, mount.mount_dir, settings.monitoring.node_metrics
        self.cluster = ParallelCluster(
            self,
            "Cluster",
            spec=spec,
            network=network,
            security_groups=[file_system.security_group],
            shared_storage=[mount],
            head_node_script=_node_script(
                "head_node.sh",
                node_arguments.head_node(spec, mount_dir, deployment=settings.name, metrics=node_metrics),
                {"jobs": _JOB_SCRIPTS},
            ),
            queue_scripts={
                queue.name: _node_script(
                    "compute_node.sh", node_arguments.compute_node(spec, queue, mount_dir, metrics=node_metrics)
                )
                for queue in spec.queues
            },
            login_script=_node_script("login_node.sh", node_arguments.login_node(spec, mount_dir)),
            assets_key_arn=settings.bootstrap.kms_key_arn,
        )
        self._add_outputs(spec, network, file_system, mount_dir)

    def _add_outputs(self, spec: ClusterSpec, network: Network, file_system: LustreFileSystem, mount_dir: str) -> None:
        cluster = self.cluster
        connect = f"aws ssm start-session --region {spec.region} --target {cluster.head_node_instance_id}"
        log_group_prefix = f"/aws/parallelcluster/{spec.name}-"
        for name, value, description in (
            ("Connect", connect, "Opens a shell on the head node"),
            ("ClusterName", cluster.cluster_name, "ParallelCluster's name of the cluster"),
            ("HeadNodeInstanceId", cluster.head_node_instance_id, "EC2 instance of the head node"),
            ("LogGroupPrefix", log_group_prefix, "The newest log group that begins so is the cluster's"),
            ("ValidationMessages", cluster.validation_messages, "What ParallelCluster's validators said, as JSON"),
        ):
            cdk.CfnOutput(self, name, value=value, description=description)
        summary = {
            "region": spec.region,
            "cluster_name": cluster.cluster_name,
            "cluster_status": cluster.status,
            "parallelcluster_version": spec.parallelcluster_version,
            "max_nodes": spec.max_nodes,
            "max_trainium_vcpus": spec.max_trainium_vcpus,
            "max_node_interfaces": spec.max_node_interfaces,
            "head_node_instance_id": cluster.head_node_instance_id,
            "head_node_private_ip": cluster.head_node_private_ip,
            "log_group_prefix": log_group_prefix,
            "connect": connect,
            "placement_groups": {label: group.attr_group_name for label, group in cluster.placement_groups.items()},
            "vpc_id": network.vpc.vpc_id,
            "public_subnet_id": network.public_subnet.subnet_id,
            "private_subnet_id": network.private_subnet.subnet_id,
            "file_system_id": file_system.file_system_id,
            "mount_name": file_system.mount_name,
            "mount_dir": mount_dir,
        }
        if file_system.bucket is not None:
            summary["bucket"] = file_system.bucket.bucket_name
        cdk.CfnOutput(self, "Summary", value=self.to_json_string(summary), description="For scripts")


def _node_script(entry: str, arguments: Mapping[str, str], bundles: Mapping[str, Path] | None = None) -> NodeScript:
    return NodeScript(_NODE_SCRIPTS, entry, [f"{name}={value}" for name, value in arguments.items()], bundles or {})
