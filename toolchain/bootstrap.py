"""What the CDK's bootstrap stack leaves in an account and Region, under the names that the app's templates use.

https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
"""

from __future__ import annotations

from pathlib import Path

from config.yaml_source import YamlSource

OLDEST_VERSION = 6
"""The version that the rule CheckBootstrapVersion in the app's templates asks for."""
VERSION_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
"""The parameter in Systems Manager that holds the version."""
TEMPLATE = Path(__file__).parents[1] / "node_modules/aws-cdk/lib/api/bootstrap/bootstrap-template.yaml"
"""What `cdk bootstrap` of the pinned command line deploys."""


def assets_bucket(account: str, region: str) -> str:
    """Return the name of the bucket that templates and files are uploaded to."""
    return f"cdk-hnb659fds-assets-{account}-{region}"


def newest_version() -> int | None:
    """Return the version that the pinned command line deploys; None: it is not installed."""
    if not TEMPLATE.exists():
        return None
    template = YamlSource.read(TEMPLATE).value
    return int(template["Resources"]["CdkBootstrapVersion"]["Properties"]["Value"])
