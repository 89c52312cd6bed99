"""Credentials, accounts, Regions and bootstrap stacks, good and bad."""

from __future__ import annotations

from typing import Any

from config.sections import BootstrapSettings
from emulator.aws import ACCOUNT
from scripts.preflight import access
from scripts.preflight.check import Status
from tests.scripts.preflight.cases import Case
from tests.scripts.preflight.conftest import GoodAccount
from toolchain import bootstrap

DEFAULT = BootstrapSettings()
PARAMETER, BUCKET = bootstrap.version_parameter(DEFAULT), bootstrap.assets_bucket(DEFAULT, ACCOUNT, "us-west-2")
KEY = f"arn:aws:kms:us-west-2:{ACCOUNT}:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def in_account(number: str) -> Any:
    return lambda raw: raw.update(account=number)


def in_melbourne(raw: dict[str, Any]) -> None:
    raw.update(region="ap-southeast-4", zone_id="apse4-az1")


def without_bootstrap(account: GoodAccount) -> None:
    account.client("ssm").delete_parameter(Name=PARAMETER)


def with_bootstrap(version: int) -> Any:
    def spoil(account: GoodAccount) -> None:
        account.client("ssm").put_parameter(Name=PARAMETER, Value=str(version), Type="String", Overwrite=True)

    return spoil


def without_assets_bucket(account: GoodAccount) -> None:
    account.client("s3").delete_bucket(Bucket=BUCKET)


def own_bootstrap(raw: dict[str, Any]) -> None:
    raw.update(bootstrap={"qualifier": "ml-team", "kms_key_arn": KEY})


def encrypt(**by_default: str) -> Any:
    """Give the bucket another default encryption."""

    def spoil(account: GoodAccount) -> None:
        rules = [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms", **by_default}}]
        bucket = bootstrap.assets_bucket(account.settings.bootstrap, ACCOUNT, "us-west-2")
        configuration = {"Rules": rules}
        account.client("s3").put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration=configuration)

    return spoil


def encrypt_by_a_key_of_theirs(account: GoodAccount) -> None:
    key = account.client("kms").create_key()["KeyMetadata"]["KeyId"]
    account.client("kms").create_alias(AliasName="alias/theirs", TargetKeyId=key)
    encrypt(KMSMasterKeyID="alias/theirs")(account)


CASES = (
    Case(access.credentials, Status.PASS, (f"::{ACCOUNT}:user/", f", of account {ACCOUNT}")),
    Case(
        access.credentials,
        Status.FAIL,
        ("(nobody) could not be found", "aws configure list-profiles"),
        environment_variables={"AWS_PROFILE": "nobody"},
        name="no-profile",
    ),
    Case(access.account, Status.PASS, (ACCOUNT, "the settings name none")),
    Case(access.account, Status.PASS, (ACCOUNT, "as in the settings"), edit=in_account(ACCOUNT), name="named"),
    Case(
        access.account,
        Status.FAIL,
        (f"for account {ACCOUNT}; in the settings: 210987654321", "`account` in config/trn1-16.yaml"),
        edit=in_account("210987654321"),
        name="other",
    ),
    Case(access.region, Status.PASS, ("us-west-2 is enabled (opt-in-not-required)",)),
    Case(
        access.region,
        Status.FAIL,
        ("ap-southeast-4 is not enabled", "aws account enable-region --region-name ap-southeast-4"),
        edit=in_melbourne,
        name="disabled",
    ),
    Case(access.cdk_bootstrap, Status.PASS, ("bootstrap version", f"cdk-hnb659fds-assets-{ACCOUNT}-us-west-2")),
    Case(
        access.cdk_bootstrap,
        Status.FAIL,
        ("us-west-2 is not bootstrapped", "make bootstrap ENV=trn1-16"),
        without_bootstrap,
        name="missing",
    ),
    Case(
        access.cdk_bootstrap,
        Status.FAIL,
        ("bootstrap version 5; allowed: 6 or newer", "make bootstrap"),
        with_bootstrap(5),
        name="too-old",
    ),
    Case(
        access.cdk_bootstrap,
        Status.WARN,
        ("bootstrap version 6 is enough", "make bootstrap"),
        with_bootstrap(6),
        name="old",
    ),
    Case(
        access.cdk_bootstrap,
        Status.FAIL,
        ("the account has no bucket cdk-hnb659fds-assets-", "make bootstrap"),
        without_assets_bucket,
        name="no-bucket",
    ),
    Case(
        access.cdk_bootstrap,
        Status.PASS,
        ("bootstrap version", f"cdk-ml-team-assets-{ACCOUNT}-us-west-2"),
        edit=own_bootstrap,
        name="own",
    ),
    Case(
        access.cdk_bootstrap,
        Status.FAIL,
        (f"cdk-ml-team-assets-{ACCOUNT}-us-west-2 is encrypted by a key of AWS; in the settings: {KEY}",),
        encrypt(KMSMasterKeyID="alias/aws/s3"),
        edit=own_bootstrap,
        name="without-key",
    ),
    Case(
        access.cdk_bootstrap,
        Status.FAIL,
        ("is encrypted by arn:aws:kms:us-west-2:", "in the settings: None", "`bootstrap.kms_key_arn`"),
        encrypt_by_a_key_of_theirs,
        name="unknown-key",
    ),
)
