"""What the checks of buckets, key, secrets and role must say."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from emulator.aws import ACCOUNT
from scripts.preflight.check import Status
from scripts.preflight.data import data_bucket, fsx_service_role, kms_key, secrets
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.conftest import REGION, GoodAccount

BUCKET = "my-bucket"
KEY_ID = "01234567-89ab-cdef-0123-456789abcdef"
KEY = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{KEY_ID}"
SECRET = f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:slurmdb-AbCdEf"
OWNER = f"arn:aws:iam::{ACCOUNT}:user/owner"
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
FSX = f"fsx.{REGION}.amazonaws.com"


def linked(raw: dict[str, Any]) -> None:
    """Link the file system to a bucket."""
    raw["storage"]["file_system"]["backup_retention_days"] = 0
    raw["storage"]["data_repositories"] = [{"path": "/data", "bucket": BUCKET}, {"path": "/own"}]


def encrypted(raw: dict[str, Any]) -> None:
    """Encrypt the file system with a key of the account."""
    raw["storage"]["file_system"]["kms_key_arn"] = KEY


def accounting(raw: dict[str, Any], arn: str = SECRET) -> None:
    """Keep Slurm's accounts in a database."""
    database = {"Uri": "db.example.com", "UserName": "admin", "PasswordSecretArn": arn}
    raw["cluster"]["overrides"] = {"Scheduling": {"SlurmSettings": {"Database": database}}}


def munge_key(raw: dict[str, Any]) -> None:
    """Give the cluster a Munge key."""
    raw["cluster"]["overrides"] = {"Scheduling": {"SlurmSettings": {"MungeKeySecretArn": SECRET}}}


def without_bucket(account: GoodAccount) -> None:
    """Delete the bucket."""
    account.client("s3").delete_bucket(Bucket=BUCKET)


def bucket_elsewhere(account: GoodAccount) -> None:
    """Put the bucket into another Region."""
    without_bucket(account)
    location: Any = {"LocationConstraint": "eu-west-1"}
    account.aws.client("s3", "eu-west-1").create_bucket(Bucket=BUCKET, CreateBucketConfiguration=location)


def policy(*statements: dict[str, Any]) -> str:
    """Return a policy."""
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def concerning(principal: str, effect: str = "Allow", **members: Any) -> dict[str, Any]:
    """Return a statement of a key policy that allows somebody everything, or denies it."""
    return {"Effect": effect, "Principal": {"AWS": principal}, "Action": "kms:*", "Resource": "*", **members}


def with_key_policy(*statements: dict[str, Any]) -> Callable[[GoodAccount], None]:
    """Give the key another policy."""
    document = policy(*statements)
    return lambda account: account.client("kms").put_key_policy(KeyId=KEY, PolicyName="default", Policy=document)


def without_key(account: GoodAccount) -> None:
    """Take everything away, also what the settings name."""
    account.aws.reset()


def disabled_key(account: GoodAccount) -> None:
    """Disable the key."""
    account.client("kms").disable_key(KeyId=KEY_ID)


def dying_key(account: GoodAccount) -> None:
    """Give the key up."""
    account.client("kms").schedule_key_deletion(KeyId=KEY_ID)


def signing_key(account: GoodAccount) -> None:
    """Put a key that signs in the place of the good one."""
    account.aws.reset()
    tags = [{"TagKey": "_custom_id_", "TagValue": KEY_ID}]
    account.client("kms").create_key(Tags=tags, KeySpec="RSA_2048", KeyUsage="SIGN_VERIFY")


def with_secret(statement: dict[str, Any] | None = None, **options: Any) -> Callable[[GoodAccount], None]:
    """Make the secret that the settings name, with a policy of one statement."""

    def make(account: GoodAccount) -> None:
        client = account.client("secretsmanager")
        tags = [{"Key": "_custom_id_", "Value": "AbCdEf"}]
        assert client.create_secret(Name="slurmdb", SecretString="s", Tags=tags, **options)["ARN"] == SECRET
        if statement:
            client.put_resource_policy(SecretId=SECRET, ResourcePolicy=policy(statement))

    return make


def dying_secret(account: GoodAccount) -> None:
    """Make the secret, and give it up."""
    with_secret()(account)
    account.client("secretsmanager").delete_secret(SecretId=SECRET)


def without_service_role(account: GoodAccount) -> None:
    """Delete the service-linked role of FSx."""
    account.client("iam").delete_service_linked_role(RoleName="AWSServiceRoleForAmazonFSx")


_bucket = partial(Case, data_bucket, edit=linked)
_key = partial(Case, kms_key, edit=encrypted)
_secret = partial(Case, secrets, edit=accounting)

CASES = (
    Case(data_bucket, Status.SKIP, name="no-bucket"),
    _bucket(Status.PASS, (BUCKET, REGION)),
    _bucket(Status.FAIL, (f"no bucket {BUCKET}", "data_repositories[0].bucket"), without_bucket, name="missing"),
    _bucket(Status.FAIL, ("eu-west-1; allowed: us-west-2",), bucket_elsewhere, name="other-region"),
    Case(kms_key, Status.SKIP, name="no-key"),
    _key(Status.PASS, ("leaves it to IAM",)),
    _key(
        Status.PASS,
        (f"by way of {FSX}",),
        with_key_policy(concerning("*", Condition={"StringEquals": {"kms:ViaService": FSX}})),
        name="via-fsx",
    ),
    _key(
        Status.WARN,
        (f"nor names {FSX}", "kms:CreateGrant"),
        with_key_policy(concerning(OWNER)),
        name="one-user",
    ),
    _key(
        Status.WARN,
        (f"nor names {FSX}",),
        with_key_policy(concerning("*", Condition={"StringEquals": {"kms:ViaService": "s3.us-west-2.amazonaws.com"}})),
        name="via-s3",
    ),
    _key(
        Status.WARN,
        spoil=with_key_policy(concerning(OWNER), concerning(ROOT, "Deny", Action="kms:CreateGrant")),
        name="denied",
    ),
    _key(Status.FAIL, ("no key", "kms_key_arn"), without_key, name="missing"),
    _key(Status.FAIL, ("Disabled", "enable-key"), disabled_key, name="disabled"),
    _key(Status.FAIL, ("PendingDeletion", "cancel-key-deletion"), dying_key, name="dying"),
    _key(Status.FAIL, ("RSA_2048 for SIGN_VERIFY", "kms_key_arn"), signing_key, name="signing"),
    Case(secrets, Status.SKIP, name="no-secret"),
    _secret(Status.PASS, ("of the head node may read it, that of the provider may describe it",), with_secret()),
    _secret(
        Status.PASS,
        ("that of the provider may read it",),
        with_secret(),
        edit=munge_key,
        name="munge-key",
    ),
    _secret(
        Status.WARN,
        ("denies something",),
        with_secret({"Effect": "Deny", "Principal": "*", "Action": "secretsmanager:*", "Resource": "*"}),
        name="denying",
    ),
    _secret(
        Status.WARN,
        (f"kms:Decrypt on {KEY}", f"let {KEY} allow kms:Decrypt"),
        with_secret(KmsKeyId=KEY),
        name="encrypted",
    ),
    _secret(Status.FAIL, ("no secret", "Database.PasswordSecretArn"), name="missing"),
    _secret(Status.FAIL, ("scheduled for deletion", "restore-secret"), dying_secret, name="dying"),
    _secret(
        Status.FAIL,
        ("eu-west-1", f"allowed: a secret of Secrets Manager in {REGION}"),
        edit=lambda raw: accounting(raw, SECRET.replace(REGION, "eu-west-1")),
        name="other-region",
    ),
    Case(fsx_service_role, Status.PASS, ("AWSServiceRoleForAmazonFSx exists",)),
    Case(fsx_service_role, Status.WARN, ("create-service-linked-role",), without_service_role, name="missing"),
)
