"""The sections of a settings file: what the construct library declares, and what only a settings file has."""

from typing import Annotated

from pydantic import Field

from ultracluster.domain import names
from ultracluster.domain.cluster import ClusterOptions, HeadNodeSpec
from ultracluster.domain.lustre import DataRepository, LustreSpec
from ultracluster.domain.network import NetworkSpec
from ultracluster.domain.snapshots import SnapshotSpec
from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.storage import SharedStorageSpec
from ultracluster.domain.types import FEW, KmsKeyArn, SubnetId, VpcId, text

_NETWORKS = "https://docs.aws.amazon.com/parallelcluster/latest/ug/network-configuration-v3.html"
_BOOTSTRAPPING = "https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-customizing.html"
ClusterName = Annotated[str, text(rf"^{names.CLUSTER_NAME_PATTERN}$", "2 to 60 letters, digits and -, a letter first")]


class BootstrapSettings(Spec):
    """The CDK's bootstrap stack in account and Region, which `./ultracluster bootstrap` makes."""

    qualifier: Annotated[
        str,
        text(r"^[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?$", "up to 10 of a-z, 0-9 and -, which is neither first nor last"),
        Setting(Change.NEW_CLUSTER, page=_BOOTSTRAPPING),
    ] = "hnb659fds"
    """Part of the names of its bucket, roles and parameter, at most 10 characters. Another one than the CDK's own has a
    stack of its own, CDKToolkit-QUALIFIER. Head and login nodes start from the bucket."""
    kms_key_arn: Annotated[KmsKeyArn | None, Setting(Change.AT_ONCE, page=_BOOTSTRAPPING)] = None
    """KMS key of yours that encrypts the bucket, in the account and Region of the deployment; null: S3's own key. Give
    it before the first deployment: what was uploaded before keeps the key that it has."""


class ExistingVpc(Spec):
    """A VPC that exists already. Its blocks are given in the fields of the network."""

    vpc_id: Annotated[VpcId, Setting(Change.NEW_DEPLOYMENT, page=_NETWORKS)]
    """Id of the VPC. It must have DNS support and DNS hostnames on."""
    public_subnet_id: Annotated[SubnetId, Setting(Change.NEW_CLUSTER, page=_NETWORKS)]
    """Subnet of the head node, in zone_id, that assigns public addresses."""
    private_subnet_id: Annotated[SubnetId, Setting(Change.NEW_DEPLOYMENT, page=_NETWORKS)]
    """Subnet of compute nodes and file system, in zone_id, with a route to the internet and no public addresses."""


class NetworkSettings(NetworkSpec):
    """The VPC, one public and one private subnet in one availability zone."""

    existing: Annotated[ExistingVpc | None, Setting(Change.NEW_DEPLOYMENT, page=_NETWORKS)] = None
    """A VPC to use instead of making one."""


class StorageSettings(Spec):
    """The shared file system and its links to S3."""

    file_system: LustreSpec = LustreSpec()
    data_repositories: Annotated[
        list[DataRepository],
        FEW,
        Setting(
            Change.AT_ONCE, page="https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html"
        ),
    ] = []
    """Links between directories and S3, at most 8, which exclude backups."""
    retain: Annotated[
        bool,
        Setting(
            Change.AT_ONCE,
            page="https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-deletionpolicy.html",
        ),
    ] = True
    """Whether file system and bucket stay, and cost, when their stack is destroyed."""


class HeadNodeSettings(HeadNodeSpec):
    """The head node: scheduler, shared home, where people log in."""

    snapshots: Annotated[
        SnapshotSpec | None,
        Setting(Change.AT_ONCE, page="https://docs.aws.amazon.com/ebs/latest/userguide/snapshot-lifecycle.html"),
    ] = SnapshotSpec()
    """Snapshots of the root volume, for `./ultracluster restore`; null: none."""


class ClusterSettings(ClusterOptions):
    """The ParallelCluster cluster."""

    name: Annotated[ClusterName | None, Setting(Change.NEW_CLUSTER)] = None
    """ParallelCluster's name of it; null: the name of the deployment."""
    generation: Annotated[int, Field(ge=1, le=9999), Setting(Change.NEW_CLUSTER)] = 1
    """Which of the clusters that follow one another on this network and file system. From 2 on, the names of cluster
    and stack end in -2 and so on. `./ultracluster upgrade` counts it up."""
    head_node: HeadNodeSettings = HeadNodeSettings()
    shared_storage: Annotated[list[SharedStorageSpec], FEW, Setting(Change.AT_ONCE, "SharedStorage")] = []
    """Storage that all nodes mount beside the deployment's file system and homes: what exists, and EBS volumes, which
    come and go while there are no login nodes; compute nodes drain."""
