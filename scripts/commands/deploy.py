"""Deploy a configuration: synthesize it, show what would change, ask, and let the CDK deploy exactly that.

If CloudFormation still works on a stack of the deployment, such as for a job that ended, that is followed to its end
first. Exit code: the CDK's own once it was started; before that 1: something stands against the deployment, what was
followed failed, or the answer was no; 2: the settings or arguments cannot be used, AWS did not answer, or nobody can be
asked; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final

from scripts.command import INTERRUPTED, UNUSABLE
from scripts.deployment import PARTS, Deployment
from scripts.interrupts import clean_up_as_after_ctrl_c, handled
from scripts.plan import cdk
from scripts.plan.command import PlanError, make_plan, settings_of, show, synthesize

BUILD = cdk.ROOT / "build"
OUTDATED: Final = (
    "There are newer clusters than the settings say: cluster.generation {}. Take the settings file that the upgrade "
    "wrote, and merge it first."
)
"""Why settings from before an upgrade are refused."""
FOLLOWED: Final = (
    "What was in progress failed or was rolled back. Why: make diagnose ENV={0}. To try again: make deploy ENV={0}"
)


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    found = argparse.ArgumentParser(prog="python -m scripts deploy", description=__doc__)
    found.add_argument("environment", metavar="ENV", help="file name in config/ without .yaml")
    found.add_argument("--yes", action="store_true", help="do not ask: for pipelines")
    found.add_argument(
        "--accept-replacement", action="store_true", help="what holds data or stands under everything may be replaced"
    )
    found.usage = f"{found.prog} ENV [--yes] [--accept-replacement] [-- further arguments of cdk deploy]"
    return found


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
        stacks: Names of the stacks; those that they need come along.
        output: Where the CDK's standard output goes; None: to this program's.
    """
    BUILD.mkdir(exist_ok=True)
    outputs = BUILD / f"outputs-{environment}.json"
    command = cdk.command("deploy", *stacks, "--app", str(assembly), "--require-approval", "never")
    with subprocess.Popen(
        [*command, "--outputs-file", str(outputs), *arguments], cwd=cdk.ROOT, env=cdk.environment(), stdout=output
    ) as process:

        def end(*_: object) -> None:
            process.terminate()

        # A terminal sends Ctrl-C to both. The CDK decides what becomes of it; ending first would leave it alone.
        with handled({signal.SIGINT: signal.SIG_IGN, signal.SIGTERM: end, signal.SIGHUP: end}):
            code = process.wait()
    if code < 0:
        print(
            "The CDK was ended. CloudFormation goes on with what it has begun; deploy again to follow.", file=sys.stderr
        )
        return 128 - code
    return code


def main() -> int:
    """Deploy what the command line names, and return the exit code."""
    own, further = _split(sys.argv[1:])
    given = parser().parse_args(own)
    _check(further)
    clean_up_as_after_ctrl_c()
    with TemporaryDirectory() as directory:  # nothing else writes to it while somebody thinks about the question
        assembly = Path(directory) / "cdk.out"
        try:
            if not _is_wanted(given, assembly):
                return 1
        except PlanError as error:
            print(error, file=sys.stderr)
            return UNUSABLE
        except (EOFError, KeyboardInterrupt):
            print("\nNothing was changed.", file=sys.stderr)
            return INTERRUPTED
        code = deploy(given.environment, assembly, further)
    if code not in (0, 128 + signal.SIGTERM):
        print(f"Why: make diagnose ENV={given.environment}. The same command takes up what is left.", file=sys.stderr)
    return code


def _is_wanted(given: argparse.Namespace, assembly: Path) -> bool:
    """Synthesize what is to be deployed, show what that changes, and tell whether to do it."""
    settings = settings_of(given.environment)
    if not given.yes and not sys.stdin.isatty():
        raise PlanError("got no terminal to ask at; allowed: --yes")
    if blocker := settle(Deployment(given.environment, settings)):
        print(blocker, file=sys.stderr)
        return False
    synthesize(given.environment, assembly)
    plan = make_plan(given.environment, assembly, accepted=given.accept_replacement)
    show(plan)
    if not plan.ok:
        return False
    if not plan.empty and not given.yes and input("\nDeploy? [y/N] ").strip().lower() not in ("y", "yes"):
        print("Nothing was changed.")
        return False
    return True


def settle(deployment: Deployment) -> str:
    """Follow what is in progress on a deployment's stacks to its end, and return why not to deploy; empty: nothing.

    Settings of an older generation than the newest cluster are from before an upgrade: they would create the replaced
    cluster again.

    Needs cloudformation:DescribeStacks on all stacks; if something is in progress, what `progress.watch` needs.

    Raises:
        PlanError: AWS refused or did not answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError
    from rich.console import Console

    from scripts import generations
    from scripts.clock import Clock
    from scripts.command import DONE, UnusableError
    from scripts.preflight.access import hint_about
    from scripts.progress import watch as progress

    settings = deployment.settings
    try:
        stacks = deployment.account.list("cloudformation", "describe_stacks")
        newer = [each for each in generations.among(settings, stacks) if each > settings.cluster.generation]
        if newer:
            return OUTDATED.format(", ".join(map(str, newer)))
        names = [settings.stack_name(part) for part in PARTS]
        if not progress.under_way({each["StackName"]: each for each in stacks if each["StackName"] in names}):
            return ""
        code = progress.watch(deployment, Console(highlight=False, emoji=False), clock=Clock(), as_json=False)
    except (BotoCoreError, ClientError) as error:
        raise PlanError("\n".join(filter(None, [str(error), hint_about(error)]))) from None
    except UnusableError as error:
        raise PlanError(str(error)) from None
    return "" if code == DONE else FOLLOWED.format(deployment.environment)


def _split(arguments: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the arguments before and after the first `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:end], arguments[end + 1 :]


def _further() -> argparse.ArgumentParser:
    """Return the parser of the CDK's arguments that change neither what is deployed nor where.

    https://docs.aws.amazon.com/cdk/v2/guide/ref-cli-cmd-deploy.html
    """
    found = argparse.ArgumentParser(prog="python -m scripts deploy ENV --", add_help=False, allow_abbrev=False)
    found.add_argument("--verbose", "-v", action="count")
    for switch in ("--debug", "--ci", "--no-color"):
        found.add_argument(switch, action="store_true")
    found.add_argument("--progress", choices=("bar", "events"))
    found.add_argument("--concurrency", type=int, metavar="STACKS")
    return found


def _check(further: Sequence[str]) -> None:
    """End with exit code 2 if an argument of the CDK could lead to another deployment than the planned one."""
    allowed = _further()
    _, refused = allowed.parse_known_args(further)
    if refused:
        allowed.error(f"got {' '.join(refused)}; allowed: what stands above; AWS_PROFILE names other credentials")
