"""Accounting of Slurm's jobs in a database that outlives clusters."""

from typing import Annotated

from pydantic import Field

from ultracluster.domain.spec import Change, Setting, Spec
from ultracluster.domain.team import AccountSpec, QosSpec
from ultracluster.domain.types import SecretArn, text

_DATABASES = "https://docs.aws.amazon.com/parallelcluster/latest/ug/slurm-accounting-v3.html"


class DatabaseSpec(Spec):
    """A MySQL database of Amazon RDS, in the stack NAME-team."""

    instance_class: Annotated[
        str,
        text(r"^db\.[a-z0-9]+\.[a-z0-9]+$", "a class of RDS such as db.t4g.micro"),
        Setting(Change.AT_ONCE, "AWS::RDS::DBInstance.DBInstanceClass"),
    ] = "db.t4g.micro"
    """Class of the instance."""
    storage_gib: Annotated[
        int, Field(ge=20, le=65536), Setting(Change.AT_ONCE, "AWS::RDS::DBInstance.AllocatedStorage")
    ] = 20
    """Storage. It grows by itself, and cannot shrink."""
    backup_retention_days: Annotated[
        int, Field(ge=1, le=35), Setting(Change.AT_ONCE, "AWS::RDS::DBInstance.BackupRetentionPeriod")
    ] = 7
    """Days that daily backups are kept."""
    retain: Annotated[bool, Setting(Change.AT_ONCE, page=_DATABASES)] = True
    """Whether the database stays, and costs, when its stack is destroyed."""


class ExistingDatabase(Spec):
    """A MySQL database that exists, in the deployment's VPC or reachable from it."""

    host: Annotated[
        str,
        text(r"^[a-zA-Z0-9.-]+(:\d+)?$", "a host name, with :PORT unless that is 3306"),
        Setting(Change.STOPPED_FLEET, "Scheduling.SlurmSettings.Database.Uri"),
    ]
    """Host name, and port unless it is 3306."""
    user: Annotated[str, Setting(Change.STOPPED_FLEET, "Scheduling.SlurmSettings.Database.UserName")]
    """Name of the database user."""
    password_secret_arn: Annotated[
        SecretArn, Setting(Change.STOPPED_FLEET, "Scheduling.SlurmSettings.Database.PasswordSecretArn")
    ]
    """Secret whose value is the password alone, as plain text."""
    security_group_id: Annotated[
        str,
        text(r"^sg-[0-9a-f]{8,17}$", "the id of a security group such as sg-0123456789abcdef0"),
        Setting(Change.NEW_CLUSTER, page=_DATABASES),
    ]
    """Security group that reaches the database; the head node carries it."""


class AccountingSpec(Spec):
    """Who used what, and who may use how much: Slurm's accounting in a database that outlives clusters."""

    database: DatabaseSpec = DatabaseSpec()
    existing: Annotated[ExistingDatabase | None, Setting(Change.NEW_CLUSTER, page=_DATABASES)] = None
    """A database to use instead of making one."""
    database_name: Annotated[
        str | None,
        text(r"^[0-9a-z_]{1,64}$", "1 to 64 of 0-9, a-z and _"),
        Setting(Change.NEW_CLUSTER, "Scheduling.SlurmSettings.Database.DatabaseName"),
    ] = None
    """Name of the database on its server, one per deployment; null: the deployment's, with _ for -."""
    accounts: Annotated[list[AccountSpec], Setting(Change.AT_ONCE)] = []
    """Accounts that jobs are charged to."""
    qos: Annotated[list[QosSpec], Setting(Change.AT_ONCE)] = []
    """Qualities of service."""
    enforce: Annotated[bool, Setting(Change.AT_ONCE, page="https://slurm.schedmd.com/resource_limits.html")] = True
    """Whether jobs need an account, and limits hold (AccountingStorageEnforce=associations,limits,qos,safe); false:
    use is only recorded."""
