"""The stack of the shared file system and of head nodes' snapshots. It outlives clusters, and data can outlive it."""

from typing import Any

import aws_cdk as cdk
from constructs import Construct

from config.sections import SnapshotSettings, StorageSettings
from stacks.log_retention import RETENTIONS
from ultracluster.lustre import LustreFileSystem
from ultracluster.network import Network
from ultracluster.snapshots import HeadNodeSnapshots


class StorageStack(cdk.Stack):
    """Make the file system of the settings.

    Attributes:
        file_system: For the stacks that mount it.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: StorageSettings,
        network: Network,
        vpc_cidr: str,
        deployment: str,
        snapshots: SnapshotSettings | None,
        **stack_options: Any,
    ) -> None:
        """Define the stack.

        Args:
            scope: The app.
            construct_id: Name of the stack.
            settings: What to make.
            network: Where to make it.
            vpc_cidr: The VPC's IPv4 range, which may reach the file system.
            deployment: Name of the deployment, by which the volumes of its head nodes are known.
            snapshots: Of the head nodes' root volumes; None: none are taken.
            **stack_options: As of ``cdk.Stack``: env, tags, termination_protection and so on.
        """
        super().__init__(scope, construct_id, **stack_options)
        file_system = LustreFileSystem(
            self,
            "Lustre",
            spec=settings.file_system,
            network=network,
            vpc_cidr=vpc_cidr,
            retain=settings.retain,
            log_retention=RETENTIONS[settings.file_system.log_retention_days],
            repositories=settings.data_repositories,
        )
        self.file_system = file_system
        if snapshots is not None:
            HeadNodeSnapshots(self, "HeadNodeSnapshots", deployment=deployment, **snapshots.model_dump())
        self._set_references(file_system)
        summary: dict[str, object] = {
            "file_system_id": file_system.file_system_id,
            "dns_name": file_system.dns_name,
            "mount_name": file_system.mount_name,
            "mount_dir": settings.file_system.mount_dir,
            "security_group_id": file_system.security_group.security_group_id,
            "log_group": file_system.log_group.log_group_name,
            "retained": settings.retain,
        }
        cdk.CfnOutput(self, "FileSystemId", value=file_system.file_system_id, description="The file system")
        if file_system.bucket is not None:
            summary["bucket"] = file_system.bucket.bucket_name
            cdk.CfnOutput(self, "BucketName", value=file_system.bucket.bucket_name, description="The bucket behind it")
        cdk.CfnOutput(self, "Summary", value=self.to_json_string(summary), description="For scripts")

    def _set_references(self, file_system: LustreFileSystem) -> None:
        """Say how other stacks refer to what is made here; the app's default is a strong reference (docs/adr/0003)."""
        # Whoever imports it just now: see the network's exports.
        self.export_value(file_system.security_group.security_group_id)
        # Weak, because throughput, type or key of the file system change by a new one, in one deployment with the
        # cluster that mounts it. Nothing that reads the id is replaced by another one; the cluster's template changes
        # with the file system, by the name of its shared storage, or CloudFormation would not read the new id.
        cdk.CrossStackReferences.of(file_system).produce(cdk.ReferenceStrength.WEAK)
        if file_system.bucket is not None:
            # Weak, because it goes in one deployment with the data repositories that use it. Only outputs name it.
            cdk.CrossStackReferences.of(file_system.bucket).produce(cdk.ReferenceStrength.WEAK)
