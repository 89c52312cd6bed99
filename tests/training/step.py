"""A step of a job on its only node; Slurm's commands, torchrun and the facts of the node are fakes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.fake_commands import write_commands

PROJECT = Path(__file__).parents[2]
NODE = "trn1-st-trn1-32xl-1"
RELEASE = "2.28.1-pytorch2.9.0-ubuntu24.04"
COMMANDS = {
    "scontrol": f"echo {NODE}",
    "srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
    "getent": '[[ $ADDRESS ]] && echo "$ADDRESS STREAM"',
    "ip": 'echo "default via 10.0.0.254 dev eth0"',
    "sed": 'exec /usr/bin/sed "${@/#\\/var\\/lib\\/ultracluster\\/node.env/$NODE_ENV}"',
    "sleep": '[[ $1 == 10 && -e $READY ]] && ln -sfn "$READY" "$ULTRACLUSTER_PYTHON"',
    "torchrun": 'echo "$*"; exec python3 "${!#}"',
    "uname": f"echo {NODE}",
}


class Step:
    """A step on a job's only node.

    Attributes:
        bin: Commands that come before the system's, those of the Python environment among them.
        variables: Its environment variables.
        environments: Where the head node makes Python environments; there is one, and the link of the cluster to it.
    """

    def __init__(self, directory: Path) -> None:
        self.environments = directory / "python"
        self.bin = self.environments / f"{RELEASE}.build-abc123/bin"
        write_commands(self.bin, COMMANDS)
        (self.environments / RELEASE).symlink_to(f"{RELEASE}.build-abc123")
        self.current = self.environments / "current-trn1-16"
        self.current.symlink_to(RELEASE)
        (directory / "node.env").write_text("queue=trn1\nsdk=2.28.1\nscratch_dir=/local\n", encoding="utf-8")
        self.variables = {
            "ADDRESS": "10.0.0.1",
            "NODE_ENV": str(directory / "node.env"),
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "SLURM_JOB_NODELIST": NODE,
            "SLURM_JOB_NUM_NODES": "1",
            "SLURM_NODEID": "0",
            "ULTRACLUSTER_JOBS": str(PROJECT / "training"),
            "ULTRACLUSTER_PYTHON": str(self.current),
        }

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**self.variables, **variables}
        return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)

    def source(self, then: str, **variables: str) -> str:
        """Return what is printed by environment.sh and, if that succeeds, by a command after it."""
        return self.run(f'source "$ULTRACLUSTER_JOBS/environment.sh" && {then}', **variables).stdout
