"""A training job on a real Slurm that is disturbed in all ways ends with the losses of a run that nothing disturbs.

Random numbers follow from seed, step and position in the batch, so those of a step are the same however often it is
made, and on any number of nodes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.end_to_end.slurm.base import ENVIRONMENT, USER
from tests.end_to_end.slurm.cluster import Node, SlurmCluster
from tests.end_to_end.slurm.training import (
    CLUSTER_JOBS,
    JOBS,
    MINE,
    PYTHON,
    RUN,
    STEPS,
    Run,
    exports,
    fake_python,
    start,
)  # fmt: skip
from tests.end_to_end.slurm.training import ENVIRONMENT as TRAINING_ENVIRONMENT
from tests.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.system]

SAME = 1e-5
"""Relative difference of losses whose additions are made in another order, by another number of workers."""

WORKER = "[r]unpy.run_"
"""A pattern for the processes that train, which does not match itself."""

HOLDING_BERT = f"""\
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

HOLDING_MINE = f"""\
export PYTHON_EXEC=$0
[[ $* == "-u /"* ]] || exec {PYTHON}/bin/python "$@"
exec {PYTHON}/bin/python -c '
import os, runpy, signal, sys
from pathlib import Path
import ultracluster_job
from ultracluster_job import calls
def held():
    hold, recorder = Path(os.environ["ULTRACLUSTER_RUN"]) / "hold", calls._job().recorder
    if recorder and recorder._last and hold.exists() and int(hold.read_text()) == recorder._last.step:
        hold.unlink()
        os.kill(os.getpid(), signal.SIGSTOP)
    calls.beat()
ultracluster_job.beat = held
sys.argv.pop(0)
runpy.run_path(sys.argv[0], run_name="__main__")' "${{@:2}}"
"""
"""The same for a program that the project does not know."""


class Program(NamedTuple):
    """What is disturbed.

    Attributes:
        python: The Python of an environment that holds it.
        further: Options of submit.py.
        options: Its own.
        alone: The command that runs it in one process.
        at: The steps after which it is disturbed; the first and the last have a checkpoint.
    """

    python: str
    further: str
    options: str
    alone: Sequence[str]
    at: tuple[int, int, int]


PROGRAMS = {
    "bert": Program(HOLDING_BERT, "", RUN, ["-m", "bert", "train", *RUN.split()], (8, 12, 16)),
    "mine": Program(
        HOLDING_MINE, f"--program {MINE}", str(STEPS), [str(JOBS.parent / "tests/training/mine/train.py"), str(STEPS)],
        (10, 12, 15),
    ),
}  # fmt: skip


class DisturbedRun:
    """A job and its run, held after a step at each of its starts."""

    def __init__(self, cluster: SlurmCluster, name: str) -> None:
        self._cluster, self._name = cluster, f"disturbed-{name}"
        program = PROGRAMS[name]
        self.hold(program.at[0])
        python = fake_python(cluster, f"holding-{name}", program.python)
        further = f"--no-compile {program.further}"
        self.run, self.job = start(cluster, self._name, further=further, options=program.options, python=python)

    def hold(self, step: int) -> None:
        """Let the next start of the program stop after a step."""
        self._cluster.run(f"mkdir -p /fsx/runs/{self._name} && echo {step} >/fsx/runs/{self._name}/hold", user=USER)

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


def losses_of_an_undisturbed_run(name: str, directory: Path) -> dict[int, float]:
    """Train in one process on this machine."""
    directory.mkdir()
    alone = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    path = {"PYTHONPATH": f"{JOBS}:{JOBS}/programs", "ULTRACLUSTER_RUN": str(directory)}
    output = ["--output", str(directory)] if name == "bert" else []
    subprocess.run(
        [TRAINING_ENVIRONMENT / "bin/python", *PROGRAMS[name].alone, *output],
        env={**ENVIRONMENT, "OMP_NUM_THREADS": "1", **path, **(alone if name == "mine" else {})},
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return Run(directory).losses


@pytest.mark.scenario
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_disturbed_run_ends_with_the_losses_of_an_undisturbed_one(
    cluster_to_break: SlurmCluster, tmp_path: Path, name: str
) -> None:
    first, second, third = PROGRAMS[name].at
    cluster, disturbed = cluster_to_break, DisturbedRun(cluster_to_break, name)
    run, job = disturbed.run, disturbed.job

    # A rank is killed.
    nodes = disturbed.held_nodes(1)
    disturbed.hold(second)
    nodes[1].sh(f"pkill -KILL --full '{WORKER}'")
    outcome = run.directory / f".outcome-{job}"
    cluster.wait_until(lambda: outcome.exists() and outcome.stat().st_size > 0)
    disturbed.release(nodes[0])

    # The time limit is near.
    nodes = disturbed.held_nodes(2)
    disturbed.hold(third)
    cluster.run(f"scancel --batch --signal=USR1 {job}")
    cluster.wait_until((run.directory / "stop").exists)
    disturbed.release(nodes[0])

    # Another job takes the nodes, and the newest checkpoint is damaged.
    nodes = disturbed.held_nodes(3)
    disturbed.hold(third)
    newest = next((run.directory / "checkpoints").glob(f"step-*{third}"))
    state = newest if newest.is_file() else newest / "state.pt"
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
    again = rf"failed \(137\), with a new checkpoint since this start: .*, newest on disk: step-0*{first}\n"
    assert re.search(again, run.log), run.log
    assert re.search(rf"stopped with a checkpoint: back into the queue, newest on disk: step-0*{second + 1}\n", run.log)
    assert "what comes next is Slurm's decision" in run.log
    assert re.search(rf"step-0*{third} is passed over: .*File is not a zip file", run.log)
    attempts = json.loads((run.directory / "run.json").read_text(encoding="utf-8"))["attempts"]
    assert list(dict.fromkeys(each["resumed_step"] for each in attempts)) == [0, first, second + 1, third]
    assert [line["step"] for line in run.metrics] == list(range(1, STEPS + 1))
    assert run.losses == pytest.approx(losses_of_an_undisturbed_run(name, tmp_path / "undisturbed"), rel=SAME)


RUN_IT = """\
sys.argv.pop(0)
if sys.argv[0] == "-m":
    sys.argv.pop(0)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")' "${@:2}"
"""
"""The end of such a Python: it runs what it was called with."""

FULL = f"""\
export PYTHON_EXEC=$0
[[ $* == "-u "* ]] || exec {PYTHON}/bin/python "$@"
exec {PYTHON}/bin/python -c '
import runpy, sys, torch
def save(*_, **__):
    open("/dev/full", "wb", buffering=0).write(b"state")
torch.save = save
{RUN_IT}"""
"""A Python on a file system that has no room for checkpoints."""


@pytest.mark.scenario
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_full_file_system_ends_the_job_after_three_restarts_and_is_named(
    training_cluster: SlurmCluster, name: str
) -> None:
    program = PROGRAMS[name]
    python = fake_python(training_cluster, f"full-{name}", FULL)
    further = f"--no-compile {program.further}"
    run, job = start(training_cluster, f"full-{name}", further=further, options=program.options, python=python)
    ended = training_cluster.wait(job)
    assert (ended["JobState"], ended["Restarts"]) == ("FAILED", "3"), run.log
    assert "as at 3 starts before: no further restart, see the lines above" in run.log
    assert "No space left on device" in run.log


STOPPING = f"""\
export PYTHON_EXEC=$0
[[ $* == "-u "* && $RANK == 1 && ! -e /fsx/runs/$SLURM_JOB_COMMENT/once ]] || exec {PYTHON}/bin/python "$@"
exec {PYTHON}/bin/python -c '
import os, runpy, signal, sys
from pathlib import Path
from ultracluster_job import heartbeat
step = heartbeat.Heartbeat.step
def stopped(self, number):
    step(self, number)
    if number == 11:
        (Path(os.environ["ULTRACLUSTER_STALLS"]).parents[1] / "once").touch()
        os.kill(os.getpid(), signal.SIGSTOP)
heartbeat.Heartbeat.step = stopped
{RUN_IT}"""
"""A Python whose second rank stops itself once."""


@pytest.mark.parametrize("name", [pytest.param("bert", marks=pytest.mark.scenario), "mine"])
def test_a_stopped_rank_is_named_and_the_run_continues(training_cluster: SlurmCluster, name: str) -> None:
    program = PROGRAMS[name]
    python = fake_python(
        training_cluster, f"stopping-{name}", STOPPING.replace("$SLURM_JOB_COMMENT", f"stopped-{name}")
    )
    options = f"{program.options} --stall-seconds 3" if name == "bert" else program.options
    run, job = start(
        training_cluster, f"stopped-{name}", further=f"--no-compile {program.further}", options=options,
        before="export ULTRACLUSTER_STALL_SECONDS=3", python=python,
    )  # fmt: skip
    ended = training_cluster.wait(job)
    assert (ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), run.log
    assert re.search(r"stalled: rank 1 on \S+: after step 11 .*, its process is stopped", run.log), run.log
    assert "failed (76), with a new checkpoint since this start: back into the queue" in run.log
    assert [line["step"] for line in run.metrics] == list(range(1, STEPS + 1))


@pytest.mark.scenario
def test_a_batch_script_is_taken_as_it_is_and_survives_the_loss_of_a_node(cluster_to_break: SlurmCluster) -> None:
    cluster, output = cluster_to_break, "/fsx/runs/script"
    script = '#!/bin/bash\necho "start for $1 with $2"\n[[ -e $1/go ]] || sleep 600\necho done\n'
    cluster.run(f"mkdir -p {output} && cat >/fsx/runs/script.sh <<'END'\n{script}END", user=USER)
    words = f"--nodes 1 --output {output} --program /fsx/runs/script.sh -- 'a b'"
    printed = cluster.run(f"{exports()}; {PYTHON}/bin/python {CLUSTER_JOBS}/submit.py {words} 2>&1", user=USER)
    job = int(re.findall(r"^job +job (\d+)", printed, re.MULTILINE)[0])
    cluster.wait_until(lambda: cluster.job(job)["JobState"] == "RUNNING")
    [node] = [each for each in cluster.nodes if each.name == cluster.job(job)["NodeList"]]
    node.power_off()
    cluster.run(f"touch {output}/go", user=USER)
    ended = cluster.wait(job)
    log = (cluster.directory / f"shared/fsx/runs/script/job-{job}.log").read_text(encoding="utf-8")
    assert ended["JobState"] == "COMPLETED", log
    assert log.count(f"start for {output} with a b") == 2, log
