"""The stack of the cluster. It can be destroyed and made again without touching network and data."""

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from constructs import Construct

from config.settings import Settings
from stacks.deployment_stack import DeploymentStack
from stacks.network_stack import Network
from stacks.sessions import add_session_document, add_ssh_document
from stacks.team_stack import HOMES_NAME, TeamStack
from ultracluster.domain.accounting import slurm_settings
from ultracluster.domain.cluster import ClusterSpec, HeadNodeSpec, QueueSpec
from ultracluster.domain.cluster_configuration import Mount
from ultracluster.domain.custom_actions import below_folder
from ultracluster.domain.homes import HOME
from ultracluster.domain.storage import mount_of
from ultracluster.lustre import LustreFileSystem
from ultracluster.neuron_software import NeuronSoftware
from ultracluster.parallel_cluster import ParallelCluster
from ultracluster.shared_storage import SharedStorage
from ultracluster.slurm_accounting import SlurmAccounting

if TYPE_CHECKING:
    from aws_cdk import aws_secretsmanager as secretsmanager

_Nodes = TypeVar("_Nodes", HeadNodeSpec, QueueSpec)
_JOB_SCRIPTS = Path(__file__).parents[1] / "training"


class ClusterStack(DeploymentStack):
    """The cluster of the settings."""

    def __init__(
        self,
        scope: Construct,
        settings: Settings,
        network: Network,
        file_system: LustreFileSystem,
        team: TeamStack | None,
    ) -> None:
        super().__init__(scope, settings, "cluster")  # the cluster has tags, its stack has none: see ParallelCluster
        spec, kms_key_arn = settings.cluster_spec, settings.bootstrap.kms_key_arn
        mount_dir = settings.storage.file_system.mount_dir
        self.cluster = ParallelCluster(
            self,
            "Cluster",
            vpc=network.vpc,
            public_subnet=network.public_subnet,
            private_subnet=network.private_subnet,
            security_groups=[],
            shared_storage=[
                SharedStorage.lustre(file_system, mount_dir),
                *self._homes(settings, team),
                *(SharedStorage(mount=mount_of(each)) for each in settings.cluster.shared_storage),
            ],
            software=NeuronSoftware(
                neuron_sdk=spec.neuron_sdk,
                neuron_driver=spec.neuron_driver,
                pytorch=spec.pytorch,
                jobs=None if spec.neuron_sdk is None else _JOB_SCRIPTS,
                metrics=settings.monitoring.node_metrics,
                deployment=settings.name,
                team=settings.team,
                budget=settings.budget if settings.monitoring.node_metrics else None,
            ),
            assets_key=None if kms_key_arn is None else kms.Key.from_key_arn(self, "AssetsKey", kms_key_arn),
            cluster_name=spec.name,
            tags=spec.tags,
            os=spec.os,
            custom_ami=spec.custom_ami,
            efa_interface_type=spec.efa_interface_type,
            head_node=_with_scripts(spec.head_node, settings.folder),
            login_nodes=spec.login_nodes,
            login_node_actions=below_folder(spec.login_node_actions, settings.folder),
            queues=[_with_scripts(queue, settings.folder) for queue in spec.queues],
            slurm=spec.slurm,
            monitoring=spec.monitoring,
            munge_key=self._secret("MungeKey", spec.munge_key_secret_arn),
            accounting=self._accounting(settings, team),
            directory=spec.directory,
            roles=spec.roles,
            overrides=spec.overrides,
            accepted_warnings=spec.accepted_warnings,
            parallelcluster_version=spec.parallelcluster_version,
        )
        add_ssh_document(self, spec.name)
        if settings.users:
            add_session_document(self, spec.name)
        self._add_outputs(spec)

    def _homes(self, settings: Settings, team: TeamStack | None) -> list[SharedStorage]:
        """Return what is mounted on /home: what is made here, or what exists, of which nodes need no security group."""
        if settings.homes is None or settings.homes.file_system_id is None:
            return [] if team is None or team.homes is None else [team.homes]
        kind: Literal["Efs", "FsxOpenZfs"] = "Efs" if settings.homes.type == "efs" else "FsxOpenZfs"
        return [SharedStorage(mount=Mount(kind, HOMES_NAME, HOME, settings.homes.file_system_id))]

    def _accounting(self, settings: Settings, team: TeamStack | None) -> SlurmAccounting | None:
        spec = settings.accounting
        if spec is None:
            return None
        name = spec.database_name_of(settings.name)
        in_slurm_conf = slurm_settings(spec, cluster_name=settings.name, generation=settings.cluster.generation)
        if team is not None and team.database is not None:
            return team.database.accounting(name, in_slurm_conf)
        existing = spec.existing
        assert existing is not None  # noqa: S101 - the team's stack has made one otherwise
        password = self._secret("AccountingPassword", existing.password_secret_arn)
        assert password is not None  # noqa: S101 - it has an ARN
        group = ec2.SecurityGroup.from_security_group_id(
            self, "AccountingClients", existing.security_group_id, mutable=False
        )
        return SlurmAccounting(
            uri=existing.uri,
            user=existing.user,
            password=password,
            database_name=name,
            security_groups=[group],
            slurm_settings=in_slurm_conf,
        )

    def _secret(self, construct_id: str, arn: str | None) -> "secretsmanager.ISecret | None":
        """Refer to a secret of the account."""
        if arn is None:
            return None
        from aws_cdk import aws_secretsmanager as secretsmanager  # noqa: PLC0415 -- most clusters have none

        return secretsmanager.Secret.from_secret_complete_arn(self, construct_id, arn)

    def _add_outputs(self, spec: ClusterSpec) -> None:
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


def _with_scripts(nodes: _Nodes, folder: Path) -> _Nodes:
    """Return options of nodes whose scripts are files below a folder."""
    return nodes.model_copy(update={"custom_actions": below_folder(nodes.custom_actions, folder)})
