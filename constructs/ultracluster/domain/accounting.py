"""Accounting of Slurm's jobs in a database that outlives clusters."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from ultracluster.domain import slurm, slurm_rules
from ultracluster.domain.spec import Change, Growth, Setting, Spec
from ultracluster.domain.team import AccountSpec, QosSpec
from ultracluster.domain.types import (
    FEW,
    FROM_DAYS,
    FROM_SIZE,
    MANY,
    TOKENS,
    Entries,
    Gib,
    Items,
    Most,
    SecretArn,
    SecurityGroupId,
    SubnetBlock,
    Time,
    ZoneId,
    default,
    text,
)
from ultracluster.domain.violations import Violation, below

_VERSIONS = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_UpgradeDBInstance.MySQL.html"
_STORAGE = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.ModifyingExisting.html"
_DATABASES = "https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-accounting-v3.html"

DEFAULT_ACCOUNT = "pcdefault"
"""Account that ParallelCluster makes, with its default user (its cookbook, config_slurm_accounting.rb)."""
JOBS_OF_A_GENERATION = 1_000_000
"""Numbers of jobs that a cluster has before those of the next begin: plain ``sacct`` hides the older of two jobs of one
number (https://slurm.schedmd.com/sacct.html, --duplicates)."""
_GENERATIONS = 67
"""So many fit below Slurm's MaxJobId, 67,043,328."""


class DatabaseSpec(Spec):
    """A MySQL database of Amazon RDS, in the stack NAME-team."""

    instance_class: Annotated[
        str,
        text(r"^db\.[a-z0-9]+\.[a-z0-9]+$", "a class of RDS such as db.t4g.micro"),
        TOKENS,
        Setting(Change.AT_ONCE, "AWS::RDS::DBInstance.DBInstanceClass"),
    ] = "db.t4g.micro"
    """Class of the instance. A change interrupts the database for minutes; Slurm sends what it has meanwhile later."""
    engine_version: Annotated[
        str,
        text(r"^8\.4\.\d+$", "a version of MySQL 8.4 such as 8.4.9"),
        Setting(Change.AT_ONCE, "AWS::RDS::DBInstance.EngineVersion", growth=Growth(_VERSIONS)),
    ] = "8.4.9"
    """Version of MySQL to start with; RDS installs later ones of 8.4 by itself, in its maintenance window."""
    storage_gib: Annotated[
        Gib,
        Field(ge=20, le=16384),
        FROM_SIZE,
        Setting(Change.AT_ONCE, "AWS::RDS::DBInstance.AllocatedStorage", growth=Growth(_STORAGE)),
    ] = default(20)
    """Storage. It grows by itself up to four times that."""
    backup_retention_days: Annotated[
        Time, Field(ge=1, le=35), FROM_DAYS, Setting(Change.AT_ONCE, "AWS::RDS::DBInstance.BackupRetentionPeriod")
    ] = default(7)
    """Days that daily backups are kept."""
    retain: Annotated[bool, Setting(Change.AT_ONCE, page=_DATABASES)] = True
    """Whether the database stays, and costs, when its stack is destroyed; it is protected against deletion then."""
    second_zone_id: Annotated[ZoneId | None, Setting(Change.NEW_DEPLOYMENT, "AWS::EC2::Subnet.AvailabilityZoneId")] = (
        None
    )
    """Another zone than the deployment's, in which RDS wants a subnet, too; None: the Region's az1, or az2."""
    subnet_cidrs: Annotated[
        Items[SubnetBlock] | None,
        Field(min_length=2),
        Most(2),
        Setting(Change.NEW_DEPLOYMENT, "AWS::EC2::Subnet.CidrBlock"),
    ] = None
    """Blocks of the two subnets that are made for it in the VPC, /16 to /28, without a route to the internet; None: the
    last /28 of the VPC that are free. An existing VPC has no default."""


DatabaseHost = Annotated[
    str,
    text(
        r"^[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?)*(:[1-9]\d{0,4})?$",
        "a host name without https:// or a path, with :PORT unless that is 3306",
    ),
]
DatabaseUser = Annotated[str, text(r"^[^\s'\"\\#]{1,32}$", "1 to 32 characters without spaces, quotes, \\ and #")]
DatabaseName = Annotated[str, text(r"^[0-9a-z_]{1,64}$", "1 to 64 of 0-9, a-z and _")]


class DatabaseAccess(Spec):
    """How a cluster reaches a database, and what Slurm is told of accounting."""

    uri: Annotated[DatabaseHost, TOKENS]
    """Host name, and port unless it is 3306."""
    user: Annotated[DatabaseUser, TOKENS]
    """Name of the database user."""
    database_name: Annotated[DatabaseName, TOKENS]
    """Name of the database on its server."""
    slurm_settings: Annotated[Entries[str, str], MANY] = {}
    """Parameters of slurm.conf."""


def access_violations(spec: DatabaseAccess) -> Iterator[Violation]:
    """Yield what ParallelCluster or Slurm refuses, with paths relative to ``spec``."""
    settings = spec.slurm_settings
    reserved = slurm_rules.reserved(settings, slurm.RESERVED_ACCOUNTING_SETTINGS)
    yield from below(("slurm_settings",), reserved, slurm_rules.violations(settings, slurm_rules.CLUSTER))


class ExistingDatabase(Spec):
    """A MySQL database that exists, in the deployment's VPC or reachable from it."""

    host: Annotated[DatabaseHost, Setting(Change.STOPPED_FLEET, "Scheduling.SlurmSettings.Database.Uri")]
    """Host name, and port unless it is 3306."""
    user: Annotated[DatabaseUser, Setting(Change.STOPPED_FLEET, "Scheduling.SlurmSettings.Database.UserName")]
    """Name of the database user."""
    password_secret_arn: Annotated[
        SecretArn, Setting(Change.STOPPED_FLEET, "Scheduling.SlurmSettings.Database.PasswordSecretArn")
    ]
    """Secret whose value is the password alone, as plain text."""
    security_group_id: Annotated[
        SecurityGroupId, Setting(Change.AT_ONCE, "HeadNode.Networking.AdditionalSecurityGroups")
    ]
    """Security group that reaches the database; the head node carries it."""

    @property
    def uri(self) -> str:
        """Host name with port."""
        return self.host if ":" in self.host else f"{self.host}:3306"


class AccountingSpec(Spec):
    """Who used what, and who may use how much: Slurm's accounting in a database that outlives clusters."""

    database: DatabaseSpec = DatabaseSpec()
    existing: Annotated[ExistingDatabase | None, Setting(Change.STOPPED_FLEET, page=_DATABASES)] = None
    """A database to use instead of making one, such as one that is restored from a snapshot."""
    database_name: Annotated[
        DatabaseName | None,
        Setting(Change.NEW_CLUSTER, "Scheduling.SlurmSettings.Database.DatabaseName"),
    ] = None
    """Name of the database on its server, one per deployment; None: the deployment's, with _ for -."""
    accounts: Annotated[Items[AccountSpec], MANY, Setting(Change.AT_ONCE)] = []
    """Accounts that jobs are charged to."""
    qos: Annotated[Items[QosSpec], FEW, Setting(Change.AT_ONCE)] = []
    """Qualities of service."""
    enforce: Annotated[bool, Setting(Change.AT_ONCE, page="https://slurm.schedmd.com/resource_limits.html")] = True
    """Whether jobs need an account, and limits hold (AccountingStorageEnforce=associations,limits,qos,safe); False:
    use is only recorded."""

    def database_name_of(self, deployment: str) -> str:
        """Return the name of the database on its server."""
        return self.database_name or deployment.replace("-", "_")


def first_job_id(generation: int) -> int:
    """Return the number of the first job of a generation of the cluster."""
    return (generation - 1) % _GENERATIONS * JOBS_OF_A_GENERATION + 1


def slurm_settings(spec: AccountingSpec, *, cluster_name: str, generation: int = 1) -> dict[str, str]:
    """Return what slurm.conf needs for accounting, beside the address of the database.

    History belongs to Slurm's name of the cluster, which all generations have in common. A cluster's own settings win.

    Args:
        spec: What was asked for.
        cluster_name: Slurm's name of the cluster.
        generation: Which of the clusters that continue one history; its jobs have numbers of their own.
    """
    settings = {
        "ClusterName": cluster_name,
        "FirstJobId": str(first_job_id(generation)),
        "PriorityWeightFairshare": "100000",
    }
    if spec.enforce:
        # safe: a job that would exceed the limit of node hours does not start; without it, it is killed at the limit.
        settings["AccountingStorageEnforce"] = "associations,limits,qos,safe"
    if spec.qos:
        settings["PriorityWeightQOS"] = "1000000"
    if any(qos.preempts for qos in spec.qos):
        settings |= {"PreemptType": "preempt/qos", "PreemptMode": "REQUEUE"}
    if any(each.node_hours_per_month for each in (*spec.accounts, *spec.qos)):
        # A purse of a month: by default, what was used counts half after a week.
        settings |= {"PriorityDecayHalfLife": "0", "PriorityUsageResetPeriod": "MONTHLY"}
    return settings
