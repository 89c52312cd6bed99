"""Training on a real Slurm: submitted, compiled and trained over nodes, and disturbed in the middle.

A disturbed run must end with the losses of one that nothing disturbed. Random numbers follow from seed, step and place
in the batch, so those of a step are the same however often it is made, and on any number of nodes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Container

import pytest

from tests.end_to_end.slurm.base import USER, ClusterError
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.end_to_end.slurm.training import (
    CLUSTER_JOBS,
    INTERVAL,
    LONG,
    PYTHON,
    STEPS,
    TINY,
    WORKER,
    Run,
    exports,
    fake_python,
    paused,
    submit,
)

pytestmark = [pytest.mark.slow, pytest.mark.system]

SAME = 1e-5
"""Relative difference of losses whose additions are made in another order, by another number of workers."""

Submit = Callable[..., tuple[Run, int]]


@pytest.fixture(scope="module")
def start(training_cluster: SlurmCluster) -> Submit:
    """Return a function that submits a run of this name, and returns it with the number of its training job."""

    def submit_run(
        name: str, options: str = LONG, nodes: int = 2, workers: int = 1, python: str = PYTHON
    ) -> tuple[Run, int]:
        options = f"--nodes {nodes} --output /fsx/runs/{name} {options}"
        printed = submit(training_cluster, options, workers, python)
        [line] = [line for line in printed.splitlines() if line.startswith("train ")]
        return Run(training_cluster, name), int(line.split()[2].rstrip(","))

    return submit_run


@pytest.fixture(scope="module")
def undisturbed(training_cluster: SlurmCluster, start: Submit) -> Run:
    """A run of two workers on each of two nodes."""
    run, job = start("undisturbed", workers=2)
    assert training_cluster.wait(job)["JobState"] == "COMPLETED", run.log
    assert list(run.losses) == list(range(1, STEPS + 1))
    return run


def ends_as(cluster: SlurmCluster, job: int, run: Run, reference: Run, restarts: Container[int] = (1,)) -> None:
    """A run comes to the same end as another, after one of these numbers of restarts, with each step there once."""
    found = cluster.wait(job)
    assert found["JobState"] == "COMPLETED", run.log
    assert int(found["Restarts"]) in restarts, run.log
    assert run.losses == pytest.approx(reference.losses, rel=SAME)
    assert [line["step"] for line in run.metrics] == list(range(1, STEPS + 1))


def test_compile_then_train_over_four_nodes(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    run, job = start("chain", LONG.replace("--no-compile", ""), nodes=4)
    assert training_cluster.job(job)["JobState"] in {"PENDING", "RUNNING"}
    assert training_cluster.wait(job, 180)["JobState"] == "COMPLETED", run.log
    [compiled] = run.directory.glob("compile-*.log")
    assert "compile: exit code 0" in compiled.read_text(encoding="utf-8")
    assert compiled.stat().st_mtime < (run.directory / "checkpoints").stat().st_mtime
    losses = list(run.losses.values())
    assert losses[-1] < losses[0] - 0.5
    assert run.losses == pytest.approx(undisturbed.losses, rel=SAME)


def test_training_goes_away_with_a_compilation_that_fails(training_cluster: SlurmCluster, start: Submit) -> None:
    """The fake passes the check before jobs are submitted, and fails in a job."""
    python = fake_python(training_cluster, "failing-in-jobs", "[[ -z ${SLURM_JOB_ID:-} ]]")
    run, job = start("uncompiled", LONG.replace("--no-compile", ""), python=python)
    assert training_cluster.wait(job)["JobState"] == "CANCELLED"
    [compiled] = run.directory.glob("compile-*.log")
    assert "compile: exit code 1" in compiled.read_text(encoding="utf-8")
    assert not list(run.directory.glob("train-*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--nodes 3", "--nodes: got 3; allowed: 1, 2 or 4"),
        ("--nodes 5", "--nodes: got 5; allowed: 1 to 4, the size of queue trn1"),
        ("--nodes 2 --queue gpu", "--queue: got 'gpu'; allowed: trn1, urgent"),
    ],
)
def test_bad_input_is_told_before_anything_is_submitted(
    training_cluster: SlurmCluster, options: str, message: str
) -> None:
    before = training_cluster.run("scontrol show config | grep NEXT_JOB_ID")
    with pytest.raises(ClusterError, match="exit code 2") as error:
        submit(training_cluster, f"--output /fsx/runs/bad {TINY} {options}")
    assert message in str(error.value)
    assert training_cluster.run("scontrol show config | grep NEXT_JOB_ID") == before


def test_slurm_is_asked_to_warn_the_job_before_its_time_limit(training_cluster: SlurmCluster) -> None:
    told = training_cluster.run(f"sbatch --verbose --test-only {CLUSTER_JOBS}/train.sbatch 2>&1", user=USER)
    assert re.search("signal +: B:USR1@300$", told, re.MULTILINE), told


def test_a_killed_rank(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    run, job = start("rank")
    with paused(training_cluster, run, job) as nodes:
        nodes[1].sh(f"pkill -KILL --full '{WORKER}'; until [[ -s {run.path}/.outcome-{job} ]]; do sleep 0.02; done")
    ends_as(training_cluster, job, run, undisturbed)
    again = f"back into the queue, newest on disk: step-{2 * INTERVAL:08}"
    assert f"failed (137), with a new checkpoint since this start: {again}" in run.log
    assert f"start: from step {2 * INTERVAL} of " in run.log


def test_preemption_with_a_truncated_newest_checkpoint(
    training_cluster: SlurmCluster, start: Submit, undisturbed: Run
) -> None:
    run, job = start("preempted")
    with paused(training_cluster, run, job):
        [state] = (run.directory / f"checkpoints/step-{2 * INTERVAL:08}").glob("*.pt")
        os.truncate(state, state.stat().st_size // 2)
        urgent = training_cluster.submit("true", "--partition=urgent --nodes=4 --exclusive")
        training_cluster.wait_until(lambda: training_cluster.job(job)["JobState"] != "RUNNING")
    training_cluster.wait(urgent)
    ends_as(training_cluster, job, run, undisturbed)
    assert "what comes next is Slurm's decision" in run.log
    assert re.search(rf"step-{2 * INTERVAL:08} is passed over: .*bytes instead of", run.log)
    assert f"start: from step {INTERVAL} of " in run.log


def test_the_signal_before_the_time_limit(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    run, job = start("signalled")
    with paused(training_cluster, run, job):
        training_cluster.run(f"scancel --batch --signal=USR1 {job}")
        training_cluster.wait_until((run.directory / "stop").exists)
    ends_as(training_cluster, job, run, undisturbed)
    # No step is made twice: it stopped with a checkpoint.
    [stopped] = re.findall(r"stopped with a checkpoint: back into the queue, newest on disk: step-(\d+)", run.log)
    assert f"start: from step {int(stopped)} of " in run.log


def by_hand(
    cluster: SlurmCluster, options: str, python: str = PYTHON, user: str = USER, sbatch: str = ""
) -> tuple[dict[str, str], str]:
    """Submit a job without submit.py, wait, and return what Slurm says of it and what it printed."""
    command = f"sbatch --parsable --nodes=1 {sbatch} {CLUSTER_JOBS}/train.sbatch --backend cpu {options}"
    job = int(cluster.run(f"{exports(python=python)}; {command}", user=user))
    return cluster.wait(job, 240), cluster.output(job)


def test_failures_without_progress_come_to_an_end(training_cluster: SlurmCluster) -> None:
    python = fake_python(training_cluster, "failing", "exit 1")
    job, log = by_hand(training_cluster, "--output /fsx/runs/broken", python)
    assert (job["JobState"], job["Restarts"]) == ("FAILED", "3"), log
    assert "failed (1), 3 times in a row without a new checkpoint: back into the queue" in log
    assert "as at 3 starts before: no further restart, see the lines above" in log


@pytest.mark.parametrize(
    ("user", "policy"),
    [
        ("root", "policy: SCHED_FIFO\n"),
        # What a node's slurmd lets users do (LimitRTPRIO), the one of these tests does not: it needs CAP_SYS_RESOURCE.
        (USER, "policy: SCHED_OTHER\n"),
    ],
)
def test_workers_have_the_settings_of_bert_and_real_time_priority_where_it_is_permitted(
    training_cluster: SlurmCluster, user: str, policy: str
) -> None:
    """Without what the submitter has: the environment is that of the node."""
    python = fake_python(training_cluster, f"showing-{user}", "chrt --pid $$; env")
    for node in training_cluster.nodes:
        profile = f"export ULTRACLUSTER_PYTHON={python} WORKER_FIFO_PRIORITY=99\n"
        node.write({"/etc/profile.d/ultracluster.sh": profile})
    job, log = by_hand(training_cluster, f"--output /fsx/output-of-{user}", PYTHON, user, "--export=NONE")
    assert job["JobState"] == "COMPLETED", log
    assert policy in log
    refused = "trains without WORKER_FIFO_PRIORITY=99: chrt: failed to set pid 0's policy: Operation not permitted\n"
    assert log.count(refused) == (user != "root"), log
    assert f"\nMASTER_ADDR=10.99.1.{job['NodeList'][-1]}\n" in log
    assert "\nALLREDUCE_GRADIENTS_BUCKET_SIZE_MB=512\n" in log
    assert "\nNEURON_CC_FLAGS=--model-type=transformer --retry_failed_compilation\n" in log


def stopping(node: str) -> str:
    """Return a Python of an environment whose workers stop on a node, as soon as somebody watches them."""
    return f"""\
export PYTHON_EXEC=$0
[[ ${{SLURMD_NODENAME:-}} == {node} && $* == "-u -m pretraining train "* ]] || exec {PYTHON}/bin/python "$@"
exec {PYTHON}/bin/python -c '
import os, runpy, signal
from pretraining import heartbeat
right = heartbeat.Heartbeat.step
def step(self, number):
    right(self, number)
    if self._limit:
        os.kill(os.getpid(), signal.SIGSTOP)
heartbeat.Heartbeat.step = step
runpy.run_module("pretraining", run_name="__main__", alter_sys=True)' "${{@:4}}"
"""


def test_a_run_that_stands_still_twice_leaves_the_node(
    training_cluster: SlurmCluster, start: Submit, undisturbed: Run
) -> None:
    bad = training_cluster.nodes[1].name
    python = fake_python(training_cluster, "stopping", stopping(bad))
    run, job = start("stalled", f"{LONG} --stall-seconds 20", python=python)
    training_cluster.wait(job, 900)  # it starts three times
    ends_as(training_cluster, job, run, undisturbed, restarts=(2,))
    assert f"stalled: rank 1 on {bad}: after step 5 it " in run.log, run.log
    assert f"stalled: rank 1 on {bad}: after step 9 it " in run.log
    assert run.log.count("failed (76), with a new checkpoint since this start: back into the queue") == 2
    assert run.log.count(f"this job does not run on {bad} any more") == 1
    assert f"scontrol update nodename={bad} state=drain" in run.log
    assert bad not in training_cluster.run(f"scontrol show hostnames {training_cluster.job(job)['NodeList']}").split()
    for stall in (f"{job}.0", f"{job}.1"):
        assert len(list((run.directory / "stalls" / stall).glob("trn1-*.txt"))) == 2


def test_a_lost_node(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    """The last test: the node is gone after it."""
    run, job = start("lost")
    with paused(training_cluster, run, job) as nodes:
        nodes[1].power_off()
    # The job fails before Slurm knows that the node is gone, and may get it once more.
    ends_as(training_cluster, job, run, undisturbed, restarts=(1, 2))
    assert f"start: from step {2 * INTERVAL} of " in run.log, run.log
