"""The call of the cluster's export.py, which makes a directory for transformers of a checkpoint."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from scripts.account.deployment import Deployment
from scripts.account.remote.head_node import HeadNode
from scripts.account.remote.program import of_file
from scripts.account.remote.streamed_command import print_output, start
from scripts.core.errors import UnusableError

SECONDS_TO_EXPORT: Final = 3600
_AS_OWNER: Final = Path(__file__).with_name("as_owner.sh")


def export(deployment: Deployment, run: str, directory: str, options: Sequence[str]) -> int:
    """Call export.py, here if Slurm is, else on the head node as the owner of the run; return its exit code.

    Raises:
        UnusableError: The cluster has no Neuron SDK, and so no export.py, or a path is not absolute.
        HeadNodeError: The head node cannot be reached.
    """
    if deployment.settings.cluster.neuron_sdk is None:
        raise UnusableError(
            f"{deployment.name} has no programs of training jobs: `cluster.neuron_sdk` is null in {deployment.file}"
        )
    if relative := [each for each in (run, directory) if not each.startswith("/")]:
        raise UnusableError(f"got {', '.join(relative)}; allowed: absolute paths on the cluster, as runs list has them")
    program = f"{deployment.settings.storage.file_system.mount_dir}/ultracluster/jobs/current/export.py"
    words = ["python3", program, *options, "--", run, directory]
    if shutil.which("sbatch"):
        return subprocess.run(words, check=False).returncode
    there = of_file(_AS_OWNER, run, shlex.join(words))
    return start(deployment, HeadNode(deployment), there, seconds=SECONDS_TO_EXPORT).follow_or_cancel(print_output)
