"""Buckets, key, secrets and role that can be used, and those that cannot."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from emulator.aws import ACCOUNT
from scripts.deployment import Account
from scripts.preflight.check import CheckStatus
from scripts.preflight.data import CHECKS, data_bucket, fsx_service_role, kms_key, secrets
from tests.scripts.preflight.accounts import BUCKET, KEY, REGION, Case, Raw, case, new_network, rejection

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


def munge_key(raw: Raw) -> None:
    raw["cluster"]["overrides"] = {"Scheduling": {"SlurmSettings": {"MungeKeySecretArn": SECRET}}}


def secret(status: CheckStatus, *says: str, edit: Any = database, resource_policy: Any = None, **facts: Any) -> Any:
    attached = {"ResourcePolicy": json.dumps(resource_policy)} if resource_policy else {}
    answers = {"describe_secret": {"ARN": SECRET, **facts}, "get_resource_policy": attached}
    return case(secrets, status, *says, edit=edit, **answers)


_key = partial(case, kms_key)
CASES = [
    case(data_bucket, CheckStatus.PASS, BUCKET, REGION),
    case(data_bucket, CheckStatus.FAIL, f"no bucket {BUCKET}", head_bucket=rejection("404")),
    case(data_bucket, CheckStatus.UNKNOWN, "another account's", head_bucket=rejection("403")),
    case(data_bucket, CheckStatus.FAIL, "eu-west-1; allowed: us-west-2", head_bucket={"BucketRegion": "eu-west-1"}),
    _key(CheckStatus.PASS, "leaves it to IAM"),
    _key(CheckStatus.PASS, f"its policy lets {FSX} use it", get_key_policy=via(FSX)),
    _key(CheckStatus.WARN, f"nor names {FSX}", "kms:CreateGrant", get_key_policy=policy(statement(OWNER))),
    _key(CheckStatus.WARN, f"nor names {FSX}", get_key_policy=via("s3.us-west-2.amazonaws.com")),
    _key(CheckStatus.WARN, get_key_policy=policy(statement(OWNER), statement(ROOT, "Deny", Action="kms:CreateGrant"))),
    _key(CheckStatus.FAIL, f"no key {KEY}", "kms_key_arn", describe_key=rejection("NotFoundException")),
    _key(CheckStatus.FAIL, "Disabled", "enable-key", describe_key=key(KeyState="Disabled")),
    _key(CheckStatus.FAIL, "PendingDeletion", "cancel-key-deletion", describe_key=key(KeyState="PendingDeletion")),
    _key(
        CheckStatus.FAIL, "RSA_2048 for SIGN", "kms_key", describe_key=key(KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")
    ),
    secret(CheckStatus.PASS, "of the head node may read it, that of the provider may describe it"),
    secret(CheckStatus.PASS, "that of the provider may read it", edit=munge_key),
    secret(CheckStatus.WARN, "denies something", resource_policy={"Statement": {"Effect": "Deny"}}),
    secret(CheckStatus.WARN, f"kms:Decrypt on {KEY}", f"let {KEY} allow kms:Decrypt", KmsKeyId=KEY),
    secret(CheckStatus.FAIL, "scheduled for deletion on 2026-01-02", DeletedDate=datetime(2026, 1, 2, tzinfo=UTC)),
    secret(
        CheckStatus.FAIL,
        f"allowed: a secret of Secrets Manager in {REGION}",
        edit=lambda raw: database(raw, SECRET.replace(REGION, "eu-west-1")),
    ),
    case(secrets, CheckStatus.FAIL, f"no secret {SECRET}", "Database.PasswordSecretArn", edit=database),
    case(fsx_service_role, CheckStatus.PASS, "AWSServiceRoleForAmazonFSx exists"),
    case(fsx_service_role, CheckStatus.WARN, "create-service-linked-role", get_role=rejection("NoSuchEntity")),
    *(case(each, CheckStatus.SKIP, base=new_network) for each in CHECKS[:3]),
]


@pytest.mark.parametrize("each", CASES)
def test_data(each: Case, account: Account) -> None:
    each.verify(account)


def test_a_bucket_that_cannot_be_read_hides_no_other(account: Account) -> None:
    answers = iter([rejection("403"), None])

    def answer(_: Any) -> None:
        if error := next(answers):
            raise error

    def two_buckets(raw: Raw) -> None:
        raw["storage"]["data_repositories"] = [{"path": f"/{name}", "bucket": name} for name in ("closed-1", BUCKET)]

    looked = Case(data_bucket, CheckStatus.UNKNOWN, edit=two_buckets, answers={"head_bucket": answer})
    found = looked.findings(account)
    assert {each.subject: each.status for each in found}.keys() == {"closed-1", BUCKET}
