"""A database that RDS offers in two zones, and one that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.deployment import Account
from scripts.preflight import accounting
from scripts.preflight.check import FAIL, PASS, SKIP
from tests.scripts.preflight.accounts import Case, Raw, case

GP3 = {"StorageType": "gp3", "SupportsStorageEncryption": True}


def database(**values: Any) -> Any:
    def edit(raw: Raw) -> None:
        raw["accounting"] = {"database": {"subnet_cidrs": ["10.0.1.0/28", "10.0.2.0/28"], **values}}

    return edit


def offered(*options: dict[str, Any]) -> dict[str, Any]:
    return {"describe_orderable_db_instance_options": {"OrderableDBInstanceOptions": [*options]}}


CASES = [
    case(accounting.accounting_zone, SKIP),
    case(accounting.accounting_zone, PASS, "usw2-az1 is there", edit=database()),
    case(
        accounting.accounting_zone,
        FAIL,
        "us-west-2 has no zone usw2-az9",
        "it has: usw2-az1, usw2-az2, usw2-az3",
        "set `accounting.database.second_zone_id`",
        edit=database(second_zone_id="usw2-az9"),
    ),
    case(accounting.accounting_database, SKIP),
    case(accounting.accounting_database, PASS, "MySQL 8.4.9 on db.t4g.micro", edit=database(), **offered(GP3)),
    case(
        accounting.accounting_database,
        FAIL,
        "RDS does not offer MySQL 8.4.1",
        edit=database(engine_version="8.4.1"),
        **offered(),
    ),
    case(
        accounting.accounting_database, FAIL, "encrypted gp3", edit=database(), **offered({**GP3, "StorageType": "gp2"})
    ),
]


@pytest.mark.parametrize("each", CASES)
def test_accounting(each: Case, account: Account) -> None:
    each.verify(account)
