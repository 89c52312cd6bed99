"""Replace the cluster by a second one beside it, on the same network and file system: for what needs a new cluster.

Another version of ParallelCluster, another OS or head node needs another cluster. The second is deployed and verified,
jobs are drained from the first, which is then destroyed, with /home on its head node. Each step is shown before it is
done. After any interruption the same command continues where it stopped; until the first is destroyed, --abandon goes
back.

Exit code 0: done, or nothing to do; 1: something blocks it, a step failed, or the answer was no; 2: arguments, settings
or credentials cannot be used.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from scripts import command
from scripts.command import DONE, FAILED, OperationError, UnusableError

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

_EXAMPLES = """\
  python -m scripts upgrade trn1-16 --dry-run                     what would be done for the settings file as it is
  python -m scripts upgrade trn1-16 --set cluster.os=ubuntu2204   another OS; asks before each step
  python -m scripts upgrade trn1-16 --yes --drain-limit 48        asks nothing, waits two days for jobs at most
  python -m scripts upgrade trn1-16 --abandon                     back to the first cluster"""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    options = command.parser("upgrade", __doc__, _EXAMPLES)
    options.add_argument(
        "--set",
        dest="edits",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a value of the settings file, too: cluster.os=ubuntu2204",
    )
    options.add_argument("--anyway", action="store_true", help="create a second cluster although nothing needs one")
    options.add_argument("--abandon", action="store_true", help="destroy the second cluster and go back to the first")
    options.add_argument("--yes", action="store_true", help="do not ask: for pipelines")
    options.add_argument("--dry-run", action="store_true", help="check and show the steps; change nothing")
    options.add_argument(
        "--drain-limit",
        type=command.above_zero,
        metavar="HOURS",
        help="longest wait for jobs (default: until they end)",
    )
    options.add_argument("--skip", type=_names, default=[], metavar="ID,ID", help="checks of preflight to skip")
    return options


def upgrade(deployment: Deployment, given: argparse.Namespace, console: Console) -> int:
    """Upgrade, or go back, and return the exit code."""
    from scripts.clock import Clock
    from scripts.upgrade.backend import UpgradeBackend
    from scripts.upgrade.upgrade import Upgrade, edit

    if not (given.yes or given.dry_run) and (given.json or not sys.stdin.isatty()):
        raise UnusableError("standard input is not a terminal, or --json asks nothing; pass --yes or --dry-run")

    say = command.speaker(console)

    def agreed(_: str) -> bool:
        if given.yes:
            return True
        try:
            return console.input("Continue? [y/N] ", markup=False).strip().lower() in ("y", "yes")
        except EOFError:
            return False

    limit = None if given.drain_limit is None else given.drain_limit * 3600
    backend = UpgradeBackend(given.environment, console, Clock(), say, skip=given.skip, drain_limit=limit)
    edits, path = dict(map(edit, given.edits)), command.CONFIG / f"{given.environment}.yaml"
    with TemporaryDirectory() as directory:
        work = Upgrade(
            path, deployment.settings, Path(directory), backend, agreed, say, edits, given.anyway, given.dry_run
        )
        try:
            result = work.run(abandon=given.abandon)
        except BaseException as error:
            if work.steps or not isinstance(error, OperationError | UnusableError):
                done = ", ".join(each.name for each in work.steps) or "no step"
                rest = "What AWS has started continues. The same command continues where this one stopped."
                print(f"Done so far: {done}. {rest}", file=sys.stderr)
            raise
    if result.outcome in ("complete", "abandoned"):
        say(f"{result.outcome.capitalize()}. The cluster is {result.cluster}: make connect ENV={given.environment}")
    if given.json:
        print(result.to_json())
    return FAILED if result.outcome == "stopped" else DONE


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def main() -> int:
    """Do what the command line asks for, and return the exit code."""
    return command.run(parser().parse_args(), upgrade)
