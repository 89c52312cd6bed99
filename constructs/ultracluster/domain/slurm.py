"""Slurm settings: those that ParallelCluster keeps for itself, and those that this stack adds.

Source of the first: aws-parallelcluster 3.16.1, validators/slurm_settings_validator.py (compared by a test). Names are
compared in lower case, because Slurm ignores case.
"""

from collections.abc import Mapping

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
RESERVED_COMPUTE_RESOURCE_SETTINGS = frozenset(
    {"cpus", "gres", "nodeaddr", "nodehostname", "nodename", "state", "weight"}
)

SCHEDULER_PARAMETERS = {
    "nohold_on_prolog_fail": "",
    "default_queue_depth": "2000",
    "bf_max_job_test": "2000",
    "bf_continue": "",
    "bf_interval": "5",
    "sched_interval": "5",
}
"""Parameters of Slurm's ``SchedulerParameters``, flags with an empty value, for a thousand jobs on a thousand nodes.

The first is ParallelCluster's own, which any other list would replace: a job that meets an unfit node waits for another
instead of being held (https://github.com/aws/aws-parallelcluster-cookbook, cookbooks/aws-parallelcluster-slurm,
templates/default/slurm/slurm.conf.erb). The others let one pass see more than the first 100 jobs, and come every 5 s
instead of 60 and 30 (https://slurm.schedmd.com/slurm.conf.html).
"""


def with_defaults(given: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Return settings, and those of the defaults whose names are not among them: Slurm ignores case."""
    names = {name.lower() for name in given}
    return {**{name: value for name, value in defaults.items() if name.lower() not in names}, **given}


def custom_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return what goes into ``slurm.conf``: the settings given, and the parameters of the scheduler.

    A parameter that is given wins over the stack's own of the same name; the others of the stack stay.
    """
    others = {name: value for name, value in given.items() if name.lower() != "schedulerparameters"}
    lists = [value for name, value in given.items() if name not in others]
    listed = [parameter.strip().partition("=") for value in lists for parameter in value.split(",")]
    parameters = SCHEDULER_PARAMETERS | {name.lower(): value for name, _, value in listed if name}
    text = ",".join(f"{name}={value}" if value else name for name, value in parameters.items())
    return {"SchedulerParameters": text, **others}
