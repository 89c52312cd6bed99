"""A job that takes more memory than it asked for, with the lines that emulated head nodes have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulator.machines.test_slurm_configuration import files, queue, resource
from tests.end_to_end.slurm.base import USER
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.end_to_end.slurm.conftest import new_directory

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system]

TAKE = "exec python3 -c 'import time; taken = bytearray({} << 20); time.sleep(15)'"


def test_a_job_that_takes_more_memory_than_it_asked_for_ends(slurm_workspace: Path) -> None:
    lines = files(queue(resource()), EnableMemoryBasedScheduling=True)["slurm_parallelcluster.conf"].splitlines()
    settings = dict(line.split("=", 1) for line in lines if line.startswith(("Select", "JobAcct")))
    settings["NodeName"] = "DEFAULT RealMemory=2000"
    with SlurmCluster(slurm_workspace / "base", new_directory(slurm_workspace), 1, settings) as cluster:
        jobs = {size: cluster.submit(TAKE.format(size), "--mem=200M --ntasks=1") for size in (50, 600)}
        ended = {size: cluster.wait(job) for size, job in jobs.items()}
        said = cluster.run(f"cat /home/{USER}/slurm-{jobs[600]}.out")
    assert [(each["JobState"], each["ExitCode"]) for each in ended.values()] == [
        ("COMPLETED", "0:0"),
        ("FAILED", "0:9"),
    ]
    assert "Exceeded job memory limit" in said
