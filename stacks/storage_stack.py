"""The stack of the shared file system and of head nodes' snapshots. It outlives clusters, and data can outlive it."""

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from config.settings import Settings
from stacks.deployment_stack import DeploymentStack
from stacks.network_stack import Network
from ultracluster.domain.lustre import LustreSpec
from ultracluster.lustre import LustreFileSystem
from ultracluster.retention import RETENTION
from ultracluster.snapshots import HeadNodeSnapshots


class StorageStack(DeploymentStack):
    """The file system of the settings."""

    def __init__(self, scope: Construct, settings: Settings, network: Network) -> None:
        super().__init__(scope, settings, "storage", tags=settings.all_tags)
        storage, snapshots = settings.storage, settings.cluster.head_node.snapshots
        file_system = self._make(storage.file_system, network, settings.network.cidr, retain=storage.retain)
        for index, repository in enumerate(storage.data_repositories):
            bucket = repository.bucket and s3.Bucket.from_bucket_name(self, f"Bucket{index}", repository.bucket)
            file_system.add_data_repository(
                repository.path,
                bucket=bucket or None,
                prefix=repository.prefix,
                import_events=repository.import_events,
                export_events=repository.export_events,
            )
        self.file_system = file_system
        if snapshots is not None:
            HeadNodeSnapshots(self, "HeadNodeSnapshots", deployment=settings.name, **snapshots.model_dump())
        self._set_references(file_system)
        cdk.CfnOutput(self, "FileSystemId", value=file_system.file_system_id, description="The file system")
        if file_system.bucket is not None:
            cdk.CfnOutput(self, "BucketName", value=file_system.bucket.bucket_name, description="The bucket behind it")

    def _make(self, settings: LustreSpec, network: Network, vpc_cidr: str, *, retain: bool) -> LustreFileSystem:
        key_arn = settings.kms_key_arn
        return LustreFileSystem(
            self,
            "Lustre",
            vpc=network.vpc,
            subnet=network.private_subnet,
            deployment_type=settings.deployment_type,
            capacity_gib=settings.capacity_gib,
            throughput_mbps_per_tib=settings.throughput_mbps_per_tib,
            compression=settings.compression,
            metadata_iops=settings.metadata_iops,
            backup_retention_days=settings.backup_retention_days,
            kms_key=None if key_arn is None else kms.Key.from_key_arn(self, "Key", key_arn),
            vpc_cidr=vpc_cidr,
            log_group_name=f"/aws/fsx/lustre/{self.stack_name}",
            log_retention=RETENTION[settings.log_retention_days],
            removal_policy=(cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if retain else cdk.RemovalPolicy.DESTROY),
        )

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
