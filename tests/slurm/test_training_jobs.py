"""Training on a real Slurm: submitted, compiled and trained over nodes, and disturbed in the middle.

A disturbed run must end with the losses of one that nothing disturbed. Random numbers follow from seed, step and place
in the batch, so those of a step are the same however often it is made, and on any number of nodes.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager

import pytest

from tests.slurm.base import USER, USER_ID, ClusterError
from tests.slurm.cluster import Node, SlurmCluster
from tests.slurm.training import PYTHON, SETTINGS, TINY, Run, submit, write_data

pytestmark = [pytest.mark.slow, pytest.mark.system]

STEPS, INTERVAL = 24, 4
LONG = f"{TINY} --steps {STEPS} --checkpoint-interval {INTERVAL} --no-compile"

WORKER = " -m [p]retraining train"
"""A pattern for the processes that train, which does not match itself."""

Submit = Callable[..., tuple[Run, int]]


@pytest.fixture(scope="module")
def start(training_cluster: SlurmCluster) -> Submit:
    """Return a function that submits a run of this name, and returns it with the number of its training job."""

    def submit_run(name: str, options: str = LONG, nodes: int = 2) -> tuple[Run, int]:
        printed = submit(training_cluster, f"--nodes {nodes} --output /fsx/runs/{name} {options}")
        [line] = [line for line in printed.splitlines() if line.startswith("train ")]
        return Run(training_cluster, name), int(line.split()[2].rstrip(","))

    return submit_run


@pytest.fixture(scope="module")
def undisturbed(training_cluster: SlurmCluster, start: Submit) -> Run:
    run, job = start("undisturbed")
    assert training_cluster.wait(job)["JobState"] == "COMPLETED", run.log
    assert list(run.losses) == list(range(1, STEPS + 1))
    return run


def nodes_of(cluster: SlurmCluster, job: int) -> list[Node]:
    """Return the nodes of a running job, in the order of their ranks."""
    names = cluster.run(f"scontrol show hostnames {cluster.job(job)['NodeList']}").split()
    return [node for name in names for node in cluster.nodes if node.name == name]


@contextmanager
def paused(cluster: SlurmCluster, run: Run, job: int) -> Iterator[list[Node]]:
    """Hold a run after its second checkpoint, and give its nodes: all ranks wait for the first one."""
    cluster.wait_until(lambda: cluster.job(job)["JobState"] == "RUNNING")
    nodes = nodes_of(cluster, job)
    reached = f"[[ -d {run.path}/checkpoints/step-{2 * INTERVAL:08} ]]"
    nodes[0].sh(f"until {reached}; do sleep 0.02; done; pkill -STOP --full '{WORKER}'", timeout=180)
    assert len(run.metrics) < STEPS - INTERVAL, "the run was too fast to be held"
    yield nodes
    nodes[0].sh(f"pkill -CONT --full '{WORKER}' || true")


def ends_as(cluster: SlurmCluster, job: int, run: Run, reference: Run, restarts: Container[int] = (1,)) -> None:
    """A run comes to the same end as another, after one of these numbers of restarts, with each step there once."""
    found = cluster.wait(job)
    assert found["JobState"] == "COMPLETED", run.log
    assert int(found["Restarts"]) in restarts, run.log
    assert run.losses == pytest.approx(reference.losses, rel=1e-5)
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
    assert run.losses == pytest.approx(undisturbed.losses, rel=1e-4)  # the order of additions differs


def test_one_node_learns_the_same(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    run, job = start("one-node", nodes=1)
    assert training_cluster.wait(job)["JobState"] == "COMPLETED", run.log
    assert run.losses == pytest.approx(undisturbed.losses, rel=1e-4)


def test_lamb_learns(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    run, job = start("lamb", f"{LONG} --optimizer lamb", nodes=1)
    assert training_cluster.wait(job)["JobState"] == "COMPLETED", run.log
    losses = list(run.losses.values())
    assert losses[-1] < losses[0] - 0.2
    assert losses[-1] != undisturbed.losses[STEPS]


def test_a_killed_rank(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    run, job = start("rank")
    with paused(training_cluster, run, job) as nodes:
        nodes[1].sh(f"pkill -KILL --full '{WORKER}'; until [[ -s {run.path}/.outcome-{job} ]]; do sleep 0.02; done")
    ends_as(training_cluster, job, run, undisturbed)
    again = f"back into the queue, to go on from step-{2 * INTERVAL:08}"
    assert f"failed (137), with a new checkpoint since this start: {again}" in run.log


def test_preemption(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    run, job = start("preempted")
    with paused(training_cluster, run, job):
        urgent = training_cluster.submit("true", "--partition=urgent --nodes=4 --exclusive")
        training_cluster.wait_until(lambda: training_cluster.job(job)["JobState"] != "RUNNING")
    training_cluster.wait(urgent)
    ends_as(training_cluster, job, run, undisturbed)
    assert "what comes next is Slurm's decision" in run.log


def test_the_signal_before_the_time_limit(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    run, job = start("signalled")
    with paused(training_cluster, run, job):
        training_cluster.run(f"scancel --batch --signal=USR1 {job}")
        training_cluster.wait_until((run.directory / "stop").exists)
    ends_as(training_cluster, job, run, undisturbed)
    # No step is made twice: it stopped with a checkpoint.
    [stopped] = re.findall(r"stopped with a checkpoint: back into the queue, to go on from step-(\d+)", run.log)
    [resumed] = re.findall(r"train: start 2 on 2 nodes, \S+, from step-(\d+)", run.log)
    assert stopped == resumed


def test_a_full_disk_during_a_checkpoint(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    """Each node has a disk of its own for checkpoints here. The first rank alone writes any."""
    checkpoints = "/fsx/runs/full/checkpoints"
    for node in training_cluster.nodes:
        node.sh(f"mkdir -p {checkpoints}; chown -R {USER} /fsx/runs/full")
        node.sh(f"mount -t tmpfs -o size=64m,mode=1777 tmpfs {checkpoints}")
    run, job = start("full")
    with paused(training_cluster, run, job) as nodes:
        nodes[0].sh(f"cat /dev/zero >{checkpoints}/filler 2>/dev/null || true")
    told = f"grep -q 'was not saved' {run.path}/train-*.log"
    nodes[0].sh(f"until {told}; do sleep 0.02; done; rm {checkpoints}/filler", timeout=120)
    ends_as(training_cluster, job, run, undisturbed, restarts=(0,))
    assert nodes[0].sh(f"ls {checkpoints}").split()[-1] == f"step-{STEPS:08}"


def test_a_truncated_newest_checkpoint(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    damaged = undisturbed.directory.with_name("damaged")
    shutil.copytree(undisturbed.directory, damaged, ignore=shutil.ignore_patterns("*.log"))
    for path in (damaged, *damaged.rglob("*")):
        os.chown(path, USER_ID, USER_ID)
    [state] = (damaged / f"checkpoints/step-{STEPS:08}").glob("*.pt")
    os.truncate(state, state.stat().st_size // 2)
    run, job = start("damaged")
    ends_as(training_cluster, job, run, undisturbed, restarts=(0,))
    assert re.search(rf"step-{STEPS:08} is passed over: .*bytes instead of", run.log)


def by_hand(cluster: SlurmCluster, options: str, python: str = PYTHON) -> tuple[dict[str, str], str]:
    """Submit a job without submit.py, wait, and return what Slurm says of it and what it printed."""
    command = f"sbatch --parsable --nodes=1 /fsx/ultracluster/jobs/current/train.sbatch --backend cpu {options}"
    job = int(cluster.run(f"export {SETTINGS} ULTRACLUSTER_PYTHON={python}; {command}", user=USER))
    return cluster.wait(job, 240), cluster.output(job)


def ending_with(cluster: SlurmCluster, code: int) -> str:
    """Return the directory of an environment whose Python ends at once with an exit code."""
    python = cluster.directory / f"shared/fsx/ending-with-{code}/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/bash\nexit {code}\n", encoding="utf-8")
    python.chmod(0o755)
    return f"/fsx/ending-with-{code}"


def test_failures_without_progress_come_to_an_end(training_cluster: SlurmCluster) -> None:
    job, log = by_hand(training_cluster, "--output /fsx/runs/broken", ending_with(training_cluster, 1))
    assert (job["JobState"], job["Restarts"]) == ("FAILED", "3"), log
    assert "failed (1), 3 times in a row without a new checkpoint: back into the queue" in log
    assert "as at 3 starts before: given up, see the lines above" in log


def test_a_loss_that_is_not_finite_ends_it(training_cluster: SlurmCluster) -> None:
    job, log = by_hand(training_cluster, "--output /fsx/runs/diverged", ending_with(training_cluster, 3))
    assert (job["JobState"], job["ExitCode"], job["Restarts"]) == ("FAILED", "3:0", "0"), log
    assert "a loss is not finite, see the lines above: not requeued" in log


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--output /fsx/runs/wrong --steps 0", "--steps: got '0'; allowed: a whole number from 1 on"),
        ("--steps 1", "--output: got ''; allowed: a directory on the shared file system that you may write"),
    ],
)
def test_bad_input_in_a_job_ends_it(training_cluster: SlurmCluster, options: str, message: str) -> None:
    job, log = by_hand(training_cluster, options)
    assert (job["JobState"], job["ExitCode"], job["Restarts"]) == ("FAILED", "2:0", "0"), log
    assert message in log


def test_a_cancelled_job_stays_cancelled(training_cluster: SlurmCluster, start: Submit) -> None:
    run, job = start("cancelled", nodes=1)
    with paused(training_cluster, run, job):
        training_cluster.run(f"scancel {job}")
    assert training_cluster.wait(job)["JobState"] == "CANCELLED"
    training_cluster.wait_until(lambda: "Slurm's decision" in run.log)
    assert training_cluster.job(job)["JobState"] == "CANCELLED"


@pytest.fixture(scope="module")
def data(training_cluster: SlurmCluster) -> None:
    """Shards in /fsx/data, and a file system without much space in /fsx/full."""
    write_data(training_cluster.directory / "shared/fsx/data")
    training_cluster.run("mkdir /fsx/full; mount -t tmpfs -o size=64m,mode=1777 tmpfs /fsx/full")


DATA = f"{TINY} --vocabulary 512 --nodes 2 --data /fsx/data"
LARGE = f"{TINY} --nodes 2 --layers 8 --hidden 1024"
BAD_INPUT = {
    "an option": (f"{TINY} --nodes 2 --steps many --optimiser lamb", "--steps: got 'many'; allowed: a whole number"),
    "nodes that do not divide the batch": (f"{TINY} --nodes 3", "--nodes: got 3; allowed: 1, 2 or 4"),
    "a missing tokenizer": (f"{TINY} --nodes 2 --tokenizer /fsx/none", "--tokenizer: got /fsx/none; allowed: "),
    "missing data": (f"{TINY} --nodes 2 --data /fsx/none", "--data: got /fsx/none"),
    "a shard with wrong keys": (f"{DATA}/wrong", "has no dataset segment_ids"),
    "fewer sequences than a global batch": (f"{DATA}/few", "with 16 sequences; allowed: one global batch, 32, or more"),
    "no space": (f"{LARGE} --output /fsx/full/run", "--output: got /fsx/full/run with 0.1 GB free; allowed: "),
    "nodes that there are not": (f"{TINY} --nodes 5", "--nodes: got 5; allowed: 1 to 4, the size of queue trn1"),
    "a queue that there is not": (f"{TINY} --nodes 2 --queue gpu", "--queue: got 'gpu'; allowed: trn1, urgent"),
}


@pytest.mark.parametrize("fault", BAD_INPUT)
@pytest.mark.usefixtures("data")
def test_bad_input_is_told_before_anything_is_submitted(training_cluster: SlurmCluster, fault: str) -> None:
    options, message = BAD_INPUT[fault]
    before = training_cluster.run("scontrol show config | grep NEXT_JOB_ID")
    with pytest.raises(ClusterError, match="exit code 2") as error:
        submit(training_cluster, f"--output /fsx/runs/bad {options}")
    assert message in str(error.value)
    assert training_cluster.run("scontrol show config | grep NEXT_JOB_ID") == before
    assert not (training_cluster.directory / "shared/fsx/runs/bad").exists()
    assert training_cluster.run("ls /fsx/full") == ""


@pytest.mark.usefixtures("data")
def test_fewer_shards_than_workers_are_told_and_no_fault(training_cluster: SlurmCluster) -> None:
    printed = submit(training_cluster, f"--output /fsx/runs/planned {DATA}/good --dry-run")
    assert "data: 32 sequences in 1 shards\nnote: fewer shards than the 2 workers" in printed


def test_a_directory_is_for_one_job(training_cluster: SlurmCluster, start: Submit) -> None:
    _, job = start("taken", f"{LONG} --time 1")
    with pytest.raises(ClusterError, match=f"/fsx/runs/taken, which job {job} uses; .* scancel {job}"):
        start("taken")
    training_cluster.run(f"scancel {job}")


def test_a_lost_node(training_cluster: SlurmCluster, start: Submit, undisturbed: Run) -> None:
    """The last test: the node is gone after it."""
    run, job = start("lost")
    with paused(training_cluster, run, job) as nodes:
        nodes[1].power_off()
    # The job fails before Slurm knows that the node is gone, and may get it once more.
    ends_as(training_cluster, job, run, undisturbed, restarts=(1, 2))
    assert f"from step-{2 * INTERVAL:08}" in run.log
