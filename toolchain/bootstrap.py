"""What the CDK's bootstrap stack leaves in an account and Region, under the names that the app's templates use.

https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
"""

from __future__ import annotations

from pathlib import Path

from config.sections import BootstrapSettings
from config.yaml_source import YamlSource

OLDEST_VERSION = 6
"""The version that the rule CheckBootstrapVersion in the app's templates asks for."""
VERSION_PARAMETERS = "/cdk-bootstrap/*/version"
"""The parameters in Systems Manager that hold versions, of all qualifiers."""
TEMPLATE = Path(__file__).parents[1] / "node_modules/aws-cdk/lib/api/bootstrap/bootstrap-template.yaml"
"""What `cdk bootstrap` of the pinned command line deploys."""


def version_parameter(settings: BootstrapSettings) -> str:
    """Return the name of the parameter in Systems Manager that holds the version."""
    return VERSION_PARAMETERS.replace("*", settings.qualifier)


def assets_bucket(settings: BootstrapSettings, account: str, region: str) -> str:
    """Return the name of the bucket that templates and files are uploaded to."""
    return f"cdk-{settings.qualifier}-assets-{account}-{region}"


def arguments(settings: BootstrapSettings) -> list[str]:
    """Return the arguments of `cdk bootstrap`; none: the CDK's defaults.

    A stack of its own for another qualifier: without, the CDK would rename what the default's stack holds. The key goes
    by its id, because the template makes an ARN of it for the role that uploads.

    https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-customizing.html, https://github.com/aws/aws-cdk/issues/23032
    """
    found = []
    if settings.qualifier != BootstrapSettings().qualifier:
        found += ["--qualifier", settings.qualifier, "--toolkit-stack-name", f"CDKToolkit-{settings.qualifier}"]
    if settings.kms_key_arn is not None:
        found += ["--bootstrap-kms-key-id", settings.kms_key_arn.rpartition("/")[2]]
    return found


def newest_version() -> int | None:
    """Return the version that the pinned command line deploys; None: it is not installed."""
    if not TEMPLATE.exists():
        return None
    template = YamlSource.read(TEMPLATE).value
    return int(template["Resources"]["CdkBootstrapVersion"]["Properties"]["Value"])
