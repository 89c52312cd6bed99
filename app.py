"""Entry point of the CDK: `cdk synth -c env=NAME` reads config/NAME.yaml; NAME may be an absolute path, too.

With `-c cdk-nag=true` the rules of AwsSolutions are applied; what they find is in validation-report.json.
"""

import gc
import os
import sys
from pathlib import Path

# The collectors of Python, and of Node where the CDK runs, cost a second here (docs/explanation/performance.md).
gc.disable()
_KERNEL = Path(__file__).resolve().parent / "stacks" / "kernel.cjs"
os.environ["NODE_OPTIONS"] = f'{os.environ.get("NODE_OPTIONS", "")} --require "{_KERNEL}"'.lstrip()

import aws_cdk as cdk  # noqa: E402

from config.settings import SettingsError, load  # noqa: E402
from stacks.composition import compose  # noqa: E402


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
    if app.node.try_get_context("cdk-nag"):
        from cdk_nag import AwsSolutionsChecks  # noqa: PLC0415 -- half a second

        cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()


if __name__ == "__main__":
    main()
