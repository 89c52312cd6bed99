"""A training job on a real Slurm that is disturbed in all ways ends with the losses of a run that nothing disturbs.

Random numbers follow from seed, step and position in the batch, so those of a step are the same however often it is
made, and on any number of nodes.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.end_to_end.slurm.base import ENVIRONMENT, USER
from tests.end_to_end.slurm.cluster import Node, SlurmCluster
from tests.end_to_end.slurm.training import ENVIRONMENT as TRAINING_ENVIRONMENT
from tests.end_to_end.slurm.training import JOBS, PYTHON, RUN, STEPS, Run, fake_python, start

pytestmark = [pytest.mark.scenario, pytest.mark.slow, pytest.mark.system]

SAME = 1e-5
"""Relative difference of losses whose additions are made in another order, by another number of workers."""

NAME = "disturbed"
WORKER = "[r]unpy.run_module"
"""A pattern for the processes that train, which does not match itself."""

HOLDING = f"""\
export PYTHON_EXEC=$0
[[ $* == "-u -m bert train "* ]] || exec {PYTHON}/bin/python "$@"
exec {PYTHON}/bin/python -c '
import os, runpy, signal
from ultracluster_job import loop
make_step = loop.TrainingLoop._make_step
def held(self):
    hold = self._plan.output / "hold"
    if self._recorder and hold.exists() and int(hold.read_text()) == self._done:
        self._checkpoints.wait()
        hold.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
    return make_step(self)
loop.TrainingLoop._make_step = held
runpy.run_module("bert", run_name="__main__", alter_sys=True)' "${{@:4}}"
"""
"""A Python of an environment whose first rank stops itself after the step that the run's file "hold" names, with the
checkpoint of that step on the disk. The other ranks then wait for it."""


class DisturbedRun:
    """A job and its run, held after a step at each of its starts."""

    def __init__(self, cluster: SlurmCluster) -> None:
        self._cluster = cluster
        self.hold(8)
        python = fake_python(cluster, "holding", HOLDING)
        self.run, self.job = start(cluster, NAME, further="--no-compile", python=python)

    def hold(self, step: int) -> None:
        """Let the next start of the program stop after a step."""
        self._cluster.run(f"mkdir -p /fsx/runs/{NAME} && echo {step} >/fsx/runs/{NAME}/hold", user=USER)

    def held_nodes(self, start_number: int) -> list[Node]:
        """Wait until a start of the job is held, and return its nodes in the order of their ranks."""
        self._cluster.wait_until(lambda: f"start {start_number} on " in self.run.log)
        names = self._cluster.run(f"scontrol show hostnames {self._cluster.job(self.job)['NodeList']}").split()
        nodes = [node for name in names for node in self._cluster.nodes if node.name == name]
        nodes[0].sh(f"until pgrep --runstates T --full '{WORKER}'; do sleep 0.1; done")
        return nodes

    def release(self, node: Node) -> None:
        """Let the first rank continue, if it is still there."""
        node.sh(f"pkill -CONT --full '{WORKER}' || true")


def losses_of_an_undisturbed_run(directory: Path) -> dict[int, float]:
    """Train in one process on this machine."""
    subprocess.run(
        [TRAINING_ENVIRONMENT / "bin/python", "-m", "bert", "train", *RUN.split(), "--output", directory],
        env={**ENVIRONMENT, "PYTHONPATH": f"{JOBS}:{JOBS}/programs", "OMP_NUM_THREADS": "1"},
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return Run(directory).losses


def test_a_disturbed_run_ends_with_the_losses_of_an_undisturbed_one(
    training_cluster: SlurmCluster, tmp_path: Path
) -> None:
    cluster, disturbed = training_cluster, DisturbedRun(training_cluster)
    run, job = disturbed.run, disturbed.job

    # A rank is killed.
    nodes = disturbed.held_nodes(1)
    disturbed.hold(12)
    nodes[1].sh(f"pkill -KILL --full '{WORKER}'")
    outcome = run.directory / f".outcome-{job}"
    cluster.wait_until(lambda: outcome.exists() and outcome.stat().st_size > 0)
    disturbed.release(nodes[0])

    # The time limit is near.
    nodes = disturbed.held_nodes(2)
    disturbed.hold(16)
    cluster.run(f"scancel --batch --signal=USR1 {job}")
    cluster.wait_until((run.directory / "stop").exists)
    disturbed.release(nodes[0])

    # Another job takes the nodes, and the newest checkpoint is damaged.
    nodes = disturbed.held_nodes(3)
    disturbed.hold(16)
    [state] = (run.directory / "checkpoints/step-00000016").glob("*.pt")
    os.truncate(state, state.stat().st_size // 2)
    urgent = cluster.submit("true", "--partition=urgent --nodes=4 --exclusive")
    cluster.wait_until(lambda: cluster.job(job)["JobState"] != "RUNNING")
    disturbed.release(nodes[0])
    cluster.wait(urgent)

    # A node is gone. The job fails before Slurm knows it, and may get the node once more.
    nodes = disturbed.held_nodes(4)
    nodes[1].power_off()
    disturbed.release(nodes[0])

    ended = cluster.wait(job)
    assert (ended["JobState"], int(ended["Restarts"]) >= 4) == ("COMPLETED", True), run.log  # a busy node is lost, too
    failed = "failed (137), with a new checkpoint since this start: back into the queue, newest on disk: step-00000008"
    assert failed in run.log
    assert "stopped with a checkpoint: back into the queue, newest on disk: step-00000013" in run.log
    assert "what comes next is Slurm's decision" in run.log
    assert "step-00000016 is passed over: File is not a zip file" in run.log
    starts = re.findall(r"start: from step (\d+) of ", run.log)
    assert list(dict.fromkeys(starts)) == ["8", "13", "16"]
    assert [line["step"] for line in run.metrics] == list(range(1, STEPS + 1))
    assert run.losses == pytest.approx(losses_of_an_undisturbed_run(tmp_path / "undisturbed"), rel=SAME)
