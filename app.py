"""Entry point of the CDK: `cdk synth -c env=NAME` reads config/NAME.yaml; NAME may be an absolute path, too.

ULTRACLUSTER_CONFIG names another folder than config/, as for `./ultracluster`: one name is one file for both.
Without `-c env=` it is the `default-env` in the context of cdk.json, and standard error says so. With
`-c cdk-nag=true` the rules of AwsSolutions are applied; what they find is in validation-report.json.
"""

import os
import sys
from pathlib import Path

import aws_cdk as cdk

from config import files
from config.settings import SettingsError, load
from stacks.composition import compose


def settings_file(app: cdk.App) -> Path:
    """Return the file of the deployment that the context names; one that nobody asked for is reported."""
    environment = str(app.node.try_get_context("env") or "").removesuffix(".yaml")
    if not environment and (environment := app.node.try_get_context("default-env")):
        print(f"Deployment: {environment}, default-env in cdk.json; for another: -c env=NAME", file=sys.stderr)
    folder = files.folder(os.environ)
    path = files.settings_file(environment, folder)
    if not path.is_file():
        allowed = ", ".join(files.deployments(folder))
        sys.exit(f"-c env=NAME: got {environment}, and there is no {path}; allowed: {allowed}")
    return path


def main() -> None:
    """Synthesize the deployment that the context names."""
    # No usage data: a template holds what its reviewers asked for, and nothing else.
    app = cdk.App(analytics_reporting=False)
    try:
        settings = load(settings_file(app))
    except SettingsError as error:
        sys.exit(str(error))
    compose(app, settings)
    if app.node.try_get_context("cdk-nag"):
        from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415 -- half a second

        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


if __name__ == "__main__":
    main()
