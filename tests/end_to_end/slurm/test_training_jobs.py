"""Training on a real Slurm: submitted, compiled and trained over nodes, and jobs that fail."""

from __future__ import annotations

import json
import re

import pytest

from tests.end_to_end.slurm.base import USER
from tests.end_to_end.slurm.cluster import SlurmCluster
from tests.end_to_end.slurm.training import CLUSTER_JOBS, PYTHON, STEPS, exports, fake_python, start
from tests.training.test_environments import write_wheel

pytestmark = [pytest.mark.slow, pytest.mark.system]


@pytest.mark.scenario
def test_compile_then_train_with_two_workers_on_each_of_two_nodes(training_cluster: SlurmCluster) -> None:
    run, job = start(training_cluster, "chain", workers=2)
    assert training_cluster.job(job)["JobState"] in {"PENDING", "RUNNING"}
    assert training_cluster.wait(job)["JobState"] == "COMPLETED", run.log
    [compiled] = run.directory.glob("compile-*.log")
    assert "compile: exit code 0" in compiled.read_text(encoding="utf-8")
    assert compiled.stat().st_mtime < (run.directory / "checkpoints").stat().st_mtime
    [attempt] = json.loads((run.directory / "run.json").read_text(encoding="utf-8"))["attempts"]
    assert (attempt["nodes"], attempt["workers"], len(set(attempt["hosts"]))) == (2, 4, 2)
    assert list(run.losses) == list(range(1, STEPS + 1))
    assert run.losses[STEPS] < run.losses[1] - 0.2


def test_two_nodes_train_once_both_have_compiled(training_cluster: SlurmCluster) -> None:
    """The fake shows when which node starts what."""
    python = fake_python(training_cluster, "showing", 'echo "$(date +%s%N) node $SLURM_NODEID: $*"')
    run, job = start(training_cluster, "shown", workers=2, python=python)
    assert training_cluster.wait(job)["JobState"] == "COMPLETED", run.log
    [compiled] = run.directory.glob("compile-*.log")
    times = []
    for log in (compiled.read_text(encoding="utf-8"), run.log):
        pattern = r"^(\d+) node (\d): -m ultracluster_job.launch --nnodes 2 --node-rank (\d) "
        started = re.findall(pattern, log, re.MULTILINE)
        assert sorted(rank for _, *rank in started) == [["0", "0"], ["1", "1"]], log
        times.append([time for time, *_ in started])
    assert max(times[0]) < min(times[1])


def test_training_is_cancelled_if_the_compilation_fails(training_cluster: SlurmCluster) -> None:
    """The fake passes the check before jobs are submitted, and fails in a job."""
    python = fake_python(training_cluster, "failing-in-jobs", "[[ -z ${SLURM_JOB_ID:-} ]]")
    run, job = start(training_cluster, "uncompiled", python=python)
    assert training_cluster.wait(job)["JobState"] == "CANCELLED"
    [compiled] = run.directory.glob("compile-*.log")
    assert "compile: exit code 1" in compiled.read_text(encoding="utf-8")
    assert not run.log


def test_a_program_has_another_version_of_a_library_than_the_cluster(training_cluster: SlurmCluster) -> None:
    cluster, wheels = training_cluster, training_cluster.directory / "shared/fsx/wheels"
    write_wheel(wheels, "idna", "99")
    program = cluster.directory / "shared/fsx/version.py"
    program.write_text("import idna, torch; print('idna', idna.version, 'with torch', torch.__version__)\n")
    before = f"{exports()} PATH=/fsx/bin:$PATH UV_CACHE_DIR=/fsx/runs/cache"
    requirements = "printf -- '--no-index\\n--find-links /fsx/wheels\\nidna==99\\n'"
    printed = cluster.run(f"{before}; {requirements} | python3 {CLUSTER_JOBS}/environments.py create 2>&1", user=USER)
    [name] = re.findall(r"--env (\S+)", printed)
    words = f"--nodes 1 --output /fsx/runs/other --program /fsx/version.py --env {name}"
    submitted = cluster.run(f"{before}; {PYTHON}/bin/python {CLUSTER_JOBS}/submit.py {words} 2>&1", user=USER)
    job = int(re.findall(r"^train +job (\d+)", submitted, re.MULTILINE)[0])
    ended = cluster.wait(job)
    log = (cluster.directory / f"shared/fsx/runs/other/train-{job}.log").read_text(encoding="utf-8")
    assert ended["JobState"] == "COMPLETED", log
    assert re.search(r"^idna 99 with torch \d", log, re.MULTILINE), log


def test_slurm_is_asked_to_warn_the_job_before_its_time_limit(training_cluster: SlurmCluster) -> None:
    options = training_cluster.run(f"sbatch --verbose --test-only {CLUSTER_JOBS}/train.sbatch 2>&1", user=USER)
    assert re.search("signal +: B:USR1@300$", options, re.MULTILINE), options


def by_hand(
    cluster: SlurmCluster, output: str, python: str, user: str = USER, sbatch: str = ""
) -> tuple[dict[str, str], str]:
    """Submit a job without submit.py, wait, and return what Slurm says of it and what it printed."""
    words = f"{CLUSTER_JOBS}/train.sbatch {CLUSTER_JOBS}/programs/bert {output} --backend cpu"
    command = f"sbatch --parsable --nodes=1 {sbatch} {words}"
    job = int(cluster.run(f"{exports(python=python)}; {command}", user=user))
    return cluster.wait(job), cluster.output(job)


def test_stalls_without_progress_exclude_the_node_that_is_named_twice_and_end_the_job(
    training_cluster: SlurmCluster,
) -> None:
    """The fake ends as the launcher does whose watchdog names a node."""
    bad = training_cluster.nodes[0].name
    stall = f'mkdir -p "$ULTRACLUSTER_STALLS" && echo {bad} >"$ULTRACLUSTER_STALLS/named"; exit 76'
    job, log = by_hand(training_cluster, "/fsx/runs/broken", fake_python(training_cluster, "stalling", stall))
    assert (job["JobState"], job["Restarts"]) == ("FAILED", "3"), log
    assert "failed (76), 3 times in a row without a new checkpoint: back into the queue" in log
    assert "as at 3 starts before: no further restart, see the lines above" in log
    assert f"scontrol update nodename={bad} state=drain" in log
    assert f"this job does not run on {bad} any more" in log
    assert set(job["ExcNodeList"].split(",")) == {bad}
    assert job["NodeList"] != bad


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
    output = f"/fsx/output-of-{user}"
    job, log = by_hand(training_cluster, output, PYTHON, user, "--export=NONE")
    assert job["JobState"] == "COMPLETED", log
    assert policy in log
    refused = "trains without WORKER_FIFO_PRIORITY=99: chrt: failed to set pid 0's policy: Operation not permitted\n"
    assert log.count(refused) == (user != "root"), log
    assert f"\nMASTER_ADDR=10.99.1.{job['NodeList'][-1]}\n" in log
    assert f"\nULTRACLUSTER_NODES={job['NodeList']}\n" in log
    assert f"\nULTRACLUSTER_STALLS={output}/stalls/{job['JobId']}.0\n" in log
    assert "\nALLREDUCE_GRADIENTS_BUCKET_SIZE_MB=512\n" in log
    assert "\nNEURON_CC_FLAGS=--model-type=transformer --retry_failed_compilation\n" in log
