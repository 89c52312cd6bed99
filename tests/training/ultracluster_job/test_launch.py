"""The launcher ends with the exit code of the worker that failed first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[3] / "training"
LAUNCH = [sys.executable, "-m", "ultracluster_job.launch"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{JOBS}:{JOBS}/programs"}
WORKER = """\
import os, signal, sys
if os.environ["RANK"] == "1":
    code = int(sys.argv[1])
    os.kill(os.getpid(), -code) if code < 0 else sys.exit(code)
"""


@pytest.mark.parametrize(("code", "expected"), [(75, 75), (-9, 137)])
def test_the_exit_code_is_that_of_the_worker(tmp_path: Path, code: int, expected: int) -> None:
    (tmp_path / "worker.py").write_text(WORKER, encoding="utf-8")
    worker = str(tmp_path / "worker.py")
    command = [*LAUNCH, "--standalone", "--nproc-per-node", "2", worker, str(code)]
    done = subprocess.run(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == expected


def test_a_launcher_that_is_ended_says_little(tmp_path: Path) -> None:
    """Where one node fails, Slurm ends the launchers of all others."""
    started = tmp_path / "started"
    text = f"import pathlib, time\npathlib.Path({str(started)!r}).touch()\ntime.sleep(600)\n"
    (tmp_path / "worker.py").write_text(text, encoding="utf-8")
    command = [*LAUNCH, "--standalone", "--nproc-per-node", "1", str(tmp_path / "worker.py")]
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as launcher:
        while not started.exists():
            assert launcher.poll() is None
            time.sleep(0.1)
        launcher.terminate()
        _, printed = launcher.communicate(timeout=600)
    assert launcher.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in printed
