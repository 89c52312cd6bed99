"""Whether there are credentials, for the right account, in a Region that is ready for the CDK."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from scripts.deployment import Deployment
from scripts.preflight.check import Finding, Permission, Status, check
from toolchain import bootstrap

if TYPE_CHECKING:
    from botocore.exceptions import BotoCoreError, ClientError

_ALWAYS_ENABLED = "us-east-1"
"""A Region that needs no opting in, in the partition of all Regions with Trn instances.

https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html
"""
_NEW_SESSION = "get new session credentials, the way you got these"
_SSO_LOGIN = "`aws sso login`, with `--profile` unless it is the default one"
_UNKNOWN_KEY = (
    "AWS does not know the access key: it is deleted, inactive or mistyped; `aws configure list` tells where it is from"
)
_HINTS_BY_EXCEPTION: Mapping[str, str] = {
    "ConfigParseError": "mend the file",
    "CredentialRetrievalError": "the program or role that the profile takes its credentials from gives none: mend that",
    "InvalidConfigError": "mend the profile in ~/.aws/config",
    "LoginError": "`aws login`, with `--profile` unless it is the default one",
    "NoCredentialsError": "`export AWS_PROFILE=...`, or set one up with `aws configure sso` or `aws configure`",
    "PartialCredentialsError": "access key and secret access key go together; `aws configure list` tells what there is",
    "ProfileNotFound": "`export AWS_PROFILE=...` with one of those that `aws configure list-profiles` lists",
    "SSOError": _SSO_LOGIN,
    "TokenRetrievalError": _SSO_LOGIN,
}
"""What helps, by the class that botocore raises, or one above it (botocore/exceptions.py)."""
_HINTS_BY_CODE: Mapping[str, str] = {
    "AccessDenied": "these credentials may not take on the profile's role: look at its trust policy",
    "ExpiredToken": _NEW_SESSION,
    "ExpiredTokenException": _NEW_SESSION,
    "ForbiddenException": "IAM Identity Center has not given you the profile's account with that permission set",
    "RequestExpired": _NEW_SESSION,
    "SignatureDoesNotMatch": "the secret access key is not that of the access key, or this machine's clock is wrong",
}
"""What helps, by the code of STS or Identity Center.

https://docs.aws.amazon.com/STS/latest/APIReference/CommonErrors.html,
https://docs.aws.amazon.com/singlesignon/latest/PortalAPIReference/API_GetRoleCredentials.html
"""
_CODES_OF_UNKNOWN_KEYS = ("AuthFailure", "InvalidClientTokenId")


@check(
    "credentials",
    "Credentials",
    prevents="Nothing could be deployed, and the CDK would say only that it cannot resolve an account.",
    calls=("sts:GetCallerIdentity",),
)
def credentials(deployment: Deployment) -> Iterator[Finding]:
    """Ask who the caller is, which needs no right, and tell why there is no answer."""
    from botocore.exceptions import BotoCoreError, ClientError

    command = deployment.command("sts", "get-caller-identity")
    try:
        identity = _identity(deployment)
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code in _CODES_OF_UNKNOWN_KEYS:
            yield _about_unknown_key(deployment, error)
        elif code in _HINTS_BY_CODE:
            yield Finding(Status.FAIL, str(error), _HINTS_BY_CODE[code], command)
        else:
            raise
    except BotoCoreError as error:
        hint = hint_about(error)
        if not hint:
            raise
        yield Finding(Status.FAIL, str(error), hint, command)
    else:
        yield Finding(Status.PASS, f"{identity['Arn']}, of account {identity['Account']}", command=command)


@check(
    "account",
    "Account as in the settings",
    prevents="The deployment would stop, or come up in an account that nobody meant.",
    calls=("sts:GetCallerIdentity",),
)
def account(deployment: Deployment) -> Iterator[Finding]:
    """Compare the caller's account with the settings."""
    wanted, found = deployment.settings.account, _identity(deployment)["Account"]
    command = deployment.command("sts", "get-caller-identity", "--query", "Account")
    if wanted is None:
        yield Finding(Status.PASS, f"{found}, that of the credentials; the settings name none", command=command)
    elif wanted == found:
        yield Finding(Status.PASS, f"{found}, as in the settings", command=command)
    else:
        sentence = f"the credentials are for account {found}; in the settings: {wanted}"
        hint = f"use credentials for {wanted}, or change `account` in config/{deployment.environment}.yaml"
        yield Finding(Status.FAIL, sentence, hint, command)


@check(
    "region",
    "Region enabled in the account",
    prevents="Every call to the Region would be refused as if the credentials were wrong.",
    calls=("ec2:DescribeRegions",),
)
def region(deployment: Deployment) -> Iterator[Finding]:
    """Look whether the Region exists, and whether the account has opted in if it must."""
    name = deployment.settings.region
    command = f"aws ec2 describe-regions --all-regions --region {_ALWAYS_ENABLED}"
    regions = deployment.account.client("ec2", _ALWAYS_ENABLED).describe_regions(AllRegions=True)["Regions"]
    statuses = {each["RegionName"]: each["OptInStatus"] for each in regions}
    if name not in statuses:
        hint = f"change `region` in config/{deployment.environment}.yaml"
        yield Finding(Status.FAIL, f"there is no Region {name}", hint, command)
    elif statuses[name] == "not-opted-in":
        yield Finding(Status.FAIL, f"{name} is not enabled in this account (not-opted-in)", _enable(name), command)
    else:
        yield Finding(Status.PASS, f"{name} is enabled ({statuses[name]})", command=command)


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
    """Look for the version, the bucket and the bucket's key of the CDK's bootstrap stack."""
    where, settings = deployment.settings.region, deployment.settings.bootstrap
    parameter = bootstrap.version_parameter(settings)
    version, newest = _bootstrap_version(deployment, parameter), bootstrap.newest_version()
    bucket = bootstrap.assets_bucket(settings, _identity(deployment)["Account"], where)
    own = deployment.account.ask("s3", "list_buckets", Prefix=bucket)["Buckets"]
    command = deployment.command("ssm", "get-parameter", "--name", parameter)
    hint = f"`make bootstrap ENV={deployment.environment}`"
    if version is None:
        yield Finding(Status.FAIL, f"{where} is not bootstrapped: no {parameter}", hint, command)
    elif version < bootstrap.OLDEST_VERSION:
        sentence = f"bootstrap version {version}; allowed: {bootstrap.OLDEST_VERSION} or newer"
        yield Finding(Status.FAIL, sentence, hint, command)
    elif bucket not in [each["Name"] for each in own]:
        command = deployment.command("s3api", "list-buckets", "--prefix", bucket)
        yield Finding(Status.FAIL, f"bootstrapped, but the account has no bucket {bucket}", hint, command)
    elif (key := _customer_key(deployment, bucket)) != settings.kms_key_arn:
        command = deployment.command("s3api", "get-bucket-encryption", "--bucket", bucket)
        sentence = f"{bucket} is encrypted by {key or 'a key of AWS'}; in the settings: {settings.kms_key_arn}"
        hint = f"name the bucket's key as `bootstrap.kms_key_arn`, or give it that of the settings: {hint}"
        yield Finding(Status.FAIL, sentence, hint, command)
    elif newest and version < newest:
        sentence = f"bootstrap version {version} is enough, but the CDK command line in use would deploy {newest}"
        yield Finding(Status.WARN, sentence, hint, command)
    else:
        yield Finding(Status.PASS, f"bootstrap version {version}, bucket {bucket}", command=command)


def hint_about(error: BotoCoreError | ClientError) -> str:
    """Return what helps against an error that is one of the credentials; empty: it is not."""
    from botocore.exceptions import ClientError

    if isinstance(error, ClientError):
        code = error.response["Error"]["Code"]
        return _UNKNOWN_KEY if code in _CODES_OF_UNKNOWN_KEYS else _HINTS_BY_CODE.get(code, "")
    classes = [each.__name__ for each in type(error).__mro__]
    return next((_HINTS_BY_EXCEPTION[name] for name in classes if name in _HINTS_BY_EXCEPTION), "")


def _identity(deployment: Deployment) -> dict[str, str]:
    found: dict[str, str] = deployment.account.ask("sts", "get_caller_identity")
    return found


def _about_unknown_key(deployment: Deployment, error: ClientError) -> Finding:
    """Tell a wrong key from one that is right elsewhere.

    https://blog.leapp.cloud/how-to-fix-aws-invalidclienttokenid-the-security-token-included-in-the-request-is-invalid,
    https://docs.aws.amazon.com/IAM/latest/UserGuide/id_credentials_temp_enable-regions.html
    """
    from botocore.exceptions import ClientError

    name = deployment.settings.region
    try:
        account_id = deployment.account.client("sts", _ALWAYS_ENABLED).get_caller_identity()["Account"]
    except ClientError as elsewhere:
        if elsewhere.response["Error"]["Code"] not in _CODES_OF_UNKNOWN_KEYS:
            raise
        return Finding(Status.FAIL, str(error), _UNKNOWN_KEY, "aws configure list")
    status = f"aws account get-region-opt-status --region-name {name} --region {_ALWAYS_ENABLED}"
    hint = f"{_enable(name)}. If `{status}` says that it is, {_NEW_SESSION}, but from a regional endpoint of STS"
    sentence = f"the credentials are good in {_ALWAYS_ENABLED} (account {account_id}), but {name} does not know them"
    return Finding(Status.FAIL, sentence, hint, status)


def _enable(name: str) -> str:
    return f"enable the Region: `aws account enable-region --region-name {name}`, which takes from minutes to hours"


def _customer_key(deployment: Deployment, bucket: str) -> str | None:
    """Return the ARN of the customer's key that encrypts a bucket, which may name it otherwise; None: a key of AWS.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ServerSideEncryptionByDefault.html
    """
    found = deployment.account.ask("s3", "get_bucket_encryption", Bucket=bucket)
    [rule] = found["ServerSideEncryptionConfiguration"]["Rules"]
    key_id = rule.get("ApplyServerSideEncryptionByDefault", {}).get("KMSMasterKeyID")
    if key_id is None or key_id.endswith("alias/aws/s3"):
        return None
    return str(deployment.account.ask("kms", "describe_key", KeyId=key_id)["KeyMetadata"]["Arn"])


def _bootstrap_version(deployment: Deployment, parameter: str) -> int | None:
    from botocore.exceptions import ClientError

    try:
        found = deployment.account.ask("ssm", "get_parameter", Name=parameter)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ParameterNotFound":
            raise
        return None
    return int(found["Parameter"]["Value"])


CHECKS = (credentials, account, region, cdk_bootstrap)
