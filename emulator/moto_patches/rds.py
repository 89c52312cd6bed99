"""Amazon RDS: database instances in a VPC, with what RDS refuses; who runs their servers is told of them.

Messages are as AWS's users report them:
https://github.com/aws-cloudformation/aws-cloudformation-resource-providers-rds/pull/189 (zones),
https://github.com/anomalyco/sst/issues/6592 and
https://github.com/terraform-aws-modules/terraform-aws-rds-aurora/issues/466 (groups in use),
https://github.com/aws-samples/aws-cdk-examples/issues/825 (parameters that cannot be set),
https://github.com/thunderbird/appointment/pull/725 (an older version).
"""

# ruff: noqa: D102 - a method is named after the API action that it serves
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.rds.exceptions import (
    DBParameterGroupNotFoundError,
    InvalidParameterCombination,
    InvalidParameterValue,
    RDSClientError,
)
from moto.rds.models import DBInstance, RDSBackend, rds_backends
from moto.rds.responses import RDSResponse

from emulator.aws import ACCOUNT

_ENGINES: Final = {"mysql": "8.4.7", "mariadb": "11.8.5"}
"""Engines that have servers, and the version of an instance for which none is asked."""
_ZONES: Final = 2
_DEFAULT_GROUP: Final = "default"


@dataclass(frozen=True)
class _Parameter:
    """A parameter of a family as DescribeEngineDefaultParameters has it; `allowed` is AllowedValues."""

    allowed: str
    is_modifiable: bool = True


_PARAMETERS: Final[Mapping[str, Mapping[str, _Parameter]]] = {
    "mysql8.4": {
        # Recorded of mysql8.0: https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/Appendix.MySQL.Parameters.html
        "activate_all_roles_on_login": _Parameter("0,1"),
        "allow-suspicious-udfs": _Parameter("0,1", is_modifiable=False),
        # Set to 1 in RDS's guide, as all booleans of RDS for MySQL; Aurora has ON,OFF:
        # https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/mysql-ssl-connections.require-ssl.html
        "require_secure_transport": _Parameter("0,1"),
        # MySQL's own ranges, RDS may allow less: https://dev.mysql.com/doc/refman/8.4/en/innodb-parameters.html,
        # https://dev.mysql.com/doc/refman/8.4/en/server-system-variables.html
        "innodb_lock_wait_timeout": _Parameter("1-1073741824"),
        "max_allowed_packet": _Parameter("1024-1073741824"),
    }
}
"""What public sources record; nobody has published the whole of mysql8.4. What is not here, formulas too, is refused:

`aws rds describe-engine-default-parameters --db-parameter-group-family mysql8.4` prints a row to add.
"""


def refusal(family: str, name: str, value: str) -> str:
    """Return why RDS, or CloudFormation before it, does not take a value of a parameter; empty: it does."""
    parameter = _PARAMETERS.get(family, {}).get(name)
    if parameter is None:
        return f"parameter {name} of family {family} is not recorded here"
    if not parameter.is_modifiable:
        return f"Invalid / Unmodifiable / Unsupported DB Parameter: {name}"
    if any(_is_within(value, each) for each in parameter.allowed.split(",")):
        return ""
    return f"Invalid parameter value: {value} for: {name} allowed values are: {parameter.allowed}"


def _is_within(value: str, allowed: str) -> bool:
    """Tell whether a value is the one that is allowed, or a number within a range such as 1-100."""
    least, is_range, most = allowed.partition("-")
    if not is_range:
        return value == allowed
    return value.isdecimal() and int(least) <= int(value) <= int(most)


@dataclass(frozen=True)
class Database:
    """A database instance as its server needs to know it.

    Attributes:
        region: Its AWS Region.
        name: Its identifier.
        vpc_id: Where it is.
        address: Its private one.
    """

    region: str
    name: str
    vpc_id: str
    address: str
    port: int
    user: str
    password: str
    schema: str | None
    parameters: dict[str, str]


class DatabaseServers:
    """Who runs the servers of database instances. A subclass overrides what it needs; each call is to be quick.

    It says what has happened by `ready` or `failed`, without which an instance stays as it is called meanwhile.
    """

    def created(self, database: Database, done: Callable[[str], None]) -> None:
        """Start a server; `done` takes the status that its instance then has."""
        del database
        done("available")

    def changed(self, database: Database, done: Callable[[str], None]) -> None:
        """Let a server have another master password."""
        del database
        done("available")

    def stopped(self, database: Database, done: Callable[[str], None]) -> None:
        """Stop a server, whose data stay."""
        del database
        done("stopped")

    def deleted(self, database: Database) -> None:
        """End a server, and delete its data."""


class Rds(RDSResponse):
    """RDS whose instances have a network interface in their VPC, and a server if there is somebody to run it."""

    servers: ClassVar[DatabaseServers] = DatabaseServers()

    def describe_orderable_db_instance_options(self) -> ActionResult:
        """Offer versions of MySQL 8.4 on any class in any zone; moto offers none.

        https://docs.aws.amazon.com/AmazonRDS/latest/APIReference/API_OrderableDBInstanceOption.html
        """
        engine, version = self.params["Engine"], self.params.get("EngineVersion", _ENGINES["mysql"])
        if engine != "mysql" or not re.fullmatch(r"8\.4\.\d+", version):
            return super().describe_orderable_db_instance_options()
        option = {
            "AvailabilityZones": [{"Name": each.name} for each in self._ec2_backend.describe_availability_zones()],
            "Engine": engine,
            "EngineVersion": version,
            "DBInstanceClass": self.params.get("DBInstanceClass", "db.t4g.micro"),
            "StorageType": "gp3",
            "SupportsStorageEncryption": True,
            "Vpc": True,
        }
        return ActionResult({"OrderableDBInstanceOptions": [option]})

    def create_db_instance(self) -> ActionResult:
        engine = self.params["Engine"]
        if engine in _ENGINES:
            self.params.setdefault("EngineVersion", _ENGINES[engine])
        self.params.setdefault("VpcSecurityGroupIds", [])
        if "DBSubnetGroupName" not in self.params:
            self.params["DBSubnetGroupName"] = self._default_group()
        subnet = self._subnet(self.params["DBSubnetGroupName"], self.params.get("AvailabilityZone"))
        ec2 = self._ec2_backend
        groups = self.params["VpcSecurityGroupIds"] or [ec2.get_default_security_group(subnet.vpc_id).id]
        self.params["VpcSecurityGroupIds"] = groups
        self.params.setdefault("AvailabilityZone", subnet.availability_zone)
        answer = super().create_db_instance()
        instance = answer.result["DBInstance"]  # type: ignore[index]
        interface = ec2.create_network_interface(
            subnet.id, private_ip_address=[], group_ids=groups, description="RDSNetworkInterface"
        )
        _interfaces(self.backend)[instance.db_instance_identifier] = interface
        self._enter(instance, "creating", self.servers.created)
        return answer

    def modify_db_instance(self) -> ActionResult:
        instance = self._instance()
        storage = self.params.get("AllocatedStorage")
        if storage and storage < instance.allocated_storage:
            raise InvalidParameterCombination(
                f"Invalid storage size for engine name {instance.engine} and storage type {instance.storage_type}: "
                f"{storage}, which is less than {instance.allocated_storage}"
            )
        version = self.params.get("EngineVersion")
        if version and _parts(version) < _parts(instance.engine_version):
            message = f"Cannot upgrade {instance.engine} from {instance.engine_version} to {version}"
            raise InvalidParameterCombination(message)
        answer = super().modify_db_instance()
        if groups := self.params.get("VpcSecurityGroupIds"):
            interface = _interfaces(self.backend)[instance.db_instance_identifier]
            self._ec2_backend.modify_network_interface_attribute(interface.id, groups)
        if "MasterUserPassword" in self.params:
            self._enter(instance, "modifying", self.servers.changed)
        return answer

    def reboot_db_instance(self) -> ActionResult:
        answer = super().reboot_db_instance()
        self._restart("rebooting")
        return answer

    def start_db_instance(self) -> ActionResult:
        answer = super().start_db_instance()
        self._restart("starting")
        return answer

    def stop_db_instance(self) -> ActionResult:
        answer = super().stop_db_instance()
        self._enter(self._instance(), "stopping", self.servers.stopped)
        return answer

    def delete_db_instance(self) -> ActionResult:
        instance = self._instance()
        database = _described(self.backend, instance)
        answer = super().delete_db_instance()
        self.servers.deleted(database)
        interface = _interfaces(self.backend).pop(instance.db_instance_identifier)
        self._ec2_backend.delete_network_interface(interface.id)
        return answer

    def create_db_subnet_group(self) -> ActionResult:
        self._check_zones()
        return super().create_db_subnet_group()

    def modify_db_subnet_group(self) -> ActionResult:
        self._check_zones()
        answer = super().modify_db_subnet_group()
        group = answer.result["DBSubnetGroup"]  # type: ignore[index]
        self.backend.subnet_groups[group.name] = group
        return answer

    def delete_db_subnet_group(self) -> ActionResult:
        name = self.params["DBSubnetGroupName"]
        for instance in self.backend.databases.values():
            group = getattr(instance, "db_subnet_group", None)
            if group and group.name == name:
                raise RDSClientError(
                    "InvalidDBSubnetGroupStateFault",
                    f"Cannot delete the subnet group '{name}' because at least one database instance: "
                    f"{instance.db_instance_identifier} is still using it.",
                )
        return super().delete_db_subnet_group()

    def describe_db_parameter_groups(self) -> ActionResult:
        name = self.params.get("DBParameterGroupName")
        if name is not None and name not in self.backend.db_parameter_groups:
            raise DBParameterGroupNotFoundError(name)
        return super().describe_db_parameter_groups()

    def modify_db_parameter_group(self) -> ActionResult:
        name = self.params["DBParameterGroupName"]
        family = str(self.backend.modify_db_parameter_group(name, []).family)
        for each in self.params["Parameters"]:
            if reason := refusal(family, each["ParameterName"], each["ParameterValue"]):
                raise InvalidParameterValue(reason)
        return super().modify_db_parameter_group()

    def delete_db_parameter_group(self) -> ActionResult:
        name = self.params["DBParameterGroupName"]
        if any(instance.db_parameter_group_name == name for instance in self.backend.databases.values()):
            raise RDSClientError(
                "InvalidDBParameterGroupState",
                f"One or more database instances are still members of this parameter group {name}, so the group "
                "cannot be deleted",
            )
        return super().delete_db_parameter_group()

    def reset_db_parameter_group(self) -> ActionResult:
        name = self.params["DBParameterGroupName"]
        group = self.backend.modify_db_parameter_group(name, [])
        for each in self.params.get("Parameters", []):
            group.parameters.pop(each["ParameterName"], None)
        return ActionResult({"DBParameterGroupName": name})

    def _restart(self, status: str) -> None:
        """Stop a server, which may have stopped, and start it again, with its parameter group as it is now."""
        instance = self._instance()
        database = _described(self.backend, instance)
        self.servers.stopped(database, lambda _: None)
        self._enter(instance, status, self.servers.created)

    def _enter(self, instance: DBInstance, status: str, do: Callable[[Database, Callable[[str], None]], None]) -> None:
        """Let an instance be called something until what is done to its server is done."""
        if instance.engine in _ENGINES and instance.db_cluster_identifier is None:
            instance.status = status
            do(_described(self.backend, instance), lambda result: setattr(instance, "status", result))

    def _instance(self) -> DBInstance:
        return self.backend.describe_db_instances(self.params["DBInstanceIdentifier"])[0]

    def _default_group(self) -> str:
        """Return the name of the group of the default VPC's subnets; RDS makes it for the first instance without one.

        The words are those that many quote who had deleted these subnets.
        """
        vpc = self._ec2_backend.get_default_vpc()
        subnets = self._ec2_backend.describe_subnets(filters={"vpc-id": [vpc.id]}) if vpc else []
        if not subnets:
            message = "No default subnet detected in VPC. Please contact AWS Support to recreate default Subnets."
            raise RDSClientError("InvalidSubnet", message)
        if _DEFAULT_GROUP not in self.backend.subnet_groups:
            self.backend.create_subnet_group(_DEFAULT_GROUP, _DEFAULT_GROUP, subnets, [])
        return _DEFAULT_GROUP

    def _subnet(self, group_name: str, zone: str | None) -> Any:
        """Return the subnet of its group that an instance is in."""
        subnets = list(self.backend.describe_db_subnet_groups(group_name)[0]._subnets)
        fitting = [each for each in subnets if zone in (None, each.availability_zone)]
        if not fitting:
            raise RDSClientError("InvalidVPCNetworkStateFault", f"There is no subnet in {zone}.")
        return fitting[0]

    def _check_zones(self) -> None:
        subnets = [self._ec2_backend.get_subnet(each) for each in self.params.get("SubnetIds", [])]
        zones = sorted({each.availability_zone for each in subnets})
        if len(zones) < _ZONES:
            raise RDSClientError(
                "DBSubnetGroupDoesNotCoverEnoughAZs",
                "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. "
                f"Current AZ coverage: {', '.join(zones)}. Add subnets to cover at least {_ZONES} AZs.",
            )

    @property
    def _ec2_backend(self) -> Any:
        return ec2_backends[self.current_account][self.region]


def _parts(version: str) -> list[int]:
    return [int(each) for each in version.split(".")]


def private_address(region: str, vpc_id: str, host: str) -> str | None:
    """Return the address of the database instance with a host name, in its VPC; None: there is none."""
    backend = rds_backends[ACCOUNT][region]
    for instance in list(backend.databases.values()):
        interface = _interfaces(backend).get(instance.db_instance_identifier)
        if interface and instance.address == host and interface.subnet.vpc_id == vpc_id:
            return str(interface.private_ip_address)
    return None


def _described(backend: RDSBackend, instance: DBInstance) -> Database:
    interface = _interfaces(backend)[instance.db_instance_identifier]
    [group] = instance.db_parameter_groups()
    values = {name: each.get("ParameterValue") for name, each in group.parameters.items()}
    return Database(
        region=backend.region_name,
        name=instance.db_instance_identifier,
        vpc_id=interface.subnet.vpc_id,
        address=interface.private_ip_address,
        port=int(instance.port or 0),
        user=str(instance.master_username),
        password=str(instance._master_user_password),
        schema=instance.db_name,
        parameters={name: value for name, value in values.items() if value is not None},
    )


def _interfaces(backend: RDSBackend) -> dict[str, Any]:
    interfaces: dict[str, Any] = vars(backend).setdefault("network_interfaces", {})
    return interfaces
