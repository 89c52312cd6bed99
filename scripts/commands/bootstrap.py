"""Prepare account and Region of a deployment for the CDK: once, with credentials that may create IAM roles.

It runs `cdk bootstrap` with what the settings say. Words after -- go to it, too.

Exit code: that of `cdk bootstrap`; before that 2: arguments or settings cannot be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scripts.account import argument
from scripts.core import options, terminal
from scripts.core.errors import ExitCode
from scripts.core.temporary import temporary_directory

if TYPE_CHECKING:
    from scripts.account.deployment import Deployment


@options.changing
@options.command(__doc__, ("bootstrap research", "once for each account and Region"), further="of_cdk")
@argument.deployment
def command(*, deployment: Deployment, of_cdk: Sequence[str]) -> int:
    """Bootstrap, and return the exit code."""
    from scripts.check.plan import cdk
    from toolchain import bootstrap

    settings = deployment.settings
    identity = deployment.account.ask("sts", "get_caller_identity")  # without credentials the CDK hides the reason
    target = f"aws://{settings.account or identity['Account']}/{settings.region}"
    with temporary_directory() as directory:
        own = bootstrap.arguments(settings.bootstrap, settings.permissions_boundary_arn)
        words = ("bootstrap", target, *own, *of_cdk)
        code = cdk.run(*words, directory=directory)
    if code == ExitCode.DONE:
        terminal.suggest(f"preflight {deployment.name}")
    return code
