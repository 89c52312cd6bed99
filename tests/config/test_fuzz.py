"""No settings file, file of people or pipeline.yaml ends in a traceback, a crash, or a message that nobody can read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.config import fuzz

FILES = 2000
"""They take 10 s of CPU; their number is fixed, so that a slow machine tries no fewer."""


@pytest.mark.slow
def test_no_file_ends_in_anything_but_settings_or_a_clear_error(tmp_path: Path) -> None:
    """In a process of its own, whose end by a signal is the fault of its last file, which stays."""
    program = [sys.executable, "-m", "tests.config.fuzz", "0", str(FILES), str(tmp_path / "files")]
    path = f"{fuzz.ROOT}{os.pathsep}{fuzz.ROOT / 'constructs'}"
    (tmp_path / "files").mkdir()
    done = subprocess.run(
        program, capture_output=True, text=True, check=False, cwd=fuzz.ROOT, env={**os.environ, "PYTHONPATH": path}
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    problems = {each["case"]: each["problem"] for each in lines if "problem" in each}
    if done.returncode != 0:
        last = lines[-1]["case"] if lines else "none"
        pytest.fail(f"case {last} ended the process with {done.returncode}, file in {tmp_path}: {done.stderr[-2000:]}")
    again = "".join(f"\n\n.venv/bin/python -m tests.config.fuzz {case}\n{text}" for case, text in problems.items())
    assert not problems, again
    assert [each["case"] for each in lines if "kind" in each] == list(range(FILES))
