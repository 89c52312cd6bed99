"""Submit a training run to a cluster: compile, then train. It runs anywhere; the cluster's own submit.py does the work.

On a head or login node it is called directly. From elsewhere the same command is sent to the head node by Systems
Manager, as by python -m scripts run; Ctrl-C cancels it there, too.

Exit code: that of submit.py (0: submitted, 1: Slurm refused, 2: the arguments or the input cannot be used); before that
1: the head node is not reachable, 2: settings or credentials cannot be used; 130: Ctrl-C.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
from typing import TYPE_CHECKING

from scripts import command, environments

if TYPE_CHECKING:
    from rich.console import Console

    from scripts.deployment import Deployment

LONGEST = 3600
"""Seconds that submit.py may take, which reads the data before anything is submitted."""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser. It leaves everything after the environment to the cluster's submit.py."""
    submit = argparse.ArgumentParser(prog="python -m scripts submit", description=__doc__)
    environments.add_argument(submit, command.CONFIG)
    submit.add_argument(
        "arguments", metavar="...", nargs=argparse.REMAINDER,
        help="those of submit.py: --nodes N, --output DIR, --queue, --time, --no-compile, --dry-run; and those of the "
        "training program, among them --phase, --optimizer, --scaling strong|weak, --data, --steps, "
        "--checkpoint-interval, --keep and --reference (docs/training.md has a table of both)",
    )  # fmt: skip
    submit.set_defaults(json=False)
    return submit


def main() -> int:
    """Submit what the command line asks for, and return the exit code."""
    return command.run(parser().parse_args(), program)


def program(deployment: Deployment, parsed: argparse.Namespace, _: Console) -> int:
    """Call the cluster's submit.py, here or on the head node, and return its exit code."""
    jobs = f"{deployment.settings.storage.file_system.mount_dir}/ultracluster/jobs/current"
    words = ["python3", f"{jobs}/submit.py", *parsed.arguments]
    if shutil.which("sbatch"):
        return subprocess.run(words, check=False).returncode
    from scripts.clock import Clock
    from scripts.remote.head_node import HeadNode
    from scripts.remote.streamed_command import print_output, print_remark, start

    sent = start(deployment, HeadNode(deployment), words, seconds=LONGEST)
    return sent.follow_or_cancel(print_output, print_remark, Clock())
