"""Databases of RDS as it describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from scripts.account.deployment import Account
from scripts.core.aws_errors import if_found

DATABASE: Final = "AWS::RDS::DBInstance"


@dataclass(frozen=True)
class Database:
    """A DB instance; what is not known before it is created is empty or None.

    Attributes:
        state: Its status, such as available.
        cluster: The Aurora cluster that it is in; empty: none.
        is_protected: Whether RDS protects it against deletion.
        instance_class: Such as db.t4g.small.
        engine: Such as mysql.
        storage_type: Such as gp3.
        is_multi_az: Whether it has a standby in another zone.
    """

    id: str
    state: str = "available"
    created: datetime | None = None
    address: str = ""
    port: int | None = None
    cluster: str = ""
    vpc_id: str = ""
    is_protected: bool = False
    storage_gib: int | None = None
    engine_version: str = ""
    instance_class: str = ""
    engine: str = ""
    storage_type: str = ""
    is_multi_az: bool = False

    @property
    def is_deleting(self) -> bool:
        """Whether it is being deleted."""
        return self.state == "deleting"


def of_rds(account: Account) -> list[Database]:
    """Return the databases of the Region."""
    return [_of(each) for each in account.list("rds", "describe_db_instances")]


def get(account: Account, name: str) -> Database:
    """Return the database of an id.

    Raises:
        botocore.exceptions.ClientError: It does not exist.
    """
    return _of(account.ask("rds", "describe_db_instances", DBInstanceIdentifier=name)["DBInstances"][0])


def find(account: Account, name: str) -> Database | None:
    """Return the same; None: it does not exist."""
    return if_found(lambda: get(account, name))


def _of(described: Mapping[str, Any]) -> Database:
    endpoint = described.get("Endpoint", {})
    return Database(
        described["DBInstanceIdentifier"],
        described["DBInstanceStatus"],
        described.get("InstanceCreateTime"),
        endpoint.get("Address", ""),
        endpoint.get("Port"),
        described.get("DBClusterIdentifier", ""),
        described.get("DBSubnetGroup", {}).get("VpcId", ""),
        described.get("DeletionProtection", False),
        described.get("AllocatedStorage"),
        described.get("EngineVersion", ""),
        described.get("DBInstanceClass", ""),
        described.get("Engine", ""),
        described.get("StorageType", ""),
        described.get("MultiAZ", False),
    )
