"""Credentials for the right account, in a Region that is enabled and bootstrapped for the CDK."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from scripts.aws_errors import NEW_SESSION, UNKNOWN_KEY, credentials_hint, is_unknown_key
from scripts.deployment import Deployment
from scripts.preflight.check import CheckStatus, Finding, Permission, check, find
from toolchain import bootstrap

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

_ALWAYS_ENABLED = "us-east-1"
"""A Region that is enabled in every account, in the partition of all Regions with Trn instances.

https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html
"""


@check(
    "credentials",
    "Credentials",
    prevents="Nothing could be deployed, and the CDK would say only that it cannot resolve an account.",
    calls=("sts:GetCallerIdentity",),
)
def credentials(deployment: Deployment) -> Iterator[Finding]:
    """Ask who the caller is, which needs no permission, and tell why there is no answer."""
    from botocore.exceptions import BotoCoreError, ClientError

    command = deployment.command("sts", "get-caller-identity")
    try:
        identity = _identity(deployment)
    except (BotoCoreError, ClientError) as error:
        if isinstance(error, ClientError) and is_unknown_key(error):
            yield _about_unknown_key(deployment, error)
        elif hint := credentials_hint(error):
            yield Finding(CheckStatus.FAIL, str(error), hint, command)
        else:
            raise
    else:
        yield Finding(CheckStatus.PASS, f"{identity['Arn']}, of account {identity['Account']}", command=command)


@check(
    "account",
    "Account as in the settings",
    prevents="The deployment would stop, or create everything in an account that nobody meant.",
    calls=("sts:GetCallerIdentity",),
)
def account(deployment: Deployment) -> Iterator[Finding]:
    """Compare the caller's account with the settings."""
    wanted, actual = deployment.settings.account, _identity(deployment)["Account"]
    command = deployment.command("sts", "get-caller-identity", "--query", "Account")
    if wanted is None:
        yield Finding(CheckStatus.PASS, f"{actual}, that of the credentials; the settings name none", command=command)
    elif wanted == actual:
        yield Finding(CheckStatus.PASS, f"{actual}, as in the settings", command=command)
    else:
        sentence = f"the credentials are for account {actual}; in the settings: {wanted}"
        hint = f"use credentials for {wanted}, or change `account` in config/{deployment.environment}.yaml"
        yield Finding(CheckStatus.FAIL, sentence, hint, command)


@check(
    "region",
    "Region enabled in the account",
    prevents="Every call to the Region would be rejected as if the credentials were wrong.",
    calls=("ec2:DescribeRegions",),
)
def region(deployment: Deployment) -> Iterator[Finding]:
    """Check that the Region exists, and that the account has opted in if it must."""
    name = deployment.settings.region
    command = f"aws ec2 describe-regions --all-regions --region {_ALWAYS_ENABLED}"
    regions = deployment.account.client("ec2", _ALWAYS_ENABLED).describe_regions(AllRegions=True)["Regions"]
    statuses = {each["RegionName"]: each["OptInStatus"] for each in regions}
    if name not in statuses:
        hint = f"change `region` in config/{deployment.environment}.yaml"
        yield Finding(CheckStatus.FAIL, f"there is no Region {name}", hint, command)
    elif statuses[name] == "not-opted-in":
        yield Finding(CheckStatus.FAIL, f"{name} is not enabled in this account (not-opted-in)", _enable(name), command)
    else:
        yield Finding(CheckStatus.PASS, f"{name} is enabled ({statuses[name]})", command=command)


@check(
    "cdk-bootstrap",
    "CDK bootstrap stack",
    prevents="The CDK could upload neither scripts nor templates, or nodes could not read them.",
    calls=(
        "kms:DescribeKey",
        Permission("s3:GetEncryptionConfiguration", "arn:aws:s3:::cdk-*-assets-*"),
        "s3:ListAllMyBuckets",
        "sts:GetCallerIdentity",
        Permission("ssm:GetParameter", f"arn:aws:ssm:*:*:parameter{bootstrap.VERSION_PARAMETERS}"),
    ),
)
def cdk_bootstrap(deployment: Deployment) -> Iterator[Finding]:
    """Check the version, the bucket and the bucket's key of the CDK's bootstrap stack."""
    where, settings = deployment.settings.region, deployment.settings.bootstrap
    parameter = bootstrap.version_parameter(settings)
    stored = find(deployment, "ssm", "get_parameter", Name=parameter)
    version, newest = int(stored["Parameter"]["Value"]) if stored else None, bootstrap.newest_version()
    bucket = bootstrap.assets_bucket(settings, _identity(deployment)["Account"], where)
    own = deployment.account.ask("s3", "list_buckets", Prefix=bucket)["Buckets"]
    command = deployment.command("ssm", "get-parameter", "--name", parameter)
    hint = f"`make bootstrap ENV={deployment.environment}`"
    if version is None:
        yield Finding(CheckStatus.FAIL, f"{where} is not bootstrapped: no {parameter}", hint, command)
    elif version < bootstrap.OLDEST_VERSION:
        sentence = f"bootstrap version {version}; allowed: {bootstrap.OLDEST_VERSION} or newer"
        yield Finding(CheckStatus.FAIL, sentence, hint, command)
    elif bucket not in [each["Name"] for each in own]:
        command = deployment.command("s3api", "list-buckets", "--prefix", bucket)
        yield Finding(CheckStatus.FAIL, f"bootstrapped, but the account has no bucket {bucket}", hint, command)
    elif (key := _customer_key(deployment, bucket)) != settings.kms_key_arn:
        command = deployment.command("s3api", "get-bucket-encryption", "--bucket", bucket)
        sentence = f"{bucket} is encrypted by {key or 'a key of AWS'}; in the settings: {settings.kms_key_arn}"
        hint = f"name the bucket's key as `bootstrap.kms_key_arn`, or give it that of the settings: {hint}"
        yield Finding(CheckStatus.FAIL, sentence, hint, command)
    elif newest and version < newest:
        sentence = f"bootstrap version {version} is enough, but the CDK command line in use would deploy {newest}"
        yield Finding(CheckStatus.WARN, sentence, hint, command)
    else:
        yield Finding(CheckStatus.PASS, f"bootstrap version {version}, bucket {bucket}", command=command)


def _identity(deployment: Deployment) -> dict[str, str]:
    identity: dict[str, str] = deployment.account.ask("sts", "get_caller_identity")
    return identity


def _about_unknown_key(deployment: Deployment, error: ClientError) -> Finding:
    """Tell a wrong key from one that works in other Regions.

    https://blog.leapp.cloud/how-to-fix-aws-invalidclienttokenid-the-security-token-included-in-the-request-is-invalid,
    https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp_enable-regions.html
    """
    from botocore.exceptions import ClientError

    name = deployment.settings.region
    try:
        account_id = deployment.account.client("sts", _ALWAYS_ENABLED).get_caller_identity()["Account"]
    except ClientError as elsewhere:
        if not is_unknown_key(elsewhere):
            raise
        return Finding(CheckStatus.FAIL, str(error), UNKNOWN_KEY, "aws configure list")
    status = f"aws account get-region-opt-status --region-name {name} --region {_ALWAYS_ENABLED}"
    hint = f"{_enable(name)}. If `{status}` says that it is, {NEW_SESSION}, but from a regional endpoint of STS"
    sentence = f"the credentials are good in {_ALWAYS_ENABLED} (account {account_id}), but {name} does not know them"
    return Finding(CheckStatus.FAIL, sentence, hint, status)


def _enable(name: str) -> str:
    return f"enable the Region: `aws account enable-region --region-name {name}`, which takes from minutes to hours"


def _customer_key(deployment: Deployment, bucket: str) -> str | None:
    """Return the ARN of the customer's key that encrypts a bucket, which may name it by id or alias; None: AWS's key.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ServerSideEncryptionByDefault.html
    """
    encryption = deployment.account.ask("s3", "get_bucket_encryption", Bucket=bucket)
    [rule] = encryption["ServerSideEncryptionConfiguration"]["Rules"]
    key_id = rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")
    if key_id is None or key_id.endswith("alias/aws/s3"):
        return None
    return str(deployment.account.ask("kms", "describe_key", KeyId=key_id)["KeyMetadata"]["Arn"])


CHECKS = (credentials, account, region, cdk_bootstrap)
