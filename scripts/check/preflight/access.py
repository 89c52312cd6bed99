"""Credentials for the right account, in a Region that is enabled and bootstrapped for the CDK."""

from __future__ import annotations

from scripts.account.deployment import Deployment
from scripts.check.preflight.check import CREDENTIALS, Permission, check
from scripts.core.aws_errors import credentials_hint, is_unknown_key
from scripts.core.findings import FAIL, PASS, WARN, Finding
from toolchain import bootstrap

_ALWAYS_ENABLED = "us-east-1"
"""A Region that is enabled in every account, in the partition of all Regions with Trn instances.

https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html
"""


@check(CREDENTIALS, "Credentials", calls=("sts:GetCallerIdentity",))
def credentials(deployment: Deployment) -> Finding:
    """Nothing could be deployed, and the CDK would say only that it cannot resolve an account.

    Ask who the caller is, which needs no permission.

    A Region that is not enabled does not know a good key.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp_enable-regions.html
    """
    from botocore.exceptions import BotoCoreError, ClientError

    command = deployment.command("sts", "get-caller-identity")
    try:
        identity = _identity(deployment)
    except (BotoCoreError, ClientError) as error:
        hint = credentials_hint(error)
        if not hint:
            raise
        if is_unknown_key(error):
            hint += f". If it works in {_ALWAYS_ENABLED}: {_enable(deployment.settings.region)}"
        return Finding(FAIL, str(error), hint, command)
    return Finding(PASS, f"{identity['Arn']}, of account {identity['Account']}", command=command)


@check("account", "Account as in the settings", calls=("sts:GetCallerIdentity",))
def account(deployment: Deployment) -> Finding:
    """The deployment would stop, or create everything in an account that nobody meant."""
    wanted, actual = deployment.settings.account, _identity(deployment)["Account"]
    command = deployment.command("sts", "get-caller-identity", "--query", "Account")
    if wanted in (None, actual):
        named = "as in the settings" if wanted else "that of the credentials; the settings name none"
        return Finding(PASS, f"{actual}, {named}", command=command)
    hint = f"use credentials for {wanted}, or change `account` in {deployment.file}"
    return Finding(FAIL, f"the credentials are for account {actual}; in the settings: {wanted}", hint, command)


@check("region", "Region enabled in the account", calls=("ec2:DescribeRegions",))
def region(deployment: Deployment) -> Finding:
    """Every call to the Region would be rejected as if the credentials were wrong."""
    name = deployment.settings.region
    command = f"aws ec2 describe-regions --all-regions --region {_ALWAYS_ENABLED}"
    regions = deployment.account.client("ec2", _ALWAYS_ENABLED).describe_regions(AllRegions=True)["Regions"]
    statuses = {each["RegionName"]: each["OptInStatus"] for each in regions}
    if name not in statuses:
        hint = f"change `region` in {deployment.file}"
        return Finding(FAIL, f"there is no Region {name}", hint, command)
    if statuses[name] == "not-opted-in":
        return Finding(FAIL, f"{name} is not enabled in this account (not-opted-in)", _enable(name), command)
    return Finding(PASS, f"{name} is enabled ({statuses[name]})", command=command)


@check(
    "cdk-bootstrap",
    "CDK bootstrap stack",
    calls=(
        "kms:DescribeKey",
        Permission("s3:GetEncryptionConfiguration", "arn:aws:s3:::cdk-*-assets-*"),
        "s3:ListAllMyBuckets",
        "sts:GetCallerIdentity",
        Permission("ssm:GetParameter", f"arn:aws:ssm:*:*:parameter{bootstrap.VERSION_PARAMETERS}"),
    ),
)
def cdk_bootstrap(deployment: Deployment) -> Finding:
    """The CDK could upload neither scripts nor templates, or nodes could not read them."""
    region_name, settings = deployment.settings.region, deployment.settings.bootstrap
    parameter = bootstrap.version_parameter(settings)
    command = deployment.command("ssm", "get-parameter", "--name", parameter)
    hint = f"`./ultracluster bootstrap {deployment.name}`"
    stored = deployment.account.find("ssm", "get_parameter", Name=parameter)
    if stored is None:
        return Finding(FAIL, f"{region_name} is not bootstrapped: no {parameter}", hint, command)
    version, newest = int(stored["Parameter"]["Value"]), bootstrap.newest_version()
    if version < bootstrap.OLDEST_VERSION:
        sentence = f"bootstrap version {version}; allowed: {bootstrap.OLDEST_VERSION} or newer"
        return Finding(FAIL, sentence, hint, command)
    bucket = bootstrap.assets_bucket(settings, _identity(deployment)["Account"], region_name)
    own = deployment.account.ask("s3", "list_buckets", Prefix=bucket)["Buckets"]
    if bucket not in [each["Name"] for each in own]:
        command = deployment.command("s3api", "list-buckets", "--prefix", bucket)
        return Finding(FAIL, f"bootstrapped, but the account has no bucket {bucket}", hint, command)
    key = _customer_key(deployment, bucket)
    if key != settings.kms_key_arn:
        command = deployment.command("s3api", "get-bucket-encryption", "--bucket", bucket)
        sentence = f"{bucket} is encrypted by {key or 'a key of AWS'}; in the settings: {settings.kms_key_arn}"
        hint = f"name the bucket's key as `bootstrap.kms_key_arn`, or give it that of the settings: {hint}"
        return Finding(FAIL, sentence, hint, command)
    if newest and version < newest:
        sentence = f"bootstrap version {version} is enough, but the CDK command line in use would deploy {newest}"
        return Finding(WARN, sentence, hint, command)
    return Finding(PASS, f"bootstrap version {version}, bucket {bucket}", command=command)


def _identity(deployment: Deployment) -> dict[str, str]:
    identity: dict[str, str] = deployment.account.ask("sts", "get_caller_identity")
    return identity


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
