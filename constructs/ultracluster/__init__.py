"""CDK constructs for AWS ParallelCluster: Slurm clusters of Trainium, GPU and CPU nodes, FSx for Lustre, alarms.

Names are imported when they are used: ``import aws_cdk`` takes most of a second, and ``ultracluster.domain`` does
without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ultracluster.accounting_database import AccountingDatabase, IAccountingDatabase
    from ultracluster.budget import MonthlyBudget
    from ultracluster.cluster_base import IParallelCluster, NodeGroup
    from ultracluster.configured_cluster import ConfiguredCluster
    from ultracluster.domain.violations import InvalidArguments
    from ultracluster.homes import ElasticFileSystem, OpenZfsFileSystem
    from ultracluster.lustre import ILustreFileSystem, LustreFileSystem
    from ultracluster.monitoring import ClusterMonitoring
    from ultracluster.network import IsolatedSubnet, IUltraClusterNetwork, UltraClusterNetwork
    from ultracluster.neuron_software import NeuronSoftware
    from ultracluster.options import (
        AcceptedWarning,
        AccountSpec,
        BudgetSpec,
        ComputeResource,
        DirectorySpec,
        EbsVolume,
        HeadNode,
        InstanceTypeFacts,
        LoginPool,
        MonitoringOptions,
        NodeAction,
        NodeActions,
        QosSpec,
        Queue,
        QueueActions,
        Roles,
        S3Access,
        Slurm,
        TeamSpec,
        UserSpec,
    )
    from ultracluster.parallel_cluster import ParallelCluster
    from ultracluster.shared_storage import IFileSystem, IOpenZfsVolume, SharedStorage
    from ultracluster.slurm_accounting import SlurmAccounting
    from ultracluster.snapshots import HeadNodeSnapshots

__all__ = [
    "AcceptedWarning",
    "AccountSpec",
    "AccountingDatabase",
    "BudgetSpec",
    "ClusterMonitoring",
    "ComputeResource",
    "ConfiguredCluster",
    "DirectorySpec",
    "EbsVolume",
    "ElasticFileSystem",
    "HeadNode",
    "HeadNodeSnapshots",
    "IAccountingDatabase",
    "IFileSystem",
    "ILustreFileSystem",
    "IOpenZfsVolume",
    "IParallelCluster",
    "IUltraClusterNetwork",
    "InstanceTypeFacts",
    "InvalidArguments",
    "IsolatedSubnet",
    "LoginPool",
    "LustreFileSystem",
    "MonitoringOptions",
    "MonthlyBudget",
    "NeuronSoftware",
    "NodeAction",
    "NodeActions",
    "NodeGroup",
    "OpenZfsFileSystem",
    "ParallelCluster",
    "QosSpec",
    "Queue",
    "QueueActions",
    "Roles",
    "S3Access",
    "SharedStorage",
    "Slurm",
    "SlurmAccounting",
    "TeamSpec",
    "UltraClusterNetwork",
    "UserSpec",
]

_MODULES = {
    "accounting_database": ("AccountingDatabase", "IAccountingDatabase"),
    "cluster_base": ("IParallelCluster", "NodeGroup"),
    "budget": ("MonthlyBudget",),
    "configured_cluster": ("ConfiguredCluster",),
    "domain.violations": ("InvalidArguments",),
    "homes": ("ElasticFileSystem", "OpenZfsFileSystem"),
    "lustre": ("ILustreFileSystem", "LustreFileSystem"),
    "monitoring": ("ClusterMonitoring",),
    "network": ("IUltraClusterNetwork", "IsolatedSubnet", "UltraClusterNetwork"),
    "neuron_software": ("NeuronSoftware",),
    "options": (
        "AcceptedWarning",
        "AccountSpec",
        "BudgetSpec",
        "ComputeResource",
        "DirectorySpec",
        "EbsVolume",
        "HeadNode",
        "InstanceTypeFacts",
        "LoginPool",
        "MonitoringOptions",
        "NodeAction",
        "NodeActions",
        "QosSpec",
        "Queue",
        "QueueActions",
        "Roles",
        "S3Access",
        "Slurm",
        "TeamSpec",
        "UserSpec",
    ),
    "parallel_cluster": ("ParallelCluster",),
    "slurm_accounting": ("SlurmAccounting",),
    "snapshots": ("HeadNodeSnapshots",),
    "shared_storage": ("IFileSystem", "IOpenZfsVolume", "SharedStorage"),
}

if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name):
        for module, names in _MODULES.items():
            if name in names:
                return getattr(import_module(f"ultracluster.{module}"), name)
        raise AttributeError(f"module 'ultracluster' has no attribute {name!r}")

    def __dir__():
        return __all__
