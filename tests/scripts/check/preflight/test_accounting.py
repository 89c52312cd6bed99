"""A database that RDS offers in two zones, and one that it does not; one that exists, and what it lacks."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from emulator.aws import ACCOUNT
from scripts.account.deployment import Account
from scripts.check.preflight.accounting import (
    accounting_database,
    accounting_existing_database,
    accounting_password,
    accounting_security_group,
    accounting_zone,
)
from scripts.core.findings import FAIL, PASS, SKIP, UNKNOWN, WARN, CheckStatus
from tests.scripts.check.preflight.accounts import REGION, VPC, Case, Raw, case, everything, new_network, stacks
from tests.scripts.refusals import refusal

GP3 = {"StorageType": "gp3", "SupportsStorageEncryption": True, "AvailabilityZones": [{"Name": "us-west-2d"}]}
"""Offered in usw2-az4 alone, the zone of the deployment."""
HOST = f"db-1.abc.{REGION}.rds.amazonaws.com"
GROUP, SECRET = "sg-0123456789abcdef0", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:slurmdb-AbCdEf"
ELSEWHERE = "vpc-0fedcba9876543210"


def accounting(raw: Raw, **values: Any) -> None:
    """Keep Slurm's accounts in a database of the deployment."""
    raw["accounting"] = {"database": values}


def existing(raw: Raw, host: str = HOST) -> None:
    """Keep Slurm's accounts in a database that exists."""
    known = {"host": host, "user": "slurm", "password_secret_arn": SECRET, "security_group_id": GROUP}
    raw["accounting"] = {"existing": known}


def offers(*options: dict[str, Any]) -> Any:
    """Return the case of an RDS that offers these."""
    answer = {"OrderableDBInstanceOptions": [*options]}
    return partial(_case, accounting_database, describe_orderable_db_instance_options=answer)


def group(status: CheckStatus, *says: str, vpc_id: str = VPC, **answers: Any) -> Any:
    """Return the case of a security group in a VPC."""
    described = {"describe_security_groups": {"SecurityGroups": [{"GroupId": GROUP, "VpcId": vpc_id}]}}
    return _case(accounting_security_group, status, *says, **{"edit": existing, **described, **answers})


def instance(status: CheckStatus, *says: str, host: str = HOST, **facts: Any) -> Any:
    """Return the case of a DB instance that differs in some facts from one that is fit."""
    fit = {
        "DBInstanceIdentifier": "db-1",
        "DBInstanceStatus": "available",
        "Endpoint": {"Address": HOST, "Port": 3306},
        "DBSubnetGroup": {"VpcId": VPC},
    }
    answers = {"edit": partial(existing, host=host), "base": everything, "describe_db_instances": [fit | facts]}
    return _case(accounting_existing_database, status, *says, **answers)


def password(status: CheckStatus, *says: str, value: Any) -> Any:
    answers = {"describe_secret": {"ARN": SECRET}, "get_secret_value": value}
    return _case(accounting_password, status, *says, edit=existing, **answers)


def _case(*args: Any, **answers: Any) -> Any:
    return case(*args, **{"base": new_network, "edit": accounting, **answers})


CASES = [
    _case(accounting_zone, SKIP, edit=bool),
    _case(accounting_zone, SKIP, edit=existing),
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
    offers(GP3)(PASS, "MySQL 8.4.9 on db.t4g.micro in usw2-az4"),
    offers({**GP3, "AvailabilityZones": [{"Name": "us-west-2a"}, {"Name": "us-west-2b"}]})(
        FAIL,
        "in usw2-az4, the zone of the deployment, but in usw2-az1, usw2-az2",
        "`accounting.database.instance_class`",
    ),
    offers()(FAIL, "RDS does not offer MySQL 8.4.1 on", edit=partial(accounting, engine_version="8.4.1")),
    offers({**GP3, "StorageType": "gp2"})(FAIL, "encrypted gp3"),
    _case(accounting_security_group, SKIP),
    group(PASS, f"{GROUP} is in {VPC}", base=everything),
    group(
        FAIL,
        f"{GROUP} is in {ELSEWHERE}; allowed: {VPC}",
        "change `accounting.existing.security_group_id`",
        vpc_id=ELSEWHERE,
        base=everything,
    ),
    group(FAIL, "the VPC that the deployment makes, which does not exist yet", f"name {VPC} in `network.existing`"),
    group(FAIL, f"no security group {GROUP}", describe_security_groups=refusal("InvalidGroup.NotFound")),
    _case(accounting_existing_database, SKIP),
    instance(PASS, f"db-1 is in {VPC}"),
    instance(PASS, host=HOST.upper()),
    instance(PASS, host=f"slurm.cluster-abc.{REGION}.rds.amazonaws.com", DBClusterIdentifier="slurm"),
    instance(FAIL, "listens on port 3306; in the settings: 3307", "as HOST:3306", host=f"{HOST}:3307"),
    instance(WARN, f"db-1 is in {ELSEWHERE}; allowed: {VPC}", "peering", DBSubnetGroup={"VpcId": ELSEWHERE}),
    instance(WARN, "in the status stopped", "rds start-db-instance", DBInstanceStatus="stopped"),
    instance(
        WARN, "in the status creating", "wait", DBInstanceStatus="creating", Endpoint={"Address": HOST, "Port": 3306}
    ),
    instance(WARN, "no DB instance with the address", "`accounting.existing.host`", host=HOST.replace("db-1", "db-2")),
    instance(SKIP, "db.example.com is not in RDS in us-west-2", host="db.example.com"),
    _case(accounting_password, SKIP),
    password(PASS, "plain text", value={"SecretString": "5.Longenough-~^"}),
    password(
        FAIL, "is JSON; allowed: the password alone", "put-secret-value", value={"SecretString": '{"password":"x"}'}
    ),
    password(FAIL, "has # and ' and a space;", value={"SecretString": "it's #1"}),
    password(FAIL, "has a line break or tab", value={"SecretString": "Longenough\n"}),
    password(FAIL, "is binary or empty", value={"SecretBinary": b"Longenough"}),
    password(SKIP, "takes secretsmanager:GetSecretValue", value=refusal("AccessDeniedException")),
    password(UNKNOWN, value=refusal("InternalServiceError")),
    _case(accounting_password, SKIP, f"no secret {SECRET}", edit=existing),
]


@pytest.mark.parametrize("each", CASES)
def test_accounting(each: Case, account: Account) -> None:
    each.verify(account)


def test_a_group_may_be_in_the_vpc_that_the_network_stack_made(account: Account) -> None:
    outputs = {"Outputs": [{"OutputKey": "VpcId", "OutputValue": VPC}]}
    answers = {
        "describe_security_groups": {"SecurityGroups": [{"GroupId": GROUP, "VpcId": VPC}]},
        "describe_stacks": stacks(**{"trn1-16-network": outputs}),
    }
    Case(accounting_security_group, PASS, edit=existing, base=new_network, answers=answers).verify(account)


def test_a_password_is_never_shown(account: Account) -> None:
    answers = {"describe_secret": {"ARN": SECRET}, "get_secret_value": {"SecretString": "hunter2#"}}
    [finding] = Case(accounting_password, FAIL, edit=existing, answers=answers).findings(account)
    assert "hunter2" not in str(finding)
