"""What the CDK's bootstrap stack leaves in an account and Region, under the names that the app's templates use.

https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import yaml

DEFAULT_QUALIFIER = "hnb659fds"
"""That of the CDK, where nobody chooses another."""

OLDEST_VERSION = 6
"""The version that the rule CheckBootstrapVersion in the app's templates asks for."""
VERSION_PARAMETERS = "/cdk-bootstrap/*/version"
"""The parameters in Systems Manager that hold versions, of all qualifiers."""
TEMPLATE = Path(__file__).parents[1] / "node_modules/aws-cdk/lib/api/bootstrap/bootstrap-template.yaml"
"""What `cdk bootstrap` of the pinned command line deploys."""


class Bootstrap(Protocol):
    """What a deployment says of the bootstrap stack that it uses."""

    @property
    def qualifier(self) -> str:
        """Part of the names of what the stack holds."""

    @property
    def kms_key_arn(self) -> str | None:
        """The customer's key that encrypts its bucket; None: a key of AWS."""


def version_parameter(settings: Bootstrap) -> str:
    """Return the name of the parameter in Systems Manager that holds the version."""
    return VERSION_PARAMETERS.replace("*", settings.qualifier)


def assets_bucket(settings: Bootstrap, account: str, region: str) -> str:
    """Return the name of the bucket that templates and files are uploaded to."""
    return f"cdk-{settings.qualifier}-assets-{account}-{region}"


def arguments(settings: Bootstrap, permissions_boundary_arn: str | None = None) -> list[str]:
    """Return the arguments of `cdk bootstrap`; none: the CDK's defaults.

    A boundary goes by its name, and to all roles of the stack: by default to the one of CloudFormation alone.

    A stack of its own for another qualifier: without, the CDK would rename what the default's stack holds. The key goes
    by its id, because the template makes an ARN of it for the role that uploads.

    https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-customizing.html, https://github.com/aws/aws-cdk/issues/23032
    """
    words = []
    if settings.qualifier != DEFAULT_QUALIFIER:
        words += ["--qualifier", settings.qualifier, "--toolkit-stack-name", f"CDKToolkit-{settings.qualifier}"]
    if settings.kms_key_arn is not None:
        words += ["--bootstrap-kms-key-id", settings.kms_key_arn.rpartition("/")[2]]
    if permissions_boundary_arn is not None:
        name = permissions_boundary_arn.rpartition("/")[2]
        words += ["--custom-permissions-boundary", name, "--apply-permissions-boundary-to-all-roles"]
    return words


def newest_version() -> int | None:
    """Return the version that the pinned command line deploys; None: it is not installed."""
    if not TEMPLATE.exists():
        return None
    template = yaml.load(TEMPLATE.read_text(encoding="utf-8"), yaml.BaseLoader)  # noqa: S506 - plain strings, no tags
    return int(template["Resources"]["CdkBootstrapVersion"]["Properties"]["Value"])
