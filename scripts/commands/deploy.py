"""Deploy a configuration: synthesize it, show what would change, ask, and let the CDK deploy exactly that.

If an operation on a stack of the deployment is in progress, such as that of a job that ended, it is followed to its end
first. Exit code: the CDK's own once it was started; before that 1: there is a blocker, what was followed failed, or the
answer was no; 2: the settings or arguments cannot be used, AWS did not answer, or nobody can be asked; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.command import INTERRUPTED, UNUSABLE, split_at_dashes
from scripts.deploy import deploy, settle
from scripts.deployment import Deployment
from scripts.interrupts import clean_up_as_after_ctrl_c
from scripts.plan.command import PlanError, make_plan, settings_of, show, synthesize


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    command = argparse.ArgumentParser(prog="python -m scripts deploy", description=__doc__)
    command.add_argument("environment", metavar="ENV", help="file name in config/ without .yaml")
    command.add_argument("--yes", action="store_true", help="do not ask: for pipelines")
    command.add_argument(
        "--accept-replacement", action="store_true", help="allow to replace resources with data or dependents"
    )
    command.usage = f"{command.prog} ENV [--yes] [--accept-replacement] [-- further arguments of cdk deploy]"
    return command


def main() -> int:
    """Deploy what the command line names, and return the exit code."""
    own, further = split_at_dashes(sys.argv[1:])
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
        print(f"Why: make diagnose ENV={given.environment}. The same command deploys the rest.", file=sys.stderr)
    return code


def _is_wanted(given: argparse.Namespace, assembly: Path) -> bool:
    """Synthesize the configuration, show what would change, and tell whether to deploy it."""
    settings = settings_of(given.environment)
    if not given.yes and not sys.stdin.isatty():
        raise PlanError("standard input is not a terminal; pass --yes")
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


def further_parser() -> argparse.ArgumentParser:
    """Return the parser of the CDK's arguments that change neither what is deployed nor where.

    https://docs.aws.amazon.com/cdk/v2/guide/ref-cli-cmd-deploy.html
    """
    cdk = argparse.ArgumentParser(prog="python -m scripts deploy ENV --", add_help=False, allow_abbrev=False)
    cdk.add_argument("--verbose", "-v", action="count")
    for switch in ("--debug", "--ci", "--no-color"):
        cdk.add_argument(switch, action="store_true")
    cdk.add_argument("--progress", choices=("bar", "events"))
    cdk.add_argument("--concurrency", type=int, metavar="STACKS")
    return cdk


def _check(further: Sequence[str]) -> None:
    """End with exit code 2 if an argument of the CDK could change what is deployed."""
    allowed = further_parser()
    _, rejected = allowed.parse_known_args(further)
    if rejected:
        allowed.error(f"got {' '.join(rejected)}; allowed: the arguments above; AWS_PROFILE names other credentials")
