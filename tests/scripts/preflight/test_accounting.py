"""A database that RDS offers in two zones, and one that it does not."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from scripts.deployment import Account
from scripts.preflight.accounting import accounting_database, accounting_zone
from scripts.preflight.check import FAIL, PASS, SKIP
from tests.scripts.preflight.accounts import Case, Raw, case, new_network

GP3 = {"StorageType": "gp3", "SupportsStorageEncryption": True}


def accounting(raw: Raw, **values: Any) -> None:
    """Keep Slurm's accounts in a database of the deployment."""
    raw["accounting"] = {"database": values}


def offers(*options: dict[str, Any]) -> Any:
    """Return the case of an RDS that offers these."""
    answer = {"OrderableDBInstanceOptions": [*options]}
    return partial(_case, accounting_database, describe_orderable_db_instance_options=answer)


def _case(*args: Any, **answers: Any) -> Any:
    return case(*args, **{"base": new_network, "edit": accounting, **answers})


CASES = [
    _case(accounting_zone, SKIP, edit=bool),
    _case(accounting_zone, PASS, "usw2-az1 is there"),
    _case(
        accounting_zone,
        FAIL,
        "us-west-2 has no zone usw2-az9",
        "it has: usw2-az1, usw2-az2, usw2-az3",
        "set `accounting.database.second_zone_id`",
        edit=partial(accounting, second_zone_id="usw2-az9"),
    ),
    _case(accounting_database, SKIP, edit=bool),
    offers(GP3)(PASS, "MySQL 8.4.9 on db.t4g.micro"),
    offers()(FAIL, "RDS does not offer MySQL 8.4.1 on", edit=partial(accounting, engine_version="8.4.1")),
    offers({**GP3, "StorageType": "gp2"})(FAIL, "encrypted gp3"),
]


@pytest.mark.parametrize("each", CASES)
def test_accounting(each: Case, account: Account) -> None:
    each.verify(account)
