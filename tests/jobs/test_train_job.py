"""What train.sbatch makes of the end of its program, with stand-ins for Slurm's commands."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[2] / "scripts/jobs"
COMMANDS = {
    "scontrol": f'if [[ $1 == show ]]; then echo "   Command={JOBS}/train.sbatch"; else echo "asked to $1 job $2"; fi',
    "srun": '[[ $5 == train ]] && echo "$CODE" >"$6"; echo "a step ran"; exit 143',
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "bin").mkdir()
    for name, text in COMMANDS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
        (tmp_path / "bin" / name).chmod(0o755)
    return {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "SLURM_JOB_ID": "12",
        "SLURM_JOB_NAME": "train",
        "SLURM_JOB_NODELIST": "trn1-st-trn1-32xl-[1-2]",
        "SLURM_JOB_NUM_NODES": "2",
    }


def train(environment: dict[str, str], output: Path, before: str = "") -> subprocess.CompletedProcess[str]:
    script = f'{before} exec bash "{JOBS}/train.sbatch" --output "{output}"'
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("code", "message", "requeued"),
    [
        (0, "all steps are done", False),
        (2, "the input cannot be used, see the lines above: not requeued", False),
        (3, "a loss is not finite, see the lines above: not requeued, for it would come to the same end", False),
        (75, "stopped with a checkpoint: back into the queue", True),
        (1, "failed (1), 1 times in a row without a new checkpoint: back into the queue", True),
    ],
)
def test_what_happens_after_each_exit_code(
    tmp_path: Path, environment: dict[str, str], code: int, message: str, requeued: bool
) -> None:
    done = train({**environment, "CODE": str(code)}, tmp_path / "run")
    assert done.returncode == code, done.stderr
    assert f"train: {message}" in done.stdout
    assert ("asked to requeue job 12" in done.stdout) == requeued


def test_a_full_file_system_is_bad_input(tmp_path: Path, environment: dict[str, str]) -> None:
    """A limit of 0 bytes for files stands in for it."""
    done = train(environment, tmp_path / "run", "trap '' XFSZ; ulimit -f 0;")
    assert done.returncode == 2
    told = (
        f"--output: got '{tmp_path}/run'; allowed: a directory on the shared file system that you may write, with space"
    )
    assert told in done.stdout
    assert "a step ran" not in done.stdout
    assert "requeue" not in done.stdout
