"""The controller of 1,875 nodes, with ParallelCluster's own settings and with those that this stack adds."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.end_to_end.slurm.controller import NODES, ONE_JOB, SETTINGS, Controller
from ultracluster.domain import slurm

pytestmark = [pytest.mark.slow, pytest.mark.system]


def complaints(workspace: Path, directory: Path, whose: str) -> set[str]:
    """Return what the controller complains of when it starts."""
    directory.mkdir()
    with Controller(workspace / "base", directory, SETTINGS[whose]) as controller:
        return {line for line in controller.log() if line.startswith("error")}


def test_slurm_takes_the_settings(slurm_workspace: Path, tmp_path: Path) -> None:
    """It complains of no more than without them, but for the second list of the same name: the later one counts."""
    without = complaints(slurm_workspace, tmp_path / "without", "ParallelCluster's")
    assert complaints(slurm_workspace, tmp_path / "with", "this stack's") - without == {
        "error: SchedulerParameters 1 specified more than once, latest value used"
    }


def test_slurm_knows_each_parameter_of_the_scheduler(slurm_workspace: Path) -> None:
    """It says nothing of names that it does not know; its manual has those that it knows."""
    manual = gzip.decompress((slurm_workspace / "base/usr/share/man/man5/slurm.conf.5.gz").read_bytes()).decode()
    assert [name for name in slurm.SCHEDULER_PARAMETERS if f"\n\\fB{name}\\fR" not in manual] == []


def test_a_job_of_all_nodes_reaches_resume_program(slurm_workspace: Path, tmp_path: Path) -> None:
    settings = SETTINGS["this stack's"]
    with Controller(slurm_workspace / "base", tmp_path, settings) as controller:
        configuration = controller.run("scontrol show config")
        measured = controller.measure(ONE_JOB)
        states = controller.run("sinfo --noheader --format='%D %T'")
    assert f"= {settings['SchedulerParameters']}\n" in configuration
    assert "power_save_min_interval=30" in configuration
    assert measured.calls == 1
    assert states.split() == [str(NODES), "allocated#"]
