"""Deploys a cloud assembly with the CDK, once no operation on the stacks is in progress."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from scripts import terminal
from scripts.deployment import PARTS
from scripts.interrupts import handled
from scripts.plan import cdk

if TYPE_CHECKING:
    from scripts.deployment import Deployment

BUILD = cdk.ROOT / "build"
_OUTDATED: Final = (
    "There are newer clusters than the settings say: cluster.generation {}. Use the settings file that the upgrade "
    "wrote, and merge it first."
)
_FOLLOWED_FAILED: Final = (
    "What was in progress failed or was rolled back. Why: ./ultracluster diagnose {0}. To try again: "
    "./ultracluster deploy {0}"
)


def settle(deployment: Deployment) -> str:
    """Follow operations in progress on a deployment's stacks to their end, and return a blocker; empty: there is none.

    Settings of an older generation than the newest cluster are from before an upgrade: they would create the replaced
    cluster again.
    """
    from scripts import generations
    from scripts.clock import Clock
    from scripts.errors import ExitCode
    from scripts.progress import watch as progress
    from scripts.stacks import in_progress

    settings = deployment.settings
    stacks = deployment.account.list("cloudformation", "describe_stacks")
    newer = [each for each in generations.among(settings, stacks) if each > settings.cluster.generation]
    if newer:
        return _OUTDATED.format(", ".join(map(str, newer)))
    names = [settings.stack_name(part) for part in PARTS]
    if not in_progress(each["StackStatus"] for each in stacks if each["StackName"] in names):
        return ""
    code = progress.watch(deployment, terminal.console(), clock=Clock(), as_json=False)
    return "" if code == ExitCode.DONE else _FOLLOWED_FAILED.format(deployment.environment)


def deploy(
    environment: str,
    assembly: Path,
    arguments: Sequence[str],
    *,
    stacks: Sequence[str] = ("--all",),
    output: IO[str] | None = None,
) -> int:
    """Let the CDK deploy an assembly, and return its exit code.

    Args:
        environment: File name in config/ without .yaml, for the file of outputs.
        assembly: What is deployed.
        arguments: Further ones of the CDK.
        stacks: Names of the stacks; those that they depend on are deployed, too.
        output: Where the CDK's standard output goes; None: to this program's.
    """
    BUILD.mkdir(exist_ok=True)
    outputs = BUILD / f"outputs-{environment}.json"
    command = cdk.command("deploy", *stacks, "--app", str(assembly), "--require-approval", "never")
    with subprocess.Popen(
        [*command, "--outputs-file", str(outputs), *arguments], cwd=cdk.ROOT, env=cdk.environment(), stdout=output
    ) as process:

        def terminate(*_: object) -> None:
            process.terminate()

        # A terminal sends Ctrl-C to both. The CDK decides what to do; ending first would leave it alone.
        with handled({signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: terminate, signal.SIGHUP: terminate}):
            code = process.wait()
    if code < 0:
        print(
            "The CDK was terminated. CloudFormation continues what it has started; deploy again to follow it.",
            file=sys.stderr,
        )
        return 128 - code
    return code
