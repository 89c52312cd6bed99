"""How a cluster reaches the database of Slurm's accounting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aws_cdk import aws_ec2 as ec2
from constructs import IDependable

from ultracluster.arguments import until_looked_up
from ultracluster.domain.accounting import DatabaseAccess, access_violations
from ultracluster.domain.violations import Violation
from ultracluster.signatures import readable

if TYPE_CHECKING:  # to import it takes a twentieth of a second
    from aws_cdk import aws_secretsmanager as secretsmanager


@readable
@dataclass(frozen=True, kw_only=True)
class SlurmAccounting:
    """A MySQL database, and what Slurm is told of it. `AccountingDatabase.accounting` returns that of a database.

    History belongs to the name of the database and Slurm's name of the cluster, ``ClusterName``: clusters that follow
    one another, and have both in common, continue it. Two at once need databases of their own.

    Attributes:
        uri: Host name and port, such as ``db.example.com:3306``. [change: stopped fleet]
        user: Name of the database user. [change: stopped fleet]
        password: Secret whose value is the password alone, as plain text, with its complete ARN. ParallelCluster does
            not follow its rotation. [change: stopped fleet]
        database_name: 1 to 64 of 0-9, a-z and _. [change: new cluster]
        security_groups: What the head node carries to reach the database. Default: none. [change: at once]
        slurm_settings: For ``slurm.conf``, such as those of `ultracluster.domain.accounting.slurm_settings`. Default:
            none. [change: at once]
        dependencies: What must be there before the head node uses the database. Default: none. [change: at once]
    """

    uri: str
    user: str
    password: "secretsmanager.ISecret"
    database_name: str
    security_groups: Sequence[ec2.ISecurityGroup] = ()
    slurm_settings: Mapping[str, str] = field(default_factory=dict)
    dependencies: Sequence[IDependable] = ()

    def violations(self) -> list[Violation]:
        """Return what ParallelCluster or Slurm refuses, by the names of attributes; their types are right."""
        given = {name: until_looked_up(getattr(self, name)) for name in DatabaseAccess.model_fields}
        return DatabaseAccess.checked(given, access_violations)[1]

    @property
    def bindings(self) -> dict[str, Any]:
        """What the configuration of a cluster has of it."""
        return {
            "database": {
                "Uri": self.uri,
                "UserName": self.user,
                "PasswordSecretArn": self.password.secret_full_arn,
                "DatabaseName": self.database_name,
            },
            "head_node_security_group_ids": [group.security_group_id for group in self.security_groups],
            "slurm_settings": self.slurm_settings,
        }
