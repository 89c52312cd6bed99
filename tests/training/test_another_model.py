"""The job for a program of one's own in docs/training.md, with stand-ins for Slurm's commands and torchrun."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.training.commands import write_commands

PROJECT = Path(__file__).parents[2]
COMMANDS = {
    "scontrol": "echo trn1-st-trn1-32xl-1",
    "srun": 'while [[ $1 == --* ]]; do shift; done; exec "$@"',
    "getent": '[[ $ADDRESS ]] && echo "$ADDRESS STREAM"',
    "ip": 'echo "default via 10.0.0.254 dev eth0"',
    "torchrun": 'echo "$*"; exec python3 "${!#}"',
}
PROGRAM = """\
import os, pathlib, sys
graph = pathlib.Path(os.environ["NEURON_COMPILE_CACHE_URL"], "neuronxcc-2.23/MODULE_1")
graph.mkdir(parents=True)
for name in ("model.neff", "model.done"):
    (graph / name).write_text("compiled")
sys.exit(int(os.environ["CODE"]))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a step on a job's only node."""
    write_commands(tmp_path / "bin", COMMANDS)
    return {
        "ADDRESS": "10.0.0.1",
        "NEURON_COMPILE_CACHE_URL": str(tmp_path / "local"),
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "trn1-st-trn1-32xl-1",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_NODEID": "0",
        "ULTRACLUSTER_COMPILE_CACHE": str(tmp_path / "shared"),
        "ULTRACLUSTER_JOBS": str(PROJECT / "training"),
        "ULTRACLUSTER_PYTHON": str(tmp_path),
    }


def run(directory: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the page's job with a program that compiles a graph and ends with $CODE."""
    page = (PROJECT / "docs/training.md").read_text(encoding="utf-8")
    [job] = re.findall(r"^## Another model$.*?^```$(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert job.count("/fsx/me/train.py") == 1
    program = directory / "train.py"
    program.write_text(PROGRAM, encoding="utf-8")
    script = job.replace("/fsx/me/train.py", str(program))
    return subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("code", [0, 7])
def test_it_ends_as_the_program_and_keeps_what_was_compiled(
    tmp_path: Path, environment: dict[str, str], code: int
) -> None:
    done = run(tmp_path, {**environment, "CODE": str(code)})
    assert done.returncode == code, done.stderr
    assert "--nnodes 1 --node-rank 0 --nproc-per-node 32 --master-addr 10.0.0.1 --master-port 41000 " in done.stdout
    assert (tmp_path / "shared/neuronxcc-2.23/MODULE_1/model.done").exists()


@pytest.mark.parametrize("code", [0, 7])
def test_a_cache_that_cannot_be_used_changes_nothing(tmp_path: Path, environment: dict[str, str], code: int) -> None:
    (tmp_path / "shared").touch()
    done = run(tmp_path, {**environment, "CODE": str(code)})
    assert done.returncode == code
    assert f"compile_cache.sh: mkdir: cannot create directory '{tmp_path}/shared': File exists" in done.stdout
    assert "not all compiled graphs were kept" in done.stdout


def test_without_an_address_no_program_starts(tmp_path: Path, environment: dict[str, str]) -> None:
    done = run(tmp_path, {**environment, "ADDRESS": ""})
    assert done.returncode == 1
    assert "environment.sh: the first of the nodes trn1-st-trn1-32xl-1 has no address" in done.stdout
    assert "--nnodes" not in done.stdout
