"""What the head node is asked, run in a shell of this computer where Slurm does not answer."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from scripts.account import troubles
from scripts.account.slurm import COMMAND, Problem, SlurmState

LOG = """\
[2026-11-28T19:00:00.001] error: cannot find job_submit plugin for job_submit/old
[2026-11-28T19:00:00.002] fatal: failed to initialize job_submit plugin
[2026-11-28T19:01:00.001] Running as primary controller
[2026-11-28T19:02:00.001] sched: Allocate JobId=1
"""
DIED = r"""[2026-11-28T19:03:00.001] error: Couldn't find it
[2026-11-28T19:03:00.002] error: cannot create job_submit context for job_submit/acme\n
[2026-11-28T19:03:00.003] fatal: failed to initialize job_submit plugin
"""
LIMIT = f"{troubles.SECONDS_FOR_SLURM} s"
WORDS = r"error: cannot create job_submit context for job_submit/acme\n; fatal: failed to initialize job_submit plugin"


@pytest.mark.parametrize(
    ("age", "log", "said"),
    [
        (troubles.SECONDS_FOR_SLURM, LOG + DIED, f"slurmctld runs, and gave no answer within {LIMIT}"),
        (0, LOG + DIED, f"slurmctld does not run. Its last words: {WORDS}"),
        (0, LOG, "slurmctld has just started, and gave no answer yet"),
        (None, LOG + DIED, f"slurmctld does not run. Its last words: {WORDS}"),
        (None, LOG, "slurmctld does not run"),
        (None, None, "slurmctld does not run"),
    ],
    ids=["it hangs", "each start fails", "it starts", "it did not start", "it was killed", "there is no log"],
)
def test_whether_the_controller_hangs_or_does_not_start_is_told_with_its_words(
    age: int | None, log: str | None, said: str, tmp_path: Path
) -> None:
    """Those of its last start: what an earlier one failed for was repaired. systemd has the word, not a process's name.

    Args:
        age: Of the process that systemd has started, in seconds; None: there is none, but one of that name.
        log: The controller's.
        said: What is told.
        tmp_path: Has the programs of the head node.
    """
    if log is not None:
        (tmp_path / "log").write_text(log, encoding="utf-8")
    shown = f'echo "{4711 * (age is not None)}"'
    programs = {
        "pgrep": "echo 4712",
        "ps": f'[ "$2" = --pid=4711 ] && echo "   {age}"',
        "systemctl": f'[ "$1" = show ] && {shown} || exit {3 * (age is None)}',
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    limited = f"{troubles.SECONDS_FOR_SLURM} {shlex.join(COMMAND)}"
    script = troubles.SCRIPT.replace(limited, "0.1 sleep 60").replace("/var/log/slurmctld.log", str(tmp_path / "log"))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if line.startswith("slurmctld")] == [said]


@pytest.mark.parametrize(
    ("jobs", "reason", "troubled"),
    [
        ({"CONFIGURING": 1}, "none", False),
        ({"CONFIGURING": 1}, "Not responding", True),
        ({"RUNNING": 1}, "none", True),
        ({}, "none", True),
    ],
)
def test_nodes_that_a_job_waits_for_start(jobs: dict[str, int], reason: str, troubled: bool) -> None:
    """They respond a moment after they have started."""
    silent = Problem(2, "not responding", "Unknown", "trn1-dy-trn1-32xl-[1-2]", reason, "trn1")
    nodes, counts = {"trn1": {"not responding": 2}}, {"trn1": jobs}
    state = SlurmState(nodes, {"trn1": "up"}, (), (silent,), jobs, counts, ())
    assert bool([*troubles.troubles("dev", "RUNNING", state, {})]) is troubled
