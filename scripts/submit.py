"""Submit a training run to a cluster: compile, then train. Run it anywhere; the cluster's own submit.py does the work.

On a head or login node it is called directly. From elsewhere the same command goes to the head node through Session
Manager, which needs ssm:SendCommand, ssm:GetCommandInvocation and ec2:DescribeInstances, and logs:GetLogEvents to show
what it prints as it comes. Exit code: that of submit.py (0: submitted, 1: Slurm refused, 2: the arguments or the input
cannot be used); 1 also if the head node cannot be reached.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scripts import environments

if TYPE_CHECKING:
    from config.settings import Settings

CONFIG = Path(__file__).parents[1] / "config"
LONGEST_LOOK_AT_THE_DATA = 3600
"""Seconds that submit.py may take, which looks at the data before anything is submitted."""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser. It leaves all that follows the environment to the cluster's submit.py."""
    found = argparse.ArgumentParser(prog="python -m scripts.submit", description=__doc__)
    environments.add_argument(found, CONFIG)
    found.add_argument(
        "arguments", metavar="...", nargs=argparse.REMAINDER, help="those of submit.py (docs/training.md)"
    )
    return found


def command(settings: Settings, arguments: Sequence[str]) -> list[str]:
    """Return the command that submits, for head and login nodes of the settings' cluster."""
    jobs = f"{settings.storage.file_system.mount_dir}/ultracluster/jobs/current"
    return ["python3", f"{jobs}/submit.py", *arguments]


def send(settings: Settings, words: Sequence[str]) -> int:
    """Run a command as the cluster's user on the head node, show what it prints as it comes, and return its exit code.

    Ctrl-C ends it there, too.

    Raises:
        HeadNodeError: The head node cannot be reached.
    """
    from scripts.deployment import Deployment
    from scripts.operations.clock import Clock
    from scripts.operations.head_node import HeadNode
    from scripts.operations.streamed_command import print_output, print_remark, start
    from ultracluster.domain import neuron

    deployment = Deployment(settings.name, settings)
    user = neuron.SYSTEMS[settings.cluster_spec.os].user
    sent = start(deployment, HeadNode(deployment), words, user=user, seconds=LONGEST_LOOK_AT_THE_DATA)
    return sent.follow_or_cancel(print_output, print_remark, Clock())


def main() -> int:
    """Submit what the command line asks for, and return the exit code."""
    given = parser().parse_args()

    from botocore.exceptions import BotoCoreError, ClientError

    from config.settings import SettingsError, load
    from scripts.operations.command import INTERRUPTED, OperationError

    try:
        settings = load(CONFIG / f"{given.environment}.yaml")
    except SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    words = command(settings, given.arguments)
    if shutil.which("sbatch"):
        return subprocess.run(words, check=False).returncode
    try:
        return send(settings, words)
    except (BotoCoreError, ClientError, OperationError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
