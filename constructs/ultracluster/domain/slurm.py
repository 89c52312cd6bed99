"""Slurm settings that ParallelCluster keeps for itself.

Source: aws-parallelcluster 3.16.1, validators/slurm_settings_validator.py (compared by a test). Names are compared in
lower case, because Slurm ignores case.
"""

RESERVED_CLUSTER_SETTINGS = frozenset(
    {
        "epilog",
        "grestypes",
        "launchparameters",
        "prolog",
        "reconfigflags",
        "resumefailprogram",
        "resumeprogram",
        "resumetimeout",
        "slurmctldhost",
        "slurmctldlogfile",
        "slurmctldparameters",
        "slurmdlogfile",
        "slurmuser",
        "suspendexcnodes",
        "suspendprogram",
        "suspendtime",
        "taskplugin",
        "treewidth",
    }
)
RESERVED_ACCOUNTING_SETTINGS = frozenset(
    {
        "accountingstoragehost",
        "accountingstorageport",
        "accountingstoragetype",
        "accountingstorageuser",
        "jobacctgathertype",
    }
)
"""Reserved when the cluster has an accounting ``Database``."""
RESERVED_QUEUE_SETTINGS = frozenset(
    {"nodes", "partitionname", "resumetimeout", "state", "suspendtime", "oversubscribe"}
)
