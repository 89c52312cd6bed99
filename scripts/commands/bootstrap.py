"""Prepare account and Region of a deployment for the CDK: once, with credentials that may create IAM roles.

It runs `cdk bootstrap` with what the settings say. Words after -- go to it, too.

Exit code: that of `cdk bootstrap`; before that 2: arguments or settings cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scripts import options, terminal
from scripts.errors import ExitCode

if TYPE_CHECKING:
    from scripts.deployment import Deployment


@options.changing
@options.command(__doc__, ("bootstrap research", "once for each account and Region"), further="of_cdk")
@options.deployment
def command(*, deployment: Deployment, of_cdk: Sequence[str]) -> int:
    """Bootstrap, and return the exit code."""
    from scripts.plan import cdk
    from toolchain import bootstrap

    name = deployment.environment
    deployment.account.ask("sts", "get_caller_identity")  # without credentials the CDK hides the reason
    words = ("--context", f"env={name}", "bootstrap", *bootstrap.arguments(deployment.settings.bootstrap))
    code = cdk.run(*words, *of_cdk)
    if code == ExitCode.DONE:
        terminal.suggest(f"preflight {name}")
    return code
