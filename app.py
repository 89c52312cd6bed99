"""Entry point of the CDK: `cdk synth -c env=NAME` reads config/NAME.yaml; NAME may be an absolute path, too."""

import sys
from pathlib import Path

import aws_cdk as cdk

from config.settings import SettingsError, load
from stacks.composition import compose


def main() -> None:
    """Synthesize the deployment that the context names."""
    # No usage data: a template holds what its reviewers asked for, and nothing else.
    app = cdk.App(analytics_reporting=False)
    environment = app.node.try_get_context("env") or "trn1-16"
    try:
        settings = load(Path(__file__).parent / "config" / f"{environment}.yaml")
    except SettingsError as error:
        sys.exit(str(error))
    compose(app, settings)
    app.synth()


if __name__ == "__main__":
    main()
