"""A database for Slurm's accounting, which outlives clusters."""

import json
from collections.abc import Mapping, Sequence

from aws_cdk import CfnResource, Duration, RemovalPolicy, Size, Stack, Token, Tokenization
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct, IDependable

from ultracluster.acknowledgements import acknowledge
from ultracluster.arguments import construct_name, together, until_looked_up, wrong_types
from ultracluster.domain.accounting import DatabaseSpec
from ultracluster.domain.types import listed
from ultracluster.domain.violations import InvalidArguments, Violation
from ultracluster.placement import elsewhere, selected, zone_of
from ultracluster.signatures import readable
from ultracluster.slurm_accounting import SlurmAccounting

_DEFAULTS = DatabaseSpec()
_USER = "slurm"
_PORT = 3306
_FAMILY = "mysql8.4"
_PARAMETERS = {"innodb_lock_wait_timeout": "900", "require_secure_transport": "1"}
"""What slurmdbd asks for (https://github.com/SchedMD/slurm, accounting_storage_mysql.c), and TLS. Booleans of RDS for
MySQL are 0 and 1, those of Aurora ON and OFF. slurmdbd also asks for a max_allowed_packet of 16 MiB, where MySQL 8.4
has 64 MiB by default, and complains of a buffer pool below 4 GiB, but works with less."""
_NOT_IN_PASSWORDS = " \"'/@\\#%`$&<>;|"
"""The password stands as it is in a line of Slurm's configuration, where # starts a comment. RDS refuses / @ and "."""
_PASSWORD_LENGTH = 32
_GROWTH = 4
_ZONES = 2
_LAST_PORT = 65_535


@readable
class IAccountingDatabase(Construct):
    """A database for Slurm's accounting, of this app or of another.

    Attributes:
        client_group: What the head node carries to reach it.
        password: The secret with the password, as plain text.
        host: Host name.
        port: Port.
        user: Name of the database user.
    """

    client_group: ec2.ISecurityGroup
    password: secretsmanager.ISecret
    host: str
    port: int
    user: str
    _dependencies: Sequence[IDependable] = ()

    def accounting(self, database_name: str, slurm_settings: Mapping[str, str] | None = None) -> SlurmAccounting:
        """Return what a cluster needs to use it.

        Args:
            database_name: Name of the cluster's database on this server. Slurm makes it.
            slurm_settings: For ``slurm.conf``, such as those of `ultracluster.domain.accounting.slurm_settings`.

        Raises:
            InvalidArguments: Arguments break rules of ParallelCluster or Slurm; all of them are named.
        """
        broken = wrong_types(IAccountingDatabase.accounting, locals())
        made = SlurmAccounting(
            uri=f"{self.host}:{Tokenization.stringify_number(self.port)}",
            user=self.user,
            password=self.password,
            database_name=database_name,
            security_groups=[self.client_group],
            slurm_settings=slurm_settings or {},
            dependencies=self._dependencies,
        )
        if broken := broken or made.violations():
            raise InvalidArguments(f"{self.node.path}.accounting", broken)
        return made


@readable
class AccountingDatabase(IAccountingDatabase):
    """Define an RDS for MySQL instance for Slurm's accounting, with its password and security groups.

    It has no public address, is encrypted, and takes connections by TLS alone, from those who carry `client_group`.
    Whoever can read the secret can change all accounting.

    Args:
        scope: Usually a stack, which outlives the cluster.
        construct_id: Id in the scope.
        vpc: Where it is. [change: new database]
        subnets: In two zones, which RDS demands of an instance in one, too; or a selection. They need no way to the
            internet. The instance is in the zone of the first. [change: at once; new database, if the zone of the first
            changes]
        instance_class: Class of the instance. A change interrupts the database for minutes. [a class of RDS such as
            db.t4g.micro; default 'db.t4g.micro'; change: at once]
        engine_version: Of MySQL 8.4, to start with. [a version of MySQL 8.4 such as 8.4.9; default '8.4.9'; change: at
            once, only up]
        storage_gib: Storage, which grows by itself up to four times that. [GiB; 20 to 16,384; default 20; change: at
            once, only up]
        backup_retention_days: Days that daily backups are kept. [days; 1 to 35; default 7; change: at once]
        dependencies: Made before the instance: all else in its stack, whose creation may fail. To undo a creation that
            failed, CloudFormation would have to delete the instance, which RDS refuses while it is protected. Default:
            none. [change: at once]
        removal_policy: Of everything here. Default: the database outlives the stack, and cannot be deleted by mistake.
            [change: at once]

    Attributes:
        client_group: What the head node carries to reach it.
        password: The secret with the password, as plain text.
        host: Host name.
        port: Port.
        user: Name of the database user.

    Raises:
        InvalidArguments: Arguments break rules; all of them are named.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        subnets: Sequence[ec2.ISubnet] | ec2.SubnetSelection,
        instance_class: str = _DEFAULTS.instance_class,
        engine_version: str = _DEFAULTS.engine_version,
        storage_gib: int | Size = _DEFAULTS.storage_gib,
        backup_retention_days: int | Duration = _DEFAULTS.backup_retention_days,
        dependencies: Sequence[IDependable] = (),
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        name = construct_name(type(self), scope, construct_id)
        broken = wrong_types(AccountingDatabase.__init__, locals())
        of_vpc = any(each.path[0] == "vpc" for each in broken)
        if isinstance(subnets, ec2.SubnetSelection):
            subnets = [] if of_vpc else selected(vpc, subnets, ("subnets",), broken)
            of_vpc = of_vpc or not subnets
        places = listed(subnets)
        if isinstance(places, list) and len(places) < _ZONES and not of_vpc:
            broken.append(Violation(("subnets",), subnets, "two subnets or more, in two zones", "RDS demands it"))
        elif not broken:
            broken += elsewhere(vpc, {("subnets", index): each for index, each in enumerate(places)})
            zones = [_zone_in_template(each) for each in places]
            if None not in zones and len(set(zones)) < _ZONES:
                paths = ", ".join(each.node.path for each in places)
                broken.append(Violation(("subnets",), paths, "subnets in two zones or more", "RDS demands it"))
        values = {
            "instance_class": until_looked_up(instance_class),
            "engine_version": engine_version,
            "storage_gib": storage_gib,
            "backup_retention_days": backup_retention_days,
        }
        spec, violations = DatabaseSpec.checked(values)
        broken = together(broken, violations)
        if spec is None or broken:
            raise InvalidArguments(name, broken)
        super().__init__(scope, construct_id)
        self.client_group = ec2.SecurityGroup(
            self, "Clients", vpc=vpc, description="Reaches the accounting database", allow_all_outbound=False
        )
        group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description="Accounting database", allow_all_outbound=False
        )
        group.connections.allow_from(self.client_group, ec2.Port.tcp(_PORT), "MySQL from the head node")
        self.password = secretsmanager.Secret(
            self,
            "Password",
            description=f"Password of {_USER} in the accounting database, as plain text",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                exclude_characters=_NOT_IN_PASSWORDS, password_length=_PASSWORD_LENGTH
            ),
        )
        self._instance = self._add_instance(spec, places, group, retain=removal_policy is not RemovalPolicy.DESTROY)
        self._instance.node.add_dependency(self.client_group, group, *dependencies)
        self._dependencies = [self._instance]
        self.host, self.port, self.user = self._instance.attr_endpoint_address, _PORT, _USER
        for each in self.node.find_all():
            if isinstance(each, CfnResource):
                each.apply_removal_policy(removal_policy)

    @staticmethod
    def from_database_attributes(
        scope: Construct,
        construct_id: str,
        *,
        host: str,
        password: secretsmanager.ISecret,
        client_group: ec2.ISecurityGroup,
        port: int = _PORT,
        user: str = _USER,
    ) -> IAccountingDatabase:
        """Refer to a database that exists already, or that another app makes.

        Args:
            scope: Usually a stack.
            construct_id: Id in the scope.
            host: Host name.
            password: The secret with the user's password, as plain text.
            client_group: What the head node carries to reach it.
            port: Port.
            user: Name of a user who may make databases.

        Raises:
            InvalidArguments: Arguments are of other types.
        """
        name = construct_name("AccountingDatabase.from_database_attributes", scope, construct_id)
        broken = wrong_types(AccountingDatabase.from_database_attributes, locals())
        if isinstance(port, int | float) and Token.is_unresolved(port):
            broken = [each for each in broken if each.path != ("port",)]
        elif isinstance(port, int) and not 1 <= port <= _LAST_PORT:
            broken.append(Violation(("port",), port, f"1 to {_LAST_PORT}", ""))
        empty = [each for each, text in (("host", host), ("user", user)) if text == ""]
        broken += [Violation((each,), "", "a text", "") for each in empty]
        if broken:
            raise InvalidArguments(name, broken)
        database = IAccountingDatabase(scope, construct_id)
        database.host, database.port, database.user = host, port, user
        database.password, database.client_group = password, client_group
        return database

    def _add_instance(
        self, spec: DatabaseSpec, subnets: Sequence[ec2.ISubnet], group: ec2.SecurityGroup, *, retain: bool
    ) -> rds.CfnDBInstance:
        subnet_group = rds.CfnDBSubnetGroup(
            self,
            "Subnets",
            db_subnet_group_description="Accounting database",
            subnet_ids=[subnet.subnet_id for subnet in subnets],
        )
        parameters = rds.CfnDBParameterGroup(
            self,
            "Parameters",
            description="What slurmdbd asks for",
            family=_FAMILY,
            parameters=_PARAMETERS,
        )
        instance = rds.CfnDBInstance(
            self,
            "Instance",
            engine="mysql",
            engine_version=spec.engine_version,
            engine_lifecycle_support="open-source-rds-extended-support-disabled",
            db_instance_class=spec.instance_class,
            allocated_storage=str(spec.storage_gib),
            max_allocated_storage=spec.storage_gib * _GROWTH,
            storage_type="gp3",
            storage_encrypted=True,
            availability_zone=zone_of(subnets[0]),
            db_subnet_group_name=subnet_group.ref,
            db_parameter_group_name=parameters.ref,
            vpc_security_groups=[group.security_group_id],
            port=str(_PORT),
            publicly_accessible=False,
            multi_az=False,
            master_username=_USER,
            master_user_password=self.password.secret_value.unsafe_unwrap(),
            backup_retention_period=spec.backup_retention_days,
            copy_tags_to_snapshot=True,
            auto_minor_version_upgrade=True,
            deletion_protection=retain,
            delete_automated_backups=not retain,
        )
        reason = "one instance in one zone, as the cluster: without its zone there are no jobs to account for"
        acknowledge(instance, "RDS3", reason)
        acknowledge(instance, "RDS11", "nobody but those who carry the client group reaches any port")
        if not retain:
            acknowledge(instance, "RDS10", "the caller wants it deleted with its stack")
        acknowledge(
            self.password, "SMG4", "ParallelCluster does not follow a rotation: slurmdbd would lose the database"
        )
        return instance


def _zone_in_template(subnet: ec2.ISubnet) -> str | None:
    """Return what says in which zone a subnet of this app is, as text; None: that is not known."""
    resource = subnet.node.default_child
    if not isinstance(resource, ec2.CfnSubnet):
        return None
    zone = resource.availability_zone_id or resource.availability_zone
    return None if zone is None else json.dumps(Stack.of(subnet).resolve(zone))
