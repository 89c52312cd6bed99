"""Buckets, key, secrets and role that can be used, and those that cannot."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from emulator.aws import ACCOUNT
from scripts.account.deployment import Account
from scripts.check.preflight.data import data_bucket, fsx_service_role, kms_key, secrets
from scripts.core.findings import FAIL, PASS, UNKNOWN, WARN, CheckStatus
from tests.scripts.check.preflight.accounts import BUCKET, KEY, REGION, Case, Raw, case
from tests.scripts.refusals import refusal

SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:slurmdb-AbCdEf"
FSX = f"fsx.{REGION}.amazonaws.com"
OWNER, ROOT = f"arn:aws:iam::{ACCOUNT}:user/owner", f"arn:aws:iam::{ACCOUNT}:root"


def key(**facts: str) -> Any:
    return lambda answer: answer["KeyMetadata"].update(facts)


def statement(principal: str, effect: str = "Allow", **members: Any) -> dict[str, Any]:
    """Return a statement of a key policy that allows somebody everything, or denies it."""
    return {"Effect": effect, "Principal": {"AWS": principal}, "Action": "kms:*", "Resource": "*", **members}


def policy(*statements: dict[str, Any]) -> dict[str, str]:
    return {"Policy": json.dumps({"Version": "2012-10-17", "Statement": statements})}


def via(service: str) -> dict[str, Any]:
    return policy(statement("*", Condition={"StringEquals": {"kms:ViaService": service}}))


def database(raw: Raw, arn: str = SECRET) -> None:
    """Keep Slurm's accounts in a database."""
    settings = {"Database": {"Uri": "db.example.com", "UserName": "admin", "PasswordSecretArn": arn}}
    raw["cluster"]["overrides"] = {"Scheduling": {"SlurmSettings": settings}}


def secret(status: CheckStatus, *says: str, edit: Any = database, resource_policy: Any = None, **facts: Any) -> Any:
    attached = {"ResourcePolicy": json.dumps(resource_policy)} if resource_policy else {}
    answers = {"describe_secret": {"ARN": SECRET, **facts}, "get_resource_policy": attached}
    return case(secrets, status, *says, edit=edit, **answers)


_key = partial(case, kms_key)
CASES = [
    case(data_bucket, PASS, BUCKET, REGION),
    case(data_bucket, FAIL, f"no bucket {BUCKET}", head_bucket=refusal("404")),
    case(data_bucket, UNKNOWN, "another account's", head_bucket=refusal("403")),
    case(data_bucket, FAIL, "eu-west-1; allowed: us-west-2", head_bucket={"BucketRegion": "eu-west-1"}),
    _key(PASS, "its policy allows FSx to use it"),
    _key(PASS, get_key_policy=via(FSX)),
    _key(WARN, f"nor names {FSX}", "kms:CreateGrant", get_key_policy=policy(statement(OWNER))),
    _key(WARN, get_key_policy=policy(statement(OWNER), statement(ROOT, "Deny", Action="kms:CreateGrant"))),
    _key(FAIL, f"no key {KEY}", "kms_key_arn", describe_key=refusal("NotFoundException")),
    _key(FAIL, "Disabled", "enable-key", describe_key=key(KeyState="Disabled")),
    _key(FAIL, "RSA_2048 for SIGN", "kms_key", describe_key=key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")),
    secret(PASS, "the roles of the head node and of the provider may use it"),
    secret(WARN, "denies something", resource_policy={"Statement": {"Effect": "Deny"}}),
    secret(WARN, f"kms:Decrypt on {KEY}", f"let {KEY} allow kms:Decrypt", KmsKeyId=KEY),
    secret(FAIL, "scheduled for deletion on 2026-01-02", DeletedDate=datetime(2026, 1, 2, tzinfo=UTC)),
    secret(
        FAIL,
        f"allowed: a secret of Secrets Manager in {REGION}",
        edit=lambda raw: database(raw, SECRET.replace(REGION, "eu-west-1")),
    ),
    case(secrets, FAIL, f"no secret {SECRET}", "Database.PasswordSecretArn", edit=database),
    case(
        secrets,
        FAIL,
        f"no secret {SECRET}",
        "change `cluster.munge_key_secret_arn`",
        edit=lambda raw: raw["cluster"].update(munge_key_secret_arn=SECRET),
    ),
    case(fsx_service_role, PASS, "AWSServiceRoleForAmazonFSx exists"),
    case(fsx_service_role, WARN, "create-service-linked-role", get_role=refusal("NoSuchEntity")),
]


@pytest.mark.parametrize("each", CASES)
def test_data(each: Case, account: Account) -> None:
    each.verify(account)
